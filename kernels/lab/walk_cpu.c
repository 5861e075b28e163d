/* Elements in an order, by the processor. */
#include "kernels/lab/calls.h"

typedef struct words4 {
    uint32_t word[4];
} words4;

/* dst[at] = src[at] + 1 for all threads t. */
#define LOOP(T, add, index)                                                                  \
    _Pragma("omp parallel for num_threads(threads)") for (uint32_t t = 0; t < c->count; t++) \
    {                                                                                        \
        int64_t at = index;                                                                  \
        T x = src[at];                                                                       \
        add;                                                                                 \
        dst[at] = x;                                                                         \
    }

/* Consecutive elements have a loop of their own, which the compiler can vectorize. */
#define WALK(name, T, add)                                                                    \
    static void walk_##name(int threads, const gm_walk_call *c)                               \
    {                                                                                         \
        const T *src = c->src;                                                                \
        T *dst = c->dst;                                                                      \
        if (c->order == GM_WALK_CONSECUTIVE && c->stride == 1)                                \
            LOOP(T, add, (int64_t)c->base + t)                                                \
        else                                                                                  \
            LOOP(T, add, c->base + c->stride * gm_walk_place(c->order, t, c->count, c->cols)) \
    }

WALK(u8, uint8_t, x = (uint8_t)(x + 1))
WALK(u16, uint16_t, x = (uint16_t)(x + 1))
WALK(u32, uint32_t, x++)
WALK(u64, uint64_t, x++)
WALK(u32x4, words4, for (int i = 0; i < 4; i++) x.word[i]++)
WALK(f32, float, x += 1)
WALK(f64, double, x += 1)

int gm_cpu_walk(int threads, const gm_walk_call *call)
{
    static void (*const walks[GM_WALK_TYPES])(int threads, const gm_walk_call *call) = {
        [GM_WALK_U8] = walk_u8,       [GM_WALK_U16] = walk_u16, [GM_WALK_U32] = walk_u32, [GM_WALK_U64] = walk_u64,
        [GM_WALK_U32X4] = walk_u32x4, [GM_WALK_F32] = walk_f32, [GM_WALK_F64] = walk_f64};
    walks[call->type](threads, call);
    return GM_OK;
}
