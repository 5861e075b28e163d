/* hopper_tile_cuda.cuh - the shapes of tiles of the kernel hopper, and how its clusters walk over the tiles. */
#ifndef GM_KERNELS_MATMUL_TENSOR_HOPPER_TILE_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_HOPPER_TILE_CUDA_CUH

#include "kernels/matmul/tensor/leaf_cuda.cuh"
#include "kernels/matmul/tensor/wgmma_cuda.cuh"

enum {
    HOPPER_ROWS = GM_SPLIT_GROUP, /* of a warpgroup */
    HOPPER_WORKERS = 2,           /* warpgroups that multiply */
    HOPPER_TILE_M = HOPPER_ROWS * HOPPER_WORKERS,
    HOPPER_THREADS = (HOPPER_WORKERS + 1) * GM_WARPGROUP,
    HOPPER_SHARED = 227 * 1024,
    HOPPER_ALIGN = 1024,   /* of a slot, for the copies */
    HOPPER_BARRIERS = 256, /* bytes for those of a pass, and a word; there may be two passes */
    HOPPER_BAND = 8        /* rows of clusters */
};

template <class TYPE_, int PLANES_, int BLOCKS_, int TILE_N_>
struct hopper_shape {
    typedef TYPE_ TYPE;
    enum {
        PLANES = PLANES_,
        BLOCKS = BLOCKS_, /* of a cluster */
        CLUSTER_M = HOPPER_TILE_M * BLOCKS,
        TILE_N = TILE_N_,
        SKIPS = BLOCKS == 1 && (PLANES == 1 || TILE_N == GM_SPLIT_GROUP), /* rows outside, where registers suffice */
        BOX_A = SKIPS ? HOPPER_ROWS : HOPPER_TILE_M,                      /* rows of A of a copy */
        SUMS = HOPPER_ROWS * TILE_N / GM_WARPGROUP,                       /* of a thread */
        SLOT_A = HOPPER_TILE_M * GM_WGMMA_ROW,
        SLOT = SLOT_A + TILE_N * GM_WGMMA_ROW,
        SLOTS = (HOPPER_SHARED - HOPPER_ALIGN - 2 * HOPPER_BARRIERS) / SLOT
    };
    static_assert((2 * SLOTS + 1) * (int)sizeof(uint64_t) <= HOPPER_BARRIERS, "two barriers for each slot, a word");
};

/* Where a thread stands in the ring of slots. */
template <int SLOTS>
struct hopper_place {
    int slot, parity;

    __device__ __forceinline__ void next(void)
    {
        slot++;
        if (slot == SLOTS) {
            slot = 0;
            parity ^= 1;
        }
    }
};

/* The walk of a cluster over its tiles. All threads of a cluster walk alike. */
template <class SHAPE>
struct hopper_walk {
    enum { TILE_N = SHAPE::TILE_N };
    int tile, step, tiles_m, tiles_n, tiles;
    int part;         /* of those side by side */
    int64_t row, col; /* of the tile */

    /* The rows of a cluster's tile; `rows` of a block's. */
    static __device__ __forceinline__ int cluster_rows(int rows)
    {
        return SHAPE::SKIPS ? rows : (int)SHAPE::CLUSTER_M;
    }

    __device__ __forceinline__ void begin(const plane_leaf &p, int rows)
    {
        tile = (int)blockIdx.x / SHAPE::BLOCKS;
        step = (int)gridDim.x / SHAPE::BLOCKS;
        tiles_m = (int)(cluster_rows(rows) == HOPPER_ROWS ? (p.m + HOPPER_ROWS - 1) / HOPPER_ROWS
                                                          : (p.m + SHAPE::CLUSTER_M - 1) / SHAPE::CLUSTER_M);
        tiles_n = (int)((p.n + TILE_N - 1) / TILE_N);
        tiles = tiles_m * tiles_n * p.parts;
    }

    /* Is there one more? */
    __device__ __forceinline__ bool next(const units_of &units, int rows)
    {
        int cluster_m = cluster_rows(rows);
        for (; tile < tiles; tile += step) {
            part = tile / (tiles_m * tiles_n);
            int at = tile - part * tiles_m * tiles_n;
            int first = at / (HOPPER_BAND * tiles_n) * HOPPER_BAND, rest = at - first * tiles_n;
            int down = tiles_m - first < HOPPER_BAND ? tiles_m - first : HOPPER_BAND;
            row = (int64_t)(first + rest % down) * cluster_m;
            col = (int64_t)(rest / down) * TILE_N;
            if (has_units(units_at(units, part), row, cluster_m, col, TILE_N)) {
                tile += step;
                return true;
            }
        }
        return false;
    }
};

#endif
