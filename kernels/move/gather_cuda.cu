/* Gather of rows. A thread moves EACH words, THREADS apart, so that neighbouring threads write neighbouring words
 * whatever the length of a row, short rows share a warp, and each thread has EACH reads under way. A word is the
 * largest that divides a row and at whose multiples all rows lie. Threads of one row read the same index. */
#include "kernels/kernels.h"
#include "kernels/move/calls.h"

enum { THREADS = 256, EACH = 4 };

/* Rows in words, `total` of them. No load waits for another one of its step. */
template <typename WORD>
static __global__ void __launch_bounds__(THREADS)
    gather_words(gm_gather_call call, uint32_t total, uint32_t words, int64_t from_pitch, int64_t to_pitch)
{
    const WORD *__restrict__ from = (const WORD *)call.from;
    const int64_t *__restrict__ index = call.index, *__restrict__ place = call.place;
    WORD *__restrict__ to = (WORD *)call.to;
    uint32_t first = blockIdx.x * (THREADS * EACH) + threadIdx.x, line[EACH], column[EACH];
    int64_t row[EACH], at[EACH];
    WORD word[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        uint32_t k = first + i * THREADS, last = total - 1;
        k = k < last ? k : last;
        line[i] = k / words;
        column[i] = k - line[i] * words;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        row[i] = __ldg(&index[line[i]]);
        at[i] = line[i];
    }
    if (place) {
#pragma unroll
        for (int i = 0; i < EACH; i++)
            at[i] = __ldg(&place[line[i]]);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if ((uint64_t)row[i] < (uint64_t)call.rows)
            word[i] = __ldg(&from[row[i] * from_pitch + column[i]]);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if ((uint64_t)row[i] < (uint64_t)call.rows && first + i * THREADS < total)
            to[at[i] * to_pitch + column[i]] = word[i];
}

/* Rows [first, first + count) of the call, bytes [begin, begin + bytes) of each. */
template <typename WORD>
static int launch(cudaStream_t stream, gm_gather_call call, int64_t first, int64_t count, int64_t begin, int64_t bytes)
{
    const int64_t size = (int64_t)sizeof(WORD), block = THREADS * EACH;
    int64_t words = bytes / size, total = count * words;
    call.from = (const char *)call.from + begin;
    call.to = (char *)call.to + begin + (call.place ? 0 : first * call.to_pitch);
    call.index += first;
    call.place = call.place ? call.place + first : NULL;
    gather_words<WORD><<<(unsigned)((total + block - 1) / block), THREADS, 0, stream>>>(
        call, (uint32_t)total, (uint32_t)words, call.from_pitch / size, call.to_pitch / size);
    return cudaGetLastError();
}

/* In launches whose words 32 bits count. */
template <typename WORD>
static int gather(cudaStream_t stream, const gm_gather_call *call)
{
    const int64_t most = INT64_C(1) << 30;
    int error = cudaSuccess;
    for (int64_t begin = 0; begin < call->bytes && error == cudaSuccess; begin += most) {
        int64_t bytes = call->bytes - begin < most ? call->bytes - begin : most;
        int64_t each = most / (bytes / (int64_t)sizeof(WORD));
        for (int64_t first = 0; first < call->count && error == cudaSuccess; first += each)
            error = launch<WORD>(stream, *call, first, call->count - first < each ? call->count - first : each, begin,
                                 bytes);
    }
    return error;
}

extern "C" int gm_cuda_gather(gm_cuda_stream stream, const gm_gather_call *call)
{
    size_t places = (size_t)call->from | (size_t)call->to | (size_t)call->bytes | (size_t)call->from_pitch |
                    (size_t)call->to_pitch;
    if ((places & 15) == 0)
        return gather<uint4>(stream, call);
    if ((places & 7) == 0)
        return gather<uint64_t>(stream, call);
    if ((places & 3) == 0)
        return gather<uint32_t>(stream, call);
    if ((places & 1) == 0)
        return gather<uint16_t>(stream, call);
    return gather<uint8_t>(stream, call);
}
