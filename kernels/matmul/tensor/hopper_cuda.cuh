/* hopper_cuda.cuh - products on the tensor cores of sm_90a, once for all types of operands and numbers of terms.
 *
 * The operands are planes [plane][outer][k], k fastest: one plane of rounded elements; two of float16, hi + lo / 2^11
 * (terms hi hi, hi lo, lo hi); or three of bfloat16 (the six largest terms).
 *
 * A block makes 128 x TILE_N of C: one thread copies planes of 128 bytes of k through a ring of slots in shared memory,
 * and two warpgroups multiply them, 64 rows each. Blocks below each other are a cluster, each of which copies its part
 * of the rows of B for all. Clusters stay until all tiles of a leaf are made, in bands of tile rows, down each column.
 * There are four shapes of tiles: clusters of two blocks with a wide tile, which read least, and single blocks with
 * tiles of 128 or 64 columns, and of 64 rows, for a C of few tiles. An element has the same bits in all: none of its
 * sums depends on its tile.
 *
 * Tensor cores cut off the low bits of a sum. So the terms of 128 bytes of k are summed there, from 0 on, and added to
 * the sum of the leaf by ordinary additions, which round to nearest (Ootomo and Yokota, 2022). The terms of lo, 2^-11
 * of the others, do not need that, nor do operands that are rounded: their leaf is summed in the tensor cores. */
#ifndef GM_KERNELS_MATMUL_TENSOR_HOPPER_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_HOPPER_CUDA_CUH

#include "kernels/matmul/launch_cuda.cuh"
#include "kernels/matmul/tensor/hopper_tile_cuda.cuh"
#include "kernels/matmul/tensor/wgmma_cuda.cuh"

/* The planes of an operand pair, and what is made of them. */
struct hopper_work {
    CUtensorMap maps[2]; /* of A, B */
    plane_leaf leaf;
    int rows; /* of a block's tile: HOPPER_TILE_M, or HOPPER_ROWS, where half of the warpgroups pass it */
};

/* The thread that copies. */
template <class SHAPE>
static __device__ __forceinline__ void copy_tiles(const hopper_work &work, const units_of &units, uint32_t slots,
                                                  uint64_t *full, uint64_t *empty)
{
    enum { K = GM_WGMMA_ROW / (int)sizeof(typename SHAPE::TYPE::element), PART = SHAPE::TILE_N / SHAPE::BLOCKS };
    const plane_leaf &p = work.leaf;
    int block = (int)cluster_block();
    hopper_place<SHAPE::SLOTS> at = {0, 0};
    hopper_walk<SHAPE> walk;

    walk.begin(p, work.rows);
    while (walk.next(units, work.rows)) {
        int first = (int)(p.k + walk.part * p.next_k), steps = steps_of<K>(p, walk.part);
        int row = (int)(walk.part * p.next_a + walk.row) + block * HOPPER_TILE_M;
        int col = (int)(walk.part * p.next_b + walk.col) + block * PART;
        bool half = SHAPE::SKIPS && (work.rows == HOPPER_ROWS || walk.row + HOPPER_ROWS >= p.m);
        int rows = half ? HOPPER_ROWS : HOPPER_TILE_M;
#pragma unroll 1
        for (int step = 0; step < steps; step++)
            for (int plane = 0; plane < SHAPE::PLANES; plane++) {
                uint32_t to = slots + at.slot * SHAPE::SLOT, to_b = to + SHAPE::SLOT_A + block * PART * GM_WGMMA_ROW;
                int k = first + step * K;
                barrier_wait(&empty[at.slot], at.parity ^ 1);
                barrier_expect(&full[at.slot], SHAPE::SLOT - (HOPPER_TILE_M - rows) * GM_WGMMA_ROW);
#pragma unroll
                for (int down = 0; down < HOPPER_TILE_M; down += SHAPE::BOX_A)
                    if (down < rows)
                        copy_box(to + down * GM_WGMMA_ROW, &work.maps[0], &full[at.slot], k, row + down, plane);
                if (SHAPE::BLOCKS == 1)
                    copy_box(to_b, &work.maps[1], &full[at.slot], k, col, plane);
                else
                    copy_box_to_all(to_b, &work.maps[1], &full[at.slot], k, col, plane, (1 << SHAPE::BLOCKS) - 1);
                at.next();
            }
    }
}

