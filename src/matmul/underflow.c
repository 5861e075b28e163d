/* Elements of float64 that float32 holds as 0 or with fewer digits: unpacking finds them, and the check, which reads
 * the panels, does not. */
#include "src/matmul/matmul.h"

static int narrows(const gm_matmul *p, int matrix)
{
    return p->c->operand[matrix].type == GM_DTYPE_F64 && gm_matmul_panel_type(p, matrix) == GM_DTYPE_F32;
}

int gm_matmul_underflow_at(gm_matmul *p, int matrix, gm_queue *queue, uint64_t **at)
{
    *at = narrows(p, matrix) ? p->underflow + matrix : NULL;
    if (!*at || p->counts_underflow)
        return GM_OK;
    p->counts_underflow = 1;
    return p->job->ops->zero(queue, p->underflow, GM_MATMUL_NOTES * sizeof *p->underflow);
}

int gm_matmul_underflow_read(gm_matmul *p)
{
    size_t bytes = GM_MATMUL_NOTES * sizeof *p->underflow;
    if (!p->counts_underflow)
        return GM_OK;
    gm_queue *queue = gm_stream_in(p->stream);
    int status = p->job->ops->copy_out(queue, p->host_underflow, bytes, p->underflow, bytes, bytes, 1);
    if (!status)
        status = p->job->ops->queue_sync(queue);
    for (int i = GM_A; i <= GM_B && !status; i++)
        p->verdict.underflow[i] = p->host_underflow[i] > 0;
    return status;
}
