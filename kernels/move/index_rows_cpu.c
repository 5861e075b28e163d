#include <string.h>

#include "base/size.h"
#include "kernels/element.h"
#include "kernels/move/calls.h"

enum { SEGMENT = 1 << 14 /* indices that one thread takes at a time */ };

#define FITS_UNSIGNED(ctype, raw, extent) ((uint64_t)(raw) < (uint64_t)(extent))
#define FITS_SIGNED(ctype, raw, extent) ((ctype)(raw) >= 0 && (int64_t)(ctype)(raw) < (extent))
#define FITS_FLOAT(ctype, raw, extent) 0

/* Indices [begin, end). Returns the first bad one, or end. */
#define LOCATE(id, ctype, kind, bytes)                                                       \
    static int64_t locate_##id(const gm_index_rows_call *call, int64_t begin, int64_t end)   \
    {                                                                                        \
        const char *from = call->index;                                                      \
        int64_t bad = end;                                                                   \
        for (int64_t i = begin; i < end; i++) {                                              \
            gm_raw##bytes raw;                                                               \
            memcpy(&raw, from + i * (bytes), bytes);                                         \
            raw = gm_order##bytes(raw, call->swap);                                          \
            int fits = FITS_##kind(ctype, raw, call->extent);                                \
            int64_t before = call->adds ? call->rows[i] : 0;                                 \
            call->rows[i] = fits && before >= 0 ? before * call->extent + (int64_t)raw : -1; \
            if (!fits && bad == end)                                                         \
                bad = i;                                                                     \
        }                                                                                    \
        return bad;                                                                          \
    }
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) LOCATE(id, ctype, kind, bytes)
#include "base/types/dtypes.def"
#undef GM_DTYPE

int gm_cpu_index_rows(int threads, const gm_index_rows_call *call)
{
    static int64_t (*const locate[GM_DTYPES])(const gm_index_rows_call *, int64_t, int64_t) = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) locate_##id,
#include "base/types/dtypes.def"
#undef GM_DTYPE
    };
    int64_t segments = gm_ceil_div(call->count, SEGMENT), lowest = *call->bad;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : lowest)
    for (int64_t s = 0; s < segments; s++) {
        int64_t end = gm_min((s + 1) * SEGMENT, call->count), bad = locate[call->type](call, s * SEGMENT, end);
        if (bad < end)
            lowest = gm_min(lowest, call->first + bad);
    }
    *call->bad = lowest;
    return GM_OK;
}
