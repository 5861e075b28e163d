/* bench math - arithmetic units: chains of steps, each of one operation of an element; a fused multiply-add counts
 * once. The limit is an operation of each lane in each clock. The errors are relative, of one step from 2^16 arguments,
 * against the processor's float64, and held against the bounds that CUDA documents; chains of correctly rounded steps
 * are the processor's bit for bit. The published error is that of a division, 2 units in the last place. */
#include "base/random.h"
#include "base/size.h"
#include "src/bench/lab/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS = 1 << 16, SAMPLES = 256, GPU_TILES = 8 /* blocks on a multiprocessor */, CPU_ROUNDS = 128 };

typedef double argument_room[ARGS]; /* the arguments or the results of a step, of any type */

typedef struct chains {
    gm_bench *bench;
    argument_room *src, *dst;          /* device memory; src: [GM_MATH_STEPS] */
    argument_room args, got, expected; /* of the step that is checked */
    gm_math_call calls[GM_MATH_STEPS];
    gm_lab_case cases[GM_MATH_STEPS];
    int count;
} chains;

static double as_fma(double x)
{
    return x * (double)GM_MATH_FACTOR + (double)GM_MATH_ADDEND;
}

static double as_mul(double x)
{
    return x * (double)GM_MATH_FACTOR;
}

static double as_add(double x)
{
    return x + (double)GM_MATH_ADDEND;
}

static double as_div(double x)
{
    return (double)GM_MATH_DIVIDEND / x;
}

static double as_rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double as_exp(double x)
{
    return exp(-x);
}

#define HALF_ULP 0.500001 /* correctly rounded, by a reference that is rounded too */
#define SINE_ERROR (0.7526 * 0x1p-21)

typedef enum argument { F32, BITS, F64 } argument;

/* Bounds of the error as CUDA documents them: in units in the last place, more for a large x, or absolute. That of
 * __expf is one unit larger: the documented 2 + 1.173 |x| is exceeded by a tenth of a unit where |x| is less than 1.
 */
static const struct {
    gm_math_step step;
    const char *name;
    int rounds; /* on a GPU */
    argument argument;
    double low, high;          /* of the arguments */
    double (*right)(double x); /* NULL: only bits are compared */
    double ulps, ulps_x, error;
} steps[] = {{GM_MATH_FMA, "fused multiply-add", 4096, F32, 1, 2, as_fma, HALF_ULP, 0, 0},
             {GM_MATH_MUL, "multiply", 4096, F32, 1, 2, as_mul, HALF_ULP, 0, 0},
             {GM_MATH_ADD, "add", 4096, F32, 1, 2, as_add, HALF_ULP, 0, 0},
             {GM_MATH_INT_MUL, "int32 multiply", 4096, BITS, 0, 0, NULL, 0, 0, 0},
             {GM_MATH_INT_MUL24, "__mul24", 1024, BITS, 0, 0, NULL, 0, 0, 0},
             {GM_MATH_DIV, "divide", 512, F32, 0.5, 100, as_div, HALF_ULP, 0, 0},
             {GM_MATH_FAST_DIV, "__fdividef", 1024, F32, 0.5, 100, as_div, 2, 0, 0},
             {GM_MATH_SQRT, "sqrtf", 512, F32, 0.001, 1000, sqrt, HALF_ULP, 0, 0},
             {GM_MATH_SQRT_RN, "__fsqrt_rn", 512, F32, 0.001, 1000, sqrt, HALF_ULP, 0, 0},
             {GM_MATH_RSQRT, "rsqrtf", 1024, F32, 0.001, 1000, as_rsqrt, 2, 0, 0},
             {GM_MATH_SIN, "sinf", 512, F32, -3.14159, 3.14159, sin, 2, 0, 0},
             {GM_MATH_FAST_SIN, "__sinf", 1024, F32, -3.14159, 3.14159, sin, 0, 0, SINE_ERROR},
             {GM_MATH_EXP, "expf", 512, F32, -10, 10, as_exp, 2, 0, 0},
             {GM_MATH_FAST_EXP, "__expf", 1024, F32, -10, 10, as_exp, 3, 1.173, 0},
             {GM_MATH_FMA_F64, "fp64 multiply-add", 2048, F64, 1, 2, NULL, 0, 0, 0}};
enum { STEPS = sizeof steps / sizeof steps[0] };

static int run_chains(const gm_lab_case *self, gm_queue *queue)
{
    const chains *w = self->test;
    return w->bench->measure->math(queue, self->call);
}

static void make_args(int at, argument_room args)
{
    uint64_t key = gm_random_key(3, steps[at].step);
    for (int64_t i = 0; i < ARGS; i++) {
        uint64_t bits = gm_random_bits(key, (uint64_t)i);
        double x = steps[at].low + (steps[at].high - steps[at].low) * (double)(bits >> 11) * 0x1p-53;
        if (steps[at].argument == F64)
            args[i] = x;
        else if (steps[at].argument == F32)
            ((float *)args)[i] = (float)x;
        else
            ((uint32_t *)args)[i] = (uint32_t)bits;
    }
}

/* Makes the results of a call from cleared memory. */
static int fetch(chains *w, const gm_math_call *call, size_t bytes)
{
    int status = w->bench->ops->zero(w->bench->queue, call->dst, bytes);
    if (!status)
        status = w->bench->measure->math(w->bench->queue, call);
    return status ? status : gm_bench_download(w->bench, w->got, call->dst, bytes);
}