/* A warpgroup that multiplies: its operands, and its place in the ring. */
template <class SHAPE>
struct hopper_worker {
    uint32_t a, b; /* in slot 0 */
    uint64_t *full, *empty;
    hopper_place<SHAPE::SLOTS> at, held; /* the next slot; the first one that is not given back */

    /* The offset of the next slot, when it is full. */
    __device__ __forceinline__ uint32_t wait(void)
    {
        uint32_t offset = at.slot * SHAPE::SLOT;
        barrier_wait(&full[at.slot], at.parity);
        at.next();
        return offset;
    }

    /* Gives slots back to the copying threads of all blocks, each of which fills a part of them. */
    __device__ __forceinline__ void release(int count)
    {
        for (int i = 0; i < count; i++) {
            if (threadIdx.x % 32 < SHAPE::BLOCKS)
                barrier_arrive(&empty[held.slot], threadIdx.x % 32);
            held.next();
        }
    }
};

/* Passes the slots of a leaf: the rows of this warpgroup lie outside the tile or C. */
template <class SHAPE>
static __device__ __forceinline__ void skip_leaf(hopper_worker<SHAPE> &w, int steps)
{
    for (int i = 0; i < steps * SHAPE::PLANES; i++) {
        w.wait();
        w.release(1);
    }
}

/* d = (keep ? d : 0) + a b^T for 128 bytes of k. */
template <class TYPE, int SUMS>
static __device__ __forceinline__ void multiply_rows(typename TYPE::sum (&d)[SUMS], uint32_t a, uint32_t b, int keep)
{
#pragma unroll
    for (int i = 0; i < GM_WGMMA_STEPS; i++)
        TYPE::multiply(d, operand_at(a + i * GM_WGMMA_STEP), operand_at(b + i * GM_WGMMA_STEP), keep || i > 0);
}

template <int SUMS>
static __device__ __forceinline__ void add_sums(float (&sums)[SUMS], const float (&part)[SUMS], float factor)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[i] += part[i] * factor;
}

/* The sums of a leaf, of one plane. */
template <class TYPE, int BLOCKS, int TILE_N, int SUMS>
static __device__ __forceinline__ void sum_leaf(hopper_worker<hopper_shape<TYPE, 1, BLOCKS, TILE_N>> &w, int steps,
                                                typename TYPE::sum (&sums)[SUMS])
{
    for (int step = 0; step < steps; step++) {
        uint32_t x = w.wait();
        wgmma_ready(sums);
        wgmma_begin();
        multiply_rows<TYPE>(sums, w.a + x, w.b + x, step > 0);
        wgmma_commit();
        wgmma_ready(sums);
        if (step > 0) {
            wgmma_wait<1>();
            w.release(1);
        }
    }
    wgmma_wait<0>();
    wgmma_ready(sums);
    w.release(1);
}

/* Of two planes. The terms of lo are under way while those of hi are added. */
template <class TYPE, int BLOCKS, int TILE_N, int SUMS>
static __device__ __forceinline__ void sum_leaf(hopper_worker<hopper_shape<TYPE, 2, BLOCKS, TILE_N>> &w, int steps,
                                                float (&sums)[SUMS])
{
    float large[SUMS], small[SUMS];

#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[i] = 0;
    for (int step = 0; step < steps; step++) {
        uint32_t hi = w.wait();
        wgmma_begin();
        multiply_rows<TYPE>(large, w.a + hi, w.b + hi, 0);
        wgmma_commit();
        if (step > 0) {
            wgmma_wait<1>();
            w.release(2);
        }
        uint32_t lo = w.wait();
        wgmma_begin();
        multiply_rows<TYPE>(small, w.a + hi, w.b + lo, step > 0);
        multiply_rows<TYPE>(small, w.a + lo, w.b + hi, 1);
        wgmma_commit();
        wgmma_wait<1>();
        wgmma_ready(large);
        add_sums(sums, large, 1);
    }
    wgmma_wait<0>();
    wgmma_ready(small);
    w.release(2);
    add_sums(sums, small, 0x1p-11f);
}

