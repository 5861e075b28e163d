/* Chains of arithmetic: a thread has several that do not depend on each other, so the units always have work. */
#include <cuda_runtime.h>

#include "kernels/lab/calls.h"

enum { THREADS = 256, EACH = GM_MATH_TILE / THREADS };

/* The steps; a and b: what is multiplied and added, unknown to the compiler. LOOP: steps in the body of the loop. */
#define STEP(name, T, steps, next)                              \
    struct name {                                               \
        typedef T type;                                         \
        enum { LOOP = steps };                                  \
        static __device__ __forceinline__ T step(T x, T a, T b) \
        {                                                       \
            return next;                                        \
        }                                                       \
    };

/* The compiler would multiply the factors of several steps first, or keep 24 bits once for several of them. */
static __device__ __forceinline__ int times(int x, int a)
{
    asm volatile("mul.lo.s32 %0, %0, %1;" : "+r"(x) : "r"(a));
    return x;
}

/* mul24.lo.s32 is __mul24(). */
static __device__ __forceinline__ int times24(int x, int a)
{
    asm volatile("mul24.lo.s32 %0, %0, %1;" : "+r"(x) : "r"(a));
    return x;
}

STEP(Fma, float, 16, __fmaf_rn(x, a, b))
STEP(Mul, float, 16, ((void)b, __fmul_rn(x, a)))
STEP(Add, float, 16, ((void)a, __fadd_rn(x, b)))
STEP(IntMul, int, 16, ((void)b, times(x, a)))
STEP(IntMul24, int, 4, ((void)b, times24(x, a)))
STEP(Div, float, 1, ((void)a, b / x))
STEP(Sqrt, float, 1, ((void)a, (void)b, sqrtf(x)))
STEP(FmaF64, double, 16, __fma_rn(x, a, b))
STEP(SqrtRn, float, 1, ((void)a, (void)b, __fsqrt_rn(x)))
STEP(Rsqrt, float, 2, ((void)a, (void)b, rsqrtf(x)))
STEP(FastDiv, float, 2, ((void)a, __fdividef(b, x)))
STEP(Sin, float, 1, ((void)a, (void)b, sinf(x)))
STEP(FastSin, float, 4, ((void)a, (void)b, __sinf(x)))
STEP(Exp, float, 2, ((void)a, (void)b, expf(-x)))
STEP(FastExp, float, 4, ((void)a, (void)b, __expf(-x)))

/* Threads of equal arguments store equal results. */
template <class STEP>
static __global__ void __launch_bounds__(THREADS)
    chains(const typename STEP::type *src, typename STEP::type *dst, int64_t rounds, int64_t args,
           typename STEP::type a, typename STEP::type b)
{
    int64_t threads = (int64_t)gridDim.x * THREADS, t = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    typename STEP::type x[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++)
        x[e] = src[(t + e * threads) & (args - 1)];
#pragma unroll(STEP::LOOP)
    for (int r = 0; r < (int)rounds; r++) {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            x[e] = STEP::step(x[e], a, b);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
        dst[(t + e * threads) & (args - 1)] = x[e];
}

template <class STEP>
static int launch(cudaStream_t stream, const gm_math_call *c, double a, double b)
{
    typedef typename STEP::type T;
    chains<STEP><<<(unsigned)(c->chains / GM_MATH_TILE), THREADS, 0, stream>>>((const T *)c->src, (T *)c->dst,
                                                                               c->rounds, c->args, (T)a, (T)b);
    return cudaGetLastError();
}

extern "C" int gm_cuda_math(gm_cuda_stream stream, const gm_math_call *call)
{
    static const struct {
        int (*launch)(cudaStream_t stream, const gm_math_call *c, double a, double b);
        double a, b;
    } steps[GM_MATH_STEPS] = {{launch<Fma>, GM_MATH_FACTOR, GM_MATH_ADDEND},
                              {launch<Mul>, GM_MATH_FACTOR, 0},
                              {launch<Add>, 0, GM_MATH_ADDEND},
                              {launch<IntMul>, GM_MATH_INT_FACTOR, 0},
                              {launch<IntMul24>, GM_MATH_INT_FACTOR, 0},
                              {launch<Div>, 0, GM_MATH_DIVIDEND},
                              {launch<Sqrt>, 0, 0},
                              {launch<FmaF64>, GM_MATH_FACTOR, GM_MATH_ADDEND},
                              {launch<SqrtRn>, 0, 0},
                              {launch<Rsqrt>, 0, 0},
                              {launch<FastDiv>, 0, GM_MATH_DIVIDEND},
                              {launch<Sin>, 0, 0},
                              {launch<FastSin>, 0, 0},
                              {launch<Exp>, 0, 0},
                              {launch<FastExp>, 0, 0}};
    if (call->chains < GM_MATH_TILE || call->chains % GM_MATH_TILE != 0 || call->chains / GM_MATH_TILE > INT32_MAX ||
        call->rounds > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    return steps[call->step].launch(stream, call, steps[call->step].a, steps[call->step].b);
}
