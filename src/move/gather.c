/* gather - takes rows of a dataset by an index: see gather.h. */
#include "src/move/gather.h"

#include "base/size.h"
#include "src/operation.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)GM_GATHER_INPUTS <= (int)GM_RUN_INPUTS, "a run has a reader for each input");

/* --- The case --- */

static int describe_index(gm_run *run, int i, const char *name)
{
    gm_gather_case *c = run->c;
    const gm_dataset *index = &c->input[GM_GATHER_INDEX + i], *first = &c->input[GM_GATHER_INDEX];
    char title[2][GM_PATH_MAX], shape[2][GM_SHAPE_TEXT];
    int status = gm_run_describe_input(run, GM_GATHER_INDEX + i, name, NULL);
    if (status)
        return status;
    if (gm_dtype_get_kind(index->type) == GM_FLOAT)
        return gm_fail(GM_EINPUT, "%s: has elements of type %s, expected integers as an index",
                       gm_dataset_title(index, title[0]), gm_dtype_name(index->type));
    if (index->view_rank != first->view_rank ||
        memcmp(index->view, first->view, (size_t)first->view_rank * sizeof *first->view))
        return gm_fail(GM_EINPUT, "%s is %s and %s is %s, expected the same shape", gm_dataset_title(first, title[0]),
                       gm_shape_format(first->view_rank, first->view, shape[0]), gm_dataset_title(index, title[1]),
                       gm_shape_format(index->view_rank, index->view, shape[1]));
    c->index_size[i] = (int64_t)gm_dtype_size(index->type);
    return GM_OK;
}

/* Rows and columns of the data, and the shape of the output. */
static int set_shape(gm_gather_case *c, int *rank, int64_t *dims)
{
    const gm_dataset *data = &c->input[GM_GATHER_DATA], *index = &c->input[GM_GATHER_INDEX];
    char title[GM_PATH_MAX], shape[GM_SHAPE_TEXT];
    int64_t bytes, wide = gm_max(c->size, (int64_t)sizeof(int64_t));
    gm_dataset_title(data, title);
    if (data->view_rank < c->indices)
        return gm_fail(GM_EINPUT, "%s is %s, expected %d dimension%s or more", title,
                       gm_shape_format(data->view_rank, data->view, shape), c->indices, c->indices > 1 ? "s" : "");
    *rank = index->view_rank + data->view_rank - c->indices;
    if (*rank > GM_RANK_MAX)
        return gm_fail(GM_EINPUT, "%s: its rows by an index of %d dimensions have %d dimensions, expected %d at most",
                       title, index->view_rank, *rank, GM_RANK_MAX);
    memcpy(dims, index->view, (size_t)index->view_rank * sizeof *dims);
    c->positions = gm_dataset_elements(index);
    c->rows = c->columns = 1;
    for (int k = 0; k < data->view_rank; k++) {
        int64_t *factor = k < c->indices ? &c->rows : &c->columns;
        *factor = gm_mul_sat(*factor, data->view[k]);
        if (k >= c->indices)
            dims[index->view_rank + k - c->indices] = data->view[k];
    }
    if (gm_mul(gm_mul_sat(gm_max(c->positions, c->rows), gm_max(c->columns, 1)), wide, &bytes))
        return gm_fail(GM_EINPUT, "%s: %s %s elements, or the rows of them by an index, do not fit 64-bit sizes", title,
                       gm_shape_format(data->view_rank, data->view, shape), gm_dtype_name(data->type));
    return GM_OK;
}

static int describe(gm_run *run)
{
    gm_gather_case *c = run->c;
    const gm_options *o = run->job->options;
    const gm_dataset *data = &c->input[GM_GATHER_DATA];
    int64_t dims[GM_RANK_MAX];
    int rank = 0, status = gm_run_describe_input(run, GM_GATHER_DATA, o->operands[0], NULL);
    if (!status && !o->index)
        status = gm_fail(GM_EUSAGE, "gather needs --index DATASET, the numbers of rows");
    c->size = (int64_t)gm_dtype_size(data->type);
    c->indices = o->index2 ? 2 : 1;
    if (!status)
        status = describe_index(run, 0, o->index);
    if (!status && o->index2)
        status = describe_index(run, 1, o->index2);
    if (!status)
        status = set_shape(c, &rank, dims);
    if (!status)
        status = gm_run_describe_moved(run, data, rank, dims);
    return status;
}

