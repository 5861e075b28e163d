/* calls.h - the device functions of the laboratory: the arguments of a call. Pointers are to device memory.
 *
 *   walk_cpu.c, walk_cuda.cu         elements in an order
 *   load_cuda.cu                     loads through and past the L1 cache
 *   chunks_cuda.cuh                  the loop that reads a window of any space again and again
 *   occupancy_cuda.cu                copies by few and by many threads
 *   layout_cpu.c, layout_cuda.cu     elements of each size, structs and arrays, lengths of vectors
 *   shared_cuda.cu                   loads from shared memory
 *   shared_move_cuda.cu              elements through shared memory; the carve-out
 *   atomics_cpu.c, atomics_cuda.cu   a sum by several threads
 *   math_cpu.c, math_cuda.cu         chains of arithmetic
 *   kinds.h                          each kind of memory
 *   ladder/                          the ladders
 *   launch_cpu.c, launch_cuda.cu     launches; xorshift
 *   copy_loop_cuda.c                 copies between host and device */
#ifndef GM_KERNELS_LAB_CALLS_H
#define GM_KERNELS_LAB_CALLS_H

#include "kernels/lab/lab_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- walk --- */

/* The order in which threads, one after the other, visit elements. */
typedef enum gm_walk_order {
    GM_WALK_CONSECUTIVE, /* thread t: element t */
    GM_WALK_HALF_IDLE,   /* of each pair of threads one does nothing: thread 2 t visits element 2 t */
    GM_WALK_PERMUTED,    /* each 32 elements in another order */
    GM_WALK_COLUMNS,     /* a matrix [count / cols][cols], column by column */
    GM_WALK_RANDOM       /* a permutation of all elements; count: a power of two */
} gm_walk_order;

/* Elements of unsigned integers of 1, 2, 4, 8 bytes, of 16 bytes (four integers of 4), of float32, float64. */
typedef enum gm_walk_type {
    GM_WALK_U8,
    GM_WALK_U16,
    GM_WALK_U32,
    GM_WALK_U64,
    GM_WALK_U32X4,
    GM_WALK_F32,
    GM_WALK_F64,
    GM_WALK_TYPES
} gm_walk_type;

/* dst[e] = src[e] + 1 for the elements e = base + stride * p, p = gm_walk_place(order, t, ...), 0 <= t < count. All are
 * less than 2^32. */
struct gm_walk_call {
    gm_walk_order order;
    gm_walk_type type;
    uint32_t count, base, stride;
    uint32_t cols; /* GM_WALK_COLUMNS */
    const void *src;
    void *dst; /* apart from src */
};

/* Bytes of an element. */
static inline int64_t gm_walk_bytes(gm_walk_type type)
{
    return type == GM_WALK_U8                           ? 1
           : type == GM_WALK_U16                        ? 2
           : type == GM_WALK_U32X4                      ? 16
           : type == GM_WALK_U32 || type == GM_WALK_F32 ? 4
                                                        : 8;
}

/* The place that thread t visits. In 32 bits: the arithmetic of 64 would take longer than the access. */
GM_LAB_INLINE uint32_t gm_walk_place(gm_walk_order order, uint32_t t, uint32_t count, uint32_t cols)
{
    return order == GM_WALK_HALF_IDLE  ? 2 * t
           : order == GM_WALK_PERMUTED ? (t & ~UINT32_C(31)) | ((t * 11 + 5) & 31)
           : order == GM_WALK_COLUMNS  ? t % (count / cols) * cols + t / (count / cols)
           : order == GM_WALK_RANDOM   ? (uint32_t)gm_lab_permuted(t, count)
                                       : t;
}

/* --- load --- */

enum { GM_LOAD_TILE = 2048, GM_LOAD_SUMMED = 256 };

/* Load t, 0 <= t < count, is of the 4-byte word base + stride t; random: of word gm_lab_permuted(t, words), words a
 * power of two. dst[s] = the sum, modulo 2^32, of the words of GM_LOAD_SUMMED loads, which gm_load_index() lists. */
struct gm_load_call {
    int past_l1, is_random;
    int64_t count; /* multiple of GM_LOAD_TILE */
    int64_t base, stride, words;
    const uint32_t *src;
    uint32_t *dst; /* [count / GM_LOAD_SUMMED] */
};

