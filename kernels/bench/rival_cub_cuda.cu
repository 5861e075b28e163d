/* CUB as a rival in benchmarks: sums and maxima of an array, one call each. Signed integers are left out: they take as
 * long as unsigned ones. */
/* CUB includes <iostream>, which defines an object of the C++ library in every file, but this program is linked as C.
 * The types of <ostream> are enough for CUB. */
#include <ostream>
#define _GLIBCXX_IOSTREAM 1

#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>

#include <stdio.h>

#include "kernels/bench/launch.h"

template <typename T, typename SUM>
static cudaError_t reduce(cudaStream_t stream, const gm_rival_reduce_call *call, size_t *room)
{
    void *memory = room != NULL ? NULL : call->room; /* NULL: CUB returns the size that it needs */
    size_t bytes = call->room_bytes;
    cudaError_t error;
    if (call->is_max)
        error = cub::DeviceReduce::Max(memory, bytes, (const T *)call->src, (T *)call->out, call->n, stream);
    else
        error = cub::DeviceReduce::Reduce(memory, bytes, (const T *)call->src, (SUM *)call->out, call->n,
                                          ::cuda::std::plus<>{}, (SUM)0, stream);
    if (room != NULL)
        *room = bytes;
    return error;
}

static cudaError_t reduce_type(cudaStream_t stream, const gm_rival_reduce_call *call, size_t *room)
{
    switch (call->type) {
    case GM_DTYPE_U8:
        return reduce<uint8_t, uint64_t>(stream, call, room);
    case GM_DTYPE_U16:
        return reduce<uint16_t, uint64_t>(stream, call, room);
    case GM_DTYPE_U32:
        return reduce<uint32_t, uint64_t>(stream, call, room);
    case GM_DTYPE_U64:
        return reduce<uint64_t, uint64_t>(stream, call, room);
    case GM_DTYPE_F32:
        return reduce<float, float>(stream, call, room);
    case GM_DTYPE_F64:
        return reduce<double, double>(stream, call, room);
    default:
        return cudaErrorNotSupported;
    }
}

extern "C" int gm_cuda_rival_reduce(gm_cuda_stream stream, const gm_rival_reduce_call *call)
{
    return reduce_type(stream, call, NULL);
}

extern "C" size_t gm_cuda_rival_reduce_room(gm_dtype type, int64_t n)
{
    size_t most = 0;
    for (int is_max = 0; is_max < 2; is_max++) {
        gm_rival_reduce_call call = {};
        size_t room = 0;
        call.type = type;
        call.is_max = is_max;
        call.n = n;
        if (reduce_type(NULL, &call, &room) != cudaSuccess) {
            cudaGetLastError();
            return 0;
        }
        most = room > most ? room : most;
    }
    return most > 0 ? most : 1;
}

extern "C" const char *gm_cuda_rival_reduce_name(void)
{
    static char name[32];
    snprintf(name, sizeof name, "CUB %d.%d.%d", CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
    return name;
}
