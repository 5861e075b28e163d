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
        mma_planes planes = {(const uint8_t *)p->planes, p->outer, p->pitch * element, p->outer * p->pitch * element};
        return planes;
    }

    template <class TYPE, int PLANES>
    static cudaError_t multiply(cudaStream_t stream, const split_panel *a, const split_panel *b, const plane_leaf *leaf)
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
                planes_of(a, ELEMENT), planes_of(b, ELEMENT), *leaf);
        return cudaGetLastError();
    }
};

GM_PRODUCTS_OF_PLANES(mma, mma_kernels)
