/* reduce_cpu.h - inside the reductions of the processor: what leaves of segments and of columns share. */
#ifndef GM_KERNELS_REDUCE_CPU_H
#define GM_KERNELS_REDUCE_CPU_H

#include "kernels/kernels.h"
#include "kernels/reduce.h"

/* The magnitude of an integer in a type that holds it. */
#define MAGNITUDE_UNSIGNED(to, x) ((to)(x))
#define MAGNITUDE_SIGNED(to, x) ((x) < 0 ? -(to)(x) : (to)(x))

/* Loops are compiled twice: for any processor and for one with these instructions. fma() without them is slow, and the same. */
#if defined __x86_64__ && defined __GNUC__
#define GM_AVX2 1
#define GM_HAS_AVX2() (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define GM_AVX2 0
#endif
#ifdef __clang__
#define GM_AVX2_BEGIN _Pragma("clang attribute push(__attribute__((target(\"avx2,fma\"))), apply_to = function)")
#define GM_AVX2_END _Pragma("clang attribute pop")
#else
#define GM_AVX2_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma\")")
#define GM_AVX2_END _Pragma("GCC pop_options")
#endif

/* Sums of integers: of x in two's complement, of squares as low + 2^64 high. */
typedef struct gm_whole_sums {
    unsigned __int128 sum, squares_low, squares_high;
} gm_whole_sums;

/* words: gm_moments.sum.whole, added to as far as wanted. */
static inline void gm_whole_sums_add(uint64_t *words, const gm_whole_sums *s, unsigned want)
{
    unsigned __int128 high = s->squares_high + (s->squares_low >> 64);
    uint64_t sum[2] = {(uint64_t)s->sum, (uint64_t)(s->sum >> 64)};
    uint64_t squares[3] = {(uint64_t)s->squares_low, (uint64_t)high, (uint64_t)(high >> 64)};
    if (want & GM_WANT_SUM)
        gm_words_add(words + GM_WHOLE_SUM, sum, 2);
    if (want & GM_WANT_SQUARES)
        gm_words_add(words + GM_WHOLE_SQUARES, squares, 3);
}

/* The first of n elements, stride bytes apart, that equals value (as in gm_moments); n if none does. A NaN finds the first NaN. */
int64_t gm_cpu_find(gm_dtype type, const void *x, size_t stride, int64_t n, int swap, uint64_t value);

#endif
