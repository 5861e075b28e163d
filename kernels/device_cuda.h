/* device_cuda.h - inside the CUDA device: what its parts know of each other. */
#ifndef GM_KERNELS_DEVICE_CUDA_H
#define GM_KERNELS_DEVICE_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/kernels.h"
#include "kernels/ledger.h"

struct gm_device {
    int index;
    char name[256];
    size_t pitch_max; /* bytes, of a copy of rows */
    gm_ledger memory, pinned;
    struct gm_cuda_pages *pages; /* host memory that is not the driver's own */
    struct gm_cuda_rival *rival; /* NULL: not opened */
};

struct gm_queue {
    gm_device *device;
    cudaStream_t stream;
    gm_cuda_gate *gate; /* pinned; NULL: never held */
    unsigned holds;     /* so far */
};

struct gm_event {
    gm_device *device;
    cudaEvent_t event;
};

/* GM_OK, or the message about what failed. */
int gm_cuda_check(const gm_device *device, cudaError_t error, const char *what);

/* Memory of huge pages, not pinned yet; NULL, without a message, where that is not to be had, or not worth it. Uncharged. */
void *gm_cuda_pages_alloc(gm_device *device, size_t bytes);
/* Pins what the one above gave, if the driver will; other memory, and what is pinned, stays as it is. */
void gm_cuda_pages_pin(gm_device *device, void *memory);
/* Frees it; returns whether it was such memory. */
int gm_cuda_pages_free(gm_device *device, void *memory);

extern const gm_measure_ops gm_cuda_measure;

/* cuBLAS, by the slots of gm_measure_ops. */
const char *gm_cuda_rival(gm_device *device, const char **absence);
int gm_cuda_rival_product(gm_queue *queue, const gm_gemm_call *call);
void gm_cuda_rival_close(struct gm_cuda_rival *rival); /* takes NULL */

#endif
