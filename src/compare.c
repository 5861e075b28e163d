/* compare - the differences between a dataset and a reference. The elements are cut into leaves by their index; each
 * leaf is added up in the order of its blocks and the leaves are folded in the order of their index, so that the mean
 * has the same bits on any number of ranks. */
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "kernels/host.h"
#include "src/map.h"
#include "src/operation.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { X, Y, SIDES };
enum {
    LEAF = 16 * GM_COMPARE_BLOCK, /* elements */
    BATCH = 64                    /* blocks that threads compare at a time */
};

/* The case: the same on all ranks. */
typedef struct compare {
    gm_dataset side[SIDES];
    int64_t leaves; /* the most of any rank */
} compare;

/* One rank's share. */
typedef struct own {
    int64_t begin;           /* its first element */
    gm_difference *leaf;     /* [leaves] of this rank */
    gm_difference *gathered; /* [ranks][leaves] on rank 0 */
} own;

static int64_t size_of(const compare *c, int side)
{
    return (int64_t)gm_dtype_size(c->side[side].type);
}

static int describe(gm_run *run)
{
    compare *c = run->c;
    const gm_dataset *side = c->side;
    char title[SIDES][GM_PATH_MAX], shape[SIDES][GM_SHAPE_TEXT];
    int64_t bytes, rows, cols, elements, ranks = run->job->ranks->size;
    if (run->job->options->tolerance < 0)
        return gm_fail(GM_EUSAGE, "--tolerance %g: expected 0 or more", run->job->options->tolerance);
    for (int i = 0; i < SIDES; i++) {
        int status = gm_run_describe_input(run, i, run->job->options->operands[i], NULL);
        if (status)
            return status;
        gm_dataset_title(&side[i], title[i]);
        gm_shape_format(side[i].view_rank, side[i].view, shape[i]);
        if (gm_mul(gm_dataset_elements(&side[i]), 2 * size_of(c, i), &bytes))
            return gm_fail(GM_EINPUT, "%s: %s %s elements do not fit 64-bit sizes", title[i], shape[i],
                           gm_dtype_name(side[i].type));
    }
    if (side[X].view_rank != side[Y].view_rank ||
        memcmp(side[X].view, side[Y].view, (size_t)side[X].view_rank * sizeof *side[X].view))
        return gm_fail(GM_EINPUT, "%s is %s and %s is %s, expected the same shape", title[X], shape[X], title[Y],
                       shape[Y]);
    elements = gm_dataset_elements(side);
    gm_dataset_matrix(side, &rows, &cols);
    c->leaves = gm_ceil_div(gm_ceil_div(elements, LEAF), ranks);
    run->shape.map = (gm_map){.elements = elements,
                              .share = LEAF,
                              .unit = {gm_mul_sat(gm_dataset_row_unit(&side[X]), cols), GM_COMPARE_BLOCK},
                              .in = size_of(c, X) + size_of(c, Y),
                              .host = gm_mul_sat(gm_mul_sat(c->leaves, 1 + ranks), sizeof(gm_difference)) +
                                      2 * GM_ALLOC_OVERHEAD};
    if (run->shape.map.unit[0] % GM_COMPARE_BLOCK || run->shape.map.unit[0] == 0) /* chunks are no whole blocks */
        run->shape.map.unit[0] = GM_COMPARE_BLOCK;
    return GM_OK;
}

/* A slot holds the elements of X, followed by those of Y. */
static int read_both(void *context, const gm_piece *piece, gm_range whole, void *to)
{
    (void)whole;
    const gm_run *run = context;
    int status = gm_reader_read_range(run->reader[X], piece->col, piece->cols, to);
    return status ? status
                  : gm_reader_read_range(run->reader[Y], piece->col, piece->cols,
                                         (char *)to + piece->cols * size_of(run->c, X));
}

/* Pieces come in order and begin at borders of blocks: the sums of a leaf grow block by block whatever the size of a
 * piece. */
static int compare_both(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    (void)queue;
    const gm_run *run = context;
    const compare *c = run->c;
    const own *o = run->own;
    const char *x = slot->host, *y = x + piece->cols * size_of(c, X);
    int64_t end = piece->col + piece->cols;
    int status = GM_OK;
    for (int64_t at = piece->col, n; at < end && !status; at += n) {
        gm_difference blocks[BATCH];
        n = gm_min(end - at, BATCH * GM_COMPARE_BLOCK);
        gm_compare_call call = {n,
                                x + (at - piece->col) * size_of(c, X),
                                y + (at - piece->col) * size_of(c, Y),
                                c->side[X].type,
                                c->side[Y].type,
                                c->side[X].swap,
                                c->side[Y].swap};
        status = gm_cpu_compare(run->job->threads, &call, blocks);
        for (int64_t i = 0; i < n && !status; i += GM_COMPARE_BLOCK)
            gm_difference_append(&o->leaf[(at + i - o->begin) / LEAF], &blocks[i / GM_COMPARE_BLOCK]);
    }
    return status;
}