/* Of three planes, the smallest terms first. */
template <class TYPE, int BLOCKS, int TILE_N, int SUMS>
static __device__ __forceinline__ void sum_leaf(hopper_worker<hopper_shape<TYPE, 3, BLOCKS, TILE_N>> &w, int steps,
                                                float (&sums)[SUMS])
{
    float part[SUMS];

#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[i] = 0;
    for (int step = 0; step < steps; step++) {
        uint32_t high = w.wait(), middle = w.wait(), low = w.wait();
        wgmma_begin();
        multiply_rows<TYPE>(part, w.a + high, w.b + low, 0);
        multiply_rows<TYPE>(part, w.a + low, w.b + high, 1);
        multiply_rows<TYPE>(part, w.a + middle, w.b + middle, 1);
        multiply_rows<TYPE>(part, w.a + high, w.b + middle, 1);
        multiply_rows<TYPE>(part, w.a + middle, w.b + high, 1);
        multiply_rows<TYPE>(part, w.a + high, w.b + high, 1);
        wgmma_commit();
        wgmma_wait<0>();
        wgmma_ready(part);
        w.release(3);
        add_sums(sums, part, 1);
    }
}

template <class SHAPE>
static __device__ __forceinline__ void multiply_tiles(const hopper_work &work, const units_of &units, uint32_t slots,
                                                      uint64_t *full, uint64_t *empty)
{
    typedef typename SHAPE::TYPE::sum sum;
    enum { TILE_N = SHAPE::TILE_N, K = GM_WGMMA_ROW / (int)sizeof(typename SHAPE::TYPE::element) };
    const plane_leaf &p = work.leaf;
    int group = (int)threadIdx.x / GM_WARPGROUP, lane = (int)threadIdx.x % 32;
    int down = (int)cluster_block() * HOPPER_TILE_M + group * HOPPER_ROWS;
    int in_group = (int)threadIdx.x % GM_WARPGROUP / 32 * 16 + lane / 4, right = lane % 4 * 2;
    hopper_worker<SHAPE> w = {slots + group * HOPPER_ROWS * GM_WGMMA_ROW, slots + SHAPE::SLOT_A, full, empty};
    hopper_walk<SHAPE> walk;

    walk.begin(p, work.rows);
    while (walk.next(units, work.rows)) {
        sum sums[SHAPE::SUMS];
        if (SHAPE::SKIPS && (down >= work.rows || walk.row + down >= p.m)) {
            skip_leaf(w, steps_of<K>(p, walk.part));
            continue;
        }
        sum_leaf(w, steps_of<K>(p, walk.part), sums);

        unsigned wanted = units_wanted(units_at(units, walk.part), walk.row + down, walk.col, TILE_N);
        int64_t row = walk.row + down + in_group, col = walk.col + right;
        int left = p.n - col < TILE_N ? (int)(p.n - col) : TILE_N;
        const int16_t *scale_a = scales_at(p.scale_a, walk.part, p.m, row);
        const int16_t *scale_b = scales_at(p.scale_b, walk.part, p.n, col);
        sum *c = sums_at<sum>(p, walk.part, row, col);
        if (row < p.m)
            fold_row<0, (SHAPE::PLANES > 1)>(c, left, p.accumulate, wanted, scale_b, scale_a ? scale_a[0] : 0, sums);
        if (row + 8 < p.m)
            fold_row<1, (SHAPE::PLANES > 1)>(c + 8 * p.ld, left, p.accumulate, wanted, scale_b,
                                             scale_a ? scale_a[8] : 0, sums);
    }
}

template <class SHAPE>
static __device__ __forceinline__ void blocks_sync(void)
{
    if (SHAPE::BLOCKS > 1)
        cluster_sync();
    else
        __syncthreads();
}

/* Older devices have no clusters; the kernels are empty there, and never launched. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define HOPPER_CLUSTER(shape)
#else
#define HOPPER_CLUSTER(shape) __cluster_dims__(shape::BLOCKS, 1, 1)
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* A pass over the tiles of a shape. All passes of a kernel have the same slots; each has barriers of its own, and a
 * word that says which units there are, at the end of shared memory. Little of it stays in registers from pass to pass:
 * the warps that copy have few. */
enum hopper_found { HOPPER_NONE, HOPPER_SOME, HOPPER_ALL };

template <class SHAPE>
struct hopper_pass {
    const hopper_work &work;
    uint8_t *shared;
    int number;

