#include <string.h>

#include "base/size.h"
#include "kernels/move/calls.h"

enum { SEGMENT = 1 << 16 /* bytes of a row, or elements, that one thread takes at a time */ };

/* Rows of more than one element, each as it is. */
static void flip_rows(int threads, const gm_flip_call *call)
{
    int64_t row = call->inner * call->bytes, segments = gm_ceil_div(row, SEGMENT), rows = call->outer * call->rows;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
    for (int64_t k = 0; k < rows; k++) {
        for (int64_t s = 0; s < segments; s++) {
            int64_t first = k - k % call->rows, from = first + call->rows - 1 - k % call->rows, at = s * SEGMENT;
            memcpy((char *)call->dst + k * row + at, (const char *)call->src + from * row + at,
                   (size_t)gm_min(SEGMENT, row - at));
        }
    }
}

/* Rows of one element of a type: n elements from at on, of a run of `rows`. */
#define REVERSE(type)                                                                           \
    static void reverse_##type(void *dst, const void *src, int64_t rows, int64_t at, int64_t n) \
    {                                                                                           \
        const type *from = (const type *)src + (rows - 1 - at);                                 \
        type *to = (type *)dst + at;                                                            \
        for (int64_t i = 0; i < n; i++)                                                         \
            to[i] = from[-i];                                                                   \
    }
REVERSE(uint8_t)
REVERSE(uint16_t)
REVERSE(uint32_t)
REVERSE(uint64_t)

static void flip_elements(int threads, const gm_flip_call *call)
{
    static void (*const reverse[])(void *, const void *, int64_t, int64_t, int64_t) = {
        [1] = reverse_uint8_t, [2] = reverse_uint16_t, [4] = reverse_uint32_t, [8] = reverse_uint64_t};
    int64_t rows = call->rows, segments = gm_ceil_div(rows, SEGMENT), run = rows * call->bytes;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
    for (int64_t o = 0; o < call->outer; o++) {
        for (int64_t s = 0; s < segments; s++) {
            int64_t at = s * SEGMENT;
            reverse[call->bytes]((char *)call->dst + o * run, (const char *)call->src + o * run, rows, at,
                                 gm_min(SEGMENT, rows - at));
        }
    }
}

int gm_cpu_flip(int threads, const gm_flip_call *call)
{
    if (call->inner == 1)
        flip_elements(threads, call);
    else
        flip_rows(threads, call);
    return GM_OK;
}
