/* reduce_columns_loops.h - the vector loops of reduce_columns_cpu.c, included once for each set of instructions: VARIANT(name) is what a function is
 * called there. A batch: at most WHOLE_LEAF rows of at most ABREAST columns, one of each at least. */

/* --- Integers --- */

#define SMALL_COLUMNS(id, ctype, kind, bytes, part, square, shift) \
    static inline __attribute__((always_inline)) void VARIANT(columns_##id##_swap)(const batch_source *s, int swap, batch *b) \
    { \
        ctype min[ABREAST], max[ABREAST]; \
        part sum[ABREAST]; \
        square low[ABREAST], high[ABREAST]; \
        for (int64_t k = 0; k < s->cols; k++) { \
            min[k] = GM_VALUE_##kind(ctype, ctype, gm_order##bytes(((const gm_raw##bytes *)s->src)[k], swap)); \
            max[k] = min[k]; \
            sum[k] = 0; \
            low[k] = high[k] = 0; \
        } \
        for (int64_t i = 0; i < s->rows; i++) { \
            const gm_raw##bytes *row = (const void *)(s->src + (size_t)i * s->pitch); \
            _Pragma("omp simd") for (int64_t k = 0; k < s->cols; k++) \
            { \
                ctype x = (ctype)gm_order##bytes(row[k], swap); \
                square magnitude = MAGNITUDE_##kind(square, x), squared = magnitude * magnitude; \
                min[k] = x < min[k] ? x : min[k]; \
                max[k] = x > max[k] ? x : max[k]; \
                sum[k] += (part)x; \
                low[k] += squared & (((square)1 << (shift)) - 1); \
                high[k] += squared >> (shift); \
            } \
        } \
        for (int64_t k = 0; k < s->cols; k++) { \
            b->min[k] = (uint64_t)(int64_t)min[k]; \
            b->max[k] = (uint64_t)(int64_t)max[k]; \
            b->whole[k] = (gm_whole_sums){(unsigned __int128)(__int128)sum[k], low[k] + ((unsigned __int128)high[k] << (shift)), 0}; \
        } \
    }
SMALL_COLUMNS(U8, uint8_t, UNSIGNED, 1, uint32_t, uint32_t, 16)
SMALL_COLUMNS(U16, uint16_t, UNSIGNED, 2, uint32_t, uint32_t, 16)
SMALL_COLUMNS(U32, uint32_t, UNSIGNED, 4, uint64_t, uint64_t, 32)
SMALL_COLUMNS(I8, int8_t, SIGNED, 1, int32_t, uint32_t, 16)
SMALL_COLUMNS(I16, int16_t, SIGNED, 2, int32_t, uint32_t, 16)
SMALL_COLUMNS(I32, int32_t, SIGNED, 4, int64_t, uint64_t, 32)

#define LARGE_COLUMNS(id, ctype, kind, wide) \
    static inline __attribute__((always_inline)) void VARIANT(columns_##id##_swap)(const batch_source *s, int swap, batch *b) \
    { \
        for (int64_t i = 0; i < s->rows; i++) { \
            const gm_raw8 *row = (const void *)(s->src + (size_t)i * s->pitch); \
            for (int64_t k = 0; k < s->cols; k++) { \
                ctype x = (ctype)gm_order8(row[k], swap); \
                uint64_t magnitude = MAGNITUDE_##kind(uint64_t, x); \
                unsigned __int128 squared = (unsigned __int128)magnitude * magnitude; \
                if (i == 0) \
                    b->whole[k] = (gm_whole_sums){0, 0, 0}; \
                b->min[k] = i == 0 || x < (ctype)b->min[k] ? (uint64_t)x : b->min[k]; \
                b->max[k] = i == 0 || x > (ctype)b->max[k] ? (uint64_t)x : b->max[k]; \
                b->whole[k].sum += (unsigned __int128)(wide)x; \
                b->whole[k].squares_low += (uint64_t)squared; \
                b->whole[k].squares_high += squared >> 64; \
            } \
        } \
    }
LARGE_COLUMNS(U64, uint64_t, UNSIGNED, unsigned __int128)
LARGE_COLUMNS(I64, int64_t, SIGNED, __int128)

/* --- Floats: sums are walked on, the rest is of this batch. --- */

#define FLOAT_COLUMNS(id, bytes, key_t, most) \
    static inline __attribute__((always_inline)) void VARIANT(columns_##id##_swap)(const batch_source *s, int swap, batch *b) \
    { \
        key_t min[ABREAST], max[ABREAST]; \
        for (int64_t k = 0; k < s->cols; k++) { \
            min[k] = most; \
            max[k] = -(most) - 1; \
            b->nan[k] = 0; \
        } \
        for (int64_t i = 0; i < s->rows; i++) { \
            const gm_raw##bytes *row = (const void *)(s->src + (size_t)i * s->pitch); \
            _Pragma("omp simd") for (int64_t k = 0; k < s->cols; k++) \
            { \
                gm_raw##bytes raw = gm_order##bytes(row[k], swap); \
                double x = gm_f64_##id(raw, 0), value = x != x ? 0 : x, shifted = x != x ? 0 : x - b->shift[k]; \
                b->sum[k] += value; \
                b->squares[k] = __builtin_fma(value, value, b->squares[k]); \
                b->dsum[k] += shifted; \
                b->dsquares[k] = __builtin_fma(shifted, shifted, b->dsquares[k]); \
            } \
            _Pragma("omp simd") for (int64_t k = 0; k < s->cols; k++) \
            { \
                gm_raw##bytes raw = gm_order##bytes(row[k], swap); \
                key_t key = gm_key##bytes(raw), low = key, high = key; \
                int is_nan = (key_t)(raw & (gm_raw##bytes)(most)) > (key_t)GM_INFINITE##bytes; \
                low = is_nan ? (key_t)(most) : key; \
                high = is_nan ? (key_t)(-(most) - 1) : key; \
                min[k] = low < min[k] ? low : min[k]; \
                max[k] = high > max[k] ? high : max[k]; \
                b->nan[k] += (uint32_t)is_nan; \
            } \
        } \
        for (int64_t k = 0; k < s->cols; k++) { \
            b->min[k] = gm_double_bits(gm_f64_##id(gm_unkey##bytes(min[k]), 0)); \
            b->max[k] = gm_double_bits(gm_f64_##id(gm_unkey##bytes(max[k]), 0)); \
        } \
    }
FLOAT_COLUMNS(F16, 2, int16_t, INT16_MAX)
FLOAT_COLUMNS(F32, 4, int32_t, INT32_MAX)
FLOAT_COLUMNS(F64, 8, int64_t, INT64_MAX)

#define GM_DTYPE(id, name, ctype, kind, bytes, h5) \
    static void VARIANT(columns_##id)(const batch_source *s, batch *b) \
    { \
        if (s->swap) \
            VARIANT(columns_##id##_swap)(s, 1, b); \
        else \
            VARIANT(columns_##id##_swap)(s, 0, b); \
    }
#include "base/dtypes.def"
#undef GM_DTYPE

static walk *const VARIANT(walks)[GM_DTYPES] = {
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) VARIANT(columns_##id),
#include "base/dtypes.def"
#undef GM_DTYPE
};

#undef SMALL_COLUMNS
#undef LARGE_COLUMNS
#undef FLOAT_COLUMNS
