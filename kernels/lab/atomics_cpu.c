/* A sum by the threads of the processor: each adds to a cell that others change as well, or to one of its own. */
#include "kernels/lab/calls.h"

/* Threads add elements to the cells, one at a time. */
static void add_each(int threads, const gm_atomics_call *c)
{
    const uint32_t *src = c->src;
    uint32_t *cells = c->sums, mask = (uint32_t)c->cells - 1;
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < c->count; i++)
        __atomic_fetch_add(&cells[gm_atomics_cell((uint32_t)i, mask)], src[i], __ATOMIC_RELAXED);
}

static void add_each_float(int threads, const gm_atomics_call *c)
{
    const uint32_t *src = c->src;
    float *cells = c->sums;
    uint32_t mask = (uint32_t)c->cells - 1;
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < c->count; i++) {
        float *cell = &cells[gm_atomics_cell((uint32_t)i, mask)], x = gm_atomics_float(src[i]);
#pragma omp atomic
        *cell += x;
    }
}

/* own[0] = the sum of all: each step adds the upper half to the lower one. */
#define ADD_HALVES(name, T)                             \
    static void add_halves_##name(T *own, int count)    \
    {                                                   \
        for (int half = count / 2; half > 0; half /= 2) \
            for (int i = 0; i < half; i++)              \
                own[i] += own[i + half];                \
    }
ADD_HALVES(u32, uint32_t)
ADD_HALVES(f32, float)

/* The sums that the private threads of a GPU would make, added in the order of that GPU. */
#define ADD_PRIVATE(name, T, value)                                                                  \
    static void add_private_##name(int threads, const gm_atomics_call *c)                            \
    {                                                                                                \
        T *partials = c->partials, *sums = c->sums;                                                  \
        _Pragma("omp parallel for num_threads(threads)") for (int b = 0; b < GM_ATOMICS_BLOCKS; b++) \
        {                                                                                            \
            T own[GM_ATOMICS_BLOCK] = {0};                                                           \
            for (int64_t at = 4 * GM_ATOMICS_BLOCK * b; at < c->count; at += 4 * GM_ATOMICS_PRIVATE) \
                for (int i = 0; i < 4 * GM_ATOMICS_BLOCK; i++)                                       \
                    own[i / 4] += value(((const uint32_t *)c->src)[at + i]);                         \
            add_halves_##name(own, GM_ATOMICS_BLOCK);                                                \
            partials[b] = own[0];                                                                    \
        }                                                                                            \
        add_halves_##name(partials, GM_ATOMICS_BLOCKS);                                              \
        sums[0] = partials[0];                                                                       \
    }
ADD_PRIVATE(u32, uint32_t, )
ADD_PRIVATE(f32, float, gm_atomics_float)

int gm_cpu_atomics(int threads, const gm_atomics_call *call)
{
    static void (*const methods[GM_ATOMICS_METHODS])(int threads, const gm_atomics_call *call) = {
        [GM_ATOMICS_EACH] = add_each,
        [GM_ATOMICS_OWN] = add_private_u32,
        [GM_ATOMICS_FLOAT_EACH] = add_each_float,
        [GM_ATOMICS_FLOAT_OWN] = add_private_f32};
    if (!methods[call->method])
        return gm_fail(GM_EINTERNAL, "sum by several threads: not a method of processors");
    methods[call->method](threads, call);
    return GM_OK;
}
