/* reduce_whole_cuda.cuh - the accumulators of one thread for each width of integers. 8 and 16 bits are added by the dot
 * products of bytes and halves, their extremes are kept by halves; sums of 32-bit words hold as much as one thread, and
 * one leaf, can add (base/statistics.h). */
#ifndef GM_KERNELS_REDUCE_REDUCE_WHOLE_CUDA_CUH
#define GM_KERNELS_REDUCE_REDUCE_WHOLE_CUDA_CUH

#include "kernels/reduce/reduce_cuda.cuh"

static const uint64_t sign_bit = (uint64_t)1 << 63;

/* sum += value, sign included; squares += value^2: 128 and 192 bits. */
static __device__ __forceinline__ void add_128(uint64_t *sum, uint64_t low, uint64_t high)
{
    asm("add.cc.u64 %0, %0, %2;\n\taddc.u64 %1, %1, %3;" : "+l"(sum[0]), "+l"(sum[1]) : "l"(low), "l"(high));
}

static __device__ __forceinline__ void add_192(uint64_t *sum, uint64_t low, uint64_t middle, uint64_t high)
{
    asm("add.cc.u64 %0, %0, %3;\n\taddc.cc.u64 %1, %1, %4;\n\taddc.u64 %2, %2, %5;"
        : "+l"(sum[0]), "+l"(sum[1]), "+l"(sum[2])
        : "l"(low), "l"(middle), "l"(high));
}

/* Accumulators of one thread, by type. range() and add() take 4 bytes of elements; least() and most() return extremes.
 */
template <typename T, int BYTES = sizeof(T)>
struct sums;

template <typename T>
struct sums<T, 1> {
    unsigned min[2], max[2], sum, squares; /* of odd bytes, and of even bytes: in the upper bytes of halves */
    __device__ __forceinline__ void begin_range()
    {
        bool is_signed = T(-1) < T(0);
        min[0] = min[1] = is_signed ? 0x7fff7fff : 0xffffffff;
        max[0] = max[1] = is_signed ? 0x80008000 : 0;
    }
    __device__ __forceinline__ void begin()
    {
        begin_range();
        sum = squares = 0;
    }
    __device__ __forceinline__ void range(unsigned w)
    {
        unsigned even = w << 8;
        if (T(-1) < T(0)) {
            min[0] = __vmins2(min[0], w);
            max[0] = __vmaxs2(max[0], w);
            min[1] = __vmins2(min[1], even);
            max[1] = __vmaxs2(max[1], even);
        } else {
            min[0] = __vminu2(min[0], w);
            max[0] = __vmaxu2(max[0], w);
            min[1] = __vminu2(min[1], even);
            max[1] = __vmaxu2(max[1], even);
        }
    }
    __device__ __forceinline__ void add(unsigned w)
    {
        if (T(-1) < T(0)) {
            sum = (unsigned)__dp4a((int)w, 0x01010101, (int)sum);
            squares = (unsigned)__dp4a((int)w, (int)w, (int)squares);
        } else {
            sum = __dp4a(w, 0x01010101u, sum);
            squares = __dp4a(w, w, squares);
        }
    }
    __device__ __forceinline__ void add_one(T x)
    {
        sum += (unsigned)(int)x;
        squares += (unsigned)((int)x * (int)x);
    }
    __device__ __forceinline__ void range_one(T x)
    {
        range((unsigned)(uint8_t)x * 0x1010101u);
    }
    static __device__ __forceinline__ T lesser(T a, T b)
    {
        return a < b ? a : b;
    }
    static __device__ __forceinline__ T greater(T a, T b)
    {
        return a > b ? a : b;
    }
    __device__ __forceinline__ T least() const
    {
        return lesser(lesser((T)(min[0] >> 8), (T)(min[0] >> 24)), lesser((T)(min[1] >> 8), (T)(min[1] >> 24)));
    }
    __device__ __forceinline__ T most() const
    {
        return greater(greater((T)(max[0] >> 8), (T)(max[0] >> 24)), greater((T)(max[1] >> 8), (T)(max[1] >> 24)));
    }
    __device__ __forceinline__ void words(uint64_t w[5]) const
    {
        w[0] = T(-1) < T(0) ? (uint64_t)(int64_t)(int)sum : sum;
        w[1] = (uint64_t)((int64_t)(T(-1) < T(0) ? w[0] : 0) >> 63);
        w[2] = squares;
        w[3] = w[4] = 0;
    }
};

