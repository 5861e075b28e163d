/* gpumem-run whose GPUs are the slow device: for the tests of the program on a machine without one, as in
 *
 *   GPUMEM_RUN=tests/src/slow/gpumem_slow tests/launch ../tests/cli/matmul.t
 *
 * kernels/devices.c is left out of the program in favour of this list. GPUMEM_SLOW_CAPABILITY (90),
 * GPUMEM_SLOW_PROCESSORS (132) and GPUMEM_SLOW_MEMORY (bytes) describe the GPU, and with them its plans. */
#include "kernels/kernels.h"
#include "tests/src/slow_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gm_device_ops gpu;

static int64_t setting(const char *name, int64_t usual)
{
    const char *text = getenv(name);
    return text ? atoll(text) : usual;
}

static const char *absence(void)
{
    return NULL;
}

static int describe(gm_device *device, gm_device_info *info)
{
    int status = gm_device_cpu.describe(device, info);
    snprintf(info->kind, sizeof info->kind, "cuda");
    snprintf(info->name, sizeof info->name, "slow device");
    info->index = 0;
    info->capability = (int)setting("GPUMEM_SLOW_CAPABILITY", 90);
    info->multiprocessors = (int)setting("GPUMEM_SLOW_PROCESSORS", 132);
    info->memory_free = info->memory_total = setting("GPUMEM_SLOW_MEMORY", INT64_C(1) << 30);
    return status;
}

__attribute__((constructor)) static void make(void)
{
    gpu = *slow_device_ops(&gm_device_cpu);
    slow_device_imitate(&gpu);
    gpu.kind = "cuda";
    gpu.absence = absence;
    gpu.describe = describe;
    gpu.measure = NULL;
}

const gm_device_ops *const gm_device_kinds[] = {&gpu, &gm_device_cpu, NULL};
