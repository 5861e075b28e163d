/* gen - makes matrices or an image stack of random numbers. Ranks, pieces and threads only share the work: every element is a function of seed,
 * dataset and index (base/random.h). */
#include "base/clock.h"
#include "base/size.h"
#include "kernels/kernels.h"
#include "src/flat.h"
#include "src/result.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { EXTENTS = 3, DATASETS = 2, PAGE = 4096 };

typedef struct extent {
    const char *option;
    size_t field; /* of gm_options */
} extent;

/* What can be made: its extents, its datasets and which extents these have. */
static const struct kind {
    const char *name, *type;
    extent extent[EXTENTS];
    int datasets;
    struct {
        const char *name;
        int rank, extent[EXTENTS];
    } dataset[DATASETS];
} kinds[] = {
    {"matrices", "f32",
     {{"rows", offsetof(gm_options, rows)}, {"inner", offsetof(gm_options, inner)}, {"columns", offsetof(gm_options, columns)}},
     2, {{"/A", 2, {0, 1}}, {"/B", 2, {1, 2}}}},
    {"stack", "u16",
     {{"frames", offsetof(gm_options, frames)}, {"height", offsetof(gm_options, height)}, {"width", offsetof(gm_options, width)}},
     1, {{"/images", 3, {0, 1, 2}}}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *const distributions[GM_DISTRIBUTIONS] = {
    [GM_DISTRIBUTION_UNIFORM] = "uniform", [GM_DISTRIBUTION_NORMAL] = "normal", [GM_DISTRIBUTION_INTEGERS] = "integers"};

static int64_t option_value(const gm_options *options, const extent *extent)
{
    return *(const int64_t *)(const void *)((const char *)options + extent->field);
}

static int find_kind(const gm_options *o, const struct kind **kind)
{
    *kind = NULL;
    for (int i = 0; i < KINDS; i++)
        if (strcmp(o->operands[0], kinds[i].name) == 0)
            *kind = &kinds[i];
    if (!*kind)
        return gm_fail(GM_EUSAGE, "gen '%s': expected matrices or stack", o->operands[0]);
    for (int i = 0; i < KINDS; i++)
        for (int e = 0; e < EXTENTS && &kinds[i] != *kind; e++)
            if (gm_options_given(o, kinds[i].extent[e].option))
                return gm_fail(GM_EUSAGE, "--%s is no option of gen %s", kinds[i].extent[e].option, (*kind)->name);
    return GM_OK;
}

static int read_extents(const gm_options *o, const struct kind *kind, int64_t *extents)
{
    for (int e = 0; e < EXTENTS; e++) {
        int64_t value = option_value(o, &kind->extent[e]);
        extents[e] = value >= 0 ? value : o->size;
        if (extents[e] < 0)
            return gm_fail(GM_EUSAGE, "gen %s needs --%s, or --size for every extent that is not given", kind->name, kind->extent[e].option);
    }
    return GM_OK;
}

static int64_t count_elements(const gm_output_dataset *dataset)
{
    int64_t elements = 1;
    for (int d = 0; d < dataset->rank; d++)
        if (dataset->dims[d] == 0)
            return 0;
    for (int d = 0; d < dataset->rank; d++)
        elements = gm_mul_sat(elements, dataset->dims[d]);
    return elements;
}

static int describe_dataset(const gm_job *job, const struct kind *kind, int index, const int64_t *extents, gm_dtype type,
                            gm_output_dataset *dataset)
{
    char shape[GM_SHAPE_TEXT];
    *dataset = (gm_output_dataset){.type = type, .big_endian = job->options->big_endian, .rank = kind->dataset[index].rank};
    strcpy(dataset->name, kind->dataset[index].name);
    for (int d = 0; d < dataset->rank; d++)
        dataset->dims[d] = extents[kind->dataset[index].extent[d]];
    if (gm_mul_sat(count_elements(dataset), (int64_t)gm_dtype_size(type)) == INT64_MAX)
        return gm_fail(GM_EUSAGE, "gen %s: %s of %s %s elements would have 2^63 bytes or more", kind->name, dataset->name,
                       gm_flat_shape(dataset->rank, dataset->dims, shape), gm_dtype_name(type));
    return gm_result_layout(job, dataset);
}

/* What the output is to be. Rank 0. */
static int describe(const gm_job *job, gm_output_record *record)
{
    const gm_options *o = job->options;
    const struct kind *kind;
    int64_t extents[EXTENTS];
    int status = find_kind(o, &kind);
    if (!status)
        status = read_extents(o, kind, extents);
    if (status)
        return status;
    const char *name = o->type ? o->type : kind->type;
    gm_dtype type = gm_dtype_find(name);
    if (type == GM_DTYPES)
        return gm_fail(GM_EUSAGE, "--type '%s': expected f64, f32, f16, or u or i with 8, 16, 32 or 64 bits", name);
    if (strlen(o->operands[1]) >= sizeof record->file)
        return gm_fail(GM_EUSAGE, "the name of the output file is longer than %zu bytes", sizeof record->file - 1);
    *record = (gm_output_record){.force = o->force, .sync = !o->no_sync, .datasets = kind->datasets};
    strcpy(record->file, o->operands[1]);
    for (int i = 0; i < kind->datasets && !status; i++)
        status = describe_dataset(job, kind, i, extents, type, &record->dataset[i]);
    return status;
}

/* One rank's share of the datasets. */
typedef struct gen {
    const gm_output_record *record;
    gm_output *output;
    gm_distribution distribution;
    uint64_t key[DATASETS];
    int64_t begin[DATASETS], end[DATASETS];
    int64_t piece; /* bytes */
    int dataset;   /* where the walk stands */
    int64_t at;
} gen;

static int next(void *context, gm_piece *piece, int *more)
{
    gen *g = context;
    while (g->dataset < g->record->datasets && g->at == g->end[g->dataset]) {
        g->dataset++;
        g->at = g->dataset < g->record->datasets ? g->begin[g->dataset] : 0;
    }
    *more = g->dataset < g->record->datasets;
    if (!*more)
        return GM_OK;
    int64_t size = (int64_t)gm_dtype_size(g->record->dataset[g->dataset].type);
    int64_t n = gm_min(g->piece / size, g->end[g->dataset] - g->at);
    *piece = (gm_piece){.matrix = g->dataset, .rows = 1, .col = g->at, .cols = n, .stages = GM_STAGE_READ | GM_STAGE_WRITE,
                        .bytes = n * size};
    g->at += n;
    return GM_OK;
}

static int make(void *context, const gm_piece *piece, gm_share share, void *host)
{
    (void)share;
    const gen *g = context;
    const gm_output_dataset *dataset = &g->record->dataset[piece->matrix];
    int little = *(const unsigned char *)&(const uint16_t){1};
    gm_cpu_random(host, dataset->type, dataset->big_endian && little, g->distribution, g->key[piece->matrix], piece->col, piece->cols);
    return GM_OK;
}

static int put(void *context, const gm_piece *piece, const void *host)
{
    const gen *g = context;
    const gm_output_dataset *dataset = &g->record->dataset[piece->matrix];
    int64_t size = (int64_t)gm_dtype_size(dataset->type), cols = count_elements(dataset) / dataset->dims[0];
    int64_t end = piece->col + piece->cols;
    int status = GM_OK;
    for (int64_t at = piece->col; at < end && !status;) {
        gm_rectangle r = gm_flat_rectangle(cols, at, end);
        status = gm_output_write(g->output, piece->matrix, r.row, r.rows, r.col, r.cols, (const char *)host + (at - piece->col) * size,
                                 (size_t)(r.cols * size));
        at += r.rows * r.cols;
    }
    return status;
}

/* This rank's share. Not collective. */
static int run(gm_job *job, const gm_result *result)
{
    gen g = {.record = result->record, .output = result->output};
    int64_t bytes = 0, size = (int64_t)gm_dtype_size(g.record->dataset[0].type), depth;
    while (strcmp(job->options->distribution, distributions[g.distribution]) != 0)
        g.distribution++;
    for (int i = 0; i < g.record->datasets; i++) {
        g.key[i] = gm_random_key((uint64_t)job->options->seed, (uint64_t)i);
        gm_flat_part(job->ranks, count_elements(&g.record->dataset[i]), PAGE / size, &g.begin[i], &g.end[i]);
        bytes += (g.end[i] - g.begin[i]) * size;
    }
    g.at = g.begin[0];
    int status = gm_flat_slots(job, bytes, PAGE, &g.piece, &depth);
    if (status)
        return status;
    gm_phase_times times = {0};
    gm_program program = {.context = &g, .next = next, .read = make, .write = put};
    status = gm_flat_run(job, "gen", bytes, g.piece, depth, &program, &times);
    /* Nothing was read: that stage is where the numbers are made. */
    job->report.times.seconds[GM_PHASE_COMPUTE] += times.seconds[GM_PHASE_READ];
    job->report.times.seconds[GM_PHASE_WRITE] += times.seconds[GM_PHASE_WRITE];
    job->report.bytes_written = bytes;
    return status;
}

int gm_op_gen(gm_job *job)
{
    double from = gm_clock();
    gm_output_record *record = calloc(1, sizeof *record);
    int status = record ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the description of the output");
    if (!status && job->ranks->rank == 0)
        status = describe(job, record);
    gm_result result = {0};
    status = gm_result_create_all(job, record, NULL, 0, status, &result);
    job->report.times.seconds[GM_PHASE_OPEN] += gm_clock() - from;
    if (!status)
        status = gm_result_finish_all(job, &result, NULL, 0, run(job, &result));
    job->report.wall_s = gm_clock() - from - job->report.sync_s;
    free(record);
    return status;
}
