/* Leaves of contiguous segments on the processor. Extremes, counts and integers are computed in any order, the sums of
 * floats in that of base/statistics.h. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "kernels/reduce/reduce_cpu.h"

enum {
    BLOCK = 8192,     /* elements processed at a time */
    ABREAST = 8,      /* lanes of a leaf of floats that are summed together */
    ROOM = BLOCK * 8, /* bytes */
    CACHE_LINE = 64
};
_Static_assert(BLOCK >= (int)GM_LEAF_FLOAT && (int)GM_LEAF_WHOLE / 8 % BLOCK == 0, "a block holds a leaf of floats");

typedef struct whole_block {
    uint64_t min, max; /* widened */
    gm_whole_sums sums;
} whole_block;

typedef struct float_range {
    uint64_t min, max; /* bits of float64; anything where all are NaN */
    uint32_t nan;
} float_range;

/* Of a type: block of integers, range and lanes of floats. */
typedef struct reduce_loops {
    void (*block)(const void *x, int64_t n, whole_block *b);
    void (*range)(const void *x, int64_t n, float_range *r);
    void (*lanes)(const void *x, int64_t n, double shift, int some_nan, int spread, double (*lane)[GM_LANES]);
} reduce_loops;

/* sum: in two's complement; low and high: sums of the bits of squares below and from `shift` on. */
static inline whole_block small_block(uint64_t min, uint64_t max, __int128 sum, uint64_t low, uint64_t high, int shift)
{
    return (whole_block){min, max, {(unsigned __int128)sum, low + ((unsigned __int128)high << shift), 0}};
}

#define VARIANT(name) name##_any
#include "kernels/reduce/reduce_loops.h"
#undef VARIANT

#if GM_AVX2
GM_AVX2_BEGIN
#define VARIANT(name) name##_avx2
#include "kernels/reduce/reduce_loops.h"
#undef VARIANT
GM_AVX2_END
#define LOOPS (GM_HAS_AVX2() ? loops_avx2 : loops_any)
#else
#define LOOPS (loops_any)
#endif

/* An element as in a record: widened, or bits of float64. */
#define WIDE_UNSIGNED(id, ctype, raw) (uint64_t)(raw)
#define WIDE_SIGNED(id, ctype, raw) (uint64_t)(int64_t)(ctype)(raw)
#define WIDE_FLOAT(id, ctype, raw) gm_double_bits(gm_f64_##id(raw, 0))

static int is_nan(uint64_t bits)
{
    return bits << 1 > gm_format_infinity(8, 53) << 1;
}