    __device__ __forceinline__ uint64_t *barriers(void) const
    {
        return (uint64_t *)(shared + HOPPER_SHARED - (number + 1) * HOPPER_BARRIERS);
    }

    __device__ __forceinline__ uint64_t *found(void) const
    {
        return barriers() + HOPPER_BARRIERS / sizeof(uint64_t) - 1;
    }

    /* For warp `number` of the block, before all others go on. */
    __device__ __forceinline__ void begin(void) const
    {
        units_of units = units_in<SHAPE::PLANES>(work.leaf);
        if (threadIdx.x % 32 == 0) {
            prefetch_map(&work.maps[0]);
            prefetch_map(&work.maps[1]);
            for (int i = 0; i < SHAPE::SLOTS; i++) {
                barrier_init(barriers() + i, 1);
                barrier_init(barriers() + SHAPE::SLOTS + i, SHAPE::BLOCKS * HOPPER_WORKERS * GM_WARPGROUP / 32);
            }
            barrier_init_fence();
        }
        wait_for_kernel_ahead();
        bool any = may_be_there(&units);
        if (threadIdx.x % 32 == 0)
            *found() = !any ? HOPPER_NONE : units.a != NULL ? HOPPER_SOME : HOPPER_ALL;
    }

    /* For the warps that copy, and for those that multiply. */
    __device__ __forceinline__ void run(bool copies) const
    {
        uint32_t begin = (uint32_t)__cvta_generic_to_shared(shared);
        uint32_t slots = (begin + HOPPER_ALIGN - 1) / HOPPER_ALIGN * HOPPER_ALIGN;
        uint64_t *full = barriers(), *empty = full + SHAPE::SLOTS;
        units_of units = units_in<SHAPE::PLANES>(work.leaf);
        hopper_found there = SHAPE::PLANES > 1 ? (hopper_found)*found() : HOPPER_ALL;
        if (there == HOPPER_ALL)
            units.a = NULL;
        if (there == HOPPER_NONE)
            return;
        if (!copies)
            multiply_tiles<SHAPE>(work, units, slots, full, empty);
        else if (threadIdx.x % GM_WARPGROUP == 0)
            copy_tiles<SHAPE>(work, units, slots, full, empty);
        __syncwarp();
    }
};
#endif

template <class SHAPE>
static __global__ void HOPPER_CLUSTER(SHAPE) __launch_bounds__(HOPPER_THREADS, 1)
    multiply_leaf(const __grid_constant__ hopper_work work)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ uint8_t shared[];
    const hopper_pass<SHAPE> pass = {work, shared, 0};

    if (threadIdx.x / 32 == 0)
        pass.begin();
    else
        wait_for_kernel_ahead();
    blocks_sync<SHAPE>();
    if (threadIdx.x / GM_WARPGROUP == HOPPER_WORKERS) {
        set_registers_down<40>();
        pass.run(true);
    } else {
        set_registers_up<232>();
        pass.run(false);
    }
    if (SHAPE::BLOCKS > 1)
        cluster_sync(); /* until then the other block may copy and arrive here */
#endif
}

/* Both schemes of float32 on tensor cores, one after the other: most products have units of the first one alone, and a
 * launch that finds none takes as long as a small product. */
template <class FIRST, class SECOND>
static __global__ void HOPPER_CLUSTER(FIRST) __launch_bounds__(HOPPER_THREADS, 1)
    multiply_schemes(const __grid_constant__ hopper_work first_work, const __grid_constant__ hopper_work second_work)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ uint8_t shared[];
    const hopper_pass<FIRST> first = {first_work, shared, 0};
    const hopper_pass<SECOND> second = {second_work, shared, 1};

    if (threadIdx.x / 32 == 0)
        first.begin();
    else if (threadIdx.x / 32 == 1)
        second.begin();
    else
        wait_for_kernel_ahead();
    blocks_sync<FIRST>();
    if (threadIdx.x / GM_WARPGROUP == HOPPER_WORKERS) {
        set_registers_down<40>();
        first.run(true);
        blocks_sync<FIRST>();
        second.run(true);
    } else {
        set_registers_up<232>();
        first.run(false);
        blocks_sync<FIRST>(); /* the second pass has the same slots */
        second.run(false);
    }
    if (FIRST::BLOCKS > 1)
        cluster_sync();
#endif
}

#endif
