/* Replaces device_cuda.c in a build without CUDA: a kind of device with no devices. */
#include "kernels/kernels.h"

static int none_count(int *count)
{
    *count = 0;
    return GM_OK;
}

static const char *none_absence(void)
{
    return "this program was built without CUDA";
}

static int none_open(int index, int threads, gm_device **device)
{
    (void)index;
    (void)threads;
    *device = NULL;
    return gm_fail(GM_EDEVICE, "%s", none_absence());
}

/* Other entries need an open device. */
const gm_device_ops gm_device_cuda = {.kind = "cuda", .count = none_count, .absence = none_absence, .open = none_open};
