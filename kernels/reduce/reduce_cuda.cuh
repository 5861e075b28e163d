/* reduce_cuda.cuh - how a warp goes through one leaf of a contiguous segment (base/statistics.h), whatever the type.
 *
 * It reads words of 8 or 16 bytes from the line of LINE bytes on that the leaf begins in: slot s of the leaf is the
 * element s - skip, where the slots before skip, and those after the last element in its word, may be anything. An
 * element of slot s always belongs to the same thread and place as that of slot s + 128, and these come in order: a
 * start within a line turns the lanes of floats round, no more. (Words that begin at multiples of 16 bytes but not of a
 * line cost a tenth of the speed, on an H200.)
 *
 * Words come through a ring in shared memory, a thread's own in each place, so that registers do not limit how many are
 * under way. */
#ifndef GM_KERNELS_REDUCE_REDUCE_CUDA_CUH
#define GM_KERNELS_REDUCE_REDUCE_CUDA_CUH

#include "kernels/dispatch.cuh"
#include "kernels/reduce/calls.h"

extern "C" int gm_cuda_reduce_rows_whole(gm_cuda_stream stream,
                                         const gm_reduce_rows_call *call); /* integers: reduce_cuda_whole.cu */

enum {
    LANES = 32,
    WARPS = 4,
    BATCH_BYTES = 64, /* bytes of a thread's words in a batch */
    LINE = 128
};
static const unsigned everyone = 0xffffffff;

/* Selectors of __byte_perm that put bytes into this machine's order: (word, word), or (low, high) for 8-byte elements.
 */
typedef struct byte_order {
    unsigned low, high;
} byte_order;

static inline byte_order order_of(gm_dtype type, int swap)
{
    byte_order same = {0x3210, 0x7654}, swapped[] = {{0x3210, 0x7654}, {0x2301, 0}, {0x0123, 0}, {0x4567, 0x0123}};
    size_t size = gm_dtype_size(type);
    return swap ? swapped[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3] : same;
}

template <int BYTES>
static __device__ __forceinline__ uint2 in_order(uint2 w, byte_order order)
{
    if (BYTES == 8)
        return make_uint2(__byte_perm(w.x, w.y, order.low), __byte_perm(w.x, w.y, order.high));
    if (BYTES == 1)
        return w;
    return make_uint2(__byte_perm(w.x, 0, order.low), __byte_perm(w.y, 0, order.low));
}

template <int BYTES>
static __device__ __forceinline__ uint4 in_order(uint4 w, byte_order order)
{
    uint2 a = in_order<BYTES>(make_uint2(w.x, w.y), order), b = in_order<BYTES>(make_uint2(w.z, w.w), order);
    return make_uint4(a.x, a.y, b.x, b.y);
}

/* Parameters of a kernel besides the call. */
typedef struct rows_plan {
    int64_t length, per; /* elements of a leaf, leaves of a segment */
    int64_t first;       /* inside its segment, of the call's first leaf */
    byte_order order;
} rows_plan;

typedef struct leaf_place {
    const char *base; /* of the line that the leaf's first element lies in */
    int skip, n;      /* slots before the leaf, elements of it */
    int64_t index;    /* of its first element, inside the segment */
} leaf_place;

static __device__ __forceinline__ leaf_place find_leaf(const gm_reduce_rows_call &call, const rows_plan &plan,
                                                       int64_t i, int size)
{
    int64_t leaf = plan.first + i, ahead = 0; /* segments between */
    if (leaf >= plan.per)                     /* a division of 64 bits takes longer than a short leaf */
        ahead = ((leaf | plan.per) >> 32) == 0 ? (int64_t)((uint32_t)leaf / (uint32_t)plan.per) : leaf / plan.per;
    int64_t inside = (leaf - ahead * plan.per) * plan.length;
    const char *at = (const char *)call.src + (ahead * call.segment + inside - plan.first * plan.length) * size;
    leaf_place p;
    p.skip = (int)((uintptr_t)at & (LINE - 1)) / size;
    p.base = at - p.skip * size;
    p.n = (int)(call.segment - inside < plan.length ? call.segment - inside : plan.length);
    p.index = inside;
    return p;
}

