/* Chains of arithmetic, by the processor: as many at once as its vectors hold. */
#include <math.h>

#include "base/size.h"
#include "kernels/lab/calls.h"

enum { AT_ONCE = 256 };

static int32_t mul24(int32_t x)
{
    int64_t low = (int64_t)(x & 0xffffff) - (x & 0x800000 ? 0x1000000 : 0);
    return (int32_t)(uint32_t)(low * GM_MATH_INT_FACTOR);
}

/* All steps of the chains j that begin with an argument of their own: the others would have the same results. */
#define CHAINS(name, T, next)                                                                                       \
    static void chains_##name(int threads, const gm_math_call *c)                                                   \
    {                                                                                                               \
        const T *src = c->src;                                                                                      \
        T *dst = c->dst;                                                                                            \
        _Pragma("omp parallel for num_threads(threads)") for (int64_t first = 0; first < c->args; first += AT_ONCE) \
        {                                                                                                           \
            T at_once[AT_ONCE];                                                                                     \
            int count = (int)gm_min(AT_ONCE, c->args - first);                                                      \
            for (int i = 0; i < AT_ONCE; i++)                                                                       \
                at_once[i] = src[first + (i < count ? i : 0)];                                                      \
            for (int64_t r = 0; r < c->rounds; r++)                                                                 \
                for (int i = 0; i < AT_ONCE; i++) {                                                                 \
                    T x = at_once[i];                                                                               \
                    at_once[i] = next;                                                                              \
                }                                                                                                   \
            for (int i = 0; i < count; i++)                                                                         \
                dst[first + i] = at_once[i];                                                                        \
        }                                                                                                           \
    }

CHAINS(fma, float, fmaf(x, GM_MATH_FACTOR, GM_MATH_ADDEND))
CHAINS(mul, float, x *GM_MATH_FACTOR)
CHAINS(add, float, x + GM_MATH_ADDEND)
CHAINS(int_mul, uint32_t, x *(uint32_t)GM_MATH_INT_FACTOR)
CHAINS(int_mul24, int32_t, mul24(x))
CHAINS(div, float, GM_MATH_DIVIDEND / x)
CHAINS(sqrt, float, sqrtf(x))
CHAINS(fma_f64, double, fma(x, (double)GM_MATH_FACTOR, (double)GM_MATH_ADDEND))

int gm_cpu_math(int threads, const gm_math_call *call)
{
    static void (*const chains[GM_MATH_CPU_STEPS])(int threads,
                                                   const gm_math_call *c) = {[GM_MATH_FMA] = chains_fma,
                                                                             [GM_MATH_MUL] = chains_mul,
                                                                             [GM_MATH_ADD] = chains_add,
                                                                             [GM_MATH_INT_MUL] = chains_int_mul,
                                                                             [GM_MATH_INT_MUL24] = chains_int_mul24,
                                                                             [GM_MATH_DIV] = chains_div,
                                                                             [GM_MATH_SQRT] = chains_sqrt,
                                                                             [GM_MATH_FMA_F64] = chains_fma_f64};
    chains[call->step](threads, call);
    return GM_OK;
}
