#include "base/types/kernel.h"

#include <string.h>

static const char *const names[GM_KERNELS] = {
    [GM_KERNEL_AUTO] = "auto",
#define GM_KERNEL(id, name) [GM_KERNEL_##id] = (name),
#include "base/types/kernels.def"
#undef GM_KERNEL
};

const char *gm_kernel_name(gm_kernel kernel)
{
    return names[kernel];
}

gm_kernel gm_kernel_find(const char *name)
{
    int kernel = GM_KERNEL_AUTO;
    while (kernel < GM_KERNELS && strcmp(name, names[kernel]) != 0)
        kernel++;
    return (gm_kernel)kernel;
}
