/* reduce_loops.h - the vector loops of reduce_cpu.c, included once for each set of instructions: VARIANT(name) is what a function is called there.
 * x: elements in this machine's order of bytes. */

/* --- Integers: a block of at most BLOCK elements, at least one. Squares are summed in two halves, so that no partial sum overflows. --- */

#define SMALL_BLOCK(id, ctype, kind, part, square, shift) \
    static void VARIANT(block_##id)(const void *x, int64_t n, whole_block *b) \
    { \
        const ctype *v = x; \
        ctype min = v[0], max = v[0]; \
        part sum = 0; \
        square low = 0, high = 0; \
        _Pragma("omp simd reduction(min : min) reduction(max : max) reduction(+ : sum, low, high)") for (int64_t i = 0; i < n; i++) \
        { \
            square magnitude = MAGNITUDE_##kind(square, v[i]), squared = magnitude * magnitude; \
            min = v[i] < min ? v[i] : min; \
            max = v[i] > max ? v[i] : max; \
            sum += (part)v[i]; \
            low += squared & (((square)1 << (shift)) - 1); \
            high += squared >> (shift); \
        } \
        b->min = (uint64_t)(int64_t)min; \
        b->max = (uint64_t)(int64_t)max; \
        b->sums = (gm_whole_sums){(unsigned __int128)(__int128)sum, low + ((unsigned __int128)high << (shift)), 0}; \
    }
SMALL_BLOCK(U8, uint8_t, UNSIGNED, uint32_t, uint32_t, 16)
SMALL_BLOCK(U16, uint16_t, UNSIGNED, uint32_t, uint32_t, 16)
SMALL_BLOCK(U32, uint32_t, UNSIGNED, uint64_t, uint64_t, 32)
SMALL_BLOCK(I8, int8_t, SIGNED, int32_t, uint32_t, 16)
SMALL_BLOCK(I16, int16_t, SIGNED, int32_t, uint32_t, 16)
SMALL_BLOCK(I32, int32_t, SIGNED, int64_t, uint64_t, 32)

#define LARGE_BLOCK(id, ctype, kind, wide) \
    static void VARIANT(block_##id)(const void *x, int64_t n, whole_block *b) \
    { \
        const ctype *v = x; \
        ctype min = v[0], max = v[0]; \
        *b = (whole_block){0}; \
        for (int64_t i = 0; i < n; i++) { \
            uint64_t magnitude = MAGNITUDE_##kind(uint64_t, v[i]); \
            unsigned __int128 squared = (unsigned __int128)magnitude * magnitude; \
            min = v[i] < min ? v[i] : min; \
            max = v[i] > max ? v[i] : max; \
            b->sums.sum += (unsigned __int128)(wide)v[i]; \
            b->sums.squares_low += (uint64_t)squared; \
            b->sums.squares_high += squared >> 64; \
        } \
        b->min = (uint64_t)min; \
        b->max = (uint64_t)max; \
    }
LARGE_BLOCK(U64, uint64_t, UNSIGNED, unsigned __int128)
LARGE_BLOCK(I64, int64_t, SIGNED, __int128)

/* --- Floats: extremes as keys, and NaN, of a leaf. --- */

#define RANGE(id, bytes, key_t, most) \
    static void VARIANT(range_##id)(const void *x, int64_t n, float_range *r) \
    { \
        const gm_raw##bytes *v = x; \
        key_t min = most, max = -(most) - 1; \
        uint32_t nan = 0; \
        _Pragma("omp simd reduction(min : min) reduction(max : max) reduction(+ : nan)") for (int64_t i = 0; i < n; i++) \
        { \
            key_t key = gm_key##bytes(v[i]), magnitude = (key_t)(v[i] & (gm_raw##bytes)(most)); \
            int is_nan = magnitude > (key_t)GM_INFINITE##bytes; \
            key_t low = is_nan ? (key_t)(most) : key, high = is_nan ? (key_t)(-(most) - 1) : key; \
            min = low < min ? low : min; \
            max = high > max ? high : max; \
            nan += (uint32_t)is_nan; \
        } \
        r->min = gm_double_bits(gm_f64_##id(gm_unkey##bytes(min), 0)); \
        r->max = gm_double_bits(gm_f64_##id(gm_unkey##bytes(max), 0)); \
        r->nan = nan; \
    }
RANGE(F16, 2, int16_t, INT16_MAX)
RANGE(F32, 4, int32_t, INT32_MAX)
RANGE(F64, 8, int64_t, INT64_MAX)

/* --- Floats: the lanes of a leaf. SOME: is there NaN? SPREAD: are the shifted sums wanted? --- */

#define STEP(id, k, SOME, SPREAD) \
    { \
        double element = gm_f64_##id(v[i + (k)], 0), shifted = element - shift; \
        double value = (SOME) && element != element ? 0 : element; \
        sum[k] += value; \
        squares[k] = __builtin_fma(value, value, squares[k]); \
        if (SPREAD) { \
            shifted = (SOME) && element != element ? 0 : shifted; \
            dsum[k] += shifted; \
            dsquares[k] = __builtin_fma(shifted, shifted, dsquares[k]); \
        } \
    }
#define WALK(name, id, bytes, SOME, SPREAD) \
    static void VARIANT(name)(const gm_raw##bytes *v, int64_t n, double shift, double (*lane)[GM_LANES]) \
    { \
        for (int64_t first = 0; first < GM_LANES && first < n; first += ABREAST) { \
            double sum[ABREAST] = {0}, squares[ABREAST] = {0}, dsum[ABREAST] = {0}, dsquares[ABREAST] = {0}; \
            int64_t i = first; \
            for (; i + ABREAST <= n; i += GM_LANES) { \
                _Pragma("omp simd") for (int k = 0; k < ABREAST; k++) STEP(id, k, SOME, SPREAD) \
            } \
            for (int k = 0; i + k < n; k++) \
                STEP(id, k, SOME, SPREAD) \
            memcpy(&lane[0][first], sum, sizeof sum); \
            memcpy(&lane[1][first], squares, sizeof squares); \
            memcpy(&lane[2][first], dsum, sizeof dsum); \
            memcpy(&lane[3][first], dsquares, sizeof dsquares); \
        } \
    }
#define LANES(id, bytes) \
    WALK(lanes_##id##_plain, id, bytes, 0, 0) \
    WALK(lanes_##id##_spread, id, bytes, 0, 1) \
    WALK(lanes_##id##_nan, id, bytes, 1, 1) \
    static void VARIANT(lanes_##id)(const void *x, int64_t n, double shift, int some_nan, int spread, double (*lane)[GM_LANES]) \
    { \
        if (some_nan) \
            VARIANT(lanes_##id##_nan)(x, n, shift, lane); \
        else if (spread) \
            VARIANT(lanes_##id##_spread)(x, n, shift, lane); \
        else \
            VARIANT(lanes_##id##_plain)(x, n, shift, lane); \
    }
LANES(F16, 2)
LANES(F32, 4)
LANES(F64, 8)

static const reduce_loops VARIANT(loops) = {
    .block = {[GM_U8] = VARIANT(block_U8), [GM_U16] = VARIANT(block_U16), [GM_U32] = VARIANT(block_U32), [GM_U64] = VARIANT(block_U64),
              [GM_I8] = VARIANT(block_I8), [GM_I16] = VARIANT(block_I16), [GM_I32] = VARIANT(block_I32), [GM_I64] = VARIANT(block_I64)},
    .range = {[GM_F16] = VARIANT(range_F16), [GM_F32] = VARIANT(range_F32), [GM_F64] = VARIANT(range_F64)},
    .lanes = {[GM_F16] = VARIANT(lanes_F16), [GM_F32] = VARIANT(lanes_F32), [GM_F64] = VARIANT(lanes_F64)},
};

#undef SMALL_BLOCK
#undef LARGE_BLOCK
#undef RANGE
#undef STEP
#undef WALK
#undef LANES
