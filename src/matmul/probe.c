/* The check's products of matrices with vectors, on the device. */
#include "src/matmul/matmul.h"

#include "base/size.h"

static const gm_device_ops *ops_of(const gm_matmul *p)
{
    return p->job->ops;
}

double *gm_matmul_sum(const gm_matmul *p, const gm_piece *block, gm_sum sum)
{
    return p->sums + gm_sum_offset(sum, block->rows, block->cols);
}

int gm_matmul_probe_begin(gm_matmul *p, const gm_piece *piece, gm_queue *queue)
{
    const gm_device_ops *ops = ops_of(p);
    size_t x = (size_t)piece->cols * sizeof(double), u = (size_t)piece->rows * sizeof(double);
    int status = ops->zero(queue, p->sums, (size_t)gm_sum_offset(GM_SUMS, piece->rows, piece->cols) * sizeof(double));
    if (!status)
        status = ops->copy_in(queue, p->x, x, p->host_x + (piece->col - p->part.col0), x, x, 1);
    return status ? status : ops->copy_in(queue, p->u, u, p->host_u + (piece->row - p->part.row0), u, u, 1);
}

int gm_matmul_probe_load(const gm_matmul *p, gm_queue *queue)
{
    const gm_matmul_case *c = p->c;
    const gm_dtype types[] = {gm_matmul_panel_type(p, GM_A), gm_matmul_panel_type(p, GM_B), GM_DTYPE_F64, c->result,
                              c->has_c0 ? c->operand[GM_C0].type : c->result};
    int status = GM_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types && !status; i++)
        status = ops_of(p)->probe(queue, &(gm_probe_call){.type = types[i]});
    return status;
}

int gm_matmul_probe_op(const gm_matmul *p, gm_queue *queue, int transposed, gm_probe_call call)
{
    if (transposed)
        call = (gm_probe_call){.rows = call.cols,
                               .cols = call.rows,
                               .m = call.m,
                               .pitch = call.pitch,
                               .type = call.type,
                               .swap = call.swap,
                               .p = call.q,
                               .q = call.p,
                               .r = call.s,
                               .r_abs = call.s_abs,
                               .r_sq = call.s_sq,
                               .s = call.r,
                               .s_abs = call.r_abs,
                               .s_sq = call.r_sq,
                               .wide = call.wide,
                               .batch = call.batch,
                               .next_m = call.next_m,
                               .next_p = call.next_q,
                               .next_q = call.next_p,
                               .next_r = call.next_s,
                               .next_s = call.next_r,
                               .work = call.work,
                               .work_bytes = call.work_bytes};
    return ops_of(p)->probe(queue, &call);
}

/* The squares of y_abs and of v_abs, whose sums lie side by side, in one call. */
static int add_squares(const gm_matmul *p, const gm_piece *piece, int64_t depth, gm_queue *queue)
{
    gm_probe_call call = {.rows = 1,
                          .cols = depth,
                          .m = p->y_abs,
                          .pitch = (size_t)depth * sizeof *p->y_abs,
                          .type = GM_DTYPE_F64,
                          .r_sq = gm_matmul_sum(p, piece, GM_SUM_YY),
                          .wide = !gm_matmul_plan_chains(&p->plan),
                          .batch = 2,
                          .next_m = (size_t)(p->v_abs - p->y_abs) * sizeof *p->y_abs,
                          .next_r = gm_matmul_sum(p, piece, GM_SUM_VV) - gm_matmul_sum(p, piece, GM_SUM_YY)};
    return ops_of(p)->probe(queue, &call);
}

/* The step's share of A (B x), (u'A) B and the bounds of their errors. Each output is one of the call whose matrix is
 * read that way in any case: the squares of the columns of B go with (u'A) B. */
