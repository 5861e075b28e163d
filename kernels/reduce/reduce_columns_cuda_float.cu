/* Columns of floats: rows in order, starting with the open record. */
#include "kernels/reduce/reduce_columns_cuda.cuh"
#include "kernels/reduce/reduce_float_cuda.cuh"

/* -0 below +0. */
static __device__ __forceinline__ float lesser(float a, float b)
{
    return fminf(a, b);
}
static __device__ __forceinline__ float greater(float a, float b)
{
    return fmaxf(a, b);
}
static __device__ __forceinline__ double lesser(double a, double b)
{
    return gm_monotone8(gm_double_bits(b)) < gm_monotone8(gm_double_bits(a)) ? b : a;
}
static __device__ __forceinline__ double greater(double a, double b)
{
    return gm_monotone8(gm_double_bits(b)) > gm_monotone8(gm_double_bits(a)) ? b : a;
}

/* F: reduce_float_cuda.cuh. */
template <typename F, int ARG>
struct float_column {
    typedef typename F::raw raw;
    typedef typename F::value value;
    enum { LEAVES = 1, KIND = GM_FLOAT };
    uint64_t count, nan;
    value min, max;
    int64_t argmin, argmax, argnan;
    double sum, squares, shift, shifted, shifted_squares;

    __device__ __forceinline__ void begin()
    {
        count = nan = 0;
        min = (value)INFINITY;
        max = (value)-INFINITY;
        argmin = argmax = argnan = -1;
        sum = squares = shift = shifted = shifted_squares = 0;
    }
    __device__ __forceinline__ void load(const gm_moments *m)
    {
        count = m->count;
        nan = m->nan;
        if (count > 0) { /* parts that are not wanted are 0 and have no effect */
            min = (value)gm_bits_double(m->min);
            max = (value)gm_bits_double(m->max);
        }
        argmin = m->argmin;
        argmax = m->argmax;
        argnan = m->argnan;
        sum = m->sum.real[GM_REAL_SUM];
        squares = m->sum.real[GM_REAL_SQUARES];
        shift = m->sum.real[GM_REAL_SHIFT];
        shifted = m->sum.real[GM_REAL_SHIFTED_SUM];
        shifted_squares = m->sum.real[GM_REAL_SHIFTED_SQUARES];
    }
    __device__ __forceinline__ void take(raw r, int64_t row)
    {
        value v = F::value_of(r);
        bool taken = v == v;
        double x = taken ? (double)v : 0;
        if (taken && count == 0)
            shift = isfinite(x) ? x : 0;
        if (ARG && taken && (v < min || argmin < 0))
            argmin = row;
        if (ARG && taken && (v > max || argmax < 0))
            argmax = row;
        if (ARG && !taken && argnan < 0)
            argnan = row;
        if (taken) {
            min = lesser(min, v);
            max = greater(max, v);
        }
        count += taken;
        nan += !taken;
        double apart = taken ? x - shift : 0;
        sum += x;
        squares = fma(x, x, squares);
        shifted += apart;
        shifted_squares = fma(apart, apart, shifted_squares);
    }
    __device__ __forceinline__ void store(unsigned want, gm_moments *m) const
    {
        bool range = want & GM_WANT_RANGE && count > 0, spread = want & GM_WANT_SPREAD;
        m->count = count;
        m->nan = nan;
        m->min = range ? gm_double_bits((double)min) : 0;
        m->max = range ? gm_double_bits((double)max) : 0;
        m->argmin = argmin;
        m->argmax = argmax;
        m->argnan = argnan;
        m->sum.real[GM_REAL_SUM] = want & GM_WANT_SUM ? sum : 0;
        m->sum.real[GM_REAL_SQUARES] = want & GM_WANT_SQUARES ? squares : 0;
        m->sum.real[GM_REAL_SHIFT] = spread ? shift : 0;
        m->sum.real[GM_REAL_SHIFTED_SUM] = spread ? shifted : 0;
        m->sum.real[GM_REAL_SHIFTED_SQUARES] = spread ? shifted_squares : 0;
    }
};

template <typename F>
static int launch(cudaStream_t stream, const gm_reduce_columns_call *call)
{
    if (!fits_words(call, 1))
        return cudaErrorMisalignedAddress;
    if (call->want & GM_WANT_ARG)
        return launch_columns<float_column<F, 1>, 1>(stream, call);
    return launch_columns<float_column<F, 0>, 1>(stream, call);
}

extern "C" int gm_cuda_reduce_columns(gm_cuda_stream stream, const gm_reduce_columns_call *call)
{
    switch (call->type) {
    case GM_DTYPE_F16:
        return launch<float_f16>(stream, call);
    case GM_DTYPE_BF16:
        return launch<float_bf16>(stream, call);
    case GM_DTYPE_F32:
        return launch<float_f32>(stream, call);
    case GM_DTYPE_F64:
        return launch<float_f64>(stream, call);
    default:
        return gm_cuda_reduce_columns_whole(stream, call);
    }
}
