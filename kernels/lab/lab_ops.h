/* lab_ops.h - prototypes of the device functions of the laboratory, which lab_ops.def lists. They return as those of
 * kernels/kernels.h do. */
#ifndef GM_KERNELS_LAB_LAB_OPS_H
#define GM_KERNELS_LAB_LAB_OPS_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GM_LAB_OP(name, cpu, cuda)                                \
    typedef struct gm_##name##_call gm_##name##_call;             \
    int gm_cpu_##name(int threads, const gm_##name##_call *call); \
    int gm_cuda_##name(gm_cuda_stream stream, const gm_##name##_call *call);
#include "kernels/lab/lab_ops.def"
#undef GM_LAB_OP

#ifdef __CUDACC__
#define GM_LAB_INLINE static __host__ __device__ __forceinline__
#else
#define GM_LAB_INLINE static inline
#endif

/* The bytes of a chunk in which windows are read, and the warps of a block that reads them. */
enum { GM_LAB_CHUNK = 8192, GM_LAB_WARPS = 16 };

/* A permutation of [0, count), count a power of two, without visible order: each step can be undone. */
GM_LAB_INLINE int64_t gm_lab_permuted(int64_t at, int64_t count)
{
    uint64_t mask = (uint64_t)count - 1, x = (uint64_t)at;
    for (int i = 0; i < 3; i++) {
        x = x * UINT64_C(0x9e3779b97f4a7c15) & mask;
        x ^= x >> 7;
    }
    return (int64_t)x;
}

#ifdef __cplusplus
}
#endif
#endif
