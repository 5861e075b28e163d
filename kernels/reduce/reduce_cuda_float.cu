/* Leaves of floats: sums in float64, in the order of base/statistics.h. A thread has four of its lanes, which are
 * neighbours within words. */
#include "kernels/reduce/reduce_float_cuda.cuh"

enum { LANES_EACH = GM_LANES / LANES };

/* Sums of one thread's lanes. */
template <int SPREAD>
struct lane_sums {
    double sum[LANES_EACH], squares[LANES_EACH], shifted[LANES_EACH], shifted_squares[LANES_EACH], shift;
    int nan;

    __device__ __forceinline__ void begin()
    {
        for (int k = 0; k < LANES_EACH; k++)
            sum[k] = squares[k] = shifted[k] = shifted_squares[k] = 0;
        shift = 0;
        nan = 0;
    }
    __device__ __forceinline__ void add(int k, double x)
    {
        sum[k] += x;
        squares[k] = fma(x, x, squares[k]);
        if (SPREAD) {
            double apart = x - shift;
            shifted[k] += apart;
            shifted_squares[k] = fma(apart, apart, shifted_squares[k]);
        }
    }
};

template <typename F, int SPREAD, int ARG>
struct float_walk {
    typedef typename F::raw raw;
    typedef typename F::word word;
    typedef typename F::packed packed;
    typedef typename F::value value;
    enum { EACH = F::EACH, BATCH = BATCH_BYTES / sizeof(word), STAGES = F::STAGES };
    enum { CHUNKS = LANES_EACH / EACH }; /* words after which the lanes repeat */
    lane_sums<SPREAD> s;
    packed min, max, low, high; /* of all batches so far, of this one */
    int taken, nan_before;      /* whether this batch has a number; NaN counted before it */
    value least_yet, most_yet;  /* with ARG: as min and max; the batch where each, and NaN, was first; -1: none */
    int at_min, at_max, at_nan;

    __device__ __forceinline__ void begin()
    {
        s.begin();
        min = F::highest();
        max = F::lowest();
        least_yet = F::least(min);
        most_yet = F::most(max);
        at_min = at_max = at_nan = -1;
    }
    __device__ __forceinline__ void begin_edge()
    {
        low = F::highest();
        high = F::lowest();
        taken = 0;
        nan_before = s.nan;
    }
    __device__ __forceinline__ void one(raw r, int a, int e)
    {
        value x = F::value_of(r);
        if (x == x) {
            low = F::lesser(low, F::pack(r));
            high = F::greater(high, F::pack(r));
            taken = 1;
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
                if (c == a % CHUNKS)
                    s.add(c * EACH + e, F::widen(r));
            }
        } else {
            s.nan++;
        }
    }
    __device__ __forceinline__ void take(word w, int a)
    {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            one(element_of<raw>(w, e), a, e);
    }
    /* Takes single elements only if there is a NaN. */
    __device__ __forceinline__ void take_batch(const word w[BATCH])
    {
        begin_edge();
#pragma unroll
        for (int a = 0; a < BATCH; a++)
            F::range(&low, &high, w[a]);
        if (__any_sync(everyone, F::has_nan(low, high))) {
            begin_edge();
#pragma unroll
            for (int a = 0; a < BATCH; a++)
                take(w[a], a);
            return;
        }
        taken = 1;
#pragma unroll
        for (int a = 0; a < BATCH; a++) {
#pragma unroll
            for (int e = 0; e < EACH; e++)
                s.add(a % CHUNKS * EACH + e, F::widen(element_of<raw>(w[a], e)));
        }
    }
    __device__ __forceinline__ void close_batch(int b)
    {
        min = F::lesser(min, low);
        max = F::greater(max, high);
        if (!ARG)
            return;
        value least = F::least(low), most = F::most(high);
        if (taken && (least < least_yet || at_min < 0)) { /* an infinity may be the least */
            least_yet = least;
            at_min = b;
        }
        if (taken && (most > most_yet || at_max < 0)) {
            most_yet = most;
            at_max = b;
        }
        if (at_nan < 0 && s.nan != nan_before)
            at_nan = b;
    }
};

/* Moves all sums `skip` slots down. */
template <int EACH>
static __device__ __forceinline__ void turn_lanes(double s[LANES_EACH], int skip, int lane)
{
    const int chunks = LANES_EACH / EACH;
    double own[chunks], next[chunks];
    int words = skip / EACH, within = lane + words < LANES;
#pragma unroll
    for (int k = 0; k < EACH; k++) { /* whole words: other threads */
#pragma unroll
        for (int c = 0; c < chunks; c++)
            own[c] = __shfl_sync(everyone, s[c * EACH + k], (lane + words) % LANES);
#pragma unroll
        for (int c = 0; c < chunks; c++)
            s[c * EACH + k] = within ? own[c] : own[(c + 1) % chunks];
    }
    for (int turn = 0; turn < skip % EACH; turn++) {
#pragma unroll
        for (int c = 0; c < chunks; c++)
            next[c] = __shfl_sync(everyone, s[c * EACH], (lane + 1) % LANES);
#pragma unroll
        for (int c = 0; c < chunks; c++) {
#pragma unroll
            for (int k = 0; k + 1 < EACH; k++)
                s[c * EACH + k] = s[c * EACH + k + 1];
            s[c * EACH + EACH - 1] = lane == LANES - 1 ? next[(c + 1) % chunks] : next[c];
        }
    }
}

