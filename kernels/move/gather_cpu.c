#include <string.h>

#include "base/size.h"
#include "kernels/move/calls.h"

enum { SEGMENT = 1 << 16 /* bytes that one thread takes at a time */ };

/* Rows [begin, end) of the call, of `bytes` bytes: a constant for rows of one word. */
static inline void gather_rows(const gm_gather_call *call, int64_t begin, int64_t end, size_t bytes)
{
    const char *from = call->from;
    char *to = call->to;
    for (int64_t k = begin; k < end; k++) {
        int64_t row = call->index[k], place = call->place ? call->place[k] : k;
        if (row >= 0 && row < call->rows)
            memcpy(to + place * call->to_pitch, from + row * call->from_pitch, bytes);
    }
}

#define GATHER(size)                                                                  \
    static void gather_##size(const gm_gather_call *call, int64_t begin, int64_t end) \
    {                                                                                 \
        gather_rows(call, begin, end, size);                                          \
    }
GATHER(1)
GATHER(2)
GATHER(4)
GATHER(8)
GATHER(16)

static void gather_some(const gm_gather_call *call, int64_t begin, int64_t end)
{
    static void (*const words[])(const gm_gather_call *, int64_t, int64_t) = {
        [1] = gather_1, [2] = gather_2, [4] = gather_4, [8] = gather_8, [16] = gather_16};
    if (call->bytes < (int64_t)(sizeof words / sizeof *words) && words[call->bytes])
        words[call->bytes](call, begin, end);
    else
        gather_rows(call, begin, end, (size_t)call->bytes);
}

/* Rows that are long for one thread, in segments. */
static void gather_long(int threads, const gm_gather_call *call)
{
    int64_t segments = gm_ceil_div(call->bytes, SEGMENT);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
    for (int64_t k = 0; k < call->count; k++) {
        for (int64_t s = 0; s < segments; s++) {
            int64_t row = call->index[k], place = call->place ? call->place[k] : k, at = s * SEGMENT;
            if (row >= 0 && row < call->rows)
                memcpy((char *)call->to + place * call->to_pitch + at,
                       (const char *)call->from + row * call->from_pitch + at,
                       (size_t)gm_min(SEGMENT, call->bytes - at));
        }
    }
}

int gm_cpu_gather(int threads, const gm_gather_call *call)
{
    if (call->bytes == 0)
        return GM_OK;
    if (call->bytes > SEGMENT) {
        gather_long(threads, call);
        return GM_OK;
    }
    int64_t each = gm_max(SEGMENT / (call->bytes + (int64_t)sizeof *call->index), 1);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t begin = 0; begin < call->count; begin += each)
        gather_some(call, begin, gm_min(begin + each, call->count));
    return GM_OK;
}