/* Which load is the i-th, 0 <= i < GM_LOAD_SUMMED, of those that a warp adds up for dst[sum]. */
GM_LAB_INLINE int64_t gm_load_index(int64_t sum, int i)
{
    int64_t warps = GM_LOAD_TILE / GM_LOAD_SUMMED;
    return sum / warps * GM_LOAD_TILE + sum % warps * 32 + i / 32 * (32 * warps) + i % 32;
}

/* A window is read `passes` times in chunks of GM_LAB_CHUNK bytes, a chunk by a block at once: window b by block b, or
 * one window by all blocks, which take its chunks in turn. The dst[b] of a block add up to the sum, modulo 2^32, of the
 * 4-byte words that the block has read. */
struct gm_window_call {
    int past_l1, is_own;
    int64_t blocks, window /* bytes, multiple of GM_LAB_CHUNK */, passes;
    const void *src;
    uint32_t (*dst)[GM_LAB_WARPS]; /* [blocks] */
};

/* --- layout --- */

/* The layout of items in memory. Vectors are of three float32, structs of eight. */
typedef enum gm_layout_kind {
    GM_LAYOUT_COPY_4, /* items are copied; the number is their bytes */
    GM_LAYOUT_COPY_8,
    GM_LAYOUT_COPY_12,
    GM_LAYOUT_COPY_12_IN_16,   /* vectors that are aligned to 16 bytes */
    GM_LAYOUT_COPY_16,         /* vectors of four */
    GM_LAYOUT_FIELD_STRUCTS,   /* one field of each struct plus 1: dst[i].x3 = src[i].x3 + 1 */
    GM_LAYOUT_FIELD_ARRAY,     /* the same of an array that holds this field only */
    GM_LAYOUT_STRUCTS,         /* all fields plus 1, of structs */
    GM_LAYOUT_STRUCTS_ALIGNED, /* of structs that are aligned to 16 bytes */
    GM_LAYOUT_ARRAYS,          /* of eight arrays, one after the other */
    GM_LAYOUT_MIXED,           /* three 16-byte words are read, their exclusive or is written: [3][count], [count] */
    GM_LAYOUT_LENGTHS,         /* dst[i] = x x + y y + z z, of vectors */
    GM_LAYOUT_LENGTHS_ALIGNED, /* of vectors that are aligned to 16 bytes */
    GM_LAYOUT_LENGTHS_ARRAYS,  /* of three arrays, one after the other */
    GM_LAYOUT_LENGTHS_STAGED,  /* of vectors that come through shared memory; GM_LAYOUT_STAGE divides count */
    GM_LAYOUT_KINDS
} gm_layout_kind;

enum { GM_LAYOUT_FIELDS = 8, GM_LAYOUT_FIELD = 3, GM_LAYOUT_STAGE = 1024 };

struct gm_layout_call {
    gm_layout_kind kind;
    int64_t count; /* items */
    const void *src;
    void *dst; /* apart from src */
};

/* --- shared --- */

/* Loads from shared memory of unsigned integers of 1 to 16 bytes, and of the columns of a tile. */
typedef enum gm_shared_kind {
    GM_SHARED_U8,
    GM_SHARED_U16,
    GM_SHARED_U32,
    GM_SHARED_U64,
    GM_SHARED_U128,
    GM_SHARED_COLUMNS,        /* of u32 [32][32] */
    GM_SHARED_PADDED_COLUMNS, /* of u32 [32][33] */
    GM_SHARED_READS
} gm_shared_kind;

enum {
    GM_SHARED_THREADS = 1024, /* of a block */
    GM_SHARED_LOADS = 16,     /* of a round, GM_SHARED_TILE of the columns */
    GM_SHARED_ROW = 128,      /* bytes, a word of each bank */
    GM_SHARED_TILE = 32,
    GM_SHARED_STRIDE = 32, /* the largest */
    GM_SHARED_WORDS = 32 * GM_SHARED_STRIDE * 4 + GM_SHARED_LOADS * GM_SHARED_ROW / 4
};