/* Rows by one list of numbers stay rows; others stand along the axes of the numbers. */
static void move_axes(const gm_run *run, gm_axes *axes)
{
    const gm_gather_case *c = run->c;
    if (c->indices > 1 || c->input[GM_GATHER_INDEX].view_rank != 1)
        axes->rank = 0;
}

static int suit(gm_run *run)
{
    const gm_device_ops *ops = run->job->ops;
    return ops->gather && ops->index_rows ? GM_OK : gm_job_fail_unsupported(run->job, "gather");
}

/* --- The plan --- */

static int plan(gm_run *run, const gm_ring_budget *budget, gm_ring_budget *need)
{
    const gm_gather_case *c = run->c;
    const gm_ranks *ranks = run->job->ranks;
    gm_gather_plan *p = &((gm_gather *)run->own)->plan;
    gm_ring_request request = gm_run_ring_request(run, budget);
    int status = gm_gather_plan_make(c, &request, budget, ranks->size, ranks->rank, p, need);
    if (status)
        return status;
    run->ring = p->ring;
    gm_gather_bytes(c, p, p->positions, p->columns, &run->bytes_read, &run->bytes_written);
    return GM_OK;
}

static const char *mode_of(const gm_gather_plan *p)
{
    return p->held ? "held" : "sorted";
}

static void print_plan(const gm_run *run)
{
    const gm_gather_case *c = run->c;
    const gm_gather_plan *p = &((const gm_gather *)run->own)->plan;
    printf("gather          %lld rows of %lld x %lld %s elements, on %s\n", (long long)c->positions, (long long)c->rows,
           (long long)c->columns, gm_dtype_name(c->input[GM_GATHER_DATA].type), run->job->info.name);
    printf("mode            %s\n", mode_of(p));
    if (p->held)
        printf("piece           %lld rows of %lld elements\n", (long long)p->pieces, (long long)p->part);
    else
        printf("block           %lld rows of %lld elements\n", (long long)p->block, (long long)p->block_columns);
}

static void print_share(const gm_run *run, int rank)
{
    gm_range positions, columns;
    gm_gather_share(run->c, run->job->ranks->size, rank, &positions, &columns);
    printf("rank %-10d rows [%lld:%lld] of elements [%lld:%lld]\n", rank, (long long)positions.begin,
           (long long)positions.end, (long long)columns.begin, (long long)columns.end);
}

/* Reading first, then writing: held, the indices are read with the second pass. */
static int work(const gm_run *run, int rank, gm_work *passes)
{
    const gm_gather_case *c = run->c;
    const gm_gather *g = run->own;
    const gm_gather_plan *p = &g->plan;
    gm_range positions, columns;
    int64_t read, written;
    gm_gather_share(c, run->job->ranks->size, rank, &positions, &columns);
    gm_gather_bytes(c, p, positions, columns, &read, &written);
    if (g->has_traffic)
        read = g->traffic[rank].read;
    int64_t data = p->held ? gm_min(gm_mul_sat(c->rows, c->columns * c->size), read) : read;
    passes[0] = gm_run_work(run, (double)data, 0);
    if (g->has_traffic && !gm_dataset_is_chunked(&c->input[GM_GATHER_DATA])) /* chunks are read whole */
        passes[0].reads = (double)g->traffic[rank].reads;
    passes[1] = gm_run_work(run, (double)(read - data), (double)written);
    return 2;
}

static json_t *plan_json(const gm_run *run)
{
    const gm_gather_case *c = run->c;
    const gm_gather_plan *p = &((const gm_gather *)run->own)->plan;
    return json_pack("{s:s, s:I, s:I, s:I, s:I}", "mode", mode_of(p), "rows", (json_int_t)c->positions, "columns",
                     (json_int_t)c->columns, "block_rows", (json_int_t)(p->held ? c->positions : p->block),
                     "block_columns", (json_int_t)(p->held ? c->columns : p->block_columns));
}

const gm_operation gm_op_gather = {.case_bytes = sizeof(gm_gather_case),
                                   .own_bytes = sizeof(gm_gather),
                                   .inputs = offsetof(gm_gather_case, input),
                                   .keeps_attributes = 1,
                                   .move_axes = move_axes,
                                   .describe = describe,
                                   .suit = suit,
                                   .plan = plan,
                                   .survey = gm_gather_survey,
                                   .print_plan = print_plan,
                                   .print_share = print_share,
                                   .work = work,
                                   .plan_json = plan_json,
                                   .prepare = gm_gather_prepare,
                                   .run_all = gm_gather_run_all,
                                   .release = gm_gather_release};
