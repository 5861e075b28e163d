/* cuBLAS as a rival in benchmarks. It is opened at run time, so that the program builds and runs without it. Its
 * interface below follows its manual (docs.nvidia.com/cuda/cublas). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device_cuda.h"

typedef struct cublas *handle;

enum { OP_N = 0, OP_T = 1, DEFAULT_MATH = 0, PEDANTIC_MATH = 2, DEFAULT_ALGORITHM = -1, NOT_SUPPORTED = 15 };
enum { INVALID_VALUE = 7 /* also of alignments that a product does not support */ };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32I = 72, COMPUTE_32F_FAST_TF32 = 77 };

struct gm_cuda_rival {
    void *library;
    handle handle;
    char name[32], absence[160];
    int (*create)(handle *);
    int (*destroy)(handle);
    int (*get_version)(handle, int *);
    int (*set_stream)(handle, cudaStream_t);
    int (*set_math_mode)(handle, int);
    int (*gemm)(handle, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int,
                const void *, void *, int, int, int, int);
    int (*gemm_batch)(handle, int, int, int, int, int, const void *, const void *, int, int, long long, const void *,
                      int, int, long long, const void *, void *, int, int, long long, int, int, int);
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
        {"cublasGemmEx", &r->gemm},
        {"cublasGemmStridedBatchedEx", &r->gemm_batch},
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

/* The call for each precision: types of the operands and of C, and the arithmetic. float32 uses the mode that no
 * environment variable turns into tf32; the others the default mode, in which float64 uses the tensor cores. */
typedef struct kind {
    gm_rival_product product;
    int operand, result, compute, math;
} kind;

static const kind kinds[GM_PRECISIONS] = {
    [GM_PRECISION_FP64] = {{GM_PRECISION_FP64, 8, GM_DTYPE_F64, 0, 0}, R_64F, R_64F, COMPUTE_64F, DEFAULT_MATH},
    [GM_PRECISION_FP32] = {{GM_PRECISION_FP32, 4, GM_DTYPE_F32, 0, 0}, R_32F, R_32F, COMPUTE_32F, PEDANTIC_MATH},
    [GM_PRECISION_TF32] =
        {{GM_PRECISION_TF32, 4, GM_DTYPE_F32, 0, 0}, R_32F, R_32F, COMPUTE_32F_FAST_TF32, DEFAULT_MATH},
    [GM_PRECISION_BF16] = {{GM_PRECISION_BF16, 2, GM_DTYPE_F32, 0, 0}, R_16BF, R_32F, COMPUTE_32F, DEFAULT_MATH},
    [GM_PRECISION_FP16] = {{GM_PRECISION_FP16, 2, GM_DTYPE_F32, 0, 0}, R_16F, R_32F, COMPUTE_32F, DEFAULT_MATH},
    /* Some versions multiply integers on tensor cores, or at all, only where B is transposed. They take words of four
     * integers along k: where k ends within a word, 13.1 adds products of the elements beyond. */
    [GM_PRECISION_INT8] = {{GM_PRECISION_INT8, 1, GM_DTYPE_I32, 1, 4}, R_8I, R_32I, COMPUTE_32I, DEFAULT_MATH},
};

/* A user who wants the exact product has float32 as the nearest. */
const gm_rival_product *gm_cuda_rival_of(gm_precision precision)
{
    const kind *k = &kinds[precision == GM_PRECISION_EXACT ? GM_PRECISION_FP32 : precision];
    return k->product.operand_bytes > 0 ? &k->product : NULL;
}

/* cuBLAS stores matrices by columns: the rows of C = A B are the columns of C' = B' A'. So B is its first operand. */
int gm_cuda_rival_product(gm_queue *queue, const gm_gemm_call *call, int *refused)
{
    static const double one64 = 1, zero64 = 0;
    static const float one32 = 1, zero32 = 0;
    static const int32_t one_integer = 1, zero_integer = 0;
    struct gm_cuda_rival *r = queue->device->rival;
    const kind *kind = &kinds[call->precision];
    const void *one = &one32, *zero = &zero32;
    int m = (int)call->m, n = (int)call->n, k = (int)call->k, lda = (int)call->lda, ldb = (int)call->ldb,
        ldc = (int)call->ldc, batch = (int)call->batch, turn = call->transpose_b ? OP_T : OP_N;
    if (m != call->m || n != call->n || k != call->k || lda != call->lda || ldb != call->ldb || ldc != call->ldc ||
        batch != call->batch)
        return gm_fail(GM_EDEVICE, "product by cuBLAS: more elements in a row, or products, than it can count");
    if (kind->compute == COMPUTE_64F) {
        one = &one64;
        zero = &zero64;
    } else if (kind->compute == COMPUTE_32I) {
        one = &one_integer;
        zero = &zero_integer;
    }
    int error = r->set_stream(r->handle, queue->stream);
    if (error == 0)
        error = r->set_math_mode(r->handle, kind->math);
    if (error == 0 && batch > 1)
        error = r->gemm_batch(r->handle, turn, OP_N, n, m, k, one, call->b, kind->operand, ldb, call->next_b, call->a,
                              kind->operand, lda, call->next_a, zero, call->c, kind->result, ldc, call->next_c, batch,
                              kind->compute, DEFAULT_ALGORITHM);
    else if (error == 0)
        error = r->gemm(r->handle, turn, OP_N, n, m, k, one, call->b, kind->operand, ldb, call->a, kind->operand, lda,
                        zero, call->c, kind->result, ldc, kind->compute, DEFAULT_ALGORITHM);
    if (refused != NULL && (error == NOT_SUPPORTED || error == INVALID_VALUE)) {
        *refused = 1;
        return GM_OK;
    }
    if (error != 0)
        return gm_fail(GM_EDEVICE, "GPU %d (%s): product by %s: error %d", queue->device->number, queue->device->name,
                       r->name, error);
    return GM_OK;
}
