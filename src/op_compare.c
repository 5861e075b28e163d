/* compare - how a dataset differs from a reference. The elements are cut into leaves by their index; each leaf is added up in the order of its
 * blocks and the leaves are folded in the order of their index, so that the mean has the same bits whoever computes it. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/size.h"
#include "io/describe.h"
#include "io/reader.h"
#include "kernels/element.h"
#include "kernels/kernels.h"
#include "src/flat.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { X, Y, SIDES };
enum {
    LEAF = 16 * GM_COMPARE_BLOCK, /* elements */
    BATCH = 64                    /* blocks that threads compare at a time */
};

/* One rank's share. */
typedef struct compare {
    const gm_dataset *side; /* [SIDES] */
    gm_reader *reader[SIDES];
    int64_t size[SIDES]; /* bytes of an element */
    int64_t cols;        /* of the view as a matrix */
    int64_t begin, end, at;
    int64_t piece; /* elements */
    int64_t unit;  /* elements that are best read together: pieces end at multiples of it */
    int threads;
    int64_t leaves;        /* the most of any rank */
    gm_difference *leaf;   /* [leaves] of this rank */
    gm_difference *gathered; /* [ranks][leaves] on rank 0 */
} compare;

static int describe(const gm_job *job, gm_dataset *side)
{
    char title[SIDES][GM_PATH_MAX], shape[SIDES][GM_SHAPE_TEXT];
    int64_t bytes;
    for (int i = 0; i < SIDES; i++) {
        int status = gm_describe(job->options->operands[i], NULL, &side[i]);
        if (status)
            return status;
        gm_dataset_title(&side[i], title[i]);
        gm_flat_shape(side[i].view_rank, side[i].view, shape[i]);
        if (gm_mul(gm_dataset_elements(&side[i]), (int64_t)gm_dtype_size(side[i].type), &bytes))
            return gm_fail(GM_EINPUT, "%s: %s %s elements do not fit 64-bit sizes", title[i], shape[i], gm_dtype_name(side[i].type));
    }
    if (side[X].view_rank != side[Y].view_rank || memcmp(side[X].view, side[Y].view, (size_t)side[X].view_rank * sizeof *side[X].view))
        return gm_fail(GM_EINPUT, "%s is %s and %s is %s, expected the same shape", title[X], shape[X], title[Y], shape[Y]);
    return GM_OK;
}

static int next(void *context, gm_piece *piece, int *more)
{
    compare *c = context;
    int64_t n = gm_min(c->piece - c->at % c->unit, c->end - c->at);
    *more = n > 0;
    *piece = (gm_piece){.rows = 1, .col = c->at, .cols = n, .stages = GM_STAGE_READ | GM_STAGE_COMPUTE,
                        .bytes = n * (c->size[X] + c->size[Y])};
    c->at += n;
    return GM_OK;
}

/* Elements [at, end) to dst. */
static int read_range(const compare *c, int which, int64_t at, int64_t end, char *dst)
{
    int status = GM_OK;
    while (at < end && !status) {
        gm_rectangle r = gm_flat_rectangle(c->cols, at, end);
        status = gm_reader_read(c->reader[which], r.row, r.rows, r.col, r.cols, dst, (size_t)(r.cols * c->size[which]));
        at += r.rows * r.cols;
        dst += r.rows * r.cols * c->size[which];
    }
    return status;
}

/* A slot holds the elements of X and, behind them, those of Y. */
static int read_both(void *context, const gm_piece *piece, gm_share share, void *host)
{
    (void)share;
    const compare *c = context;
    int64_t end = piece->col + piece->cols;
    int status = read_range(c, X, piece->col, end, host);
    return status ? status : read_range(c, Y, piece->col, end, (char *)host + piece->cols * c->size[X]);
}

