/* reduce_loops.h - the vector loops of reduce_cpu.c, included once for each set of instructions: VARIANT(name) is what
 * a function is called there. x: elements in native byte order. */

/* Before a loop with extremes min and max, and sums. */
#define PRAGMA(text) _Pragma(#text)
#define REDUCE(...) PRAGMA(omp simd reduction(min : min) reduction(max : max) reduction(+ : __VA_ARGS__))

/* --- Integers: a block of at most BLOCK elements, at least one. Squares are summed in two halves, so that no partial
 * sum overflows. --- */

#define SMALL_BLOCK(id, ctype, kind, part, square, shift)                                                  \
    static void VARIANT(block_##id)(const void *x, int64_t n, whole_block *b)                              \
    {                                                                                                      \
        const ctype *v = x;                                                                                \
        ctype min = v[0], max = v[0];                                                                      \
        part sum = 0;                                                                                      \
        square low = 0, high = 0;                                                                          \
        REDUCE(sum, low, high) for (int64_t i = 0; i < n; i++)                                             \
        {                                                                                                  \
            square magnitude = MAGNITUDE_##kind(square, v[i]), squared = magnitude * magnitude;            \
            min = v[i] < min ? v[i] : min;                                                                 \
            max = v[i] > max ? v[i] : max;                                                                 \
            sum += (part)v[i];                                                                             \
            low += squared & (((square)1 << (shift)) - 1);                                                 \
            high += squared >> (shift);                                                                    \
        }                                                                                                  \
        *b = small_block((uint64_t)(int64_t)min, (uint64_t)(int64_t)max, (__int128)sum, low, high, shift); \
    }

#define LARGE_BLOCK(id, ctype, kind, wide)                                        \
    static void VARIANT(block_##id)(const void *x, int64_t n, whole_block *b)     \
    {                                                                             \
        const ctype *v = x;                                                       \
        ctype min = v[0], max = v[0];                                             \
        *b = (whole_block){0};                                                    \
        for (int64_t i = 0; i < n; i++) {                                         \
            uint64_t magnitude = MAGNITUDE_##kind(uint64_t, v[i]);                \
            unsigned __int128 squared = (unsigned __int128)magnitude * magnitude; \
            min = v[i] < min ? v[i] : min;                                        \
            max = v[i] > max ? v[i] : max;                                        \
            b->sums.sum += (unsigned __int128)(wide)v[i];                         \
            b->sums.squares_low += (uint64_t)squared;                             \
            b->sums.squares_high += squared >> 64;                                \
        }                                                                         \
        b->min = (uint64_t)min;                                                   \
        b->max = (uint64_t)max;                                                   \
    }

/* By kind and bytes. */
#define BLOCK_UNSIGNED_1(id, ctype) SMALL_BLOCK(id, ctype, UNSIGNED, uint32_t, uint32_t, 16)
#define BLOCK_UNSIGNED_2(id, ctype) SMALL_BLOCK(id, ctype, UNSIGNED, uint32_t, uint32_t, 16)
#define BLOCK_UNSIGNED_4(id, ctype) SMALL_BLOCK(id, ctype, UNSIGNED, uint64_t, uint64_t, 32)
#define BLOCK_UNSIGNED_8(id, ctype) LARGE_BLOCK(id, ctype, UNSIGNED, unsigned __int128)
#define BLOCK_SIGNED_1(id, ctype) SMALL_BLOCK(id, ctype, SIGNED, int32_t, uint32_t, 16)
#define BLOCK_SIGNED_2(id, ctype) SMALL_BLOCK(id, ctype, SIGNED, int32_t, uint32_t, 16)
#define BLOCK_SIGNED_4(id, ctype) SMALL_BLOCK(id, ctype, SIGNED, int64_t, uint64_t, 32)
#define BLOCK_SIGNED_8(id, ctype) LARGE_BLOCK(id, ctype, SIGNED, __int128)

/* --- Floats: extremes as keys, and NaN, of a leaf. --- */

#define RANGE(id, bytes, digits)                                                                              \
    static void VARIANT(range_##id)(const void *x, int64_t n, float_range *r)                                 \
    {                                                                                                         \
        const gm_raw##bytes *v = x;                                                                           \
        gm_key##bytes min = LARGEST_KEY(bytes), max = SMALLEST_KEY(bytes);                                    \
        uint32_t nan = 0;                                                                                     \
        REDUCE(nan) for (int64_t i = 0; i < n; i++)                                                           \
        {                                                                                                     \
            gm_key##bytes key = gm_monotone##bytes(v[i]),                                                     \
                          magnitude = (gm_key##bytes)(v[i] & (gm_raw##bytes)LARGEST_KEY(bytes));              \
            int is_nan = magnitude > (gm_key##bytes)gm_format_infinity(bytes, digits);                        \
            gm_key##bytes low = is_nan ? LARGEST_KEY(bytes) : key, high = is_nan ? SMALLEST_KEY(bytes) : key; \
            min = low < min ? low : min;                                                                      \
            max = high > max ? high : max;                                                                    \
            nan += (uint32_t)is_nan;                                                                          \
        }                                                                                                     \
        r->min = VALUE_OF_KEY(id, bytes, min);                                                                \
        r->max = VALUE_OF_KEY(id, bytes, max);                                                                \
        r->nan = nan;                                                                                         \
    }

/* --- Floats: the lanes of a leaf. SOME: there is NaN. SPREAD: the shifted sums are wanted. --- */

#define STEP(id, k, SOME, SPREAD)                                               \
    {                                                                           \
        double element = gm_f64_##id(v[i + (k)], 0), shifted = element - shift; \
        double value = (SOME) && element != element ? 0 : element;              \
        sum[k] += value;                                                        \
        squares[k] = __builtin_fma(value, value, squares[k]);                   \
        if (SPREAD) {                                                           \
            shifted = (SOME) && element != element ? 0 : shifted;               \
            dsum[k] += shifted;                                                 \
            dsquares[k] = __builtin_fma(shifted, shifted, dsquares[k]);         \
        }                                                                       \
    }
#define WALK(name, id, bytes, SOME, SPREAD)                                                                  \
    static void VARIANT(name)(const gm_raw##bytes *v, int64_t n, double shift, double(*lane)[GM_LANES])      \
    {                                                                                                        \
        for (int64_t first = 0; first < GM_LANES && first < n; first += ABREAST) {                           \
            double sum[ABREAST] = {0}, squares[ABREAST] = {0}, dsum[ABREAST] = {0}, dsquares[ABREAST] = {0}; \
            int64_t i = first;                                                                               \
            for (; i + ABREAST <= n; i += GM_LANES) {                                                        \
                _Pragma("omp simd") for (int k = 0; k < ABREAST; k++) STEP(id, k, SOME, SPREAD)              \
            }                                                                                                \
            for (int k = 0; i + k < n; k++)                                                                  \
                STEP(id, k, SOME, SPREAD)                                                                    \
            memcpy(&lane[0][first], sum, sizeof sum);                                                        \
            memcpy(&lane[1][first], squares, sizeof squares);                                                \
            memcpy(&lane[2][first], dsum, sizeof dsum);                                                      \
            memcpy(&lane[3][first], dsquares, sizeof dsquares);                                              \
        }                                                                                                    \
    }
#define LANES(id, bytes)                                                                              \
    WALK(lanes_##id##_plain, id, bytes, 0, 0)                                                         \
    WALK(lanes_##id##_spread, id, bytes, 0, 1)                                                        \
    WALK(lanes_##id##_nan, id, bytes, 1, 1)                                                           \
    static void VARIANT(lanes_##id)(const void *x, int64_t n, double shift, int some_nan, int spread, \
                                    double(*lane)[GM_LANES])                                          \
    {                                                                                                 \
        if (some_nan)                                                                                 \
            VARIANT(lanes_##id##_nan)(x, n, shift, lane);                                             \
        else if (spread)                                                                              \
            VARIANT(lanes_##id##_spread)(x, n, shift, lane);                                          \
        else                                                                                          \
            VARIANT(lanes_##id##_plain)(x, n, shift, lane);                                           \
    }

/* --- By type --- */

#define LOOPS_UNSIGNED(id, ctype, bytes, digits) BLOCK_UNSIGNED_##bytes(id, ctype)
#define LOOPS_SIGNED(id, ctype, bytes, digits) BLOCK_SIGNED_##bytes(id, ctype)
#define LOOPS_FLOAT(id, ctype, bytes, digits) RANGE(id, bytes, digits) LANES(id, bytes)
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) LOOPS_##kind(id, ctype, bytes, digits)
#include "base/types/dtypes.def"
#undef GM_DTYPE

#define ENTRY_UNSIGNED(id)           \
    {                                \
        .block = VARIANT(block_##id) \
    }
#define ENTRY_SIGNED(id)             \
    {                                \
        .block = VARIANT(block_##id) \
    }
#define ENTRY_FLOAT(id)                                            \
    {                                                              \
        .range = VARIANT(range_##id), .lanes = VARIANT(lanes_##id) \
    }
static const reduce_loops VARIANT(loops)[GM_DTYPES] = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) ENTRY_##kind(id),
#include "base/types/dtypes.def"
#undef GM_DTYPE
};

#undef PRAGMA
#undef REDUCE
#undef SMALL_BLOCK
#undef LARGE_BLOCK
#undef BLOCK_UNSIGNED_1
#undef BLOCK_UNSIGNED_2
#undef BLOCK_UNSIGNED_4
#undef BLOCK_UNSIGNED_8
#undef BLOCK_SIGNED_1
#undef BLOCK_SIGNED_2
#undef BLOCK_SIGNED_4
#undef BLOCK_SIGNED_8
#undef RANGE
#undef STEP
#undef WALK
#undef LANES
#undef LOOPS_UNSIGNED
#undef LOOPS_SIGNED
#undef LOOPS_FLOAT
#undef ENTRY_UNSIGNED
#undef ENTRY_SIGNED
#undef ENTRY_FLOAT
