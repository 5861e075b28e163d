/* normalize for every pair of types and every address: neighbouring threads take neighbouring elements, one at a time,
 * so that nothing needs alignment. The types are tested at run time, once for all elements that a thread has in flight.
 * The most frequent calls have kernels of their own (normalize_cuda.cu). */
#include "kernels/normalize/normalize_cuda.cuh"

enum { THREADS = 256, ROWS = 64 /* of a block, with the same columns */ };

template <typename REAL>
struct in_flight {
    enum { EACH = 4, WIDTH = THREADS * EACH };
};

/* Whether REAL holds all values of the type: types of more than 24 digits need float64. */
template <typename ELEMENT, typename REAL>
static constexpr bool fits = sizeof(REAL) == sizeof(double) || ELEMENT::significant <= 24;

template <typename ELEMENT, typename REAL, int EACH>
static __device__ __forceinline__ void fetch(const void *src, int64_t at, int n, int swap, REAL (&p)[EACH])
{
    const typename ELEMENT::raw *from = (const typename ELEMENT::raw *)src + at;
    typename ELEMENT::raw raw[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++)
        raw[e] = e < n ? from[e * THREADS] : 0;
#pragma unroll
    for (int e = 0; e < EACH; e++)
        ELEMENT::read(raw[e], swap, &p[e]);
}

template <typename REAL, int EACH>
static __device__ __forceinline__ void fetch_any(const gm_normalize_call &call, int64_t at, int n, REAL (&p)[EACH])
{
    dispatch(call.src_type, [&](auto element) -> int {
        if constexpr (fits<decltype(element), REAL>)
            fetch<decltype(element)>(call.src, at, n, call.swap, p);
        return cudaSuccess;
    });
}

template <typename OUT, typename REAL, int EACH>
static __device__ __forceinline__ void put(void *out, int64_t at, int n, const REAL (&v)[EACH], unsigned marked,
                                           const gm_limits<REAL> &limits, gm_tally *tally)
{
    typename OUT::raw *to = (typename OUT::raw *)out + at;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (e < n)
            to[e * THREADS] = stored<OUT>(v[e], marked >> e & 1, limits, tally);
    }
}

template <typename REAL, int EACH>
static __device__ __forceinline__ void put_any(const gm_normalize_call &call, int64_t at, int n, const REAL (&v)[EACH],
                                               unsigned marked, const gm_limits<REAL> &limits, gm_tally *tally)
{
    dispatch(call.out_type, [&](auto element) -> int {
        if constexpr (fits<decltype(element), REAL>)
            put<gm_target<decltype(element)>>(call.out, at, n, v, marked, limits, tally);
        return cudaSuccess;
    });
}

/* The most frequent rounding has a loop of its own. */
template <typename REAL, int EACH>
static __device__ __forceinline__ void round_all(REAL (&v)[EACH], gm_rounding rounding)
{
    if (rounding == GM_ROUND_NEAREST_EVEN) {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            v[e] = whole(v[e], GM_ROUND_NEAREST_EVEN);
    } else {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            v[e] = whole(v[e], rounding);
    }
}

/* Blocks (x, y): columns from x * WIDTH on, rows from y * walk on. */
template <typename REAL>
static __global__ void __launch_bounds__(THREADS)
    normalize_any(const __grid_constant__ gm_normalize_call call, const __grid_constant__ gm_limits<REAL> limits,
                  bool is_whole, int64_t walk)
{
    enum { EACH = in_flight<REAL>::EACH, WIDTH = in_flight<REAL>::WIDTH };
    int64_t col = (int64_t)blockIdx.x * WIDTH + threadIdx.x, left = (call.cols - col + THREADS - 1) / THREADS;
    int64_t begin = (int64_t)blockIdx.y * walk, end = begin + walk < call.rows ? begin + walk : call.rows;
    int n = left < 0 ? 0 : left < EACH ? (int)left : EACH;
    REAL p[EACH], v[EACH], sub[EACH], factor[EACH];
    gm_tally tally = {0, 0, 0};
    for (int64_t row = begin; row < end; row++) {
        fetch_any(call, row * call.cols + col, n, p);
        if (row == begin || call.row_step) {
            int64_t from = row * call.row_step + col * call.col_step;
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                int64_t at = from + e * THREADS * call.col_step;
                sub[e] = e < n ? ((const REAL *)call.sub)[at] : 0;
                factor[e] = e < n ? ((const REAL *)call.factor)[at] : 0;
            }
        }
        unsigned marked = 0;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            marked |= (unsigned)(p[e] == p[e] && factor[e] != factor[e]) << e;
            v[e] = scaled(p[e], sub[e], factor[e], limits.add);
        }
        if (call.log) {
#pragma unroll
            for (int e = 0; e < EACH; e++)
                v[e] = (REAL)gm_minus_log((double)v[e]);
        }
        if (is_whole)
            round_all(v, call.rounding);
        put_any(call, row * call.cols + col, n, v, marked, limits, &tally);
    }
    count<THREADS>(call.counts, tally);
}

template <typename REAL>
static int launch(gm_cuda_stream stream, const gm_normalize_call *call)
{
    const int64_t width = in_flight<REAL>::WIDTH;
    int64_t x = (call->cols + width - 1) / width, walk = 1;
    while (walk < ROWS && x * (call->rows / walk) > 16384)
        walk *= 2;
    while ((call->rows + walk - 1) / walk > 65535) /* blocks along y */
        walk *= 2;
    if (x > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    dim3 grid((unsigned)x, (unsigned)((call->rows + walk - 1) / walk));
    const bool is_whole = gm_dtype_get_kind(call->out_type) != GM_FLOAT;
    normalize_any<REAL><<<grid, THREADS, 0, stream>>>(*call, limits_of<REAL>(call), is_whole, walk);
    return cudaGetLastError();
}

int gm_cuda_normalize_any(gm_cuda_stream stream, const gm_normalize_call *call)
{
    return call->wide ? launch<double>(stream, call) : launch<float>(stream, call);
}