/* Shared memory holds the words gm_shared_word(i). In each round, lane l loads the integer at byte
 * l / share * stride * (bytes of the integer) + GM_SHARED_ROW * u for each u < GM_SHARED_LOADS; or the words 32 l + c
 * of a tile for each c < 32. out: [blocks][GM_SHARED_THREADS] sums of the 32-bit parts of all loads, modulo 2^32. */
struct gm_shared_read_call {
    gm_shared_kind kind;
    int stride, share, rounds, blocks;
    uint32_t *out;
};

GM_LAB_INLINE uint32_t gm_shared_word(uint32_t at)
{
    return (at + 1) * UINT32_C(0x9e3779b1);
}

typedef enum gm_shared_move_kind {
    GM_REVERSE_DIRECT,  /* without shared memory */
    GM_REVERSE_STATIC,  /* an array of a size known when the kernel is compiled */
    GM_REVERSE_DYNAMIC, /* an array of a size given when the kernel is launched */
    GM_REVERSE_ARRAYS   /* arrays of int, float and char in one dynamic allocation */
} gm_shared_move_kind;

enum { GM_SHARED_PART = 1024 };

/* Elements of 4 bytes in the opposite order within each GM_SHARED_PART of them; count: a multiple. GM_REVERSE_ARRAYS:
 * of three arrays that follow each other, [count] elements of 4, 4 and 1 bytes. */
struct gm_shared_move_call {
    gm_shared_move_kind kind;
    int64_t count;
    const void *src;
    void *dst;
};

enum { GM_CARVEOUT_WINDOW = 96 << 10, GM_CARVEOUT_THREADS = 1024, GM_CARVEOUT_STAGE = 48 << 10 };

/* A kernel that prefers `percent` of the L1 cache to be shared memory. stages: each block reverses the 16-byte words of
 * its GM_CARVEOUT_STAGE bytes through as much shared memory. Else it sums the 32-bit words of its GM_CARVEOUT_WINDOW
 * bytes, out: [blocks][GM_CARVEOUT_THREADS], modulo 2^32: in round r thread t takes the 16-byte words t ^ (r % 32) +
 * GM_CARVEOUT_THREADS * i. */
struct gm_carveout_call {
    int stages, percent, blocks, rounds;
    const void *src;
    void *dst;
    uint32_t *out;
};

/* --- atomics --- */

/* Who adds to the cell that holds the sum. */
typedef enum gm_atomics_method {
    GM_ATOMICS_EACH,      /* a thread for each element, by an atomic add, to the cell of the element */
    GM_ATOMICS_WARPS,     /* a warp for its 32 elements; not on processors */
    GM_ATOMICS_BLOCKWISE, /* a block, by atomic adds in shared memory first; not on processors */
    GM_ATOMICS_OWN,       /* each thread to a sum of its own, then a tree: no atomics */
    GM_ATOMICS_FLOAT_EACH,
    GM_ATOMICS_FLOAT_OWN,
    GM_ATOMICS_METHODS
} gm_atomics_method;

/* Blocks of threads with sums of their own, and how many threads that are. */
enum { GM_ATOMICS_BLOCK = 256, GM_ATOMICS_BLOCKS = 1024, GM_ATOMICS_PRIVATE = GM_ATOMICS_BLOCK * GM_ATOMICS_BLOCKS };

/* Adds u32 elements modulo 2^32, or float32 elements gm_atomics_float(): to cell gm_atomics_cell() of [cells] sums, or,
 * by the methods without atomics, sums[0] = their sum. Thread t of these adds the elements 4 (t + k *
 * GM_ATOMICS_PRIVATE) + 0, 1, 2, 3 for k = 0, 1, ...; a block adds the upper half of its sums to the lower half until
 * one is left, partials: [GM_ATOMICS_BLOCKS]; so are these added. */
struct gm_atomics_call {
    gm_atomics_method method;
    int64_t count; /* a multiple of 4 GM_ATOMICS_PRIVATE; any, where each element is added to a cell */
    int64_t cells; /* a power of two; 1, but for GM_ATOMICS_EACH */
    const void *src;
    void *sums, *partials;
};

/* The cell of element i, without visible order. */
GM_LAB_INLINE uint32_t gm_atomics_cell(uint32_t i, uint32_t mask)
{
    i = (i ^ i >> 16) * UINT32_C(0x7feb352d);
    i = (i ^ i >> 15) * UINT32_C(0x846ca68b);
    return (i ^ i >> 16) & mask;
}

