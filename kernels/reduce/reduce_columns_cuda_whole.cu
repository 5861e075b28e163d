/* Columns of integers. Sums are exact, so that a leaf stays open until the last row. */
#include "kernels/reduce/reduce_columns_cuda.cuh"

template <typename T, typename RAW, int ARG>
struct whole_column {
    typedef RAW raw;
    enum { LEAVES = 0, KIND = T(-1) < T(0) ? GM_SIGNED : GM_UNSIGNED, SMALL = sizeof(T) <= 2 };
    T min, max;
    int64_t count, argmin, argmax;
    uint64_t sum[2], squares[3]; /* small types use only the low words until the record is stored */
    const gm_moments *before;    /* the record to which these are added; NULL: none */

    __device__ __forceinline__ void begin()
    {
        min = max = 0;
        count = 0;
        argmin = argmax = -1;
        sum[0] = sum[1] = squares[0] = squares[1] = squares[2] = 0;
        before = NULL;
    }
    __device__ __forceinline__ void load(const gm_moments *record)
    {
        before = record;
    }
    __device__ __forceinline__ void take(RAW r, int64_t row)
    {
        T x = (T)r;
        uint64_t magnitude = KIND == GM_SIGNED && x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
        if (count == 0 || x < min) {
            min = x;
            if (ARG)
                argmin = row;
        }
        if (count == 0 || x > max) {
            max = x;
            if (ARG)
                argmax = row;
        }
        count++;
        if (SMALL) {
            sum[0] += (uint64_t)(int64_t)x;
            squares[0] += (uint64_t)((uint32_t)magnitude * (uint32_t)magnitude);
        } else {
            uint64_t value[2] = {(uint64_t)x, KIND == GM_SIGNED && x < 0 ? UINT64_MAX : 0};
            uint64_t squared[3] = {magnitude * magnitude, sizeof(T) == 8 ? __umul64hi(magnitude, magnitude) : 0, 0};
            gm_words_add(sum, value, 2);
            gm_words_add(squares, squared, 3);
        }
    }
    __device__ __forceinline__ void store(unsigned want, gm_moments *record) const
    {
        gm_moments m;
        uint64_t total[2] = {sum[0], SMALL && KIND == GM_SIGNED ? (uint64_t)((int64_t)sum[0] >> 63) : sum[1]};
        gm_moments_begin(&m);
        if (before != NULL)
            m = *before;
        if (count > 0 && want & GM_WANT_RANGE) {
            gm_extreme_merge((gm_dtype_kind)KIND, 0, m.count == 0, &m.min, &m.argmin, (uint64_t)(int64_t)min, argmin);
            gm_extreme_merge((gm_dtype_kind)KIND, 1, m.count == 0, &m.max, &m.argmax, (uint64_t)(int64_t)max, argmax);
        }
        if (want & GM_WANT_SUM)
            gm_words_add(m.sum.whole + GM_WHOLE_SUM, total, 2);
        if (want & GM_WANT_SQUARES)
            gm_words_add(m.sum.whole + GM_WHOLE_SQUARES, squares, 3);
        m.count += (uint64_t)count;
        *record = m;
    }
};

template <typename T, typename RAW, int ARG>
static int launch_by_width(cudaStream_t stream, const gm_reduce_columns_call *call)
{
    const int neighbours = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
    if (fits_words(call, neighbours))
        return launch_columns<whole_column<T, RAW, ARG>, neighbours>(stream, call);
    return launch_columns<whole_column<T, RAW, ARG>, 1>(stream, call);
}

template <typename T, typename RAW>
static int launch(cudaStream_t stream, const gm_reduce_columns_call *call)
{
    if (!fits_words(call, 1))
        return cudaErrorMisalignedAddress;
    return call->want & GM_WANT_ARG ? launch_by_width<T, RAW, 1>(stream, call)
                                    : launch_by_width<T, RAW, 0>(stream, call);
}

extern "C" int gm_cuda_reduce_columns_whole(gm_cuda_stream stream, const gm_reduce_columns_call *call)
{
    return dispatch_integers(call->type, [&](auto element) {
        typedef decltype(element) integer;
        return launch<typename integer::type, typename integer::raw>(stream, call);
    });
}
