/* The check's products of matrices with vectors, for all frames of a group in one call each: as src/matmul/probe.c,
 * with the sums of the frames one after the other in the slot. */
#include "src/matmul/batch/batch.h"

static const gm_device_ops *ops_of(const gm_batch *b)
{
    return b->product.job->ops;
}

/* A (B x), (u'A) B and the bounds of their errors, as calls. */
typedef struct probes {
    gm_probe_call bx, au, vb, yy, vv;
    double *bb; /* squares of B, by columns */
    int64_t next;
} probes;

/* B x and the squares of B are the same for all frames where B is: then they are of the first frame alone. */
static void set_probes(const gm_batch *b, int64_t frames, const gm_batch_operands *o, double *sums, probes *c)
{
    const gm_matmul *p = &b->product;
    const gm_batch_plan *plan = &b->plan;
    int64_t element = gm_matmul_operand_bytes(p), next = plan->sums / (int64_t)sizeof(double), own = plan->vectors;
    int64_t m = p->c->m, n = p->c->n, k = p->c->k, each_y = o->next_b ? own : 0;
    double *y = b->vectors, *y_abs = y + k, *v = y_abs + k, *v_abs = v + k, *sum[GM_SUMS];
    for (int s = 0; s < GM_SUMS; s++)
        sum[s] = sums + gm_sum_offset(s, m, n);
    const gm_probe_call of_a = {.rows = m,
                                .cols = k,
                                .m = o->a,
                                .pitch = (size_t)(plan->ld[GM_A] * element),
                                .type = gm_matmul_panel_type(p, GM_A),
                                .wide = 1,
                                .batch = frames,
                                .next_m = (size_t)(o->next_a * element)};
    const gm_probe_call of_b = {.rows = k,
                                .cols = n,
                                .m = o->b,
                                .pitch = (size_t)(plan->ld[GM_B] * element),
                                .type = gm_matmul_panel_type(p, GM_B),
                                .wide = 1,
                                .batch = frames,
                                .next_m = (size_t)(o->next_b * element)};
    *c = (probes){.bx = of_b, .au = of_a, .vb = of_b, .bb = sum[GM_SUM_BB], .next = next};
    c->bx.batch = o->next_b ? frames : 1;
    c->bx.p = p->x;
    c->bx.r = y;
    c->bx.r_abs = y_abs;
    c->bx.next_r = own;
    c->bx.s_sq = c->bb;
    c->bx.next_s = next;
    c->au.p = y;
    c->au.next_p = each_y;
    c->au.r = sum[GM_SUM_AY];
    c->au.r_sq = sum[GM_SUM_AA];
    c->au.next_r = next;
    c->au.q = p->u;
    c->au.s = v;
    c->au.s_abs = v_abs;
    c->au.next_s = own;
    c->vb.q = v;
    c->vb.next_q = own;
    c->vb.s = sum[GM_SUM_VB];
    c->vb.next_s = next;
    c->vv = (gm_probe_call){.rows = 1,
                            .cols = k,
                            .m = v_abs,
                            .pitch = (size_t)k * sizeof(double),
                            .type = GM_DTYPE_F64,
                            .r_sq = sum[GM_SUM_VV],
                            .wide = 1,
                            .batch = frames,
                            .next_m = (size_t)own * sizeof(double),
                            .next_r = next};
    c->yy = c->vv;
    c->yy.m = y_abs;
    c->yy.next_m = (size_t)each_y * sizeof(double);
    c->yy.r_sq = sum[GM_SUM_YY];
}

/* The squares of B from the first frame to the others, whose sums are zeros. */
static int spread_squares(const gm_batch *b, int64_t frames, const probes *c, gm_queue *queue)
{
    gm_fold_call call = {.rows = frames - 1,
                         .cols = b->product.c->n,
                         .part = c->bb,
                         .part_ld = 0,
                         .acc = c->bb + c->next,
                         .ld = c->next,
                         .type = GM_DTYPE_F64};
    return frames > 1 ? ops_of(b)->fold(queue, &call) : GM_OK;
}

int gm_batch_probe(gm_batch *b, const gm_piece *piece, const gm_batch_operands *o, double *sums, gm_queue *queue)
{
    const int *transposed = b->product.c->transpose;
    probes c;
    set_probes(b, piece->rows, o, sums, &c);
    int status = ops_of(b)->zero(queue, b->vectors, (size_t)(piece->rows * b->plan.vectors) * sizeof(double));
    if (!status)
        status = gm_matmul_probe_op(&b->product, queue, transposed[GM_B], c.bx);
    if (!status && o->next_b == 0)
        status = spread_squares(b, piece->rows, &c, queue);
    if (!status)
        status = gm_matmul_probe_op(&b->product, queue, transposed[GM_A], c.au);
    if (!status)
        status = gm_matmul_probe_op(&b->product, queue, transposed[GM_B], c.vb);
    if (!status)
        status = ops_of(b)->probe(queue, &c.yy);
    return status ? status : ops_of(b)->probe(queue, &c.vv);
}

int gm_batch_probe_result(gm_batch *b, const gm_piece *piece, const void *m, gm_dtype type, int swap, double *sums,
                          gm_sum cx, gm_queue *queue)
{
    const gm_matmul_case *c = b->product.c;
    int64_t next = b->plan.sums / (int64_t)sizeof(double);
    gm_probe_call call = {.rows = c->m,
                          .cols = c->n,
                          .m = m,
                          .pitch = (size_t)c->n * gm_dtype_size(type),
                          .type = type,
                          .swap = swap,
                          .p = b->product.x,
                          .q = b->product.u,
                          .r = sums + gm_sum_offset(cx, c->m, c->n),
                          .r_sq = sums + gm_sum_offset(cx + 1, c->m, c->n),
                          .s = sums + gm_sum_offset(cx + 2, c->m, c->n),
                          .s_sq = sums + gm_sum_offset(cx + 3, c->m, c->n),
                          .wide = 1,
                          .batch = piece->rows,
                          .next_m = (size_t)(c->m * c->n) * gm_dtype_size(type),
                          .next_r = next,
                          .next_s = next};
    return ops_of(b)->probe(queue, &call);
}
