/* Host memory of huge pages, to be pinned. The driver's allocator takes small pages, which take three times as long to
 * clear and to pin. */
#define _GNU_SOURCE 1 /* MADV_HUGEPAGE */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/size.h"
#include "kernels/device_cuda.h"

struct gm_cuda_pages {
    struct gm_cuda_pages *next;
    char *memory; /* at a multiple of huge_page */
    void *map;
    size_t bytes, map_bytes;
    int pinned;
};

static const size_t huge_page = (size_t)2 << 20;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the lists of all devices */

void *gm_cuda_pages_alloc(gm_device *device, size_t bytes)
{
    int can_pin = 0;
    if (bytes < huge_page || bytes > SIZE_MAX / 2)
        return NULL;
    if (cudaDeviceGetAttribute(&can_pin, cudaDevAttrHostRegisterSupported, device->index) != cudaSuccess || !can_pin) {
        cudaGetLastError();
        return NULL;
    }
    struct gm_cuda_pages *pages = malloc(sizeof *pages);
    if (pages == NULL)
        return NULL;
    pages->bytes = bytes;
    pages->map_bytes = bytes + huge_page;
    pages->map = mmap(NULL, pages->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages->map == MAP_FAILED) {
        free(pages);
        return NULL;
    }
    size_t beyond = (size_t)((uintptr_t)pages->map % huge_page);
    pages->memory = (char *)pages->map + (beyond != 0 ? huge_page - beyond : 0);
    madvise(pages->memory, bytes, MADV_HUGEPAGE); /* failure leaves small pages, which work as well */
    pages->pinned = 0;
    pthread_mutex_lock(&lock);
    pages->next = device->pages;
    device->pages = pages;
    pthread_mutex_unlock(&lock);
    return pages->memory;
}

/* Has the system clear the pages that nobody has written yet. cudaHostRegister() would do so while other threads that
 * pin memory wait. */
static void clear_pages(const struct gm_cuda_pages *pages)
{
    const size_t small_page = 4096;
    for (size_t at = 0; at < pages->bytes; at += small_page) {
        volatile char *byte = pages->memory + at;
        *byte = *byte;
    }
}

void gm_cuda_pages_pin(gm_device *device, void *memory)
{
    pthread_mutex_lock(&lock);
    struct gm_cuda_pages *pages = device->pages;
    while (pages != NULL && pages->memory != memory)
        pages = pages->next;
    pthread_mutex_unlock(&lock);
    if (pages == NULL || pages->pinned)
        return;
    clear_pages(pages);
    cudaSetDevice(device->index); /* the current device is per thread */
    pages->pinned = cudaHostRegister(memory, pages->bytes, cudaHostRegisterPortable) == cudaSuccess;
    if (!pages->pinned)
        cudaGetLastError();
}

int gm_cuda_pages_free(gm_device *device, void *memory)
{
    pthread_mutex_lock(&lock);
    struct gm_cuda_pages **link = &device->pages, *pages;
    while (*link != NULL && (*link)->memory != memory)
        link = &(*link)->next;
    pages = *link;
    if (pages != NULL)
        *link = pages->next;
    pthread_mutex_unlock(&lock);
    if (pages == NULL)
        return 0;
    if (pages->pinned)
        cudaHostUnregister(memory); /* as with cudaFree(), an error here is of earlier work */
    munmap(pages->map, pages->map_bytes);
    free(pages);
    return 1;
}
