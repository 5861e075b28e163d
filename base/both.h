/* both.h - functions that the C compiler and nvcc compile, for the processor and for the device. */
#ifndef GM_BASE_BOTH_H
#define GM_BASE_BOTH_H

/* GM_HD_INLINE: inlined wherever it is called, for functions whose arguments are constants there. */
#ifdef __CUDACC__
#define GM_HD static __host__ __device__ inline
#define GM_HD_INLINE static __host__ __device__ __forceinline__
#else
#define GM_HD static inline
#define GM_HD_INLINE static inline __attribute__((always_inline))
#endif

#endif