template <typename T>
struct sums<T, 2> {
    unsigned min[1], max[1], sum;
    uint64_t squares;
    __device__ __forceinline__ void begin_range()
    {
        min[0] = T(-1) < T(0) ? 0x7fff7fff : 0xffffffff;
        max[0] = T(-1) < T(0) ? 0x80008000 : 0;
    }
    __device__ __forceinline__ void begin()
    {
        begin_range();
        sum = 0;
        squares = 0;
    }
    __device__ __forceinline__ void range(unsigned w)
    {
        min[0] = T(-1) < T(0) ? __vmins2(min[0], w) : __vminu2(min[0], w);
        max[0] = T(-1) < T(0) ? __vmaxs2(max[0], w) : __vmaxu2(max[0], w);
    }
    __device__ __forceinline__ void add(unsigned w)
    {
        if (T(-1) < T(0)) {
            int low = (int)(w << 16) >> 16, high = (int)w >> 16;
            sum = (unsigned)__dp2a_lo((int)w, 0x0101, (int)sum);
            squares += (uint64_t)(unsigned)(low * low);
            squares += (uint64_t)(unsigned)(high * high);
        } else {
            unsigned low = w & 0xffff, high = w >> 16;
            sum = __dp2a_lo(w, 0x0101u, sum);
            squares += (uint64_t)low * low;
            squares += (uint64_t)high * high;
        }
    }
    __device__ __forceinline__ void add_one(T x)
    {
        sum += (unsigned)(int)x;
        squares += (uint64_t)((int64_t)x * x);
    }
    __device__ __forceinline__ void range_one(T x)
    {
        range((unsigned)(uint16_t)x * 0x10001u);
    }
    __device__ __forceinline__ T least() const
    {
        return (T)min[0] < (T)(min[0] >> 16) ? (T)min[0] : (T)(min[0] >> 16);
    }
    __device__ __forceinline__ T most() const
    {
        return (T)max[0] > (T)(max[0] >> 16) ? (T)max[0] : (T)(max[0] >> 16);
    }
    __device__ __forceinline__ void words(uint64_t w[5]) const
    {
        w[0] = T(-1) < T(0) ? (uint64_t)(int64_t)(int)sum : sum;
        w[1] = (uint64_t)((int64_t)(T(-1) < T(0) ? w[0] : 0) >> 63);
        w[2] = squares;
        w[3] = w[4] = 0;
    }
};

template <typename T>
struct sums<T, 4> {
    T min, max;
    uint64_t sum, squares;
    unsigned high; /* of squares */
    __device__ __forceinline__ void begin_range()
    {
        min = T(-1) < T(0) ? (T)0x7fffffff : (T)0xffffffff;
        max = T(-1) < T(0) ? (T)0x80000000 : 0;
    }
    __device__ __forceinline__ void begin()
    {
        begin_range();
        sum = squares = 0;
        high = 0;
    }
    __device__ __forceinline__ void range(unsigned w)
    {
        min = ::min(min, (T)w);
        max = ::max(max, (T)w);
    }
    __device__ __forceinline__ void add(unsigned w)
    {
        uint64_t product = T(-1) < T(0) ? (uint64_t)((int64_t)(int)w * (int)w) : (uint64_t)w * w;
        sum += (uint64_t)(int64_t)(T)w;
        asm("add.cc.u64 %0, %0, %2;\n\taddc.u32 %1, %1, 0;" : "+l"(squares), "+r"(high) : "l"(product));
    }
    __device__ __forceinline__ void add_one(T x)
    {
        add((unsigned)x);
    }
    __device__ __forceinline__ void range_one(T x)
    {
        range((unsigned)x);
    }
    __device__ __forceinline__ T least() const
    {
        return min;
    }
    __device__ __forceinline__ T most() const
    {
        return max;
    }
    __device__ __forceinline__ void words(uint64_t w[5]) const
    {
        w[0] = sum;
        w[1] = T(-1) < T(0) ? (uint64_t)((int64_t)sum >> 63) : 0;
        w[2] = squares;
        w[3] = high;
        w[4] = 0;
    }
};

/* acc += x * y: 96 bits. */
static __device__ __forceinline__ void add_product(unsigned *acc, unsigned x, unsigned y)
{
    asm("mad.lo.cc.u32 %0, %3, %4, %0;\n\tmadc.hi.cc.u32 %1, %3, %4, %1;\n\taddc.u32 %2, %2, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2])
        : "r"(x), "r"(y));
}

template <typename T>
struct sums<T, 8> {
    T min, max;
    unsigned sum[3], low[3], mixed[3], high[3]; /* squares: low + 2^33 mixed + 2^64 high */
    __device__ __forceinline__ void begin_range()
    {
        min = T(-1) < T(0) ? (T)(sign_bit - 1) : (T)-1;
        max = T(-1) < T(0) ? (T)sign_bit : 0;
    }
    __device__ __forceinline__ void begin()
    {
        begin_range();
        for (int i = 0; i < 3; i++)
            sum[i] = low[i] = mixed[i] = high[i] = 0;
    }
    __device__ __forceinline__ void range_one(T x)
    {
        min = x < min ? x : min;
        max = x > max ? x : max;
    }
    __device__ __forceinline__ void add_one(T x)
    {
        uint64_t magnitude = T(-1) < T(0) && x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
        unsigned sign = T(-1) < T(0) ? (unsigned)((int64_t)x >> 63) : 0, m = (unsigned)magnitude,
                 n = (unsigned)(magnitude >> 32);
        asm("add.cc.u32 %0, %0, %3;\n\taddc.cc.u32 %1, %1, %4;\n\taddc.u32 %2, %2, %5;"
            : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2])
            : "r"((unsigned)x), "r"((unsigned)((uint64_t)x >> 32)), "r"(sign));
        add_product(low, m, m);
        add_product(mixed, m, n);
        add_product(high, n, n);
    }
    __device__ __forceinline__ T least() const
    {
        return min;
    }
    __device__ __forceinline__ T most() const
    {
        return max;
    }
    __device__ __forceinline__ void words(uint64_t w[5]) const
    {
        uint64_t mixed_low = (uint64_t)mixed[1] << 32 | mixed[0];
        w[0] = (uint64_t)sum[1] << 32 | sum[0];
        w[1] = T(-1) < T(0) ? (uint64_t)(int64_t)(int)sum[2] : sum[2];
        w[2] = (uint64_t)low[1] << 32 | low[0];
        w[3] = low[2];
        w[4] = 0;
        add_192(w + 2, mixed_low << 33, mixed_low >> 31 | (uint64_t)mixed[2] << 33, mixed[2] >> 31);
        add_192(w + 2, 0, (uint64_t)high[1] << 32 | high[0], high[2]);
    }
};

#endif
