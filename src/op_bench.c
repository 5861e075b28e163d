/* bench - measures the device: a table of tests (benches.def), on rank 0; the other ranks wait. */
#include "base/clock.h"
#include "base/log.h"
#include "src/bench.h"

#include <string.h>

static const struct {
    const char *name;
    gm_bench_test *run;
    const char *experiments, *help;
} tests[] = {
#define GM_BENCH(name, function, experiments, help) {name, function, experiments, help},
#include "src/benches.def"
#undef GM_BENCH
};
enum { TESTS = sizeof tests / sizeof tests[0] };

static void list(void)
{
    for (int i = 0; i < TESTS; i++)
        printf("%-10s %-8s %s\n", tests[i].name, tests[i].experiments, tests[i].help);
}

/* wanted[i]: is test i to run? All of them when none is named, but for one that needs a file: its name is the next word. */
static int choose(const gm_options *o, int wanted[TESTS], const char **file)
{
    int count = 0;
    *file = NULL;
    for (int i = 0; i < TESTS; i++)
        wanted[i] = o->operand_count == 0 && tests[i].run != gm_bench_file;
    for (int w = 0; w < o->operand_count; w++) {
        int found = -1;
        for (int i = 0; i < TESTS; i++)
            if (strcmp(o->operands[w], tests[i].name) == 0)
                found = i;
        if (found < 0)
            return gm_fail(GM_EUSAGE, "no test '%s'; gpumem-run bench --list lists them", o->operands[w]);
        wanted[found] = 1;
        if (tests[found].run != gm_bench_file)
            continue;
        if (++w == o->operand_count)
            return gm_fail(GM_EUSAGE, "bench %s: of which file? Expected FILE[:DATASET] behind it", tests[found].name);
        *file = o->operands[w];
    }
    for (int i = 0; i < TESTS; i++)
        count += wanted[i];
    if (o->output && !*file)
        return gm_fail(GM_EUSAGE, "--output '%s': only bench file makes files, and takes them away", o->output);
    return o->shapes && count > 1 ? gm_fail(GM_EUSAGE, "--shapes '%s': of which test? Each has shapes of its own", o->shapes) : GM_OK;
}

static int measure(gm_job *job, const int wanted[TESTS], const char *file)
{
    gm_bench bench;
    printf("%s: %s, %s\n", job->ranks->host, job->info.kind, job->info.name);
    int status = gm_bench_open(job, &bench);
    bench.file = file;
    for (int i = 0; i < TESTS && !status; i++)
        if (wanted[i])
            status = tests[i].run(&bench);
    if (!status)
        status = gm_bench_write(&bench);
    gm_bench_close(&bench);
    return status;
}

int gm_op_bench(gm_job *job)
{
    double from = gm_clock();
    const char *file;
    int wanted[TESTS], leading = job->ranks->rank == 0;
    int status = gm_job_agree_all(job, choose(job->options, wanted, &file));
    if (!status && job->options->list) {
        if (leading)
            list();
        return GM_OK;
    }
    if (!status && job->ranks->size > 1)
        gm_note("bench measures the device of rank 0; the other ranks wait");
    if (!status)
        status = gm_job_agree_all(job, leading ? measure(job, wanted, file) : GM_OK);
    job->report.wall_s = gm_clock() - from;
    return status;
}
