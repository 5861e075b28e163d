/* reduce_float_cuda.cuh - the properties of the types of floats in a reduction of leaves. */
#ifndef GM_KERNELS_REDUCE_REDUCE_FLOAT_CUDA_CUH
#define GM_KERNELS_REDUCE_REDUCE_FLOAT_CUDA_CUH

#include "kernels/reduce/reduce_cuda.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* raw, word, EACH and STAGES as in leaf_walk; BLOCKS resident on a multiprocessor (BLOCKS_ALL: when everything is
 * wanted), which limits the registers of a thread; value: the type in which extremes are compared; packed: one or
 * several extremes in a register. range(word) updates the extremes of a batch, from which has_nan() finds out whether
 * the batch has a NaN. lesser(a, b) and greater(a, b): -0 is below +0. */

/* Elements of 16 bits. PAIR: two of them in a register, the extremes of even and of odd slots. */
template <typename PAIR, int DIGITS>
struct float_pairs {
    typedef gm_raw2 raw;
    typedef uint2 word;
    typedef float value;
    typedef PAIR packed;
    enum { EACH = 4, STAGES = 4, BLOCKS = 6, BLOCKS_ALL = 5 };
    static __device__ __forceinline__ packed pair(unsigned w)
    {
        return *(packed *)&w;
    }
    static __device__ __forceinline__ packed pack(gm_raw2 x)
    {
        return pair(x * 0x10001u);
    }
    static __device__ __forceinline__ packed highest()
    {
        return pack((gm_raw2)gm_format_infinity(2, DIGITS));
    }
    static __device__ __forceinline__ packed lowest()
    {
        return pack((gm_raw2)(0x8000 | gm_format_infinity(2, DIGITS)));
    }
    static __device__ __forceinline__ value least(packed p)
    {
        return fminf(__low2float(p), __high2float(p));
    }
    static __device__ __forceinline__ value most(packed p)
    {
        return fmaxf(__low2float(p), __high2float(p));
    }
    static __device__ __forceinline__ packed lesser(packed a, packed b)
    {
        return __hmin2(a, b);
    }
    static __device__ __forceinline__ packed greater(packed a, packed b)
    {
        return __hmax2(a, b);
    }
    static __device__ __forceinline__ void range(packed *min, packed *max, uint2 w)
    {
        *min = __hmin2_nan(__hmin2_nan(*min, pair(w.x)), pair(w.y));
        *max = __hmax2(__hmax2(*max, pair(w.x)), pair(w.y));
    }
    static __device__ __forceinline__ int has_nan(packed min, packed)
    {
        return __hisnan(min.x) || __hisnan(min.y);
    }
};

struct float_f16 : float_pairs<__half2, 11> {
    static __device__ __forceinline__ value value_of(gm_raw2 x)
    {
        return __half2float(__ushort_as_half(x));
    }
    static __device__ __forceinline__ double widen(gm_raw2 x)
    {
        double d;
        asm("cvt.f64.f16 %0, %1;" : "=d"(d) : "h"(x));
        return d;
    }
};

struct float_bf16 : float_pairs<__nv_bfloat162, 8> {
    static __device__ __forceinline__ value value_of(gm_raw2 x)
    {
        return __uint_as_float((unsigned)x << 16);
    }
    static __device__ __forceinline__ double widen(gm_raw2 x)
    {
        return (double)value_of(x);
    }
};

struct float_f32 {
    typedef gm_raw4 raw;
    typedef uint4 word;
    typedef float value;
    typedef float packed;
    enum { EACH = 4, STAGES = 5, BLOCKS = 5, BLOCKS_ALL = 5 };
    static __device__ __forceinline__ packed pack(gm_raw4 x)
    {
        return __uint_as_float(x);
    }
    static __device__ __forceinline__ packed highest()
    {
        return pack(0x7f800000);
    }
    static __device__ __forceinline__ packed lowest()
    {
        return pack(0xff800000);
    }
    static __device__ __forceinline__ value least(packed p)
    {
        return p;
    }
    static __device__ __forceinline__ value most(packed p)
    {
        return p;
    }
    static __device__ __forceinline__ value value_of(gm_raw4 x)
    {
        return __uint_as_float(x);
    }
    static __device__ __forceinline__ double widen(gm_raw4 x)
    {
        return (double)__uint_as_float(x);
    }
    static __device__ __forceinline__ packed lesser(packed a, packed b)
    {
        return fminf(a, b);
    }
    static __device__ __forceinline__ packed greater(packed a, packed b)
    {
        return fmaxf(a, b);
    }
    static __device__ __forceinline__ float lesser_nan(float a, unsigned b)
    {
        float c;
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(__uint_as_float(b)));
        return c;
    }
    static __device__ __forceinline__ void range(packed *min, packed *max, uint4 w)
    {
        *min = lesser_nan(lesser_nan(lesser_nan(lesser_nan(*min, w.x), w.y), w.z), w.w);
        *max = fmaxf(fmaxf(fmaxf(fmaxf(*max, pack(w.x)), pack(w.y)), pack(w.z)), pack(w.w));
    }
    static __device__ __forceinline__ int has_nan(packed min, packed)
    {
        return min != min;
    }
};

/* Extremes by integer keys: fmin() of float64 may return either zero. Keys of NaN lie outside those of the infinities.
 */
struct float_f64 {
    typedef gm_raw8 raw;
    typedef uint4 word;
    typedef double value;
    typedef int64_t packed;
    enum { EACH = 2, STAGES = 5, BLOCKS = 5, BLOCKS_ALL = 4 };
    static __device__ __forceinline__ packed pack(gm_raw8 x)
    {
        return gm_monotone8(x);
    }
    static __device__ __forceinline__ packed highest()
    {
        return (packed)gm_format_infinity(8, 53);
    }
    static __device__ __forceinline__ packed lowest()
    {
        return gm_monotone8(0xfff0000000000000);
    }
    static __device__ __forceinline__ value least(packed p)
    {
        return __longlong_as_double((long long)gm_monotone8((gm_raw8)p));
    }
    static __device__ __forceinline__ value most(packed p)
    {
        return least(p);
    }
    static __device__ __forceinline__ value value_of(gm_raw8 x)
    {
        return __longlong_as_double((long long)x);
    }
    static __device__ __forceinline__ double widen(gm_raw8 x)
    {
        return value_of(x);
    }
    static __device__ __forceinline__ packed lesser(packed a, packed b)
    {
        return b < a ? b : a;
    }
    static __device__ __forceinline__ packed greater(packed a, packed b)
    {
        return b > a ? b : a;
    }
    static __device__ __forceinline__ void range(packed *min, packed *max, uint4 w)
    {
        packed x = pack(element_of<raw>(w, 0)), y = pack(element_of<raw>(w, 1));
        *min = lesser(lesser(*min, x), y);
        *max = greater(greater(*max, x), y);
    }
    static __device__ __forceinline__ int has_nan(packed min, packed max)
    {
        return min < lowest() || max > highest();
    }
};

#endif
