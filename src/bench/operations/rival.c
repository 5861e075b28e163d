/* The product of a library: its operands, which it may want rounded and B transposed, and its calls. */
#include "src/bench/operations/rival.h"

#include "base/size.h"
#include "base/tiling.h"
#include "kernels/move/calls.h"

static int64_t ld(const gm_bench_product *p, int64_t cols)
{
    return gm_tiling_ld(cols, (int64_t)gm_dtype_size(p->type));
}

static int64_t padded_k(const gm_bench_product *p)
{
    return gm_round_up(p->shape.k, GM_RIVAL_ALIGN);
}

static int is_rounded(const gm_bench_rival *r)
{
    return r->kind->operand_bytes < gm_dtype_size(r->product->type);
}

static int is_turned(const gm_bench_rival *r)
{
    return r->kind->may_transpose && r->product->bench->ops->transpose;
}

gm_bench_rival gm_rival_make(const gm_bench_product *p)
{
    const gm_measure_ops *measure = p->bench->measure;
    const char *absence;
    gm_bench_rival r = {.product = p, .name = measure->rival ? measure->rival(p->bench->device, &absence) : NULL};
    if (r.name)
        r.kind = measure->rival_of(p->precision);
    if (r.kind && (r.kind->result != p->result || (is_rounded(&r) && !measure->rival_round)))
        r.kind = NULL;
    return r;
}

/* Bytes of operands of `rows` rows and `cols` columns in each frame. */
static int64_t operand_bytes(const gm_bench_rival *r, int64_t rows, int64_t cols)
{
    int64_t elements = gm_mul_sat(rows, ld(r->product, cols));
    return gm_mul_sat(gm_mul_sat(elements, r->product->shape.batch), (int64_t)r->kind->operand_bytes);
}

int64_t gm_rival_bytes(const gm_bench_rival *r)
{
    const gm_bench_product *p = r->product;
    int64_t bytes = 0;
    if (r->kind && is_rounded(r))
        bytes = gm_add_sat(operand_bytes(r, p->room, p->shape.k), operand_bytes(r, p->shape.k, p->shape.n));
    if (r->kind && is_turned(r))
        bytes = gm_add_sat(bytes, gm_mul_sat(2, operand_bytes(r, padded_k(p), p->shape.n)));
    return bytes;
}

int gm_rival_alloc(gm_bench_rival *r)
{
    const gm_bench_product *p = r->product;
    const gm_device_ops *ops = p->bench->ops;
    int status = GM_OK;
    if (!r->kind)
        return GM_OK;
    r->a = p->a;
    r->b = p->b;
    if (is_rounded(r))
        status = ops->alloc(p->bench->device, (size_t)operand_bytes(r, p->room, p->shape.k), &r->a);
    if (!status && is_rounded(r))
        status = ops->alloc(p->bench->device, (size_t)operand_bytes(r, p->shape.k, p->shape.n), &r->b);
    if (!status && is_turned(r))
        status = ops->alloc(p->bench->device, (size_t)operand_bytes(r, padded_k(p), p->shape.n), &r->padded);
    if (!status && is_turned(r))
        status = ops->alloc(p->bench->device, (size_t)operand_bytes(r, padded_k(p), p->shape.n), &r->turned);
    if (!status && r->kind->k_multiple) /* a call may read rows of A beyond k, for the rows of zeros of B' */
        status = ops->zero(p->bench->queue, r->a, (size_t)operand_bytes(r, p->room, p->shape.k));
    return status;
}

void gm_rival_free(gm_bench_rival *r)
{
    const gm_bench_product *p = r->product;
    const gm_device_ops *ops = p->bench->ops;
    ops->free(p->bench->device, r->turned);
    ops->free(p->bench->device, r->padded);
    if (r->b != p->b)
        ops->free(p->bench->device, r->b);
    if (r->a != p->a)
        ops->free(p->bench->device, r->a);
    *r = (gm_bench_rival){.product = p};
}

static int round_operand(const gm_bench_rival *r, const void *src, int64_t rows, int64_t cols, void *dst)
{
    const gm_bench_product *p = r->product;
    const gm_rival_round_call call = {.precision = r->kind->precision,
                                      .rows = p->shape.batch * rows,
                                      .cols = cols,
                                      .ld = ld(p, cols),
                                      .src = src,
                                      .dst = dst};
    return p->bench->measure->rival_round(p->bench->queue, &call);
}

/* The rows of the transpose are padded to whole words, as are those of B. */
static int transpose_b(const gm_bench_rival *r)
{
    const gm_bench_product *p = r->product;
    const gm_device_ops *ops = p->bench->ops;
    int64_t bytes = (int64_t)r->kind->operand_bytes, n = ld(p, p->shape.n);
    size_t row = (size_t)(n * bytes), width = (size_t)(p->shape.n * bytes);
    const gm_transpose_call call = {.outer = p->shape.batch,
                                    .first = padded_k(p),
                                    .middle = 1,
                                    .second = n,
                                    .inner = 1,
                                    .bytes = bytes,
                                    .src = r->padded,
                                    .dst = r->turned};
    int status = ops->zero(p->bench->queue, r->padded, (size_t)operand_bytes(r, padded_k(p), p->shape.n));
    for (int64_t f = 0; f < p->shape.batch && !status; f++)
        status = ops->copy_within(p->bench->queue, (char *)r->padded + (size_t)(f * padded_k(p)) * row, row,
                                  (const char *)r->b + (size_t)(f * p->shape.k) * row, row, width, p->shape.k);
    return status ? status : ops->transpose(p->bench->queue, &call);
}

int gm_rival_fill(gm_bench_rival *r)
{
    const gm_bench_product *p = r->product;
    int status = GM_OK;
    if (!r->kind)
        return GM_OK;
    if (is_rounded(r))
        status = round_operand(r, p->a, p->rows, p->shape.k, r->a);
    if (!status && is_rounded(r))
        status = round_operand(r, p->b, p->shape.k, p->shape.n, r->b);
    return status || !r->turned ? status : transpose_b(r);
}

int gm_rival_find_calls(gm_bench_rival *r)
{
    const gm_bench_product *p = r->product;
    int status = GM_OK;
    r->count = 0;
    for (int turned = 0; r->kind && turned <= (r->turned != NULL) && !status; turned++) {
        int refused = 0;
        int64_t k = r->kind->k_multiple ? gm_round_up(p->shape.k, r->kind->k_multiple) : p->shape.k;
        if (k > p->shape.k && !turned) /* B has no rows of zeros below */
            continue;
        gm_gemm_call call = {.type = p->type,
                             .precision = r->kind->precision,
                             .transpose_b = turned,
                             .m = p->rows,
                             .n = p->shape.n,
                             .k = k,
                             .a = r->a,
                             .lda = ld(p, p->shape.k),
                             .b = turned ? r->turned : r->b,
                             .ldb = turned ? padded_k(p) : ld(p, p->shape.n),
                             .c = p->c,
                             .ldc = gm_product_ldc(p),
                             .batch = p->shape.batch,
                             .next_a = p->rows * ld(p, p->shape.k),
                             .next_b = turned ? ld(p, p->shape.n) * padded_k(p) : p->shape.k * ld(p, p->shape.n),
                             .next_c = p->rows * gm_product_ldc(p)};
        status = p->bench->measure->rival_product(p->bench->queue, &call, &refused);
        if (!status)
            status = p->bench->ops->queue_sync(p->bench->queue);
        if (!status && !refused)
            r->calls[r->count++] = call;
    }
    return status;
}
