/* The rows that a plan reads, by the numbers themselves. Rank 0 sorts the numbers of each block and cuts them into
 * pieces as a run does, for one rank after the other; data are not read. Of many numbers it looks at a part. */
#include "base/random.h"
#include "base/size.h"
#include "kernels/move/calls.h"
#include "src/move/gather.h"

#include <math.h>

enum {
    SAMPLE = 1 << 22, /* numbers, about: they are read and sorted in a second */
    STRETCH = 1 << 11 /* numbers of a sample that follow each other in the index */
};

/* Memory that the plan has for a run. */
typedef struct survey {
    gm_run *run;
    const gm_gather_case *c;    /* of the run */
    const gm_gather_plan *plan; /* the same */
    char *slot;                 /* for indices */
    gm_gather_entry *entries, *spare;
} survey;

/* Rows that are read for a block, and runs of rows that are contiguous in the file. */
typedef struct extent {
    int64_t rows, runs;
} extent;

/* --- The numbers of a block --- */

/* Parts of a block that are looked at: the whole block, or some stretches, one in each of as many equal parts of it. */
static int64_t stretches_of(const gm_gather_case *c, int64_t block)
{
    if (c->positions <= SAMPLE)
        return 1;
    double share = (double)SAMPLE / (double)c->positions;
    int64_t stretches = gm_max((int64_t)(share * (double)block / STRETCH), 1);
    return stretches * STRETCH >= block ? 1 : stretches;
}

static int64_t length_of(int64_t stretches, int64_t block)
{
    return stretches > 1 ? STRETCH : block;
}

/* Positions [first, first + count), to entries; place: the number of their stretch. */
static int load(const survey *s, int64_t first, int64_t count, int64_t stretch, gm_gather_entry *entries)
{
    const gm_gather_case *c = s->c;
    const gm_gather_plan *plan = s->plan;
    const int64_t *rows = (const int64_t *)(const void *)(s->slot + plan->rows_at);
    for (int64_t done = 0, n; done < count; done += n) {
        n = gm_min(plan->pieces, count - done);
        int status = gm_gather_read_indices(s->run, first + done, n, s->slot);
        for (int i = 0; i < c->indices && !status; i++) {
            gm_index_rows_call call = gm_gather_index_call(s->run, i, first + done, n, s->slot);
            status = gm_cpu_index_rows(1, &call);
        }
        int64_t bad = *(const int64_t *)(const void *)s->slot;
        if (!status && bad != INT64_MAX)
            status = gm_gather_fail_bad(s->run, bad);
        if (status)
            return status;
        for (int64_t i = 0; i < n; i++)
            entries[done + i] = (gm_gather_entry){rows[i], stretch};
    }
    return GM_OK;
}

/* Stretches begin at random: they are to be no period of the numbers. */
static int load_block(const survey *s, gm_range block, int64_t stretches)
{
    int64_t part = gm_range_length(block) / stretches, length = length_of(stretches, gm_range_length(block));
    int status = GM_OK;
    for (int64_t i = 0; i < stretches && !status; i++) {
        int64_t skip = (int64_t)(gm_random_mix((uint64_t)i) % (uint64_t)(part - length + 1));
        status = load(s, block.begin + i * part + skip, length, i, s->entries + i * length);
    }
    return status;
}

/* --- The rows of a block --- */

/* By sorted entries, all of the block. */
static extent count_rows(const gm_gather_plan *plan, const gm_gather_entry *entries, int64_t count, int64_t gap)
{
    extent sum = {0};
    for (int64_t at = 0, n, rows; at < count; at += n) {
        n = gm_gather_cut(entries + at, count - at, plan->entries, plan->room, gap, &rows);
        sum.rows += rows;
        sum.runs++;
        for (int64_t k = at + 1; k < at + n; k++)
            sum.runs += entries[k].row - entries[k - 1].row > gap + 1;
    }
    return sum;
}

/* An estimate, by sorted entries of stretches; `times` as many numbers are in the block. Where neighbours are of one
 * stretch, the numbers were close in the index as well: there are `times` as many such places. Where they are of two,
 * the numbers of the others lie between them. A row that several stretches have is one that most others have. */
