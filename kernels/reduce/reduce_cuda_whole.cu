/* Leaves of integers. Everything is exact and independent of order. */
#include "kernels/reduce/reduce_whole_cuda.cuh"

template <typename T, typename RAW, int ARG>
struct whole_walk {
    typedef RAW raw;
    typedef uint4 word;
    enum { EACH = 16 / sizeof(T), BATCH = BATCH_BYTES / 16, STAGES = 5, BLOCKS = 5 /* resident on a multiprocessor */ };
    sums<T> s;
    T min, max; /* with ARG: of all batches so far, and the batch where each was first; s has those of one batch */
    int at_min, at_max, elements;

    __device__ __forceinline__ void begin()
    {
        s.begin();
        min = max = 0;
        at_min = at_max = -1;
        elements = 0;
    }
    __device__ __forceinline__ void take(uint4 w, int)
    {
        take_words(s, w);
        elements = 1;
    }
    __device__ __forceinline__ void take_batch(const uint4 w[BATCH])
    {
#pragma unroll
        for (int a = 0; a < BATCH; a++)
            take_words(s, w[a]);
        elements = 1;
    }
    template <int BYTES>
    static __device__ __forceinline__ void take_words(sums<T, BYTES> &s, uint4 w)
    {
        s.range(w.x), s.range(w.y), s.range(w.z), s.range(w.w);
        s.add(w.x), s.add(w.y), s.add(w.z), s.add(w.w);
    }
    static __device__ __forceinline__ void take_words(sums<T, 8> &s, uint4 w)
    {
        T x = (T)((uint64_t)w.y << 32 | w.x), y = (T)((uint64_t)w.w << 32 | w.z);
        s.range_one(x), s.range_one(y);
        s.add_one(x), s.add_one(y);
    }
    __device__ __forceinline__ void begin_edge()
    {
    }
    __device__ __forceinline__ void one(RAW raw, int, int)
    {
        s.range_one((T)raw);
        s.add_one((T)raw);
        elements = 1;
    }
    __device__ __forceinline__ void close_batch(int b)
    {
        if (!ARG)
            return;
        T least = s.least(), most = s.most();
        if (elements && (at_min < 0 || least < min)) {
            min = least;
            at_min = b;
        }
        if (elements && (at_max < 0 || most > max)) {
            max = most;
            at_max = b;
        }
        s.begin_range();
        elements = 0;
    }
    __device__ __forceinline__ T least() const
    {
        return ARG ? min : s.least();
    }
    __device__ __forceinline__ T most() const
    {
        return ARG ? max : s.most();
    }
    /* A thread without elements must not affect extremes. */
    __device__ __forceinline__ int idle() const
    {
        return ARG && at_min < 0;
    }
};

/* The least and the greatest of the lanes: widened so that unsigned order is that of the values. */
static __device__ __forceinline__ void warp_range(uint64_t *least, uint64_t *most)
{
    for (int step = LANES / 2; step > 0; step /= 2) {
        uint64_t other = __shfl_xor_sync(everyone, *least, step), another = __shfl_xor_sync(everyone, *most, step);
        *least = other < *least ? other : *least;
        *most = another > *most ? another : *most;
    }
}

static __device__ __forceinline__ void warp_sums(uint64_t w[5])
{
    for (int step = LANES / 2; step > 0; step /= 2) {
        uint64_t other[5];
        for (int i = 0; i < 5; i++)
            other[i] = __shfl_xor_sync(everyone, w[i], step);
        add_128(w, other[0], other[1]);
        add_192(w + 2, other[2], other[3], other[4]);
    }
}

template <typename T, typename RAW, int ARG>
static __device__ __forceinline__ void reduce_leaf(const gm_reduce_rows_call &call, const rows_plan &plan, int64_t i,
                                                   int lane, uint4 *ring)
{
    typedef whole_walk<T, RAW, ARG> walk_type;
    const uint64_t bias = T(-1) < T(0) ? sign_bit : 0;
    const int swap = call.swap;
    leaf_place p = find_leaf(call, plan, i, sizeof(T));
    walk_type walk;
    walk.begin();
    leaf_walk<walk_type> leaf(p, ring, lane);
    leaf.start();
    leaf.run(walk, plan.order, swap);

    gm_moments m;
    T own_least = walk.least(), own_most = walk.most();
    uint64_t least = walk.idle() ? UINT64_MAX : (uint64_t)(int64_t)own_least ^ bias,
             most = walk.idle() ? 0 : (uint64_t)(int64_t)own_most ^ bias;
    if (sizeof(T) == 8) {
        least = walk.idle() ? UINT64_MAX : (uint64_t)own_least ^ bias;
        most = walk.idle() ? 0 : (uint64_t)own_most ^ bias;
    }
    warp_range(&least, &most);
    walk.s.words(m.sum.whole);
    warp_sums(m.sum.whole);
    m.argmin = m.argmax = m.argnan = -1;
    if (ARG) {
        T x = (T)(least ^ bias), y = (T)(most ^ bias);
        int min_at = !walk.idle() && own_least == x
                         ? leaf.find(walk.at_min, plan.order, swap, [=](RAW r) { return (T)r == x; })
                         : INT32_MAX;
        int max_at = !walk.idle() && own_most == y
                         ? leaf.find(walk.at_max, plan.order, swap, [=](RAW r) { return (T)r == y; })
                         : INT32_MAX;
        m.argmin = warp_first(min_at, p.index);
        m.argmax = warp_first(max_at, p.index);
    }
    if (lane == 0) {
        m.count = (uint64_t)p.n;
        m.nan = 0;
        m.min = call.want & GM_WANT_RANGE ? least ^ bias : 0;
        m.max = call.want & GM_WANT_RANGE ? most ^ bias : 0;
        for (int w = 0; w < 5; w++)
            m.sum.whole[w] = call.want & (w < GM_WHOLE_SQUARES ? GM_WANT_SUM : GM_WANT_SQUARES) ? m.sum.whole[w] : 0;
        call.out[i] = m;
    }
}

template <typename T, typename RAW, int ARG>
static __global__ void __launch_bounds__(WARPS *LANES, (whole_walk<T, RAW, ARG>::BLOCKS))
    reduce_whole(gm_reduce_rows_call call, rows_plan plan)
{
    __shared__ uint4 ring[WARPS][whole_walk<T, RAW, ARG>::STAGES * BATCH_BYTES / 16 * LANES];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    for (int64_t i = (int64_t)blockIdx.x * WARPS + warp; i < call.leaves; i += (int64_t)gridDim.x * WARPS)
        reduce_leaf<T, RAW, ARG>(call, plan, i, lane, ring[warp]);
}

template <typename T, typename RAW>
static int launch(cudaStream_t stream, const gm_reduce_rows_call *call)
{
    rows_plan plan;
    unsigned blocks;
    int error = plan_rows(call, &plan, &blocks);
    if (error != cudaSuccess)
        return error;
    return launch_rows(call->want & GM_WANT_ARG ? reduce_whole<T, RAW, 1> : reduce_whole<T, RAW, 0>, stream, call,
                       &plan, blocks);
}

extern "C" int gm_cuda_reduce_rows_whole(gm_cuda_stream stream, const gm_reduce_rows_call *call)
{
    if (call->leaves == 0)
        return cudaSuccess;
    return dispatch_integers(call->type, [&](auto element) {
        typedef decltype(element) integer;
        return launch<typename integer::type, typename integer::raw>(stream, call);
    });
}