/* One step from each argument. */
static int check_errors(chains *w, int at, const gm_math_call *timed, double *max_error, double *mean_error)
{
    const float *x = (const float *)w->args, *got = (const float *)w->got;
    gm_math_call one = *timed;
    one.chains = ARGS;
    one.rounds = 1;
    int status = fetch(w, &one, ARGS * sizeof *x);
    double most = 0, sum = 0;
    for (int i = 0; i < ARGS && !status; i++) {
        double right = steps[at].right((double)x[i]), error = fabs((double)got[i] - right);
        double ulp = ldexp(1, ilogb(right) - 23),
               bound = steps[at].error > 0 ? steps[at].error
                                           : (steps[at].ulps + floor(fabs(steps[at].ulps_x * (double)x[i]))) * ulp;
        if (!(error <= bound))
            status = gm_fail(GM_ECHECK, "bench %s: %s of %.9g is %.9g, expected %.9g, an error of at most %.3g",
                             w->bench->test, steps[at].name, (double)x[i], (double)got[i], right, bound);
        most = fmax(most, error / fabs(right));
        sum += error / fabs(right);
    }
    *max_error = most;
    *mean_error = sum / ARGS;
    return status;
}

/* The chains that were timed, bit for bit: those from the first arguments. */
static int check_bits(chains *w, int at, const gm_math_call *timed)
{
    size_t size = steps[at].argument == F64 ? sizeof(double) : sizeof(float);
    gm_math_call few = *timed;
    few.src = w->args;
    few.dst = w->expected;
    few.chains = few.args = SAMPLES;
    int status = fetch(w, timed, ARGS * size);
    if (!status)
        status = gm_cpu_math(w->bench->job->threads, &few);
    if (!status && memcmp(w->got, w->expected, SAMPLES * size) != 0)
        status = gm_fail(GM_ECHECK, "bench %s: %s: a chain differs from the processor's", w->bench->test,
                         steps[at].name);
    return status;
}

static int check_chains(const gm_lab_case *self, double *max_error, double *mean_error)
{
    chains *w = self->test;
    int at = 0, status = GM_OK;
    while (strcmp(steps[at].name, self->variant) != 0)
        at++;
    make_args(at, w->args);
    if (steps[at].right)
        status = check_errors(w, at, self->call, max_error, mean_error);
    return status || steps[at].step >= GM_MATH_CPU_STEPS ? status : check_bits(w, at, self->call);
}

static void add(chains *w, int at)
{
    const gm_device_info *info = &w->bench->job->info;
    int is_cpu = w->bench->ops->unified;
    int64_t tiles = gm_max(GPU_TILES * info->multiprocessors, ARGS / GM_MATH_TILE);
    gm_math_call *call = &w->calls[w->count];
    gm_lab_case *c = &w->cases[w->count++];
    *call = (gm_math_call){.step = steps[at].step,
                           .chains = is_cpu ? ARGS : tiles * GM_MATH_TILE,
                           .rounds = is_cpu ? CPU_ROUNDS : steps[at].rounds,
                           .args = ARGS,
                           .src = w->src + at,
                           .dst = w->dst};
    *c = (gm_lab_case){.kernel = "chains",
                       .run = run_chains,
                       .check = check_chains,
                       .test = w,
                       .call = call,
                       .work = (double)call->chains * (double)call->rounds,
                       .unit = &gm_bench_unit_ops,
                       .cache = GM_CACHE_WARM,
                       .computed = (steps[at].argument == F64 ? info->fp64_limit : info->fp32_limit) / 2};
    snprintf(c->variant, sizeof c->variant, "%s", steps[at].name);
    snprintf(c->shape, sizeof c->shape, "%s",
             steps[at].argument == F64   ? "f64"
             : steps[at].argument == F32 ? "f32"
                                         : "i32");
}

int gm_bench_math(gm_bench *bench)
{
    if (bench->job->options->shapes)
        return gm_fail(GM_EUSAGE, "--shapes: bench %s has no shapes", bench->test);
    if (!bench->measure->math)
        return gm_bench_skip(bench, NULL);
    if (2 * (int64_t)((STEPS + 1) * sizeof(argument_room)) > gm_bench_room(bench))
        return gm_bench_skip(bench, "too little of its memory is free");
    chains *w = calloc(1, sizeof *w);
    if (!w)
        return gm_fail(GM_EDEVICE, "no memory for the cases");
    w->bench = bench;
    void *src = NULL, *dst = NULL;
    int status = bench->ops->alloc(bench->device, STEPS * sizeof *w->src, &src);
    if (!status)
        status = bench->ops->alloc(bench->device, sizeof *w->dst, &dst);
    w->src = src;
    w->dst = dst;
    for (int at = 0; at < STEPS && !status; at++) {
        if (bench->ops->unified && steps[at].step >= GM_MATH_CPU_STEPS)
            continue;
        make_args(at, w->args);
        status = gm_bench_upload(bench, w->src + at, w->args, sizeof w->args);
        add(w, at);
    }
    if (!status)
        status = gm_lab_measure(bench, w->cases, w->count);
    bench->ops->free(bench->device, dst);
    bench->ops->free(bench->device, src);
    free(w);
    return status;
}
