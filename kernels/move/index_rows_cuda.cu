/* Indices as numbers of rows, a thread for each. */
#include "kernels/dispatch.cuh"
#include "kernels/kernels.h"
#include "kernels/move/calls.h"

enum { THREADS = 256 };

static __device__ __forceinline__ gm_raw1 ordered(gm_raw1 raw, int swap)
{
    return gm_order1(raw, swap);
}
static __device__ __forceinline__ gm_raw2 ordered(gm_raw2 raw, int swap)
{
    return gm_order2(raw, swap);
}
static __device__ __forceinline__ gm_raw4 ordered(gm_raw4 raw, int swap)
{
    return gm_order4(raw, swap);
}
static __device__ __forceinline__ gm_raw8 ordered(gm_raw8 raw, int swap)
{
    return gm_order8(raw, swap);
}

template <typename ELEMENT>
static __global__ void __launch_bounds__(THREADS) locate(gm_index_rows_call call)
{
    const typename ELEMENT::raw *index = (const typename ELEMENT::raw *)call.index;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < call.count; i += (int64_t)gridDim.x * THREADS) {
        typename ELEMENT::raw raw = ordered(index[i], call.swap);
        bool is_negative = ELEMENT::kind_of == GM_SIGNED && (typename ELEMENT::type)raw < 0;
        bool fits = !is_negative && (uint64_t)raw < (uint64_t)call.extent;
        int64_t before = call.adds ? call.rows[i] : 0;
        call.rows[i] = fits && before >= 0 ? before * call.extent + (int64_t)raw : -1;
        if (!fits && call.first + i < *(volatile int64_t *)call.bad)
            atomicMin((long long *)call.bad, (long long)(call.first + i));
    }
}

extern "C" int gm_cuda_index_rows(gm_cuda_stream stream, const gm_index_rows_call *call)
{
    const int64_t most = INT64_C(1) << 30;
    int64_t blocks = (call->count + THREADS - 1) / THREADS;
    if (call->count == 0)
        return cudaSuccess;
    return dispatch_integers(call->type, [&](auto element) -> int {
        locate<decltype(element)><<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, stream>>>(*call);
        return cudaGetLastError();
    });
}