/* A float in [0, 1). */
GM_LAB_INLINE float gm_atomics_float(uint32_t bits)
{
    return (float)(bits >> 8) * (1.0f / 16777216);
}

/* --- occupancy --- */

/* dst = src, [count] elements of 4 or 16 bytes. blocks 0: by as many blocks as there are elements for their threads,
 * one each. Else by this number of blocks, each thread with one load under way at a time, and each block with enough
 * shared memory that no more than `resident` of them fit a multiprocessor. fit, host memory, not NULL: copies nothing,
 * *fit = blocks that a multiprocessor can hold. */
struct gm_occupancy_call {
    int bytes, threads, blocks, resident;
    int64_t count;
    const void *src;
    void *dst;
    int *fit;
};

/* --- math --- */

/* A step of a chain: x becomes f(x). Those of the processor give the same bits on each device. */
typedef enum gm_math_step {
    GM_MATH_FMA,                         /* factor x + addend, rounded once */
    GM_MATH_MUL,                         /* factor x */
    GM_MATH_ADD,                         /* x + addend */
    GM_MATH_INT_MUL,                     /* of integers of 32 bits, modulo 2^32 */
    GM_MATH_INT_MUL24,                   /* of their low 24 bits, with a sign */
    GM_MATH_DIV,                         /* dividend / x */
    GM_MATH_SQRT,                        /* sqrtf(x) */
    GM_MATH_FMA_F64,                     /* as FMA, in float64 */
    GM_MATH_CPU_STEPS,                   /* of a GPU alone are: */
    GM_MATH_SQRT_RN = GM_MATH_CPU_STEPS, /* __fsqrt_rn(x) */
    GM_MATH_RSQRT,                       /* rsqrtf(x) */
    GM_MATH_FAST_DIV,                    /* __fdividef(dividend, x) */
    GM_MATH_SIN,                         /* sinf(x) */
    GM_MATH_FAST_SIN,                    /* __sinf(x) */
    GM_MATH_EXP,                         /* expf(-x) */
    GM_MATH_FAST_EXP,                    /* __expf(-x) */
    GM_MATH_STEPS
} gm_math_step;

#define GM_MATH_FACTOR 0.9998779296875f /* 1 - 2^-13: chains stay normal */
#define GM_MATH_ADDEND 0.0001220703125f
#define GM_MATH_DIVIDEND 3.0f
#define GM_MATH_INT_FACTOR 1664525 /* odd, less than 2^23 */

/* Chain j, 0 <= j < chains, takes `rounds` steps from src[j modulo args], to dst[j modulo args]. Elements are float32,
 * int32 or float64. chains: on a GPU a multiple of GM_MATH_TILE. */
enum { GM_MATH_TILE = 2048 };
struct gm_math_call {
    gm_math_step step;
    int64_t chains, rounds, args; /* args: a power of two, at most chains */
    const void *src;
    void *dst; /* apart from src */
};

/* --- launch, transfer, overlap --- */

/* Launches an empty kernel again and again; of the processor: an empty region of all threads. */
struct gm_launches_call {
    unsigned blocks, threads; /* of a block */
    int64_t count;
    int each_waits; /* the stream is synchronized after each launch */
};

typedef enum gm_copy_way { GM_COPY_IN, GM_COPY_OUT, GM_COPY_WITHIN } gm_copy_way;

/* Copies pieces: piece i from src + i * step to dst + i * step. Host memory where the way says so. */
struct gm_copy_loop_call {
    gm_copy_way way;
    void *dst;
    const void *src;
    int64_t bytes, step, count; /* bytes of a piece */
    int each_waits;             /* the stream is synchronized after each piece */
};

/* data[i] = gm_lab_xorshift() of it, `steps` times. */
struct gm_xorshift_call {
    uint32_t *data; /* [count] */
    int64_t count;
    int steps;
};

/* G. Marsaglia, "Xorshift RNGs", J. Stat. Soft. 8 (14), 2003: a step that compilers cannot merge with the next one. */
GM_LAB_INLINE uint32_t gm_lab_xorshift(uint32_t x)
{
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ x << 5;
}

#ifdef __cplusplus
}
#endif

#endif
