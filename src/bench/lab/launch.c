/* bench launch - how many empty kernels are launched in a second: one after the other, and each one waited for. By the
 * program's table of device functions, beside a bare loop. On a processor: empty regions of all threads. */
#include "src/bench/lab/lab.h"

enum { LAUNCHES = 1000, REGIONS = 100, SHAPES = 2 };

typedef struct launches {
    gm_bench *bench;
    gm_launches_call calls[4 * SHAPES];
    gm_lab_case cases[4 * SHAPES];
    int count;
} launches;

static int run_bare(const gm_lab_case *self, gm_queue *queue)
{
    const launches *l = self->test;
    return l->bench->measure->launches(queue, self->call);
}

static int run_program(const gm_lab_case *self, gm_queue *queue)
{
    const launches *l = self->test;
    const gm_launches_call *call = self->call;
    gm_launches_call one = *call;
    int status = GM_OK;
    one.count = 1;
    one.each_waits = 0;
    for (int64_t i = 0; i < call->count && !status; i++) {
        status = l->bench->measure->launches(queue, &one);
        if (!status && call->each_waits)
            status = l->bench->ops->queue_sync(queue);
    }
    return status;
}

static gm_lab_case *add(launches *l, const gm_launches_call *call, int is_bare, int limit)
{
    gm_lab_case *c = &l->cases[l->count];
    l->calls[l->count] = *call;
    *c = (gm_lab_case){.kernel = l->bench->ops->unified ? "empty region" : "empty",
                       .run = is_bare ? run_bare : run_program,
                       .test = l,
                       .call = &l->calls[l->count],
                       .work = (double)call->count,
                       .unit = &gm_bench_unit_calls,
                       .clock = GM_LAB_HOST,
                       .cache = GM_CACHE_WARM,
                       .limit = limit};
    snprintf(c->variant, sizeof c->variant, "%s%s", is_bare ? "bare loop, " : "",
             call->each_waits ? "synchronous" : "asynchronous");
    if (l->bench->ops->unified)
        snprintf(c->shape, sizeof c->shape, "all threads");
    else
        snprintf(c->shape, sizeof c->shape, "%u x %u threads", call->blocks, call->threads);
    l->count++;
    return c;
}

/* A queue of the processor does its work at once: each launch is synchronous. */
static void add_regions(launches *l)
{
    const gm_launches_call call = {.blocks = 1, .threads = 1, .count = REGIONS, .each_waits = 1};
    add(l, &call, 1, 0);
    add(l, &call, 0, 1);
}

static void add_launches(launches *l)
{
    static const struct {
        unsigned blocks, threads;
    } shapes[SHAPES] = {{160, 96}, {1, 1}};
    static const double published[] = {73100, 15000};
    for (int program = 0; program < 2; program++)
        for (int i = 0; i < SHAPES; i++)
            for (int waits = 0; waits < 2; waits++) {
                gm_launches_call call = {shapes[i].blocks, shapes[i].threads, LAUNCHES, waits};
                gm_lab_case *c = add(l, &call, !program, program ? 2 * i + waits + 1 : 0);
                if (program)
                    c->published = published[waits];
            }
}

int gm_bench_launch(gm_bench *bench)
{
    launches l = {.bench = bench};
    if (bench->job->options->shapes)
        return gm_fail(GM_EUSAGE, "--shapes: bench launch has no shapes");
    if (!bench->measure->launches)
        return gm_bench_skip(bench, NULL);
    if (bench->ops->unified)
        add_regions(&l);
    else
        add_launches(&l);
    return gm_lab_measure(bench, l.cases, l.count);
}
