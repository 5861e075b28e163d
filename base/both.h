/* both.h - functions that the C compiler and nvcc compile, for the processor and for the device. */
#ifndef GM_BASE_BOTH_H
#define GM_BASE_BOTH_H

#ifdef __CUDACC__
#define GM_HD static __host__ __device__ inline
#else
#define GM_HD static inline
#endif

#endif