/* Pieces come in order and begin at borders of blocks: the sums of a leaf grow block by block whatever the size of a piece. */
static int compare_both(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    (void)queue;
    const compare *c = context;
    const char *x = slot->host, *y = x + piece->cols * c->size[X];
    int64_t end = piece->col + piece->cols;
    int status = GM_OK;
    for (int64_t at = piece->col, n; at < end && !status; at += n) {
        gm_difference blocks[BATCH];
        n = gm_min(end - at, BATCH * GM_COMPARE_BLOCK);
        gm_compare_call call = {n, x + (at - piece->col) * c->size[X], y + (at - piece->col) * c->size[Y], c->side[X].type, c->side[Y].type,
                                c->side[X].swap, c->side[Y].swap};
        status = gm_cpu_compare(c->threads, &call, blocks);
        for (int64_t i = 0; i < n && !status; i += GM_COMPARE_BLOCK)
            gm_difference_append(&c->leaf[(at + i - c->begin) / LEAF], &blocks[i / GM_COMPARE_BLOCK]);
    }
    return status;
}

/* Readers and memory for the leaves. */
static int prepare(const gm_job *job, compare *c)
{
    int status = GM_OK;
    void *memory = NULL;
    for (int i = 0; i < SIDES && !status; i++)
        status = gm_reader_open(&c->side[i], &c->reader[i]);
    if (!status)
        status = gm_host_alloc((size_t)c->leaves * sizeof *c->leaf, &memory);
    c->leaf = memory;
    for (int64_t i = 0; i < c->leaves && !status; i++)
        c->leaf[i] = GM_NO_DIFFERENCE;
    memory = NULL;
    if (!status && job->ranks->rank == 0)
        status = gm_host_alloc((size_t)gm_mul_sat(c->leaves, job->ranks->size) * sizeof *c->leaf, &memory);
    c->gathered = memory;
    return status;
}

static void release(compare *c)
{
    gm_host_free(c->gathered);
    gm_host_free(c->leaf);
    for (int i = 0; i < SIDES; i++)
        gm_reader_close(c->reader[i]);
}

static int run(gm_job *job, compare *c)
{
    int64_t pair = c->size[X] + c->size[Y], bytes = (c->end - c->begin) * pair, depth;
    int status = gm_flat_slots(job, bytes, GM_COMPARE_BLOCK * pair, &c->piece, &depth);
    if (status)
        return status;
    gm_program program = {.context = c, .next = next, .read = read_both, .compute = compare_both};
    job->report.bytes_read = bytes;
    int64_t slot = c->piece;
    c->piece /= pair;
    c->unit = gm_mul_sat(gm_dataset_row_unit(&c->side[X]), c->cols); /* whole chunks, where they are whole blocks as well */
    if (c->unit == 0 || c->unit % GM_COMPARE_BLOCK || c->unit > c->piece)
        c->unit = GM_COMPARE_BLOCK;
    c->piece -= c->piece % c->unit;
    return gm_flat_run(job, "compare", bytes, slot, depth, &program, &job->report.times);
}

/* An element in digits that read back to the same bits. text has room for 32 bytes. */
static void format_element(gm_dtype type, int swap, const void *element, char *text)
{
#define FORMAT_UNSIGNED(id, ctype, bytes) snprintf(text, 32, "%llu", (unsigned long long)gm_order##bytes(raw, swap))
#define FORMAT_SIGNED(id, ctype, bytes) snprintf(text, 32, "%lld", (long long)(ctype)gm_order##bytes(raw, swap))
#define FORMAT_FLOAT(id, ctype, bytes) snprintf(text, 32, "%.*g", (bytes) == 2 ? 5 : (bytes) == 4 ? 9 : 17, gm_f64_##id(raw, swap))
    switch (type) {
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) \
    case GM_##id: { \
        gm_raw##bytes raw; \
        memcpy(&raw, element, bytes); \
        FORMAT_##kind(id, ctype, bytes); \
        break; \
    }
#include "base/dtypes.def"
#undef GM_DTYPE
    default:
        *text = '\0';
    }
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

