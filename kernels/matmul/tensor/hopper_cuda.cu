/* hopper_cuda.cu - products on the tensor cores of sm_90a. */
#include <cuda_runtime.h>

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
    cuuint64_t sizes[] = {(cuuint64_t)p->pitch, (cuuint64_t)p->outer, (cuuint64_t)planes};
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

static cudaError_t multiprocessors_of(int *count)
{
    int device;
    cudaError_t error = cudaGetDevice(&device);
    return error == cudaSuccess ? cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device) : error;
}

/* The tiles of a leaf of a shape, and the clusters that the device holds at once. */
struct hopper_tiles {
    int64_t count, at_once;
};

template <class SHAPE>
static hopper_tiles tiles_of(const plane_leaf *leaf, int multiprocessors)
{
    hopper_tiles tiles = {divide_up(leaf->m, SHAPE::CLUSTER_M) * divide_up(leaf->n, SHAPE::TILE_N) * leaf->parts,
                          multiprocessors > SHAPE::BLOCKS ? multiprocessors / SHAPE::BLOCKS : 1};
    return tiles;
}

/* The time of a leaf in that of a column of a tile, if each round of tiles takes as long as a full one. */
template <class SHAPE>
static int64_t rounds_of(const plane_leaf *leaf, int multiprocessors)
{
    hopper_tiles tiles = tiles_of<SHAPE>(leaf, multiprocessors);
    return divide_up(tiles.count, tiles.at_once) * SHAPE::TILE_N;
}

template <class SHAPE>
static cudaError_t multiply_shape(cudaStream_t stream, const split_panel *a, const split_panel *b,
                                  const plane_leaf *leaf, int multiprocessors)
{
    enum { ELEMENT = (int)sizeof(typename SHAPE::TYPE::element) };
    CUtensorMap map_a, map_b;
    hopper_tiles tiles = tiles_of<SHAPE>(leaf, multiprocessors);
    unsigned clusters = (unsigned)(tiles.count < tiles.at_once ? tiles.count : tiles.at_once);
    cudaError_t error = tiles.count > INT32_MAX ? cudaErrorInvalidConfiguration
                                                : map_planes(a, SHAPE::PLANES, ELEMENT, HOPPER_TILE_M, &map_a);

    if (error == cudaSuccess)
        error = map_planes(b, SHAPE::PLANES, ELEMENT, SHAPE::TILE_N / SHAPE::BLOCKS, &map_b);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(multiply_leaf<SHAPE>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHAPE::SHARED);
    if (error != cudaSuccess)
        return error;
    multiply_leaf<SHAPE><<<SHAPE::BLOCKS * clusters, HOPPER_THREADS, SHAPE::SHARED, stream>>>(map_a, map_b, *leaf);
    return cudaGetLastError();
}

struct hopper_kernels {
    typedef wgmma_f16 f16;
    typedef wgmma_bf16 bf16;
    typedef wgmma_tf32 tf32;
    template <class A, class B>
    using int8 = wgmma_int8<A, B>;

    template <class TYPE, int PLANES>
    static cudaError_t multiply(cudaStream_t stream, const split_panel *a, const split_panel *b, const plane_leaf *leaf)
    {
        typedef hopper_shape<TYPE, PLANES, true> small;
        typedef hopper_shape<TYPE, PLANES, false> wide;
        int count;
        cudaError_t error = multiprocessors_of(&count);

        if (error != cudaSuccess)
            return error;
        /* Small tiles read two to three times as many bytes for a product: they have to save a third of the time. */
        return 3 * rounds_of<small>(leaf, count) < 2 * rounds_of<wide>(leaf, count)
                   ? multiply_shape<small>(stream, a, b, leaf, count)
                   : multiply_shape<wide>(stream, a, b, leaf, count);
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