/* Element e of a word. */
template <typename RAW>
static __device__ __forceinline__ RAW element_of(uint2 w, int e)
{
    const int bits = 8 * sizeof(RAW);
    if (sizeof(RAW) == 8)
        return (RAW)((uint64_t)w.y << 32 | w.x);
    return (RAW)((e * bits < 32 ? w.x : w.y) >> (e * bits % 32));
}

template <typename RAW>
static __device__ __forceinline__ RAW element_of(uint4 w, int e)
{
    const int half = 8 / sizeof(RAW);
    return e < half ? element_of<RAW>(make_uint2(w.x, w.y), e) : element_of<RAW>(make_uint2(w.z, w.w), e - half);
}

/* For data that are read once: they leave the L2 cache first, so that records stay until many are written to memory
 * together. Single writes would interrupt the reads: 0.3 % of the bytes, but 3 % of the time. */
static __device__ __forceinline__ uint64_t read_once(void)
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* Starts an asynchronous copy from global to shared memory. */
static __device__ __forceinline__ void fetch(uint4 *to, const uint4 *from, uint64_t policy)
{
    asm volatile(
        "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
        "l"(from), "l"(policy)
        : "memory");
}

static __device__ __forceinline__ void fetch(uint2 *to, const uint2 *from, uint64_t policy)
{
    asm volatile(
        "cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 8, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
        "l"(from), "l"(policy)
        : "memory");
}

/* WALK: an accumulator of one thread. raw, word: an element, and what is read at a time; EACH: elements of a word;
 * BATCH: words of a batch, STAGES: batches of the ring. take_batch(words): a batch that is all the leaf's; or
 * begin_edge(), take(word), one(raw, place in the batch) for what there is of it, in order; then close_batch(b). Word a
 * of batch b of a thread is word (b BATCH + a) LANES + lane of the leaf. */
template <typename WALK>
struct leaf_walk {
    typedef typename WALK::word word;
    typedef typename WALK::raw raw;
    enum {
        EACH = WALK::EACH,
        BATCH = WALK::BATCH,
        STAGES = WALK::STAGES,
        SLOTS = BATCH * LANES * EACH /* of a batch */
    };
    const leaf_place &p;
    word *ring; /* this thread's first place */
    int lane, batches;
    uint64_t policy;

    __device__ __forceinline__ leaf_walk(const leaf_place &place, word *ring_of_warp, int lane_)
        : p(place), ring(ring_of_warp + lane_), lane(lane_), policy(read_once())
    {
        batches = (p.skip + p.n + SLOTS - 1) / SLOTS;
    }
    __device__ __forceinline__ int number(int b, int a) const
    {
        return (b * BATCH + a) * LANES + lane;
    }
    __device__ __forceinline__ int is_whole(int b) const
    {
        return b * SLOTS >= p.skip && (b + 1) * SLOTS <= p.skip + p.n;
    }
    __device__ __forceinline__ int last() const
    {
        return (p.skip + p.n - 1) / EACH;
    } /* word */
    __device__ __forceinline__ int is_inside(int slot) const
    {
        return slot >= p.skip && slot < p.skip + p.n;
    }
    __device__ __forceinline__ word *place(int b) const
    {
        return ring + b % STAGES * (BATCH * LANES);
    }