static extent estimate_rows(const gm_gather_entry *entries, int64_t count, double times, int64_t gap)
{
    const double near = (double)gap + 1;
    double rows = times, runs = times;
    int64_t first = 0; /* entry of the same row */
    for (int64_t k = 1; k < count; k++) {
        double step = (double)(entries[k].row - entries[k - 1].row);
        if (step <= 0)
            continue;
        int is_common = entries[first].place != entries[k - 1].place;
        int is_whole = is_common || entries[k].place == entries[k - 1].place;
        double each = is_common ? 1 : times;
        int joins = (is_whole ? step : step / times) <= near;
        double single = is_whole ? each : fmin(times, step);
        rows += !joins ? single : is_whole ? each * step : step;
        runs += joins ? 0 : single;
        first = k;
    }
    return (extent){llround(rows), llround(runs)};
}

static int survey_block(survey *s, gm_range block, int64_t columns, extent *found)
{
    const gm_gather_case *c = s->c;
    const gm_gather_plan *plan = s->plan;
    int64_t length = gm_range_length(block), stretches = stretches_of(c, length);
    int64_t count = stretches * length_of(stretches, length), gap = gm_gather_gap(c, columns);
    int status = load_block(s, block, stretches);
    if (!status)
        status = gm_gather_sort(&s->entries, &s->spare, count, c->rows);
    if (status)
        return status;
    if (count == length) {
        *found = count_rows(plan, s->entries, count, gap);
    } else {
        *found = estimate_rows(s->entries, count, (double)length / (double)count, gap);
        found->rows = gm_min(found->rows, c->rows);
    }
    return GM_OK;
}

/* --- All ranks --- */

/* Bands of a block have the same rows: there are several only where a block is a single position. */
static int survey_share(survey *s, gm_range positions, int64_t width, gm_gather_traffic *traffic)
{
    const gm_gather_case *c = s->c;
    const gm_gather_plan *plan = s->plan;
    int64_t band = gm_min(plan->block_columns, width), part = gm_min(plan->part, band);
    int status = GM_OK;
    traffic->read = gm_gather_index_bytes(c, plan, positions);
    for (int64_t at = positions.begin; at < positions.end && width && !status; at += plan->block) {
        gm_range block = {at, gm_min(at + plan->block, positions.end)};
        extent found;
        status = survey_block(s, block, band, &found);
        if (status)
            return status;
        traffic->read = gm_add_sat(traffic->read, gm_mul_sat(found.rows, width * c->size));
        traffic->reads += part == c->columns ? found.runs : found.rows * gm_ceil_div(width, part);
    }
    return status;
}

static int open_inputs(survey *s)
{
    gm_run *run = s->run;
    const gm_gather_case *c = s->c;
    const gm_gather_plan *plan = s->plan;
    int64_t block = gm_min(plan->block, c->positions), stretches = stretches_of(c, block);
    int64_t most = stretches * length_of(stretches, block);
    int status = GM_OK;
    for (int i = GM_GATHER_INDEX; i < run->shape.inputs && !status; i++)
        status = gm_reader_open(&run->input[i], &run->reader[i]);
    if (status)
        return status;
    s->slot = gm_pool_host(&run->pool, plan->ring.slot, 1);
    s->entries = gm_pool_host(&run->pool, most, sizeof *s->entries);
    s->spare = gm_pool_host(&run->pool, most, sizeof *s->spare);
    return run->pool.status;
}

/* Ranks that share the columns mostly have the same number of them, and all positions. */
static int survey_ranks(survey *s)
{
    gm_run *run = s->run;
    gm_gather *g = run->own;
    gm_range before = {0, 0};
    int64_t width_before = 0;
    for (int rank = 0; rank < run->job->ranks->size; rank++) {
        gm_range positions, columns;
        gm_gather_share(s->c, run->job->ranks->size, rank, &positions, &columns);
        int64_t width = gm_range_length(columns);
        if (rank > 0 && positions.begin == before.begin && positions.end == before.end && width == width_before) {
            g->traffic[rank] = g->traffic[rank - 1];
            continue;
        }
        int status = survey_share(s, positions, width, &g->traffic[rank]);
        if (status)
            return status;
        before = positions;
        width_before = width;
    }
    return GM_OK;
}

int gm_gather_survey(gm_run *run)
{
    gm_gather *g = run->own;
    survey s = {.run = run, .c = run->c, .plan = &g->plan};
    if (g->plan.held) { /* by the case alone */
        g->has_traffic = 0;
        return GM_OK;
    }
    int status = gm_gather_make_traffic(run);
    if (!status)
        status = open_inputs(&s);
    if (!status)
        status = survey_ranks(&s);
    gm_run_close(run);
    g->has_traffic = !status;
    return status;
}
