/* hopper_cuda.cu - products on the tensor cores of sm_90a. */
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "kernels/matmul/calls.h"

extern "C" int gm_cuda_hopper_is_built(void)
{
#ifdef GM_HAVE_SM90A
    return 1;
#else
    return 0;
#endif
}

#ifdef GM_HAVE_SM90A /* before CUDA 12 there is neither sm_90a nor a type for maps of tensors */
#include "kernels/matmul/tensor/hopper_cuda.cuh"
#include "kernels/matmul/tensor/planes_cuda.cuh"

#include <cudaTypedefs.h>

/* Planes as the copies see them: boxes of 128 bytes of k and `rows` rows of a plane. */
static cudaError_t map_planes(const split_panel *p, int planes, int element, int rows, CUtensorMap *map)
{
    static PFN_cuTensorMapEncodeTiled_v12000 encode;
    const CUtensorMapDataType types[] = {CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                         CU_TENSOR_MAP_DATA_TYPE_UINT32};
    cuuint64_t sizes[] = {(cuuint64_t)p->pitch, (cuuint64_t)(p->frames * p->outer), (cuuint64_t)planes};
    cuuint64_t pitches[] = {sizes[0] * (cuuint64_t)element, sizes[0] * (cuuint64_t)element * sizes[1]};
    cuuint32_t box[] = {(cuuint32_t)(GM_WGMMA_ROW / element), (cuuint32_t)rows, 1}, steps[] = {1, 1, 1};

    if (encode == NULL) {
        cudaDriverEntryPointQueryResult found;
        void *entry = NULL;
        cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                                             &found);
        if (error != cudaSuccess)
            return error;
        if (found != cudaDriverEntryPointSuccess)
            return cudaErrorNotSupported;
        encode = (PFN_cuTensorMapEncodeTiled_v12000)entry;
    }
    return encode(map, types[element / 2], 3, p->planes, sizes, pitches, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS
               ? cudaSuccess
               : cudaErrorInvalidValue;
}

/* --- A launch of a shape --- */

/* The form of a tile, and the tiles of a leaf: how many there are, and how many clusters the device holds at once. */
struct hopper_tiles {
    int blocks, rows, tile_n; /* of a cluster, of a block */
    int64_t count, at_once;
};

static hopper_tiles tiles_of(const plane_leaf *leaf, int blocks, int rows, int tile_n, int multiprocessors)
{
    hopper_tiles tiles = {blocks, rows, tile_n,
                          divide_up(leaf->m, rows * blocks) * divide_up(leaf->n, tile_n) * leaf->parts,
                          multiprocessors > blocks ? multiprocessors / blocks : 1};
    return tiles;
}

/* The planes of both operands, whose rows have 32 bits, and a leaf. */
template <class SHAPE>
static cudaError_t work_for(const split_panel *panels, const plane_leaf *leaf, const hopper_tiles *tiles,
                            hopper_work *work)
{
    enum { ELEMENT = (int)sizeof(typename SHAPE::TYPE::element) };
    const int boxes[] = {SHAPE::BOX_A, SHAPE::TILE_N / SHAPE::BLOCKS};
    cudaError_t error = cudaSuccess;
    work->leaf = *leaf;
    work->rows = tiles->rows;
    for (int i = 0; i < 2 && error == cudaSuccess; i++)
        error = panels[i].frames * panels[i].outer > INT32_MAX || panels[i].pitch > INT32_MAX
                    ? cudaErrorInvalidConfiguration
                    : map_planes(&panels[i], SHAPE::PLANES, ELEMENT, boxes[i], &work->maps[i]);
    return error;
}

/* The blocks of a launch, for whose kernel shared memory is allowed. */
template <class SHAPE>
static cudaError_t blocks_of(const void *kernel, const hopper_tiles *tiles, unsigned *blocks)
{
    *blocks = SHAPE::BLOCKS * (unsigned)std::min(tiles->count, tiles->at_once);
    return tiles->count > INT32_MAX
               ? cudaErrorInvalidConfiguration
               : cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, HOPPER_SHARED);
}

template <class TYPE>
struct leaf_launch {
    enum { PLANES = 1, ELEMENT = (int)sizeof(typename TYPE::element) };
    cudaStream_t stream;
    const split_panel *panels;
    const plane_leaf *leaf;

    template <int BLOCKS, int TILE_N>
    cudaError_t run(const hopper_tiles *tiles) const
    {
        typedef hopper_shape<TYPE, PLANES, BLOCKS, TILE_N> shape;
        hopper_work work;
        unsigned blocks;
        cudaError_t error = blocks_of<shape>((const void *)multiply_leaf<shape>, tiles, &blocks);
        if (error == cudaSuccess)
            error = work_for<shape>(panels, leaf, tiles, &work);
        return error != cudaSuccess
                   ? error
                   : launch_early(multiply_leaf<shape>, blocks, HOPPER_THREADS, HOPPER_SHARED, stream, work);
    }
};

struct schemes_launch {
    enum { PLANES = split_f16x2::PLANES, ELEMENT = (int)sizeof(wgmma_f16::element) };
    cudaStream_t stream;
    const split_panel (*panels)[2];
    const plane_leaf *leaf;

