/* One rank's run: memory, and the order of the programs. */
#include "base/size.h"
#include "kernels/host.h"
#include "src/move/gather.h"

#include <stdlib.h>

int gm_gather_make_traffic(gm_run *run)
{
    gm_gather *g = run->own;
    free(g->traffic);
    g->has_traffic = 0;
    g->traffic = calloc((size_t)run->job->ranks->size, sizeof *g->traffic);
    return g->traffic ? GM_OK : gm_fail(GM_EDEVICE, "no memory for the bytes that ranks read");
}

void gm_gather_release(gm_run *run)
{
    gm_gather *g = run->own;
    free(g->traffic);
    g->traffic = NULL;
    g->has_traffic = 0;
}

int gm_gather_prepare(gm_run *run)
{
    gm_gather *g = run->own;
    const gm_gather_case *c = run->c;
    const gm_gather_plan *plan = &g->plan;
    int status = run->job->ranks->rank == 0 ? gm_gather_make_traffic(run) : GM_OK;
    if (!status)
        status = gm_run_open_readers(run);
    if (status)
        return status;
    if (plan->held) {
        g->memory = gm_pool_device(&run->pool, c->rows, (size_t)(c->columns * c->size));
    } else {
        g->memory = gm_pool_device(&run->pool, plan->block, (size_t)(plan->block_columns * c->size));
        g->entries = gm_pool_host(&run->pool, plan->block, sizeof *g->entries);
        g->spare = gm_pool_host(&run->pool, plan->block, sizeof *g->spare);
    }
    return run->pool.status ? run->pool.status : gm_run_open_ring(run);
}

/* A program over [begin, end). */
static int go(gm_run *run, const gm_program *program, int64_t begin, int64_t end)
{
    gm_gather *g = run->own;
    gm_program mine = *program;
    mine.context = run;
    g->at = begin;
    g->end = end;
    g->col = 0;
    return begin < end ? gm_stream_run(run->stream, &mine, &run->job->report.times) : GM_OK;
}

/* An index as an integer; *fits: it is one of a row. */
static int read_index(const gm_run *run, int i, int64_t position, char *text, int *fits)
{
    const gm_gather_case *c = run->c;
    const gm_dataset *index = &c->input[GM_GATHER_INDEX + i];
    uint64_t element = 0;
    int64_t value;
    int status = gm_reader_read_range(run->reader[GM_GATHER_INDEX + i], position, 1, &element);
    gm_element_format(index->type, index->swap, &element, text);
    *fits = gm_integer_parse(text, 0, c->input[GM_GATHER_DATA].view[i] - 1, &value) == 0;
    return status;
}

int gm_gather_fail_bad(const gm_run *run, int64_t position)
{
    const gm_gather_case *c = run->c;
    const gm_dataset *data = &c->input[GM_GATHER_DATA], *index;
    char title[2][GM_PATH_MAX], place[GM_COORDINATES_TEXT], value[GM_ELEMENT_TEXT], valid[64] = "none, as it is empty";
    int64_t at[GM_RANK_MAX];
    int fits, i = 0, status = read_index(run, 0, position, value, &fits);
    if (!status && fits && c->indices > 1)
        status = read_index(run, i = 1, position, value, &fits);
    if (status)
        return status;
    index = &c->input[GM_GATHER_INDEX + i];
    for (int k = index->view_rank - 1; k >= 0; k--) {
        at[k] = position % index->view[k];
        position /= index->view[k];
    }
    if (data->view[i])
        snprintf(valid, sizeof valid, "0 to %lld", (long long)data->view[i] - 1);
    return gm_fail(GM_EINPUT, "%s: the index at %s is %s, expected %s, for dimension %d of %s",
                   gm_dataset_title(index, title[0]), gm_coordinates_format(index->view_rank, at, place), value, valid,
                   i, gm_dataset_title(data, title[1]));
}

/* Positions [begin, end) of the index: checked, and held data gathered. */
static int run_indices(gm_run *run, gm_range positions, int keeps)
{
    gm_gather *g = run->own;
    g->block = positions;
    g->keeps = keeps;
    int status = go(run, &gm_gather_indices, positions.begin, positions.end);
    int64_t bad = atomic_load(&g->bad);
    return !status && bad != INT64_MAX ? gm_gather_fail_bad(run, bad) : status;
}

/* The rows of a block whose indices are in entries. */
static int run_block(gm_run *run)
{
    gm_gather *g = run->own;
    const gm_gather_case *c = run->c;
    gm_range columns = g->plan.columns;
    int64_t count = gm_range_length(g->block);
    int status = gm_gather_sort(&g->entries, &g->spare, count, c->rows);
    for (int64_t at = columns.begin; at < columns.end && !status; at = g->band.end) {
        g->band = (gm_range){at, gm_min(at + g->plan.block_columns, columns.end)};
        status = go(run, &gm_gather_rows, 0, count);
        if (!status)
            status = go(run, &gm_gather_results, 0, count * gm_range_length(g->band));
    }
    return status;
}

/* All ranks know of a bad index before data are read. */
static int run_sorted_all(gm_run *run)
{
    gm_gather *g = run->own;
    gm_range all = g->plan.positions;
    int is_single = gm_range_length(all) <= g->plan.block;
    int status = gm_job_agree_all(run->job, run_indices(run, all, is_single));
    for (int64_t at = all.begin; at < all.end && !status; at += g->plan.block) {
        if (!is_single)
            status = run_indices(run, (gm_range){at, gm_min(at + g->plan.block, all.end)}, 1);
        if (!status)
            status = run_block(run);
    }
    return status;
}

/* Rank 0 reports the work of all ranks, which depends on the numbers. */
static int collect_traffic_all(gm_run *run)
{
    gm_gather *g = run->own;
    gm_gather_traffic mine = {.read = atomic_load(&g->read), .reads = atomic_load(&g->reads)};
    int status = gm_gather_all(run->job->ranks, &mine, sizeof mine, g->traffic);
    g->has_traffic = !status && g->traffic;
    return gm_job_agree_all(run->job, status);
}

int gm_gather_run_all(gm_run *run)
{
    gm_gather *g = run->own;
    const gm_gather_case *c = run->c;
    int status;
    atomic_store(&g->bad, INT64_MAX);
    if (g->plan.held) {
        status = go(run, &gm_gather_load, 0, gm_range_length(g->plan.positions) ? c->rows * c->columns : 0);
        if (!status)
            status = run_indices(run, g->plan.positions, 0);
    } else {
        status = run_sorted_all(run);
    }
    run->job->report.bytes_read = atomic_load(&g->read);
    run->job->report.bytes_written = atomic_load(&g->written);
    status = gm_job_agree_all(run->job, status);
    return status ? status : collect_traffic_all(run);
}
