/* reduce_cpu.h - internal to the reductions of the processor: shared by leaves of segments and of columns. */
#ifndef GM_KERNELS_REDUCE_REDUCE_CPU_H
#define GM_KERNELS_REDUCE_REDUCE_CPU_H

#include "kernels/element.h"
#include "kernels/host.h"
#include "kernels/reduce/calls.h"

/* The magnitude of an integer in a type that holds it. */
#define MAGNITUDE_UNSIGNED(to, x) ((to)(x))
#define MAGNITUDE_SIGNED(to, x) ((x) < 0 ? -(to)(x) : (to)(x))

/* Keys: floats as the integers of their order (gm_monotone). The largest and the smallest of a size are keys of NaN. */
typedef int16_t gm_key2;
typedef int32_t gm_key4;
typedef int64_t gm_key8;
#define LARGEST_KEY(bytes) ((gm_key##bytes)((UINT64_C(1) << (8 * (bytes)-1)) - 1))
#define SMALLEST_KEY(bytes) ((gm_key##bytes)(-LARGEST_KEY(bytes) - 1))

/* The value of a key, as bits of float64. */
#define VALUE_OF_KEY(id, bytes, key) \
    gm_double_bits(gm_f64_##id((gm_raw##bytes)gm_monotone##bytes((gm_raw##bytes)(key)), 0))

/* Loops are compiled twice: for any processor and for one with these instructions. Without them fma() is slow, with the
 * same result. */
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

/* Adds the wanted sums to words, gm_moments.sum.whole. */
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

/* The first of n elements, stride bytes apart, that equals value (as in gm_moments); n if none does. A NaN finds the
 * first NaN. */
int64_t gm_cpu_find(gm_dtype type, const void *x, size_t stride, int64_t n, int swap, uint64_t value);

#endif
