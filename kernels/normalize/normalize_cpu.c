/* normalize on the processor: a segment at a time, each rule of kernels/normalize/normalize.h in a loop of its own,
 * which vectorizes. */

#include "base/size.h"
#include "kernels/host.h"
#include "kernels/normalize/normalize.h"

enum {
    SEGMENT = 512,       /* elements processed at a time, in buffers that the first-level cache holds */
    BATCH = 32 * SEGMENT /* that a thread takes at a time */
};

/* The element `marked`. */
#define GM_DTYPE(id, name, ctype, kind, bytes, digits)         \
    static void mark_##id(void *to, int64_t i, uint64_t value) \
    {                                                          \
        ((gm_raw##bytes *)to)[i] = (gm_raw##bytes)value;       \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE

static void (*const markers[GM_DTYPES])(void *out, int64_t i, uint64_t value) = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) mark_##id,
#include "base/types/dtypes.def"
#undef GM_DTYPE
};

static void read_float(float *p, const void *src, int64_t n, gm_dtype type, int swap)
{
    gm_cpu_row_f32(p, src, n, type, swap);
}

static void read_double(double *p, const void *src, int64_t n, gm_dtype type, int swap)
{
    gm_cpu_row_f64(p, src, n, type, swap);
}

#define REAL float
#define OF(name) name##_float
#define OF_TYPE(name, id) name##_float_##id
#include "kernels/normalize/normalize_loops.h"
#undef REAL
#undef OF
#undef OF_TYPE

#define REAL double
#define OF(name) name##_double
#define OF_TYPE(name, id) name##_double_##id
#include "kernels/normalize/normalize_loops.h"
#undef REAL
#undef OF
#undef OF_TYPE

int gm_cpu_normalize(int threads, const gm_normalize_call *call)
{
    int64_t total = call->rows * call->cols, batches = gm_ceil_div(total, BATCH);
    uint64_t clipped = 0, nan = 0, marked = 0;
    threads = batches > 1 ? threads : 1; /* synchronization costs more than a short piece */
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : clipped, nan, marked)
    for (int64_t b = 0; b < batches; b++) {
        int64_t end = gm_min(total, (b + 1) * BATCH);
        for (int64_t at = b * BATCH; at < end; at += SEGMENT) {
            int64_t n = gm_min(SEGMENT, end - at);
            gm_normalize_counts counts = call->wide ? run_double(call, at, n) : run_float(call, at, n);
            clipped += counts.clipped;
            nan += counts.nan;
            marked += counts.marked;
        }
    }
    call->counts->clipped += clipped;
    call->counts->nan += nan;
    call->counts->marked += marked;
    return GM_OK;
}
