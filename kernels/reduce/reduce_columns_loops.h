/* reduce_columns_loops.h - the vector loops of reduce_columns_cpu.c, included once for each set of instructions:
 * VARIANT(name) is the name of a function there. A batch has 1 to WHOLE_LEAF rows of 1 to ABREAST columns. */

/* --- Integers of up to 32 bits --- */

#define SMALL_ROW(id, ctype, kind, bytes, part, square, shift)                                               \
    typedef struct VARIANT(sums_##id) {                                                                      \
        ctype min[ABREAST], max[ABREAST];                                                                    \
        part sum[ABREAST];                                                                                   \
        square low[ABREAST], high[ABREAST]; /* of the bits of squares below and from `shift` on */           \
    } VARIANT(sums_##id);                                                                                    \
    INLINED void VARIANT(row_##id)(const gm_raw##bytes *row, int64_t cols, int swap, VARIANT(sums_##id) * s) \
    {                                                                                                        \
        _Pragma("omp simd") for (int64_t k = 0; k < cols; k++)                                               \
        {                                                                                                    \
            ctype x = (ctype)gm_order##bytes(row[k], swap);                                                  \
            square magnitude = MAGNITUDE_##kind(square, x), squared = magnitude * magnitude;                 \
            s->min[k] = x < s->min[k] ? x : s->min[k];                                                       \
            s->max[k] = x > s->max[k] ? x : s->max[k];                                                       \
            s->sum[k] += (part)x;                                                                            \
            s->low[k] += squared & (((square)1 << (shift)) - 1);                                             \
            s->high[k] += squared >> (shift);                                                                \
        }                                                                                                    \
    }
#define SMALL_BATCH(id, ctype, bytes, shift)                                                              \
    INLINED void VARIANT(columns_##id##_swap)(const batch_source *s, int swap, batch *b)                  \
    {                                                                                                     \
        VARIANT(sums_##id) sums;                                                                          \
        memset(&sums, 0, sizeof sums);                                                                    \
        for (int64_t k = 0; k < s->cols; k++)                                                             \
            sums.min[k] = sums.max[k] = (ctype)gm_order##bytes(((const gm_raw##bytes *)s->src)[k], swap); \
        for (int64_t i = 0; i < s->rows; i++)                                                             \
            VARIANT(row_##id)((const void *)(s->src + (size_t)i * s->pitch), s->cols, swap, &sums);       \
        for (int64_t k = 0; k < s->cols; k++) {                                                           \
            unsigned __int128 squares = sums.low[k] + ((unsigned __int128)sums.high[k] << (shift));       \
            b->min[k] = (uint64_t)(int64_t)sums.min[k];                                                   \
            b->max[k] = (uint64_t)(int64_t)sums.max[k];                                                   \
            b->whole[k] = (gm_whole_sums){(unsigned __int128)(__int128)sums.sum[k], squares, 0};          \
        }                                                                                                 \
    }
#define SMALL_COLUMNS(id, ctype, kind, bytes, part, square, shift) \
    SMALL_ROW(id, ctype, kind, bytes, part, square, shift)         \
    SMALL_BATCH(id, ctype, bytes, shift)

/* --- Integers of 64 bits --- */

#define LARGE_COLUMNS(id, ctype, kind, wide)                                                    \
    INLINED void VARIANT(row_##id)(const gm_raw8 *row, int64_t cols, int swap, batch *b)        \
    {                                                                                           \
        for (int64_t k = 0; k < cols; k++) {                                                    \
            ctype x = (ctype)gm_order8(row[k], swap);                                           \
            add_large(b, k, MAGNITUDE_##kind(uint64_t, x), (unsigned __int128)(wide)x);         \
            b->min[k] = x < (ctype)b->min[k] ? (uint64_t)x : b->min[k];                         \
            b->max[k] = x > (ctype)b->max[k] ? (uint64_t)x : b->max[k];                         \
        }                                                                                       \
    }                                                                                           \
    INLINED void VARIANT(columns_##id##_swap)(const batch_source *s, int swap, batch *b)        \
    {                                                                                           \
        for (int64_t k = 0; k < s->cols; k++) {                                                 \
            b->min[k] = b->max[k] = gm_order8(((const gm_raw8 *)s->src)[k], swap);              \
            b->whole[k] = (gm_whole_sums){0, 0, 0};                                             \
        }                                                                                       \
        for (int64_t i = 0; i < s->rows; i++)                                                   \
            VARIANT(row_##id)((const void *)(s->src + (size_t)i * s->pitch), s->cols, swap, b); \
    }

/* By kind and bytes. */
#define COLUMNS_UNSIGNED_1(id, ctype) SMALL_COLUMNS(id, ctype, UNSIGNED, 1, uint32_t, uint32_t, 16)
#define COLUMNS_UNSIGNED_2(id, ctype) SMALL_COLUMNS(id, ctype, UNSIGNED, 2, uint32_t, uint32_t, 16)
#define COLUMNS_UNSIGNED_4(id, ctype) SMALL_COLUMNS(id, ctype, UNSIGNED, 4, uint64_t, uint64_t, 32)
#define COLUMNS_UNSIGNED_8(id, ctype) LARGE_COLUMNS(id, ctype, UNSIGNED, unsigned __int128)
#define COLUMNS_SIGNED_1(id, ctype) SMALL_COLUMNS(id, ctype, SIGNED, 1, int32_t, uint32_t, 16)
#define COLUMNS_SIGNED_2(id, ctype) SMALL_COLUMNS(id, ctype, SIGNED, 2, int32_t, uint32_t, 16)
#define COLUMNS_SIGNED_4(id, ctype) SMALL_COLUMNS(id, ctype, SIGNED, 4, int64_t, uint64_t, 32)
#define COLUMNS_SIGNED_8(id, ctype) LARGE_COLUMNS(id, ctype, SIGNED, __int128)

/* --- Floats: sums continue those of the open record, counts and extremes are of this batch. --- */

#define FLOAT_SUMS(id, bytes)                                                                   \
    INLINED void VARIANT(sums_##id)(const gm_raw##bytes *row, int64_t cols, int swap, batch *b) \
    {                                                                                           \
        _Pragma("omp simd") for (int64_t k = 0; k < cols; k++)                                  \
        {                                                                                       \
            double x = gm_f64_##id(row[k], swap);                                               \
            double value = x != x ? 0 : x, shifted = x != x ? 0 : x - b->shift[k];              \
            b->sum[k] += value;                                                                 \
            b->squares[k] = __builtin_fma(value, value, b->squares[k]);                         \
            b->dsum[k] += shifted;                                                              \
            b->dsquares[k] = __builtin_fma(shifted, shifted, b->dsquares[k]);                   \
        }                                                                                       \
    }
#define FLOAT_RANGE(id, bytes, digits)                                                                        \
    INLINED void VARIANT(range_##id)(const gm_raw##bytes *row, int64_t cols, int swap, gm_key##bytes *min,    \
                                     gm_key##bytes *max, uint32_t *nan)                                       \
    {                                                                                                         \
        _Pragma("omp simd") for (int64_t k = 0; k < cols; k++)                                                \
        {                                                                                                     \
            gm_raw##bytes raw = gm_order##bytes(row[k], swap);                                                \
            gm_key##bytes key = gm_monotone##bytes(raw);                                                      \
            int is_nan = (gm_key##bytes)(raw & (gm_raw##bytes)LARGEST_KEY(bytes)) >                           \
                         (gm_key##bytes)gm_format_infinity(bytes, digits);                                    \
            gm_key##bytes low = is_nan ? LARGEST_KEY(bytes) : key, high = is_nan ? SMALLEST_KEY(bytes) : key; \
            min[k] = low < min[k] ? low : min[k];                                                             \
            max[k] = high > max[k] ? high : max[k];                                                           \
            nan[k] += (uint32_t)is_nan;                                                                       \
        }                                                                                                     \
    }
#define FLOAT_BATCH(id, bytes)                                                           \
    INLINED void VARIANT(columns_##id##_swap)(const batch_source *s, int swap, batch *b) \
    {                                                                                    \
        gm_key##bytes min[ABREAST], max[ABREAST];                                        \
        for (int64_t k = 0; k < s->cols; k++) {                                          \
            min[k] = LARGEST_KEY(bytes);                                                 \
            max[k] = SMALLEST_KEY(bytes);                                                \
            b->nan[k] = 0;                                                               \
        }                                                                                \
        for (int64_t i = 0; i < s->rows; i++) {                                          \
            const gm_raw##bytes *row = (const void *)(s->src + (size_t)i * s->pitch);    \
            VARIANT(sums_##id)(row, s->cols, swap, b);                                   \
            VARIANT(range_##id)(row, s->cols, swap, min, max, b->nan);                   \
        }                                                                                \
        for (int64_t k = 0; k < s->cols; k++) {                                          \
            b->min[k] = VALUE_OF_KEY(id, bytes, min[k]);                                 \
            b->max[k] = VALUE_OF_KEY(id, bytes, max[k]);                                 \
        }                                                                                \
    }

/* --- By type --- */

#define COLUMNS_UNSIGNED(id, ctype, bytes, digits) COLUMNS_UNSIGNED_##bytes(id, ctype)
#define COLUMNS_SIGNED(id, ctype, bytes, digits) COLUMNS_SIGNED_##bytes(id, ctype)
#define COLUMNS_FLOAT(id, ctype, bytes, digits) \
    FLOAT_SUMS(id, bytes) FLOAT_RANGE(id, bytes, digits) FLOAT_BATCH(id, bytes)
#define GM_DTYPE(id, name, ctype, kind, bytes, digits)                                                          \
    COLUMNS_##kind(id, ctype, bytes, digits) static void VARIANT(columns_##id)(const batch_source *s, batch *b) \
    {                                                                                                           \
        if (s->swap)                                                                                            \
            VARIANT(columns_##id##_swap)(s, 1, b);                                                              \
        else                                                                                                    \
            VARIANT(columns_##id##_swap)(s, 0, b);                                                              \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE

static walk *const VARIANT(walks)[GM_DTYPES] = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) VARIANT(columns_##id),
#include "base/types/dtypes.def"
#undef GM_DTYPE
};

#undef SMALL_ROW
#undef SMALL_BATCH
#undef SMALL_COLUMNS
#undef LARGE_COLUMNS
#undef COLUMNS_UNSIGNED_1
#undef COLUMNS_UNSIGNED_2
#undef COLUMNS_UNSIGNED_4
#undef COLUMNS_UNSIGNED_8
#undef COLUMNS_SIGNED_1
#undef COLUMNS_SIGNED_2
#undef COLUMNS_SIGNED_4
#undef COLUMNS_SIGNED_8
#undef FLOAT_SUMS
#undef FLOAT_RANGE
#undef FLOAT_BATCH
#undef COLUMNS_UNSIGNED
#undef COLUMNS_SIGNED
#undef COLUMNS_FLOAT
