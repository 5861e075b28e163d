/* The ladder of bench matmul: float32 products by six steps, from plain sums out of global memory to whole tiles in
 * shared memory, on the matrices of the program's own product. */
#include "base/log.h"
#include "base/size.h"
#include "kernels/lab/ladder/ladders.h"
#include "src/bench/lab/lab.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PITCH = 256 /* bytes */, SIDE = GM_MATMUL_LADDER_SIDE, MATRICES = 3 };

typedef enum form { PACKED, PITCHED, FORMS } form;

typedef struct step {
    const char *name;
    gm_matmul_ladder_stage stage;
    form form;
    int is_padded; /* to whole tiles */
    double published, max_error, mean_error;
} step;

/* Of the compensated steps the text gives the error once. */
static const step steps[] = {
    {"plain", GM_MATMUL_LADDER_PLAIN, PACKED, 0, 1.73e9, 2.01e-6, 3.37e-7},
    {"compensated", GM_MATMUL_LADDER_COMPENSATED, PACKED, 0, 1.73e9, 1.19e-7, 4.23e-8},
    {"row in shared memory", GM_MATMUL_LADDER_ROW_SHARED, PACKED, 0, 4.74e9, 0, 0},
    {"pitched rows", GM_MATMUL_LADDER_ROW_SHARED, PITCHED, 0, 16.0e9, 0, 0},
    {"16 x 16 tiles", GM_MATMUL_LADDER_TILES, PITCHED, 0, 25.6e9, 0, 0},
    {"padded to tiles", GM_MATMUL_LADDER_WHOLE_TILES, PITCHED, 1, 25.6e9, 0, 0},
};
enum { STEPS = sizeof steps / sizeof steps[0], CPU_STEPS = 2 };

/* Matrices of n rows: packed, and pitched, with rows of zeros up to a whole tile. */
typedef struct ladder {
    gm_bench *bench;
    const gm_bench_sample *sample;
    int64_t n, ld[FORMS], rows[FORMS];
    void *matrices[FORMS][MATRICES]; /* A, B, C: [rows][ld] */
    gm_matmul_ladder_call calls[STEPS];
    gm_lab_case cases[STEPS];
} ladder;

static int run_step(const gm_lab_case *self, gm_queue *queue)
{
    const ladder *l = self->test;
    return l->bench->measure->matmul_ladder(queue, self->call);
}

static size_t matrix_bytes(const ladder *l, form f)
{
    return (size_t)(l->rows[f] * l->ld[f]) * sizeof(float);
}

/* The bounds: of a plain sum of k rounded products in any order; of a compensated one, whose error hardly grows. */
static int check_step(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const ladder *l = self->test;
    const gm_matmul_ladder_call *call = self->call;
    form f = steps[call - l->calls].form;
    double bound = call->stage == GM_MATMUL_LADDER_PLAIN ? ((double)l->n + 2) * 0x1p-24 : 4 * 0x1p-24;
    int status = l->bench->ops->zero(l->bench->queue, call->gemm.c, matrix_bytes(l, f));
    if (!status)
        status = run_step(self, l->bench->queue);
    if (!status)
        status = gm_bench_sample_compare(l->bench, l->sample, call->gemm.c, GM_DTYPE_F32, l->ld[f], max_error,
                                         mean_error);
    if (!status && !(*max_error <= bound))
        status = gm_fail(GM_ECHECK, "bench %s: %s: %s: the relative error %.2e exceeds the rounding bound %.2e",
                         l->bench->test, self->variant, self->shape, *max_error, bound);
    return status;
}

static void make_case(ladder *l, int at)
{
    const step *s = &steps[at];
    void *const *matrices = l->matrices[s->form];
    int64_t n = s->is_padded ? gm_round_up(l->n, SIDE) : l->n, ld = l->ld[s->form];
    l->calls[at] = (gm_matmul_ladder_call){.stage = s->stage,
                                           .gemm = {.type = GM_DTYPE_F32,
                                                    .m = n,
                                                    .n = n,
                                                    .k = n,
                                                    .a = matrices[0],
                                                    .lda = ld,
                                                    .b = matrices[1],
                                                    .ldb = ld,
                                                    .c = matrices[2],
                                                    .ldc = ld}};
    l->cases[at] = (gm_lab_case){.kernel = "ladder",
                                 .run = run_step,
                                 .check = check_step,
                                 .test = l,
                                 .call = &l->calls[at],
                                 .work = 2.0 * (double)l->n * (double)l->n * (double)l->n,
                                 .unit = &gm_bench_unit_flops,
                                 .cache = gm_lab_cache(l->bench, MATRICES * (int64_t)matrix_bytes(l, s->form)),
                                 .computed = l->bench->job->info.fp32_limit,
                                 .published = s->published,
                                 .published_max = s->max_error,
                                 .published_mean = s->mean_error,
                                 .panel = "ladder"};
    snprintf(l->cases[at].variant, sizeof l->cases[at].variant, "%s", s->name);
    snprintf(l->cases[at].shape, sizeof l->cases[at].shape, "%" PRId64 "x%" PRId64 "x%" PRId64, l->n, l->n, l->n);
}

/* Each matrix is all zeros outside its n x n elements. */
static int prepare(ladder *l, uint64_t key_a, uint64_t key_b)
{
    const uint64_t keys[] = {key_a, key_b};
    int status = GM_OK;
    for (int f = 0; f < (l->bench->ops->unified ? PACKED + 1 : FORMS); f++) /* a processor has the first steps */
        for (int i = 0; i < MATRICES && !status; i++) {
            status = l->bench->ops->alloc(l->bench->device, matrix_bytes(l, (form)f), &l->matrices[f][i]);
            if (!status)
                status = l->bench->ops->zero(l->bench->queue, l->matrices[f][i], matrix_bytes(l, (form)f));
            if (!status && i < 2)
                status = gm_bench_fill(l->bench, l->matrices[f][i], GM_DTYPE_F32, l->n, l->n, l->ld[f], keys[i]);
        }
    return status;
}

int gm_lab_matmul_ladder(gm_bench *bench, const gm_bench_sample *sample, uint64_t key_a, uint64_t key_b)
{
    int64_t n = sample->n;
    ladder l = {.bench = bench,
                .sample = sample,
                .n = n,
                .ld = {n, gm_round_up(n, PITCH / (int64_t)sizeof(float))},
                .rows = {n, gm_round_up(n, SIDE)}};
    if (!bench->measure->matmul_ladder)
        return GM_OK;
    if (MATRICES * (int64_t)(matrix_bytes(&l, PACKED) + matrix_bytes(&l, PITCHED)) > gm_bench_room(bench)) {
        gm_note("bench %s: the ladder is left out: there is too little memory", bench->test);
        return GM_OK;
    }
    int status = prepare(&l, key_a, key_b), count = bench->ops->unified ? CPU_STEPS : STEPS;
    for (int i = 0; i < count; i++)
        make_case(&l, i);
    if (!status)
        status = gm_lab_measure(bench, l.cases, count);
    for (int f = 0; f < FORMS; f++)
        for (int i = 0; i < MATRICES; i++)
            bench->ops->free(bench->device, l.matrices[f][i]);
    return status;
}
