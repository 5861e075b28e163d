/* kernel.h - the families of product kernels, by table (kernels.def). */
#ifndef GM_BASE_TYPES_KERNEL_H
#define GM_BASE_TYPES_KERNEL_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gm_kernel {
    GM_KERNEL_AUTO, /* the fastest that keeps the promise of the precision */
#define GM_KERNEL(id, name) GM_KERNEL_##id,
#include "base/types/kernels.def"
#undef GM_KERNEL
    GM_KERNELS
} gm_kernel;

const char *gm_kernel_name(gm_kernel kernel);

/* The family called name, or "auto"; GM_KERNELS when there is none. */
gm_kernel gm_kernel_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
