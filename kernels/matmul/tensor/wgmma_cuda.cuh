/* wgmma_cuda.cuh - instructions of sm_90a: products of a warpgroup, bulk tensor copies, and the barriers between them.
 *
 * Sources: "Asynchronous Warpgroup Level Matrix Instructions", "Data Movement: cp.async.bulk.tensor" and "mbarrier" of
 * the manual of PTX. An operand lies in shared memory as rows of 128 bytes of k, 8 rows in 1024 bytes, whose 16-byte
 * parts are exchanged (SWIZZLE_128B); it begins at a multiple of 1024 bytes. */
#ifndef GM_KERNELS_MATMUL_TENSOR_WGMMA_CUDA_CUH
#define GM_KERNELS_MATMUL_TENSOR_WGMMA_CUDA_CUH

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdint.h>

enum {
    GM_WGMMA_ROW = 128, /* bytes of k in a row of an operand */
    GM_WGMMA_STEP = 32, /* bytes of k of one instruction */
    GM_WGMMA_STEPS = GM_WGMMA_ROW / GM_WGMMA_STEP,
    GM_WARPGROUP = 128 /* threads */
};

/* --- Barriers: of this block, or of the same place in another block of the cluster --- */

static __device__ __forceinline__ uint32_t barrier_address(const uint64_t *barrier)
{
    return (uint32_t)__cvta_generic_to_shared(barrier);
}

static __device__ __forceinline__ void barrier_init(uint64_t *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier_address(barrier)), "r"(arrivals));
}

/* Makes the initialization visible to the cluster and to the copies. */
static __device__ __forceinline__ void barrier_init_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Fetches a map before the first copy wants it. */
static __device__ __forceinline__ void prefetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint64_t *barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra again;\n"
                 "}" ::"r"(barrier_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* One arrival, and `bytes` of copies to come. */
static __device__ __forceinline__ void barrier_expect(uint64_t *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_address(barrier)), "r"(bytes)
                 : "memory");
}

/* The reads that come before are those of products that have been waited for: nothing else needs an order, and a
 * release to the cluster would wait for all of the device's memory. */
static __device__ __forceinline__ void barrier_arrive(uint64_t *barrier, uint32_t block)
{
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}" ::"r"(barrier_address(barrier)),
                 "r"(block)
                 : "memory");
}

static __device__ __forceinline__ uint32_t cluster_block(void)
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ void cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* --- Copies: a box of [plane][row][k], to this block or to the same place in each block of `blocks` --- */

static __device__ __forceinline__ void copy_box(uint32_t to, const CUtensorMap *map, uint64_t *barrier, int k, int row,
                                                int plane)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
                 "%5}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier_address(barrier)), "r"(k), "r"(row), "r"(plane)
                 : "memory");
}

static __device__ __forceinline__ void copy_box_to_all(uint32_t to, const CUtensorMap *map, uint64_t *barrier, int k,
                                                       int row, int plane, uint16_t blocks)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier_address(barrier)), "r"(k), "r"(row), "r"(plane), "h"(blocks)
                 : "memory");
}

/* --- Products --- */

/* The descriptor of an operand at a shared address. */
static __device__ __forceinline__ uint64_t operand_at(uint32_t address)
{
    const uint64_t swizzle_128 = 1ull << 62, next_8_rows = (uint64_t)(8 * GM_WGMMA_ROW >> 4) << 32, unused = 1ull << 16;
    return swizzle_128 | next_8_rows | unused | (address & 0x3FFFF) >> 4;
}

