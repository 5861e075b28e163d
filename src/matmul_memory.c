#include "src/matmul.h"

#include "base/size.h"

#include <string.h>

/* The most k that a panel holds. */
static int64_t panel_depth(const gm_matmul *p)
{
    return gm_plan_depth(&p->plan, 0, gm_plan_panel_leaves(&p->plan, &p->part));
}

static int allocate_panel(gm_matmul *p, gm_panel *panel, int matrix)
{
    const gm_matmul_case *problem = p->problem;
    int64_t rows, cols;
    if (p->plan.same) {
        rows = problem->stored_rows[GM_A];
        cols = problem->stored_cols[GM_A];
    } else {
        int64_t outer = matrix == GM_A ? gm_min(p->plan.block_rows, p->part.rows) : gm_min(p->plan.block_cols, p->part.cols);
        int64_t depth = panel_depth(p);
        int outer_is_row = (matrix == GM_A) != problem->transpose[matrix];
        rows = outer_is_row ? outer : depth;
        cols = outer_is_row ? depth : outer;
    }
    panel->ld = gm_plan_ld(cols, p->plan.problem.operand_bytes);
    int status = p->job->ops->alloc(p->job->device, (size_t)(rows * panel->ld * p->plan.problem.operand_bytes), &panel->data);
    return status ? status : p->job->ops->event_open(p->job->device, &panel->released);
}

/* Slices of one allocation: the sums, x, u and the vectors of a step; and their host side. */
static int allocate_check(gm_matmul *p)
{
    int64_t rows = gm_min(p->plan.block_rows, p->part.rows), cols = gm_min(p->plan.block_cols, p->part.cols);
    int64_t depth = panel_depth(p), sums = gm_sum_offset(GM_SUMS, rows, cols);
    void *memory;
    int status = p->job->ops->alloc(p->job->device, (size_t)(sums + rows + cols + 4 * depth) * sizeof(double), &memory);
    if (status)
        return status;
    p->sums = memory;
    p->x = p->sums + sums;
    p->u = p->x + cols;
    p->y = p->u + rows;
    p->y_abs = p->y + depth;
    p->v = p->y_abs + depth;
    p->v_abs = p->v + depth;
    status = p->job->ops->pin(p->job->device, (size_t)(p->part.cols + p->part.rows) * sizeof(double), &memory);
    if (status)
        return status;
    p->host_x = memory;
    p->host_u = p->host_x + p->part.cols;
    for (int64_t j = 0; j < p->part.cols; j++)
        p->host_x[j] = gm_check_vector(0, p->part.col0 + j);
    for (int64_t i = 0; i < p->part.rows; i++)
        p->host_u[i] = gm_check_vector(1, p->part.row0 + i);
    return GM_OK;
}

enum { EVENTS = 4 + GM_AHEAD };

static void list_events(gm_matmul *p, gm_event **events[EVENTS])
{
    gm_event **single[] = {&p->loaded, &p->finished, &p->drained, &p->copied};
    memcpy(events, single, sizeof single);
    for (int i = 0; i < GM_AHEAD; i++)
        events[EVENTS - GM_AHEAD + i] = &p->multiplied[i];
}

int gm_matmul_allocate(gm_matmul *p)
{
    const gm_device_ops *ops = p->job->ops;
    gm_event **events[EVENTS];
    int status = GM_OK;
    list_events(p, events);
    for (int i = 0; i < EVENTS && !status; i++)
        status = ops->event_open(p->job->device, events[i]);
    for (int buffer = 0; buffer < p->plan.buffers; buffer++)
        for (int matrix = GM_A; matrix <= (p->plan.same ? GM_A : GM_B) && !status; matrix++)
            status = allocate_panel(p, &p->panels[buffer][matrix], matrix);
    p->ldacc = gm_plan_ld(gm_min(p->plan.block_cols, p->part.cols), p->plan.problem.accumulator_bytes);
    if (!status)
        status = ops->alloc(p->job->device,
                            (size_t)(gm_min(p->plan.block_rows, p->part.rows) * p->ldacc * p->plan.problem.accumulator_bytes), &p->acc);
    if (!status && p->part.layer == 0)
        status = ops->alloc(p->job->device,
                            (size_t)(gm_min(p->plan.band_rows, p->part.rows) * gm_min(p->plan.block_cols, p->part.cols) *
                                     p->plan.problem.file_bytes_c), &p->band);
    if (!status && p->plan.tile_count)
        status = ops->alloc(p->job->device, (size_t)(p->plan.tile_count * p->plan.tile * p->plan.tile * p->plan.problem.accumulator_bytes),
                            &p->tiles);
    return status ? status : allocate_check(p);
}

void gm_matmul_release(gm_matmul *p)
{
    const gm_device_ops *ops = p->job->ops;
    for (int buffer = 0; buffer < 2; buffer++)
        for (int matrix = GM_A; matrix <= GM_B; matrix++) {
            gm_panel *panel = &p->panels[buffer][matrix];
            ops->free(p->job->device, panel->data);
            if (panel->released)
                ops->event_close(panel->released);
            *panel = (gm_panel){0};
        }
    ops->free(p->job->device, p->acc);
    ops->free(p->job->device, p->band);
    ops->free(p->job->device, p->tiles);
    ops->free(p->job->device, p->sums);
    ops->unpin(p->job->device, p->host_x);
    gm_event **events[EVENTS];
    list_events(p, events);
    for (int i = 0; i < EVENTS; i++) {
        if (*events[i])
            ops->event_close(*events[i]);
        *events[i] = NULL;
    }
    p->acc = p->band = p->tiles = NULL;
    p->sums = NULL;
    p->host_x = NULL;
}
