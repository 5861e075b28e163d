/* Description of a GPU: names, addresses, sizes and limits of speed. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "kernels/device_cuda.h"

/* Operations of a multiprocessor per clock, a multiply-add counted as two; float64 on tensor cores where there are any.
 */
static const struct {
    int capability, fp32, fp64;
} units[] = {{80, 128, 128}, {86, 256, 4}, {87, 256, 4}, {89, 256, 4}, {90, 256, 256}, {100, 256, 128}, {120, 256, 4}};

/* The number that a property of a PCI device begins with; `otherwise` where there is none. */
static double find_property(const char *pci, const char *name, double otherwise)
{
    char path[96];
    double value;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", pci, name);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fscanf(file, "%lf", &value) == 1)
            otherwise = value;
        fclose(file);
    }
    return otherwise;
}

/* Bytes per second in one direction of PCI Express at the most that the device can do: an idle device may have slowed
 * its link down. Lanes carry 8 of 10 bits as payload up to 5 GT/s, then 128 of 130. 0: unknown, or the device reaches
 * the host's memory on another way (NVLink-C2C). */
static double find_host_limit(const gm_device *device, const char *pci)
{
    int has_host_pages = 0;
    if (cudaDeviceGetAttribute(&has_host_pages, cudaDevAttrPageableMemoryAccessUsesHostPageTables, device->index) !=
        cudaSuccess)
        cudaGetLastError();
    double speed = 1e9 * find_property(pci, "max_link_speed", 0), width = find_property(pci, "max_link_width", 0);
    int is_known = !has_host_pages && speed > 0 && width > 0 && width <= 32; /* 255: unknown */
    return is_known ? speed * width / 8 * (speed < 8e9 ? 0.8 : 128.0 / 130) : 0;
}

static void format_uuid(const cudaUUID_t *uuid, char text[48])
{
    const unsigned char *b = (const unsigned char *)uuid->bytes;
    snprintf(text, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
             b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

/* Clocks and widths as the driver reports them; 0 where it reports none. */
static void describe_speeds(const gm_device *device, gm_device_info *info)
{
    static const enum cudaDeviceAttr asked[] = {cudaDevAttrComputeCapabilityMajor,
                                                cudaDevAttrComputeCapabilityMinor,
                                                cudaDevAttrMultiProcessorCount,
                                                cudaDevAttrClockRate,
                                                cudaDevAttrMemoryClockRate,
                                                cudaDevAttrGlobalMemoryBusWidth,
                                                cudaDevAttrL2CacheSize};
    enum { ASKED = sizeof asked / sizeof asked[0] };
    int value[ASKED];
    for (int i = 0; i < ASKED; i++) {
        if (cudaDeviceGetAttribute(&value[i], asked[i], device->index) != cudaSuccess) {
            cudaGetLastError();
            value[i] = 0;
        }
    }
    info->capability = 10 * value[0] + value[1];
    info->multiprocessors = value[2];
    info->clock_hz = (int64_t)value[3] * 1000;
    info->memory_clock_hz = (int64_t)value[4] * 1000;
    info->memory_bus_bits = value[5];
    info->l2_bytes = value[6];
    info->memory_limit = 2.0 * (double)info->memory_clock_hz * info->memory_bus_bits / 8; /* two transfers a clock */
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].capability == info->capability) {
            info->fp32_limit = (double)info->clock_hz * info->multiprocessors * units[i].fp32;
            info->fp64_limit = (double)info->clock_hz * info->multiprocessors * units[i].fp64;
        }
    }
}

/* The driver by its own version or, where the system does not tell it, by the newest CUDA that it runs. */
static void describe_versions(gm_device_info *info)
{
    int runtime = 0, driver = 0;
    if (cudaRuntimeGetVersion(&runtime) == cudaSuccess && runtime > 0)
        snprintf(info->runtime, sizeof info->runtime, "%d.%d", runtime / 1000, runtime % 1000 / 10);
    if (!gm_driver_version("/proc/driver/nvidia/version", info->driver)[0] &&
        cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0)
        snprintf(info->driver, sizeof info->driver, "for CUDA %d.%d", driver / 1000, driver % 1000 / 10);
}

int gm_cuda_describe(gm_device *device, gm_device_info *info)
{
    size_t free_bytes, total_bytes;
    memset(info, 0, sizeof *info);
    int status = gm_cuda_check(device, cudaMemGetInfo(&free_bytes, &total_bytes), "reading its memory size");
    if (status != GM_OK)
        return status;
    status = gm_cuda_check(device, cudaDeviceGetPCIBusId(info->pci, sizeof info->pci, device->index),
                           "reading its PCI address");
    if (status != GM_OK)
        return status;
    for (char *c = info->pci; *c != '\0'; c++) {
        *c = (char)tolower((unsigned char)*c); /* as in sysfs */
    }
    snprintf(info->kind, sizeof info->kind, "cuda");
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, device->name);
    format_uuid(&device->uuid, info->uuid);
    info->memory_total = (int64_t)total_bytes;
    info->memory_free = (int64_t)free_bytes;
    info->index = device->number;
    info->numa_node = (int)find_property(info->pci, "numa_node", -1);
    info->host_limit = find_host_limit(device, info->pci);
    describe_speeds(device, info);
    describe_versions(info);
    return GM_OK;
}