int gm_matmul_probe(gm_matmul *p, const gm_piece *piece, gm_queue *queue)
{
    int64_t depth = gm_matmul_k(p, piece->leaf + piece->leaves) - gm_matmul_k(p, piece->leaf);
    gm_probe_call a = {.rows = piece->rows,
                       .cols = depth,
                       .m = gm_matmul_panel_of_piece(p, piece, GM_A),
                       .pitch = (size_t)(gm_matmul_panel(p, piece->step, GM_A)->ld * gm_matmul_operand_bytes(p)),
                       .type = gm_matmul_panel_type(p, GM_A),
                       .wide = !gm_matmul_plan_chains(&p->plan)}; /* a chain adds sums up as they are */
    gm_probe_call b = {.rows = depth,
                       .cols = piece->cols,
                       .m = gm_matmul_panel_of_piece(p, piece, GM_B),
                       .pitch = (size_t)(gm_matmul_panel(p, piece->step, GM_B)->ld * gm_matmul_operand_bytes(p)),
                       .type = gm_matmul_panel_type(p, GM_B),
                       .wide = a.wide};
    gm_probe_call bx = b, au = a, vb = b;
    bx.p = p->x;
    bx.r = p->y;
    bx.r_abs = p->y_abs;
    au.p = p->y;
    au.r = gm_matmul_sum(p, piece, GM_SUM_AY);
    au.r_sq = gm_matmul_sum(p, piece, GM_SUM_AA);
    au.q = p->u;
    au.s = p->v;
    au.s_abs = p->v_abs;
    au.work = p->probe_work;
    au.work_bytes = p->probe_bytes;
    vb.q = p->v;
    vb.s = gm_matmul_sum(p, piece, GM_SUM_VB);
    vb.s_sq = gm_matmul_sum(p, piece, GM_SUM_BB);
    int status = ops_of(p)->zero(queue, p->y, (size_t)(p->v_abs + depth - p->y) * sizeof *p->y); /* all four vectors */
    if (!status)
        status = gm_matmul_probe_op(p, queue, p->c->transpose[GM_B], bx);
    if (!status)
        status = gm_matmul_probe_op(p, queue, p->c->transpose[GM_A], au);
    if (!status)
        status = gm_matmul_probe_op(p, queue, p->c->transpose[GM_B], vb);
    return status ? status : add_squares(p, piece, depth, queue);
}

/* The block of C that a strip at (at_row, at_col) belongs to, as the sums know it. */
gm_piece gm_matmul_block_of(const gm_matmul *p, const gm_piece *piece)
{
    gm_piece block = {.row = piece->row - piece->at_row, .col = piece->col - piece->at_col};
    block.rows = gm_min(p->plan.block_rows, p->part.row0 + p->part.rows - block.row);
    block.cols = gm_min(p->plan.block_cols, p->part.col0 + p->part.cols - block.col);
    return block;
}

/* A band of C or a strip of C0 against x and u: the sums `cx` and the next three. */
int gm_matmul_probe_result(gm_matmul *p, const gm_piece *piece, gm_queue *queue, const void *m, gm_dtype type, int swap,
                           gm_sum cx)
{
    gm_piece block = gm_matmul_block_of(p, piece);
    gm_probe_call call = {
        .rows = piece->rows,
        .cols = piece->cols,
        .m = m,
        .pitch = (size_t)piece->cols * gm_dtype_size(type),
        .type = type,
        .swap = swap,
        .p = p->x + piece->at_col,
        .q = p->u + piece->at_row,
        .r = gm_matmul_sum(p, &block, cx) + piece->at_row,
        .r_sq = gm_matmul_sum(p, &block, cx + 1) + piece->at_row,
        .s = gm_matmul_sum(p, &block, cx + 2) + piece->at_col,
        .s_sq = gm_matmul_sum(p, &block, cx + 3) + piece->at_col,
        .wide = 1,
        .work = p->probe_work,
        .work_bytes = p->probe_bytes,
    };
    return ops_of(p)->probe(queue, &call);
}
