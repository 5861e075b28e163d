/* dispatch.cuh - element types as C++ types, and the choice among them by the gm_dtype of a call. */
#ifndef GM_KERNELS_DISPATCH_CUH
#define GM_KERNELS_DISPATCH_CUH

#include <cuda_runtime.h>

#include "kernels/element.h"

/* gm_element_U8::raw, gm_element_U8::type, gm_element_U8::read(raw, swap, &value), ... */
#define GM_DTYPE(id, name, ctype, kind, bytes, digits)                              \
    struct gm_element_##id {                                                        \
        typedef gm_raw##bytes raw;                                                  \
        typedef ctype type;                                                         \
        static const int significant = digits;                                      \
        static const gm_dtype_kind kind_of = GM_##kind;                             \
        static __device__ __forceinline__ void read(raw x, int swap, float *value)  \
        {                                                                           \
            *value = gm_f32_##id(x, swap);                                          \
        }                                                                           \
        static __device__ __forceinline__ void read(raw x, int swap, double *value) \
        {                                                                           \
            *value = gm_f64_##id(x, swap);                                          \
        }                                                                           \
    };
#include "base/types/dtypes.def"
#undef GM_DTYPE

/* gm_order1() ... by the type of its argument. */
static __device__ __forceinline__ gm_raw1 order_raw(gm_raw1 raw, int swap)
{
    return gm_order1(raw, swap);
}

static __device__ __forceinline__ gm_raw2 order_raw(gm_raw2 raw, int swap)
{
    return gm_order2(raw, swap);
}

static __device__ __forceinline__ gm_raw4 order_raw(gm_raw4 raw, int swap)
{
    return gm_order4(raw, swap);
}

static __device__ __forceinline__ gm_raw8 order_raw(gm_raw8 raw, int swap)
{
    return gm_order8(raw, swap);
}

/* Returns body(gm_element_<type>()), which is a cudaError_t, or cudaErrorInvalidValue when there is no such type. The
 * body is a generic lambda: [&](auto element) { return launch<decltype(element)>(stream, call); } */
#pragma nv_exec_check_disable
template <typename BODY>
static __host__ __device__ __forceinline__ int dispatch(gm_dtype type, BODY body)
{
    switch (type) {
#define GM_DTYPE(id, ...) \
    case GM_DTYPE_##id:   \
        return body(gm_element_##id());
#include "base/types/dtypes.def"
#undef GM_DTYPE
    default:
        return cudaErrorInvalidValue;
    }
}

/* The same for types of integers; cudaErrorInvalidValue for others. */
template <typename BODY>
static int dispatch_integers(gm_dtype type, BODY body)
{
    return dispatch(type, [&](auto element) -> int {
        if constexpr (decltype(element)::kind_of != GM_FLOAT)
            return body(element);
        else
            return cudaErrorInvalidValue;
    });
}

#endif