    /* Words after the last one of the leaf are not read. */
    __device__ __forceinline__ void fetch_batch(int b) const
    {
        const word *from = (const word *)p.base;
        word *to = place(b);
        if ((b + 1) * SLOTS <= p.skip + p.n) {
            from += number(b, 0);
#pragma unroll
            for (int a = 0; a < BATCH; a++)
                fetch(to + a * LANES, from + a * LANES, policy);
        } else if (b < batches) {
#pragma unroll
            for (int a = 0; a < BATCH; a++)
                fetch(to + a * LANES, from + min(number(b, a), last()), policy);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    __device__ __forceinline__ word read(int b, int a, byte_order order, int swap) const
    {
        word w = place(b)[a * LANES];
        return swap ? in_order<sizeof(raw)>(w, order) : w;
    }
    __device__ __forceinline__ void take_edge(WALK &walk, int b, byte_order order, int swap) const
    {
        walk.begin_edge();
#pragma unroll 1
        for (int pair = 0; pair < BATCH; pair += 2) {
#pragma unroll
            for (int half = 0; half < 2; half++) { /* the index of a thread's lanes must be a constant */
                int slot = number(b, pair + half) * EACH;
                word w = read(b, pair + half, order, swap);
                if (is_inside(slot) && is_inside(slot + EACH - 1)) {
                    walk.take(w, half);
                    continue;
                }
#pragma unroll
                for (int e = 0; e < EACH; e++) {
                    if (is_inside(slot + e))
                        walk.one(element_of<raw>(w, e), half, e);
                }
            }
        }
    }
    __device__ __forceinline__ void start() const
    {
#pragma unroll
        for (int b = 0; b < STAGES - 1; b++)
            fetch_batch(b);
    }
    __device__ __forceinline__ void run(WALK &walk, byte_order order, int swap) const
    {
#pragma unroll 1
        for (int b = 0; b < batches; b++) {
            fetch_batch(b + STAGES - 1);
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
            if (is_whole(b)) {
                word w[BATCH];
#pragma unroll
                for (int a = 0; a < BATCH; a++)
                    w[a] = place(b)[a * LANES];
                if (swap) {
#pragma unroll
                    for (int a = 0; a < BATCH; a++)
                        w[a] = in_order<sizeof(raw)>(w[a], order);
                }
                walk.take_batch(w);
            } else {
                take_edge(walk, b, order, swap);
            }
            walk.close_batch(b);
        }
        asm volatile("cp.async.wait_group 0;" ::: "memory"); /* the next leaf uses the ring */
    }
    /* Index inside the leaf of the first element of batch b for which is(raw) holds; INT32_MAX: none. */
    template <typename IS>
    __device__ __forceinline__ int find(int b, byte_order order, int swap, IS is) const
    {
        word w[BATCH];
        int found = INT32_MAX;
#pragma unroll
        for (int a = 0; a < BATCH; a++)
            w[a] = ((const word *)p.base)[min(number(b, a), last())];
#pragma unroll
        for (int a = BATCH - 1; a >= 0; a--) {
            w[a] = swap ? in_order<sizeof(raw)>(w[a], order) : w[a];
#pragma unroll
            for (int e = EACH - 1; e >= 0; e--) {
                int slot = number(b, a) * EACH + e;
                found = is_inside(slot) && is(element_of<raw>(w[a], e)) ? slot - p.skip : found;
            }
        }
        return found;
    }
};

/* All lanes call it; index INT32_MAX: not found in this lane. */
static __device__ __forceinline__ int64_t warp_first(int index, int64_t origin)
{
    for (int step = LANES / 2; step > 0; step /= 2)
        index = min(index, __shfl_xor_sync(everyone, index, step));
    return index == INT32_MAX ? -1 : origin + index;
}

/* The plan, and blocks for one warp per leaf. cudaErrorInvalidValue for an invalid call. */
static inline int plan_rows(const gm_reduce_rows_call *call, rows_plan *plan, unsigned *blocks)
{
    int64_t most = INT32_MAX, wanted = (call->leaves + WARPS - 1) / WARPS;
    size_t size = gm_dtype_size(call->type);
    if (call->segment <= 0)
        return cudaErrorInvalidValue;
    if (((uintptr_t)call->src & (size - 1)) != 0)
        return cudaErrorMisalignedAddress;
    plan->length = gm_leaf_length(call->type);
    plan->per = (call->segment + plan->length - 1) / plan->length;
    plan->first = call->first % plan->per;
    plan->order = order_of(call->type, call->swap);
    *blocks = (unsigned)(wanted < most ? wanted : most);
    return cudaSuccess;
}

typedef void rows_kernel(gm_reduce_rows_call call, rows_plan plan);

/* Shared memory must hold the rings of as many blocks as the registers allow. */
static inline int launch_rows(rows_kernel *kernel, cudaStream_t stream, const gm_reduce_rows_call *call,
                              const rows_plan *plan, unsigned blocks)
{
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                             cudaSharedmemCarveoutMaxShared);
    if (error != cudaSuccess)
        return error;
    kernel<<<blocks, WARPS * LANES, 0, stream>>>(*call, *plan);
    return cudaGetLastError();
}

#endif