/* Adds v[i] of a thread and of the one `step` further. One of the two keeps the first half of v, the other the second.
 */
template <int N>
static __device__ __forceinline__ void fold_halves(double *v, int step, int lane)
{
    int upper = lane & step;
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
        double give = upper ? v[i] : v[i + N / 2], keep = upper ? v[i + N / 2] : v[i];
        v[i] = keep + __shfl_xor_sync(everyone, give, step);
    }
}

static __device__ __forceinline__ double fold_whole(double v, int step)
{
    return v + __shfl_xor_sync(everyone, v, step);
}

/* Lane j takes lane j + w for w = 64, 32, ... 1, where slot k of chunk c of thread t is lane EACH * (32 c + t) + k -
 * skip, modulo 128. Of SUMS sums side by side, the lanes of slot k of all of them: s[k SUMS + q]. As threads fall out
 * of one sum they are put to another. Sum q is with the threads of lane number q * LANES / (EACH SUMS). */
template <int EACH, int SUMS>
static __device__ __forceinline__ double fold_lanes(double *s, int lane)
{
    if (EACH == 2) { /* two chunks */
#pragma unroll
        for (int i = 0; i < 2 * SUMS; i++)
            s[i] += s[i + 2 * SUMS];
    }
    const int n = EACH * SUMS; /* values of a thread: 4, 8 or 16 */
    fold_halves<n>(s, 16, lane);
    fold_halves<n / 2>(s, 8, lane);
    if (n > 4)
        fold_halves<n / 4>(s, 4, lane);
    else
        s[0] = fold_whole(s[0], 4);
    if (n > 8)
        fold_halves<n / 8>(s, 2, lane);
    else
        s[0] = fold_whole(s[0], 2);
    s[0] = fold_whole(s[0], 1);
    /* The highest bits of a thread's number give its slot: the upper half of the slots is with the upper threads. */
    s[0] = fold_whole(s[0], 16);
    if (EACH == 4)
        s[0] = fold_whole(s[0], 8);
    return s[0];
}

/* The leaf's first finite element, or 0. */
template <typename F>
static __device__ __forceinline__ double find_shift(const leaf_place &p, int lane, int swap)
{
    const typename F::raw *element = (const typename F::raw *)p.base + p.skip;
    double first = F::widen(order_raw(element[0], swap));
    if (isfinite(first))
        return first;
    for (int i = lane; i < p.n + lane; i += LANES) { /* all lanes continue together */
        double x = i < p.n ? F::widen(order_raw(element[i], swap)) : INFINITY;
        unsigned finite = __ballot_sync(everyone, isfinite(x));
        if (finite != 0)
            return __shfl_sync(everyone, x, __ffs((int)finite) - 1);
    }
    return 0;
}

/* packed extremes of all lanes. */
template <typename F>
static __device__ __forceinline__ void warp_range(typename F::packed *min, typename F::packed *max)
{
    for (int step = LANES / 2; step > 0; step /= 2) {
        *min = F::lesser(*min, __shfl_xor_sync(everyone, *min, step));
        *max = F::greater(*max, __shfl_xor_sync(everyone, *max, step));
    }
}

template <typename F, int SPREAD, int ARG>
static __device__ __forceinline__ void find_places(const float_walk<F, SPREAD, ARG> &walk,
                                                   const leaf_walk<float_walk<F, SPREAD, ARG>> &leaf, byte_order order,
                                                   int swap, gm_moments *m)
{
    typedef typename F::raw raw;
    typename F::value x = F::least(walk.min), y = F::most(walk.max);
    int at = INT32_MAX;
    if (walk.at_min >= 0 && walk.least_yet == x)
        at = leaf.find(walk.at_min, order, swap, [=](raw r) { return F::value_of(r) == x; });
    m->argmin = warp_first(at, leaf.p.index);
    at = INT32_MAX;
    if (walk.at_max >= 0 && walk.most_yet == y)
        at = leaf.find(walk.at_max, order, swap, [=](raw r) { return F::value_of(r) == y; });
    m->argmax = warp_first(at, leaf.p.index);
    at = INT32_MAX;
    if (walk.at_nan >= 0)
        at = leaf.find(walk.at_nan, order, swap, [](raw r) { return F::value_of(r) != F::value_of(r); });
    m->argnan = warp_first(at, leaf.p.index);
}