/* Where the first difference is, in each dimension of the view, and the two values. */
static int put_first(const compare *c, json_t *results, int64_t index)
{
    const gm_dataset *d = &c->side[X];
    char value[SIDES][32];
    int64_t place[GM_RANK_MAX], rest = index;
    for (int i = 0; i < SIDES; i++) {
        uint64_t element = 0;
        int status = read_range(c, i, index, index + 1, (char *)&element);
        if (status)
            return status;
        format_element(c->side[i].type, c->side[i].swap, &element, value[i]);
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
    json_object_set_new(results, "first_difference", json_pack("{s:o, s:s, s:s}", "index", list, "x", value[X], "y", value[Y]));
    return GM_OK;
}

/* Prints and reports what was found. Rank 0. */
static int tell(gm_job *job, const compare *c, const gm_difference *total)
{
    json_t *results = job->report.results = json_object();
    put_count(results, "elements", total->count);
    put_count(results, "differing", total->differing);
    put(results, "max_relative_error", total->max_relative);
    put(results, "mean_relative_error", total->count ? total->sum_relative / (double)total->count : 0);
    put(results, "max_absolute_error", total->max_absolute);
    int status = total->first >= 0 ? put_first(c, results, total->first) : GM_OK;
    if (!status && (fflush(stdout) || ferror(stdout)))
        status = gm_fail(GM_EOUTPUT, "standard output: %s", strerror(errno));
    return status;
}

/* The leaves of all ranks, in the order of their index. Rank 0. */
static gm_difference fold(const gm_job *job, const compare *c)
{
    gm_difference total = GM_NO_DIFFERENCE;
    for (int64_t i = 0; i < c->leaves * job->ranks->size; i++)
        gm_difference_append(&total, &c->gathered[i]);
    return total;
}

static int compare_all(gm_job *job, const gm_dataset *side, int *differ)
{
    int64_t rows, elements = gm_dataset_elements(side);
    compare c = {.side = side, .threads = job->threads,
                 .size = {(int64_t)gm_dtype_size(side[X].type), (int64_t)gm_dtype_size(side[Y].type)}};
    gm_dataset_matrix(side, &rows, &c.cols);
    gm_flat_part(job->ranks, elements, LEAF, &c.begin, &c.end);
    c.at = c.begin;
    c.leaves = gm_ceil_div(gm_ceil_div(elements, LEAF), job->ranks->size);
    double from = gm_clock();
    int status = gm_job_agree_all(job, prepare(job, &c));
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    if (!status)
        status = gm_job_agree_all(job, run(job, &c));
    if (!status)
        status = gm_job_agree_all(job, gm_gather_all(job->ranks, c.leaf, (size_t)c.leaves * sizeof *c.leaf, c.gathered));
    if (!status) {
        if (job->ranks->rank == 0) {
            gm_difference total = fold(job, &c);
            /* A ratio can be too small for a float64 that is not 0: with no tolerance any difference counts. */
            *differ = total.max_relative > job->options->tolerance || (total.differing && job->options->tolerance == 0);
            status = tell(job, &c, &total);
        }
        status = gm_job_agree_all(job, status);
    }
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(differ, sizeof *differ));
    release(&c);
    return status;
}

int gm_op_compare(gm_job *job)
{
    double from = gm_clock();
    gm_dataset *side = calloc(SIDES, sizeof *side);
    int differ = 0, status = side ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the description of the datasets");
    if (!status && job->ranks->rank == 0)
        status = describe(job, side);
    status = gm_job_agree_all(job, status);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(side, SIDES * sizeof *side));
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    if (!status && job->ranks->rank == 0)
        job->report.inputs = json_pack("[o, o]", gm_report_dataset(&side[X]), gm_report_dataset(&side[Y]));
    if (!status)
        status = compare_all(job, side, &differ);
    job->report.wall_s = gm_clock() - from;
    free(side);
    return status ? status : differ ? GM_DIFFER : GM_OK;
}
