#include "tests/src/slow/products.h"

#include "base/size.h"
#include "base/types/float.h"
#include "kernels/matmul/products_cuda.h"
#include "tests/src/slow/memory.h"

#include <stdlib.h>
#include <string.h>

enum { USED = 0x3c };

#define RUN(name) NULL
static const gm_product products[] = {
#define GM_CUDA_PRODUCT(...) GM_CUDA_PRODUCT_ROW(__VA_ARGS__)
#include "kernels/matmul/products_cuda.def"
#undef GM_CUDA_PRODUCT
};

const gm_product *slow_product(int index)
{
    return index < (int)(sizeof products / sizeof products[0]) ? &products[index] : NULL;
}

static void *allocate(int64_t count, size_t size)
{
    void *memory = malloc((size_t)gm_max(count, 1) * size);
    if (!memory)
        slow_die("out of host memory");
    return memory;
}

/* --- Work spaces --- */

/* What stands for the planes of a panel: its shape, and its elements as a number. */
typedef struct planes {
    int64_t outer, k, leaf, parts;
    uint64_t digest;
} planes;

static planes planes_of(const gm_product *p, const gm_product_call *c, int which)
{
    int64_t next = which ? c->next_b : c->next_a, ld = which ? c->ldb : c->lda, batch = next ? gm_max(c->batch, 1) : 1;
    int64_t outer = which ? c->n : c->m, by_outer = which ? c->transpose_b : !c->transpose_a;
    int64_t rows = by_outer ? outer : c->k, cols = by_outer ? c->k : outer;
    size_t size = gm_dtype_size(p->operand);
    planes found = {outer * batch, c->k, c->leaf, c->part_count, 1};
    for (int64_t i = 0; i < batch * rows; i++) {
        const unsigned char *row = (const unsigned char *)(which ? c->b : c->a) +
                                   (size_t)(i / rows * next + i % rows * ld) * size;
        for (size_t k = 0; k < (size_t)cols * size; k++)
            found.digest = (found.digest ^ row[k]) * UINT64_C(0x100000001b3);
    }
    return found;
}

/* Makes the planes of both panels; or finds those that are to be there. */
static void fill_work(const gm_product *p, const gm_product_call *c)
{
    for (int i = 0; i < 2 && p->work.planes && c->m && c->n && c->k; i++) {
        planes made = planes_of(p, c, i);
        size_t bytes = gm_split_lay(&p->work, made.outer, c->k, c->leaf, c->part_count).bytes;
        char *work = c->work[i];
        if (!work)
            slow_die("a product without its work space");
        if (c->ready[i] && memcmp(work, &made, sizeof made) != 0)
            slow_die("the work space of %s is not that of the panel", i ? "B" : "A");
        memset(work, USED, bytes);
        memcpy(work, &made, sizeof made);
    }
    if (c->parts && c->part_count && p->leaf.few)
        memset(c->parts, USED, (size_t)(c->part_count * c->m * c->ldacc) * gm_dtype_size(p->accumulator));
}

/* --- Products --- */

static double *widen(const void *from, int64_t rows, int64_t cols, int64_t ld)
{
    double *to = allocate(rows * cols, sizeof *to);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            to[i * cols + j] = ((const float *)from)[i * ld + j];
    return to;
}

static int multiply(const gm_product *p, const gm_product_call *c)
{
    switch (p->precision) {
    case GM_PRECISION_TF32:
        return gm_cpu_matmul_tf32(1, c);
    case GM_PRECISION_FP16:
        return gm_cpu_matmul_fp16(1, c);
    case GM_PRECISION_BF16:
        return gm_cpu_matmul_bf16(1, c);
    case GM_PRECISION_INT8:
        return gm_cpu_matmul_int8(1, c);
    default:
        return p->accumulator == GM_DTYPE_F64 ? gm_cpu_matmul_fp64(1, c) : gm_cpu_matmul_fp32(1, c);
    }
}

/* Sums of several leaves in float64, which are rounded once. */
static int multiply_rounded(const gm_product_call *c)
{
    double *sums = allocate(c->m * c->n, sizeof *sums);
    gm_product_call whole = *c;
    whole.acc = sums;
    whole.ldacc = c->n;
    whole.rounded = NULL;
    int status = gm_cpu_matmul_fp64(1, &whole);
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            uint64_t over = (uint64_t)gm_round_overflows(sums[i * c->n + j], (float *)c->acc + i * c->ldacc + j);
            c->rounded->overflow += over;
            c->rounded->inf -= over;
        }
    free(sums);
    return status;
}

/* One of a batch. */
static int run_one(const gm_product *p, gm_product_call c)
{
    int64_t rows_a = c.transpose_a ? c.k : c.m, cols_a = c.transpose_a ? c.m : c.k;
    int64_t rows_b = c.transpose_b ? c.n : c.k, cols_b = c.transpose_b ? c.k : c.n;
    double *wide_a = NULL, *wide_b = NULL;
    c.tile_count = GM_CPU_TILES_COPIES;
    c.tiles = allocate(c.tile_count * c.tile * c.tile, sizeof(double));
    c.batch = 0;
    if (p->operand == GM_DTYPE_F32 && p->accumulator == GM_DTYPE_F64) {
        c.a = wide_a = widen(c.a, rows_a, cols_a, c.lda);
        c.b = wide_b = widen(c.b, rows_b, cols_b, c.ldb);
        c.lda = gm_max(cols_a, 1);
        c.ldb = gm_max(cols_b, 1);
    }
    int status = c.rounded ? multiply_rounded(&c) : multiply(p, &c);
    free(c.tiles);
    free(wide_a);
    free(wide_b);
    return status;
}

int slow_product_run(const gm_product *p, const gm_product_call *call)
{
    size_t operand = gm_dtype_size(p->operand), sum = gm_dtype_size(call->rounded ? GM_DTYPE_F32 : p->accumulator);
    int status = GM_OK;
    fill_work(p, call);
    for (int64_t i = 0; i < gm_max(call->batch, 1) && !status; i++) {
        gm_product_call one = *call;
        one.a = (const char *)call->a + (size_t)(i * call->next_a) * operand;
        one.b = (const char *)call->b + (size_t)(i * call->next_b) * operand;
        one.acc = (char *)call->acc + (size_t)(i * call->next_acc) * sum;
        status = run_one(p, one);
    }
    if (call->schemes && p->work.schemes)
        call->schemes[GM_SCHEME_F16] += (double)call->m * (double)call->n * (double)call->k;
    return status;
}
