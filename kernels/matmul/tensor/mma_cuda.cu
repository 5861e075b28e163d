/* mma_cuda.cu - products on the tensor cores of compute capability 8.0 and later. */
#include <cuda_runtime.h>

#include "kernels/matmul/tensor/mma_cuda.cuh"
#include "kernels/matmul/tensor/planes_cuda.cuh"

struct mma_kernels {
    typedef mma_f16 f16;
    typedef mma_bf16 bf16;
    typedef mma_tf32 tf32;
    template <class A, class B>
    using int8 = mma_int8<A, B>;

    static mma_planes planes_of(const split_panel *p, int element)
    {
        int64_t rows = p->frames * p->outer, pitch = p->pitch * element;
        mma_planes planes = {(const uint8_t *)p->planes, rows, pitch, rows * pitch};
        return planes;
    }

    template <class TYPE, int PLANES>
    static cudaError_t launch(cudaStream_t stream, const split_panel *panels, const plane_leaf *leaf)
    {
        typedef mma_shape<PLANES> shape;
        enum { ELEMENT = (int)sizeof(typename TYPE::element) };
        int64_t tiles = divide_up(leaf->m, shape::TILE_M) * divide_up(leaf->n, shape::TILE_N);
        cudaError_t error = cudaFuncSetAttribute(multiply_planes<TYPE, PLANES>,
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize, shape::SHARED);
        if (error != cudaSuccess || tiles > INT32_MAX)
            return error != cudaSuccess ? error : cudaErrorInvalidConfiguration;
        multiply_planes<TYPE, PLANES>
            <<<dim3((unsigned)tiles, (unsigned)leaf->parts), MMA_THREADS, shape::SHARED, stream>>>(
                planes_of(&panels[0], ELEMENT), planes_of(&panels[1], ELEMENT), *leaf);
        return cudaGetLastError();
    }

    template <class TYPE>
    static cudaError_t multiply(cudaStream_t stream, const split_panel *panels, const plane_leaf *leaf)
    {
        return launch<TYPE, 1>(stream, panels, leaf);
    }

    static cudaError_t multiply_schemes(cudaStream_t stream, const split_panel (*panels)[2], const plane_leaf *leaves)
    {
        cudaError_t error = launch<f16, split_f16x2::PLANES>(stream, panels[0], &leaves[0]);
        return error == cudaSuccess ? launch<bf16, split_bf16x3::PLANES>(stream, panels[1], &leaves[1]) : error;
    }
};

GM_PRODUCTS_OF_PLANES(mma, mma_kernels)
