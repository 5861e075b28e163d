#include "kernels/kernels.h"

const gm_device_ops *const gm_device_kinds[] = {&gm_device_cuda, &gm_device_cpu, NULL};
