/* probe_cuda.cuh - how the kernels of the probes read elements. */
#ifndef GM_KERNELS_MATMUL_PROBE_CUDA_CUH
#define GM_KERNELS_MATMUL_PROBE_CUDA_CUH

#include "kernels/dispatch.cuh"
#include "kernels/elementwise_cuda.cuh"

enum { BLOCK = 256, BLOCK_WARPS = BLOCK / LANES };

/* How a thread reads elements: LENGTH of them at once. */
template <int BYTES>
struct gm_whole {
    typedef uint4 type;
};

template <>
struct gm_whole<8> {
    typedef uint2 type;
};

template <typename ELEMENT>
struct gm_access {
    typedef typename ELEMENT::raw raw;
    static const int SIZE = sizeof(raw);
    static const int LENGTH = SIZE == 1 ? 8 : 16 / SIZE; /* more would need too many registers for sums */
    static const int BYTES = LENGTH * SIZE;
    static const int ROWS = SIZE == 1 ? 8 : 4;    /* of a warp, for which an element of p is read once */
    static const int VECTORS = SIZE <= 2 ? 1 : 2; /* of each of them at a time */
    static const int AHEAD = SIZE == 2 ? 4 : 8;   /* rows of a column that are read before they are used */
    static const int SPAN = VECTORS * LENGTH * LANES;
    union vector {
        typename gm_whole<BYTES>::type whole;
        raw part[LENGTH];
    };

    static __device__ __forceinline__ void read(vector *to, const raw *from)
    {
        to->whole = __ldg((const typename gm_whole<BYTES>::type *)from);
    }

    /* The first `left` elements, none of them if it is 0 or less; 0 for the others. */
    static __device__ __forceinline__ void read_some(vector *to, const raw *from, int64_t left)
    {
#pragma unroll
        for (int k = 0; k < LENGTH; k++)
            to->part[k] = k < left ? __ldg(from + k) : (raw)0;
    }
};

#endif
