/* Flip of rows. A thread moves one word: the largest that divides a row and at whose multiples both sides lie; of rows
 * of one element 16 bytes, whose elements it reverses. Neighbouring threads write neighbouring words. */
#include "kernels/kernels.h"
#include "kernels/move/calls.h"

enum { THREADS = 256 };

/* [outer][rows][words]. INDEX holds their number. */
template <typename WORD, typename INDEX>
static __global__ void __launch_bounds__(THREADS)
    move_words(const WORD *src, WORD *dst, INDEX total, INDEX rows, INDEX words)
{
    for (INDEX k = (INDEX)blockIdx.x * THREADS + threadIdx.x; k < total; k += (INDEX)gridDim.x * THREADS) {
        INDEX row = k / words, word = k - row * words, r = row % rows;
        dst[k] = src[(row - r + (rows - 1 - r)) * words + word];
    }
}

template <typename T>
static __device__ __forceinline__ uint4 reversed(uint4 word)
{
    enum { ELEMENTS = sizeof(uint4) / sizeof(T) };
    union {
        uint4 word;
        T element[ELEMENTS];
    } in = {word}, out;
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++)
        out.element[i] = in.element[ELEMENTS - 1 - i];
    return out.word;
}

/* [outer][words], of whole words. */
template <typename T, typename INDEX>
static __global__ void __launch_bounds__(THREADS) reverse_words(const uint4 *src, uint4 *dst, INDEX total, INDEX words)
{
    for (INDEX k = (INDEX)blockIdx.x * THREADS + threadIdx.x; k < total; k += (INDEX)gridDim.x * THREADS) {
        INDEX word = k % words;
        dst[k] = reversed<T>(src[k - word + (words - 1 - word)]);
    }
}

/* Blocks for one thread a word, as far as a grid goes. */
static unsigned blocks_of(int64_t words)
{
    const int64_t most = INT64_C(1) << 30;
    int64_t blocks = (words + THREADS - 1) / THREADS;
    return (unsigned)(blocks < most ? blocks : most);
}

template <typename WORD>
static void move(cudaStream_t stream, const gm_flip_call *call)
{
    const WORD *src = (const WORD *)call->src;
    WORD *dst = (WORD *)call->dst;
    int64_t words = call->inner * call->bytes / (int64_t)sizeof(WORD), total = call->outer * call->rows * words;
    if (total <= INT32_MAX)
        move_words<WORD, uint32_t><<<blocks_of(total), THREADS, 0, stream>>>(src, dst, (uint32_t)total,
                                                                             (uint32_t)call->rows, (uint32_t)words);
    else
        move_words<WORD, uint64_t><<<blocks_of(total), THREADS, 0, stream>>>(src, dst, (uint64_t)total,
                                                                             (uint64_t)call->rows, (uint64_t)words);
}

template <typename T>
static void reverse(cudaStream_t stream, const gm_flip_call *call)
{
    const uint4 *src = (const uint4 *)call->src;
    uint4 *dst = (uint4 *)call->dst;
    int64_t words = call->rows * (int64_t)sizeof(T) / (int64_t)sizeof(uint4), total = call->outer * words;
    if (total <= INT32_MAX)
        reverse_words<T, uint32_t>
            <<<blocks_of(total), THREADS, 0, stream>>>(src, dst, (uint32_t)total, (uint32_t)words);
    else
        reverse_words<T, uint64_t>
            <<<blocks_of(total), THREADS, 0, stream>>>(src, dst, (uint64_t)total, (uint64_t)words);
}

extern "C" int gm_cuda_flip(gm_cuda_stream stream, const gm_flip_call *call)
{
    size_t places = (size_t)call->src | (size_t)call->dst, row = (size_t)(call->inner * call->bytes);
    int is_reversal = call->inner == 1 && ((places | (size_t)(call->rows * call->bytes)) & 15) == 0;
    if (call->outer == 0 || call->rows == 0 || call->inner == 0)
        return cudaSuccess;
    if (is_reversal && call->bytes == 1)
        reverse<uint8_t>(stream, call);
    else if (is_reversal && call->bytes == 2)
        reverse<uint16_t>(stream, call);
    else if (is_reversal && call->bytes == 4)
        reverse<uint32_t>(stream, call);
    else if (is_reversal)
        reverse<uint64_t>(stream, call);
    else if (((places | row) & 15) == 0)
        move<uint4>(stream, call);
    else if (((places | row) & 7) == 0)
        move<uint64_t>(stream, call);
    else if (((places | row) & 3) == 0)
        move<uint32_t>(stream, call);
    else if (((places | row) & 1) == 0)
        move<uint16_t>(stream, call);
    else
        move<uint8_t>(stream, call);
    return cudaGetLastError();
}
