/* cuBLAS as a rival in benchmarks. It is opened at run time, so that the program builds and runs without it. Its
 * interface below follows its manual (docs.nvidia.com/cuda/cublas). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device_cuda.h"

typedef struct cublas *handle;

enum { OP_N = 0, DEFAULT_MATH = 0, PEDANTIC_MATH = 2 };

struct gm_cuda_rival {
    void *library;
    handle handle;
    char name[32], absence[160];
    int (*create)(handle *);
    int (*destroy)(handle);
    int (*get_version)(handle, int *);
    int (*set_stream)(handle, cudaStream_t);
    int (*set_math_mode)(handle, int);
    int (*sgemm)(handle, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *,
                 float *, int);
    int (*dgemm)(handle, int, int, int, int, int, const double *, const double *, int, const double *, int,
                 const double *, double *, int);
};

/* The version of this program's runtime first, then any; the search path of the loader first, then the usual folder of
 * the toolkit. */
static void *open_library(void)
{
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/"};
    static const int versions[] = {CUDART_VERSION / 1000, 13, 12, 11};
    for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++)
        for (size_t f = 0; f < sizeof folders / sizeof folders[0]; f++) {
            char name[64];
            snprintf(name, sizeof name, "%slibcublas.so.%d", folders[f], versions[v]);
            void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (library != NULL)
                return library;
        }
    return NULL;
}

static int find_functions(struct gm_cuda_rival *r)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"cublasCreate_v2", &r->create},
        {"cublasDestroy_v2", &r->destroy},
        {"cublasGetVersion_v2", &r->get_version},
        {"cublasSetStream_v2", &r->set_stream},
        {"cublasSetMathMode", &r->set_math_mode},
        {"cublasSgemm_v2", &r->sgemm},
        {"cublasDgemm_v2", &r->dgemm},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *function = dlsym(r->library, wanted[i].name);
        if (function == NULL) {
            snprintf(r->absence, sizeof r->absence, "libcublas has no %s", wanted[i].name);
            return 1;
        }
        *(void **)wanted[i].function = function; /* the conversion that POSIX gives for dlsym */
    }
    return 0;
}

static void start(struct gm_cuda_rival *r)
{
    r->library = open_library();
    if (r->library == NULL) {
        snprintf(r->absence, sizeof r->absence, "libcublas is not where the loader looks (LD_LIBRARY_PATH)");
        return;
    }
    if (find_functions(r))
        return;
    int version = 0, error = r->create(&r->handle);
    if (error != 0) {
        r->handle = NULL;
        snprintf(r->absence, sizeof r->absence, "cuBLAS does not start: error %d", error);
        return;
    }
    r->get_version(r->handle, &version);
    int major = version / (version >= 100000 ? 10000 : 1000), below = version % (version >= 100000 ? 10000 : 1000);
    snprintf(r->name, sizeof r->name, "cuBLAS %d.%d.%d", major, below / 100, below % 100);
}

const char *gm_cuda_rival(gm_device *device, const char **absence)
{
    *absence = "no memory";
    if (device->rival == NULL) {
        device->rival = calloc(1, sizeof *device->rival);
        if (device->rival == NULL)
            return NULL;
        start(device->rival);
    }
    *absence = device->rival->absence;
    return device->rival->handle != NULL ? device->rival->name : NULL;
}

void gm_cuda_rival_close(struct gm_cuda_rival *rival)
{
    if (rival == NULL)
        return;
    if (rival->handle != NULL)
        rival->destroy(rival->handle);
    if (rival->library != NULL)
        dlclose(rival->library);
    free(rival);
}

/* cuBLAS stores matrices by columns: the rows of C = A B are the columns of C' = B' A'. float32 uses the mode that no
 * environment variable turns into tf32; float64 the default mode, which uses the tensor cores. */
int gm_cuda_rival_product(gm_queue *queue, const gm_gemm_call *call)
{
    struct gm_cuda_rival *r = queue->device->rival;
    int m = (int)call->m, n = (int)call->n, k = (int)call->k, lda = (int)call->lda, ldb = (int)call->ldb,
        ldc = (int)call->ldc;
    if (m != call->m || n != call->n || k != call->k || lda != call->lda || ldb != call->ldb || ldc != call->ldc)
        return gm_fail(GM_EDEVICE, "product by cuBLAS: more elements in a row than it can count");
    int error = r->set_stream(r->handle, queue->stream);
    if (error == 0)
        error = r->set_math_mode(r->handle, call->type == GM_DTYPE_F64 ? DEFAULT_MATH : PEDANTIC_MATH);
    if (error == 0 && call->type == GM_DTYPE_F64) {
        const double one = 1, zero = 0;
        error = r->dgemm(r->handle, OP_N, OP_N, n, m, k, &one, call->b, ldb, call->a, lda, &zero, call->c, ldc);
    } else if (error == 0) {
        const float one = 1, zero = 0;
        error = r->sgemm(r->handle, OP_N, OP_N, n, m, k, &one, call->b, ldb, call->a, lda, &zero, call->c, ldc);
    }
    if (error != 0)
        return gm_fail(GM_EDEVICE, "GPU %d (%s): product by %s: error %d", queue->device->number, queue->device->name,
                       r->name, error);
    return GM_OK;
}
