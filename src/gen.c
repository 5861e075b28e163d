/* gen - makes matrices or an image stack of random numbers. Ranks, pieces and threads only share the work: every
 * element is a function of seed, dataset and index (base/random.h). */
#include "base/size.h"
#include "base/text/words.h"
#include "io/describe/describe.h"
#include "kernels/host.h"
#include "src/map.h"
#include "src/operation.h"

#include <stddef.h>
#include <string.h>

enum { EXTENTS = 3, DATASETS = 2, PAGE = 4096 };

typedef struct extent {
    const char *option;
    size_t field; /* of gm_options */
} extent;

/* The kinds of output: extents, datasets and the extents of each dataset. */
static const struct kind {
    const char *name, *type, *makes;
    extent extent[EXTENTS];
    int datasets;
    struct {
        const char *name;
        int rank, extent[EXTENTS];
    } dataset[DATASETS];
} kinds[] = {
    {"matrices",
     "f32",
     "/A and /B",
     {{"rows", offsetof(gm_options, rows)},
      {"inner", offsetof(gm_options, inner)},
      {"columns", offsetof(gm_options, columns)}},
     2,
     {{"/A", 2, {0, 1}}, {"/B", 2, {1, 2}}}},
    {"stack",
     "u16",
     "/images",
     {{"frames", offsetof(gm_options, frames)},
      {"height", offsetof(gm_options, height)},
      {"width", offsetof(gm_options, width)}},
     1,
     {{"/images", 3, {0, 1, 2}}}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *const distributions[GM_DISTRIBUTIONS] = {[GM_DISTRIBUTION_UNIFORM] = "uniform",
                                                            [GM_DISTRIBUTION_NORMAL] = "normal",
                                                            [GM_DISTRIBUTION_INTEGERS] = "integers"};

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
                return gm_fail(GM_EUSAGE, "--%s is not an option of gen %s", kinds[i].extent[e].option, (*kind)->name);
    return GM_OK;
}

static int read_extents(const gm_options *o, const struct kind *kind, int64_t *extents)
{
    for (int e = 0; e < EXTENTS; e++) {
        int64_t value = option_value(o, &kind->extent[e]);
        extents[e] = value >= 0 ? value : o->size;
        if (extents[e] < 0)
            return gm_fail(GM_EUSAGE, "gen %s needs --%s, or --size for every extent that is not given", kind->name,
                           kind->extent[e].option);
    }
    return GM_OK;
}

/* FILE, as in other operations, which would take FILE:NAME for a dataset. file: [GM_PATH_MAX]. */
static int read_name(const char *text, const struct kind *kind, char *file)
{
    char dataset[GM_NAME_MAX], selection[GM_NAME_MAX];
    int status = gm_name_split(text, file, dataset, selection);
    if (!status && (*dataset || *selection))
        return gm_fail(GM_EUSAGE, "gen %s %s: expected the name of a file alone, in which it makes %s", kind->name,
                       text, kind->makes);
    return status;
}

/* The datasets, one after the other in one range. */
typedef struct gen {
    gm_dtype type;
    int big_endian, datasets;
    gm_distribution distribution;
    uint64_t key[DATASETS];
    int64_t end[DATASETS]; /* of each dataset's elements in the range */
} gen;

static int describe_dataset(gm_run *run, const struct kind *kind, int index, const int64_t *extents)
{
    gen *g = run->c;
    char shape[GM_SHAPE_TEXT];
    int64_t dims[EXTENTS], before = index ? g->end[index - 1] : 0;
    int rank = kind->dataset[index].rank;
    for (int d = 0; d < rank; d++)
        dims[d] = extents[kind->dataset[index].extent[d]];
    int64_t elements = gm_product_sat(dims, rank);
    if (gm_mul_sat(gm_add_sat(before, elements), (int64_t)gm_dtype_size(g->type)) == INT64_MAX)
        return gm_fail(GM_EUSAGE, "gen %s: %s of %s %s elements would have 2^63 bytes or more", kind->name,
                       kind->dataset[index].name, gm_shape_format(rank, dims, shape), gm_dtype_name(g->type));
    g->end[index] = before + elements;
    g->key[index] = gm_random_key((uint64_t)run->job->options->seed, (uint64_t)index);
    int status = gm_run_describe_output(run, kind->dataset[index].name, g->type, rank, dims);
    run->record->dataset[index].big_endian = g->big_endian;
    return status;
}

static int describe(gm_run *run)
{
    const gm_options *o = run->job->options;
    gen *g = run->c;
    const struct kind *kind;
    int64_t extents[EXTENTS];
    int status = find_kind(o, &kind);
    if (!status)
        status = read_extents(o, kind, extents);
    if (status)
        return status;
    const char *name = o->type ? o->type : kind->type;
    g->type = gm_dtype_find(name);
    char types[GM_DTYPE_LIST_TEXT];
    if (g->type == GM_DTYPES)
        return gm_fail(GM_EUSAGE, "--type '%s': expected %s", name, gm_dtype_list(-1, types));
    status = read_name(o->operands[1], kind, run->record->file);
    if (status)
        return status;
    g->big_endian = o->big_endian;
    g->datasets = kind->datasets;
    g->distribution = (gm_distribution)gm_word_index(distributions, GM_DISTRIBUTIONS, o->distribution);
    for (int i = 0; i < kind->datasets && !status; i++)
        status = describe_dataset(run, kind, i, extents);
    int64_t size = (int64_t)gm_dtype_size(g->type), page = PAGE / size;
    run->shape.map = (gm_map){.elements = g->end[g->datasets - 1], .share = page, .unit = {page}, .out = size};
    return status;
}

/* The part of a piece that lies in a dataset, counted from the dataset's first element; *skipped: elements of the piece
 * before it. */
static gm_range part_of(const gen *g, const gm_piece *piece, int index, int64_t *skipped)
{
    int64_t before = index ? g->end[index - 1] : 0;
    gm_range part = gm_range_overlap((gm_range){piece->col, piece->col + piece->cols},
                                     (gm_range){before, g->end[index]});
    *skipped = part.begin - piece->col;
    return (gm_range){part.begin - before, part.end - before};
}

/* In the place of reading. */
static int make(void *context, const gm_piece *piece, gm_range whole, void *to)
{
    (void)whole;
    const gm_run *run = context;
    const gen *g = run->c;
    for (int i = 0; i < g->datasets; i++) {
        int64_t skipped;
        gm_range part = part_of(g, piece, i, &skipped);
        if (gm_range_length(part) > 0)
            gm_cpu_random((char *)to + run->out_at + skipped * (int64_t)gm_dtype_size(g->type), g->type,
                          g->big_endian && gm_is_little_endian(), g->distribution, g->key[i], part.begin,
                          gm_range_length(part));
    }
    return GM_OK;
}

static int write_parts(void *context, const gm_piece *piece, gm_range whole, const void *out)
{
    (void)whole;
    const gm_run *run = context;
    const gen *g = run->c;
    int status = GM_OK;
    for (int i = 0; i < g->datasets && !status; i++) {
        int64_t skipped;
        gm_range part = part_of(g, piece, i, &skipped);
        if (gm_range_length(part) > 0)
            status = gm_output_write_range(run->output, i, part.begin, gm_range_length(part),
                                           (const char *)out + skipped * (int64_t)gm_dtype_size(g->type));
    }
    return status;
}

/* Nothing was read: that stage is where the numbers are made. */
static int run_all(gm_run *run)
{
    int status = gm_map_run_all(run);
    double *seconds = run->job->report.times.seconds;
    seconds[GM_PHASE_COMPUTE] += seconds[GM_PHASE_READ];
    seconds[GM_PHASE_READ] = 0;
    return status;
}

const gm_operation gm_op_gen = {.case_bytes = sizeof(gen),
                                .describe = describe,
                                .run_all = run_all,
                                .program = {.read = make, .write = write_parts}};