    template <int BLOCKS, int TILE_N>
    cudaError_t run(const hopper_tiles *tiles) const
    {
        typedef hopper_shape<wgmma_f16, PLANES, BLOCKS, TILE_N> f16;
        typedef hopper_shape<wgmma_bf16, split_bf16x3::PLANES, BLOCKS, TILE_N> bf16;
        hopper_work first, second;
        unsigned blocks;
        cudaError_t error = blocks_of<f16>((const void *)multiply_schemes<f16, bf16>, tiles, &blocks);
        if (error == cudaSuccess)
            error = work_for<f16>(panels[0], &leaf[0], tiles, &first);
        if (error == cudaSuccess)
            error = work_for<bf16>(panels[1], &leaf[1], tiles, &second);
        return error != cudaSuccess ? error
                                    : launch_early(multiply_schemes<f16, bf16>, blocks, HOPPER_THREADS, HOPPER_SHARED,
                                                   stream, first, second);
    }
};

/* --- The choice of a shape --- */

/* Measured on this generation, of which only the ratios matter: nanoseconds of a multiprocessor for an element of C
 * and 128 bytes of k; bytes that a multiprocessor reads, and stores, in a nanosecond, and that all of them do
 * together; and the nanoseconds that clusters take longer to start. */
static const double element_time = 2.9 / 128, read_rate = 55, write_rate = 50, all_reads = 7300, all_writes = 2200,
                    cluster_start = 3000;

/* The time of a round of tiles in so many clusters: the steps of k, and then the stores. */
static double round_time(const plane_leaf *leaf, const hopper_tiles *t, int64_t clusters, int planes, double steps)
{
    double blocks = (double)clusters * t->blocks, terms = planes * (planes + 1) / 2.0;
    double read = planes * (t->rows + (double)t->tile_n / t->blocks) * GM_WGMMA_ROW;
    double written = (double)std::min<int64_t>(leaf->m, t->rows) * t->tile_n * 4;
    return steps * std::max(terms * t->tile_n * t->rows * element_time,
                            read * std::max(blocks / all_reads, 1 / read_rate)) +
           written * std::max(blocks / all_writes, 1 / write_rate);
}

static double time_of(const plane_leaf *leaf, const hopper_tiles *t, int planes, int element)
{
    double steps = (double)leaf->depth * element / GM_WGMMA_ROW;
    int64_t rest = t->count % t->at_once;
    return (double)(t->count / t->at_once) * round_time(leaf, t, t->at_once, planes, steps) +
           (rest ? round_time(leaf, t, rest, planes, steps) : 0) + (t->blocks > 1 ? cluster_start : 0);
}

/* The shape of the least time. Those that read most come last: they have to be faster by a twentieth. */
template <int WIDE, class LAUNCH>
static cudaError_t launch_best(const LAUNCH &launch)
{
    int count;
    cudaError_t error = multiprocessors_of(&count);
    if (error != cudaSuccess)
        return error;
    static const struct {
        int blocks, rows, tile_n;
        cudaError_t (LAUNCH::*run)(const hopper_tiles *tiles) const;
    } shapes[] = {{2, HOPPER_TILE_M, WIDE, &LAUNCH::template run<2, WIDE>},
                  {1, HOPPER_TILE_M, 128, &LAUNCH::template run<1, 128>},
                  {1, HOPPER_TILE_M, 64, &LAUNCH::template run<1, 64>},
                  {1, HOPPER_ROWS, 64, &LAUNCH::template run<1, 64>}};
    hopper_tiles best_tiles = {};
    double least = HUGE_VAL;
    int best = 0;
    for (int i = 0; i < 4; i++) {
        const hopper_tiles tiles = tiles_of(launch.leaf, shapes[i].blocks, shapes[i].rows, shapes[i].tile_n, count);
        double time = time_of(launch.leaf, &tiles, LAUNCH::PLANES, LAUNCH::ELEMENT);
        if (time < 0.95 * least) {
            least = time;
            best = i;
            best_tiles = tiles;
        }
    }
    return (launch.*shapes[best].run)(&best_tiles);
}

struct hopper_kernels {
    typedef wgmma_f16 f16;
    typedef wgmma_bf16 bf16;
    typedef wgmma_tf32 tf32;
    template <class A, class B>
    using int8 = wgmma_int8<A, B>;

    template <class TYPE>
    static cudaError_t multiply(cudaStream_t stream, const split_panel *panels, const plane_leaf *leaf)
    {
        const leaf_launch<TYPE> launch = {stream, panels, leaf};
        return launch_best<256>(launch);
    }

    static cudaError_t multiply_schemes(cudaStream_t stream, const split_panel (*panels)[2], const plane_leaf *leaves)
    {
        const schemes_launch launch = {stream, panels, leaves};
        return launch_best<128>(launch);
    }
};

GM_PRODUCTS_OF_PLANES(hopper, hopper_kernels)

#else

#define NOT_BUILT(name)                                                                  \
    extern "C" int gm_cuda_matmul_hopper_##name(gm_cuda_stream, const gm_product_call *) \
    {                                                                                    \
        return cudaErrorNoKernelImageForDevice;                                          \
    }
NOT_BUILT(fp32)
NOT_BUILT(tf32)
NOT_BUILT(fp16)
NOT_BUILT(bf16)
NOT_BUILT(int8)

#endif