template <typename F, int SPREAD, int ARG>
static __device__ __forceinline__ void reduce_leaf(const gm_reduce_rows_call &call, const rows_plan &plan, int64_t i,
                                                   int lane, typename F::word *ring)
{
    leaf_place p = find_leaf(call, plan, i, sizeof(typename F::raw));
    float_walk<F, SPREAD, ARG> walk;
    leaf_walk<float_walk<F, SPREAD, ARG>> leaf(p, ring, lane);
    leaf.start();
    walk.begin();
    if (SPREAD)
        walk.s.shift = find_shift<F>(p, lane, call.swap);
    leaf.run(walk, plan.order, call.swap);

    gm_moments m;
    double real[5] = {0};
    m.argmin = m.argmax = m.argnan = -1;
    m.nan = __reduce_add_sync(everyone, (unsigned)walk.s.nan);
    m.count = (uint64_t)p.n - m.nan;
    warp_range<F>(&walk.min, &walk.max);
    if (ARG)
        find_places(walk, leaf, plan.order, call.swap, &m);
    enum { SUMS = SPREAD ? 4 : 2, APART = LANES / (F::EACH * SUMS) };
    if (p.skip > 0) {
        turn_lanes<F::EACH>(walk.s.sum, p.skip, lane);
        turn_lanes<F::EACH>(walk.s.squares, p.skip, lane);
        if (SPREAD) {
            turn_lanes<F::EACH>(walk.s.shifted, p.skip, lane);
            turn_lanes<F::EACH>(walk.s.shifted_squares, p.skip, lane);
        }
    }
    double folded[LANES_EACH * SUMS];
#pragma unroll
    for (int k = 0; k < LANES_EACH; k++) {
        folded[k * SUMS] = walk.s.sum[k];
        folded[k * SUMS + 1] = walk.s.squares[k];
        if (SPREAD) {
            folded[k * SUMS + 2] = walk.s.shifted[k];
            folded[k * SUMS + 3] = walk.s.shifted_squares[k];
        }
    }
    double sum = fold_lanes<F::EACH, SUMS>(folded, lane);
    real[GM_REAL_SUM] = sum;
    real[GM_REAL_SQUARES] = __shfl_sync(everyone, sum, APART);
    if (SPREAD) {
        real[GM_REAL_SHIFT] = walk.s.shift;
        real[GM_REAL_SHIFTED_SUM] = __shfl_sync(everyone, sum, 2 * APART);
        real[GM_REAL_SHIFTED_SQUARES] = __shfl_sync(everyone, sum, 3 * APART);
    }
    if (lane == 0) {
        bool range = call.want & GM_WANT_RANGE && m.count > 0;
        m.min = range ? gm_double_bits((double)F::least(walk.min)) : 0;
        m.max = range ? gm_double_bits((double)F::most(walk.max)) : 0;
        real[GM_REAL_SUM] = call.want & GM_WANT_SUM ? real[GM_REAL_SUM] : 0;
        real[GM_REAL_SQUARES] = call.want & GM_WANT_SQUARES ? real[GM_REAL_SQUARES] : 0;
        for (int r = 0; r < 5; r++)
            m.sum.real[r] = real[r];
        call.out[i] = m;
    }
}

template <typename F, int SPREAD, int ARG>
static __global__ void __launch_bounds__(WARPS *LANES, (SPREAD && ARG ? F::BLOCKS_ALL : F::BLOCKS))
    reduce_float(gm_reduce_rows_call call, rows_plan plan)
{
    __shared__ typename F::word ring[WARPS][F::STAGES * BATCH_BYTES / sizeof(typename F::word) * LANES];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    for (int64_t i = (int64_t)blockIdx.x * WARPS + warp; i < call.leaves; i += (int64_t)gridDim.x * WARPS)
        reduce_leaf<F, SPREAD, ARG>(call, plan, i, lane, ring[warp]);
}

template <typename F>
static int launch(cudaStream_t stream, const gm_reduce_rows_call *call)
{
    rows_plan plan;
    unsigned blocks;
    int error = plan_rows(call, &plan, &blocks);
    if (error != cudaSuccess)
        return error;
    if (call->want & GM_WANT_ARG && call->want & GM_WANT_SPREAD)
        return launch_rows(reduce_float<F, 1, 1>, stream, call, &plan, blocks);
    if (call->want & GM_WANT_ARG)
        return launch_rows(reduce_float<F, 0, 1>, stream, call, &plan, blocks);
    if (call->want & GM_WANT_SPREAD)
        return launch_rows(reduce_float<F, 1, 0>, stream, call, &plan, blocks);
    return launch_rows(reduce_float<F, 0, 0>, stream, call, &plan, blocks);
}

extern "C" int gm_cuda_reduce_rows(gm_cuda_stream stream, const gm_reduce_rows_call *call)
{
    if (call->leaves == 0)
        return cudaSuccess;
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
        return gm_cuda_reduce_rows_whole(stream, call);
    }
}
