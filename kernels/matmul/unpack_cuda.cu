#include "kernels/dispatch.cuh"
#include "kernels/elementwise_cuda.cuh"
#include "kernels/matmul/calls.h"
#include "kernels/matmul/launch_cuda.cuh"

template <typename ELEMENT, typename TO>
static __global__ void __launch_bounds__(LANES *WARPS) unpack(gm_unpack_call call)
{
    constexpr bool narrows = ELEMENT::significant == 53 && sizeof(TO) == sizeof(float);
    elementwise(call.rows, call.cols, [&](int64_t i, int64_t j, int n) {
        const typename ELEMENT::raw *from = (const typename ELEMENT::raw *)((const char *)call.src +
                                                                            i * call.src_pitch) +
                                            j;
        TO *to = (TO *)call.dst + i * call.ld + j;
        typename ELEMENT::raw raw[EACH];
        bool underflows = false;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e < n)
                raw[e] = from[e * LANES];
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e < n) {
                TO value;
                ELEMENT::read(raw[e], call.swap, &value);
                to[e * LANES] = value;
                if (narrows) {
                    double exact;
                    ELEMENT::read(raw[e], call.swap, &exact);
                    underflows |= gm_float_underflows(exact);
                }
            }
        }
        if (underflows && call.underflow)
            *call.underflow = 1;
    });
}

template <typename ELEMENT>
static int launch(cudaStream_t stream, const gm_unpack_call *call)
{
    dim3 grid = elementwise_grid(call->rows, call->cols), block = elementwise_block();
    if (call->dst_type == GM_DTYPE_F32) {
        unpack<ELEMENT, float><<<grid, block, 0, stream>>>(*call);
    } else {
        unpack<ELEMENT, double><<<grid, block, 0, stream>>>(*call);
    }
    return cudaGetLastError();
}

extern "C" int gm_cuda_unpack(gm_cuda_stream stream, const gm_unpack_call *call)
{
    if (call->rows == 0 || call->cols == 0)
        return cudaSuccess;
    if (misaligned(call->src, call->src_pitch, call->src_type))
        return cudaErrorMisalignedAddress;
    if (gm_dtype_size(call->dst_type) == 1)
        return call->src_type == call->dst_type
                   ? cudaMemcpy2DAsync(call->dst, (size_t)call->ld, call->src, call->src_pitch, (size_t)call->cols,
                                       (size_t)call->rows, cudaMemcpyDeviceToDevice, stream)
                   : cudaErrorInvalidValue;
    return dispatch(call->src_type, [&](auto element) { return launch<decltype(element)>(stream, call); });
}

/* Any kernel serves: all are built for the same devices. */
extern "C" int gm_cuda_code_check(void)
{
    return load_code(unpack<gm_element_F32, float>);
}