static __device__ __forceinline__ void wgmma_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most PENDING groups are pending, whose accumulators may not be touched. */
template <int PENDING>
static __device__ __forceinline__ void wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Accumulators that a wait has made ready: no read of them moves before it. */
template <int COUNT>
static __device__ __forceinline__ void wgmma_ready(float (&d)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

template <int COUNT>
static __device__ __forceinline__ void wgmma_ready(int32_t (&d)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        asm volatile("" : "+r"(d[i])::"memory");
}

/* Registers of each thread of a warpgroup from here on. */
template <int COUNT>
static __device__ __forceinline__ void set_registers_up(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT>
static __device__ __forceinline__ void set_registers_down(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* Operands of an instruction: accumulators, and their numbers. */
#define GM_REGISTERS_4(c, d, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3])
#define GM_REGISTERS_16(c, d, i) \
    GM_REGISTERS_4(c, d, i), GM_REGISTERS_4(c, d, i + 4), GM_REGISTERS_4(c, d, i + 8), GM_REGISTERS_4(c, d, i + 12)
#define GM_REGISTERS_32(c, d) GM_REGISTERS_16(c, d, 0), GM_REGISTERS_16(c, d, 16)
#define GM_REGISTERS_64(c, d) GM_REGISTERS_32(c, d), GM_REGISTERS_16(c, d, 32), GM_REGISTERS_16(c, d, 48)
#define GM_REGISTERS_128(c, d)                                                                              \
    GM_REGISTERS_64(c, d), GM_REGISTERS_16(c, d, 64), GM_REGISTERS_16(c, d, 80), GM_REGISTERS_16(c, d, 96), \
        GM_REGISTERS_16(c, d, 112)
#define GM_NAMES_32                                                          \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GM_NAMES_64                                                                    \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GM_NAMES_128                                                                               \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

/* multiply(d, a, b, keep): d = (keep ? d : 0) + a b^T for 64 rows of a and 2 rows of b for each accumulator of a
 * thread. Thread t has of rows t / 32 * 16 + t % 32 / 4 and 8 more the columns 8 i + t % 4 * 2 and the next one:
 * d[4 i] to d[4 i + 3]. */
#define GM_WGMMA(type, constraint, count, names, a, b, keep, instruction, tail)                              \
    static __device__ __forceinline__ void multiply(type(&d)[count], uint64_t x, uint64_t y, int old)        \
    {                                                                                                        \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " keep ", 0;\n" instruction " {" names "}, " a ", " b \
                     ", p" tail ";\n}"                                                                       \
                     : GM_REGISTERS_##count(constraint, d)                                                   \
                     : "l"(x), "l"(y), "r"(old));                                                            \
    }
#define GM_WGMMA_32(type, constraint, instruction, tail) \
    GM_WGMMA(type, constraint, 32, GM_NAMES_32, "%32", "%33", "%34", instruction, tail)
#define GM_WGMMA_64(type, constraint, instruction, tail) \
    GM_WGMMA(type, constraint, 64, GM_NAMES_64, "%64", "%65", "%66", instruction, tail)
#define GM_WGMMA_128(type, constraint, instruction, tail) \
    GM_WGMMA(type, constraint, 128, GM_NAMES_128, "%128", "%129", "%130", instruction, tail)

/* Types of operands. */
struct wgmma_f16 {
    typedef __half element;
    typedef float sum;
    GM_WGMMA_32(float, "+f", "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", ", 1, 1, 0, 0")
    GM_WGMMA_64(float, "+f", "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", ", 1, 1, 0, 0")
    GM_WGMMA_128(float, "+f", "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", ", 1, 1, 0, 0")
};

struct wgmma_bf16 {
    typedef __nv_bfloat16 element;
    typedef float sum;
    GM_WGMMA_32(float, "+f", "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", ", 1, 1, 0, 0")
    GM_WGMMA_64(float, "+f", "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", ", 1, 1, 0, 0")
    GM_WGMMA_128(float, "+f", "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", ", 1, 1, 0, 0")
};

struct wgmma_tf32 {
    typedef float element;
    typedef float sum;
    GM_WGMMA_32(float, "+f", "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32", ", 1, 1")
    GM_WGMMA_64(float, "+f", "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32", ", 1, 1")
    GM_WGMMA_128(float, "+f", "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32", ", 1, 1")
};

/* Integers of 8 bits, int8_t or uint8_t. */
template <class A, class B>
struct wgmma_int8;

#define GM_WGMMA_INT8(ctype_a, ctype_b, a, b)                                                   \
    template <>                                                                                 \
    struct wgmma_int8<ctype_a, ctype_b> {                                                       \
        typedef uint8_t element;                                                                \
        typedef int32_t sum;                                                                    \
        GM_WGMMA_32(int32_t, "+r", "wgmma.mma_async.sync.aligned.m64n64k32.s32." a "." b, "")   \
        GM_WGMMA_64(int32_t, "+r", "wgmma.mma_async.sync.aligned.m64n128k32.s32." a "." b, "")  \
        GM_WGMMA_128(int32_t, "+r", "wgmma.mma_async.sync.aligned.m64n256k32.s32." a "." b, "") \
    };
GM_WGMMA_INT8(int8_t, int8_t, "s8", "s8")
GM_WGMMA_INT8(int8_t, uint8_t, "s8", "u8")
GM_WGMMA_INT8(uint8_t, int8_t, "u8", "s8")
GM_WGMMA_INT8(uint8_t, uint8_t, "u8", "u8")

#endif