/* Readers, ring and memory for the leaves. */
static int prepare(gm_run *run)
{
    const compare *c = run->c;
    own *o = run->own;
    int status = gm_map_prepare(run);
    if (status)
        return status;
    o->begin = run->range.begin;
    o->leaf = gm_pool_host(&run->pool, c->leaves, sizeof *o->leaf);
    for (int64_t i = 0; i < c->leaves && o->leaf; i++)
        o->leaf[i] = GM_NO_DIFFERENCE;
    if (run->job->ranks->rank == 0)
        o->gathered = gm_pool_host(&run->pool, gm_mul_sat(c->leaves, run->job->ranks->size), sizeof *o->leaf);
    return run->pool.status;
}

/* JSON has no infinity. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_string("inf");
}

static void put(json_t *results, const char *name, double value)
{
    printf("%s %.17g\n", name, value);
    json_object_set_new(results, name, real(value));
}

static void put_count(json_t *results, const char *name, int64_t value)
{
    printf("%s %lld\n", name, (long long)value);
    json_object_set_new(results, name, json_integer(value));
}

/* The place of the first difference, in each dimension of the view, and the two values. */
static int put_first(const gm_run *run, json_t *results, int64_t index)
{
    const compare *c = run->c;
    const gm_dataset *d = &c->side[X];
    char value[SIDES][GM_ELEMENT_TEXT];
    int64_t place[GM_RANK_MAX], rest = index;
    for (int i = 0; i < SIDES; i++) {
        uint64_t element = 0;
        int status = gm_reader_read_range(run->reader[i], index, 1, &element);
        if (status)
            return status;
        gm_element_format(c->side[i].type, c->side[i].swap, &element, value[i]);
    }
    for (int k = d->view_rank - 1; k >= 0; k--) {
        place[k] = rest % d->view[k];
        rest /= d->view[k];
    }
    json_t *list = json_array();
    printf("first_difference [");
    for (int k = 0; k < d->view_rank; k++) {
        printf("%s%lld", k ? "," : "", (long long)place[k]);
        json_array_append_new(list, json_integer(place[k]));
    }
    printf("] %s %s\n", value[X], value[Y]);
    json_object_set_new(results, "first_difference",
                        json_pack("{s:o, s:s, s:s}", "index", list, "x", value[X], "y", value[Y]));
    return GM_OK;
}

/* Prints and reports the differences. Rank 0. */
static int print_results(gm_run *run, const gm_difference *total)
{
    json_t *results = run->job->report.results = json_object();
    put_count(results, "elements", total->count);
    put_count(results, "differing", total->differing);
    put(results, "max_relative_error", total->max_relative);
    put(results, "mean_relative_error", total->count ? total->sum_relative / (double)total->count : 0);
    put(results, "max_absolute_error", total->max_absolute);
    int status = total->first >= 0 ? put_first(run, results, total->first) : GM_OK;
    return status ? status : gm_stdout_flush();
}

/* The leaves of all ranks, in the order of their index. Rank 0. */
static gm_difference fold(const gm_run *run)
{
    const compare *c = run->c;
    const own *o = run->own;
    gm_difference total = GM_NO_DIFFERENCE;
    for (int64_t i = 0; i < c->leaves * run->job->ranks->size; i++)
        gm_difference_append(&total, &o->gathered[i]);
    return total;
}

static int run_all(gm_run *run)
{
    const gm_job *job = run->job;
    const compare *c = run->c;
    const own *o = run->own;
    int differ = 0, status = gm_map_run_all(run);
    if (!status)
        status = gm_job_agree_all(job,
                                  gm_gather_all(job->ranks, o->leaf, (size_t)c->leaves * sizeof *o->leaf, o->gathered));
    if (!status)
        status = gm_run_check_inputs_all(run, status);
    if (status)
        return status;
    if (job->ranks->rank == 0) {
        gm_difference total = fold(run);
        /* A ratio can be too small for a float64 that is not 0: with no tolerance any difference counts. */
        differ = total.max_relative > job->options->tolerance || (total.differing && job->options->tolerance == 0);
        status = print_results(run, &total);
    }
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(&differ, sizeof differ));
    run->outcome = differ ? GM_DIFFER : GM_OK;
    return status;
}

const gm_operation gm_op_compare = {.case_bytes = sizeof(compare),
                                    .own_bytes = sizeof(own),
                                    .inputs = offsetof(compare, side),
                                    .describe = describe,
                                    .prepare = prepare,
                                    .run_all = run_all,
                                    .program = {.read = read_both, .compute = compare_both}};