#define GM_DTYPE(id, name, ctype, kind, bytes, digits)                                          \
    static int64_t find_##id(const char *x, size_t stride, int64_t n, int swap, uint64_t value) \
    {                                                                                           \
        int64_t i = 0;                                                                          \
        for (int nan = GM_##kind == GM_FLOAT && is_nan(value); i < n; i++) {                    \
            const gm_raw##bytes *raw = (const void *)(x + (size_t)i * stride);                  \
            uint64_t element = WIDE_##kind(id, ctype, gm_order##bytes(*raw, swap));             \
            if (nan ? is_nan(element) : gm_moment_equal(GM_##kind, element, value))             \
                break;                                                                          \
        }                                                                                       \
        return i;                                                                               \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE

int64_t gm_cpu_find(gm_dtype type, const void *x, size_t stride, int64_t n, int swap, uint64_t value)
{
    static int64_t (*const find[GM_DTYPES])(const char *x, size_t stride, int64_t n, int swap, uint64_t value) = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) find_##id,
#include "base/types/dtypes.def"
#undef GM_DTYPE
    };
    return find[type](x, stride, n, swap, value);
}

static int is_in_order(const void *src, gm_dtype type, int swap)
{
    size_t size = gm_dtype_size(type);
    return (!swap || size == 1) && (uintptr_t)src % size == 0;
}

/* Elements in native byte order, aligned: copied to room; in place where there is none, as none is needed. */
static const void *in_order(const void *src, int64_t n, gm_dtype type, int swap, void *room)
{
    size_t size = gm_dtype_size(type);
    if (!room)
        return src;
    memcpy(room, src, (size_t)n * size);
    for (int64_t i = 0; i < n && swap && size == 2; i++)
        ((gm_raw2 *)room)[i] = gm_order2(((gm_raw2 *)room)[i], 1);
    for (int64_t i = 0; i < n && swap && size == 4; i++)
        ((gm_raw4 *)room)[i] = gm_order4(((gm_raw4 *)room)[i], 1);
    for (int64_t i = 0; i < n && swap && size == 8; i++)
        ((gm_raw8 *)room)[i] = gm_order8(((gm_raw8 *)room)[i], 1);
    return room;
}

static int64_t find(const gm_reduce_rows_call *c, const void *x, int64_t n, uint64_t value)
{
    return gm_cpu_find(c->type, x, gm_dtype_size(c->type), n, 0, value);
}

static void leaf_of_integers(const gm_reduce_rows_call *c, const reduce_loops *loops, const char *src, int64_t n,
                             int64_t index, void *room, gm_moments *m)
{
    gm_dtype_kind kind = gm_dtype_get_kind(c->type);
    int arg = (c->want & GM_WANT_ARG) != 0;
    for (int64_t at = 0, part; at < n; at += part) {
        whole_block b;
        part = gm_min(BLOCK, n - at);
        const void *x = in_order(src + (size_t)at * gm_dtype_size(c->type), part, c->type, c->swap, room);
        loops->block(x, part, &b);
        gm_whole_sums_add(m->sum.whole, &b.sums, c->want);
        if (c->want & GM_WANT_RANGE) {
            int better_min = at == 0 || gm_moment_less(kind, b.min, m->min),
                better_max = at == 0 || gm_moment_less(kind, m->max, b.max);
            gm_extreme_merge(kind, 0, at == 0, &m->min, &m->argmin, b.min,
                             arg && better_min ? index + at + find(c, x, part, b.min) : -1);
            gm_extreme_merge(kind, 1, at == 0, &m->max, &m->argmax, b.max,
                             arg && better_max ? index + at + find(c, x, part, b.max) : -1);
        }
    }
    m->count = (uint64_t)n;
}

/* The first finite element; 0 if there is none. */
static double shift_of(const void *x, int64_t n, gm_dtype type)
{
    double value = 0;
    for (int64_t i = 0; i < n; i++) {
        gm_cpu_row_f64(&value, (const char *)x + (size_t)i * gm_dtype_size(type), 1, type, 0);
        if (value - value == 0)
            return value;
    }
    return 0;
}

/* Lanes without elements are not initialized; adding their +0 would change no bit. */
static double fold_lanes(double *lane, int64_t n)
{
    for (int64_t width = GM_LANES / 2; width > 0; width /= 2)
        for (int64_t j = 0; j < width && j + width < n; j++)
            lane[j] += lane[j + width];
    return lane[0];
}

static void leaf_of_floats(const gm_reduce_rows_call *c, const reduce_loops *loops, const char *src, int64_t n,
                           int64_t index, void *room, gm_moments *m)
{
    static const unsigned wants[] = {GM_WANT_SUM, GM_WANT_SQUARES, GM_WANT_SPREAD, GM_WANT_SPREAD};
    static const int places[] = {GM_REAL_SUM, GM_REAL_SQUARES, GM_REAL_SHIFTED_SUM, GM_REAL_SHIFTED_SQUARES};
    double lane[4][GM_LANES];
    float_range r;
    const void *x = in_order(src, n, c->type, c->swap, room);
    loops->range(x, n, &r);
    m->nan = r.nan;
    m->count = (uint64_t)n - r.nan;
    if (r.nan > 0 && c->want & GM_WANT_ARG)
        m->argnan = index + find(c, x, n, UINT64_MAX);
    if (m->count == 0)
        return;
    if (c->want & GM_WANT_RANGE) {
        m->min = r.min;
        m->max = r.max;
    }
    if (c->want & GM_WANT_ARG) {
        m->argmin = index + find(c, x, n, r.min);
        m->argmax = index + find(c, x, n, r.max);
    }
    if (!(c->want & (GM_WANT_SUM | GM_WANT_SQUARES | GM_WANT_SPREAD)))
        return;
    double shift = c->want & GM_WANT_SPREAD ? shift_of(x, n, c->type) : 0;
    loops->lanes(x, n, shift, r.nan > 0, (c->want & GM_WANT_SPREAD) != 0, lane);
    m->sum.real[GM_REAL_SHIFT] = shift;
    for (int i = 0; i < 4; i++)
        if (c->want & wants[i])
            m->sum.real[places[i]] = fold_lanes(lane[i], n);
}

int gm_cpu_reduce_rows(int threads, const gm_reduce_rows_call *call)
{
    int64_t length = gm_leaf_length(call->type), per = gm_ceil_div(call->segment, length);
    int64_t start = call->first / per * call->segment + call->first % per * length;
    int is_float = gm_dtype_get_kind(call->type) == GM_FLOAT;
    const reduce_loops *loops = &LOOPS[call->type];
    int copies = !is_in_order(call->src, call->type, call->swap);
    char *rooms = copies ? aligned_alloc(CACHE_LINE, (size_t)threads * ROOM) : NULL; /* their stacks may be small */
    if (copies && !rooms)
        return gm_fail(GM_EDEVICE, "out of host memory: cannot allocate %d bytes for each of %d threads", ROOM,
                       threads);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < call->leaves; i++) {
        int64_t leaf = call->first + i, index = leaf % per * length, n = gm_min(length, call->segment - index);
        const char *src = (const char *)call->src +
                          (size_t)(leaf / per * call->segment + index - start) * gm_dtype_size(call->type);
        void *room = rooms ? rooms + (size_t)omp_get_thread_num() * ROOM : NULL;
        gm_moments_begin(&call->out[i]);
        if (is_float)
            leaf_of_floats(call, loops, src, n, index, room, &call->out[i]);
        else
            leaf_of_integers(call, loops, src, n, index, room, &call->out[i]);
    }
    free(rooms);
    return GM_OK;
}
