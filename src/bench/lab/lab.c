/* Times the cases of a test of the laboratory and adds their rows. */
#include "base/size.h"
#include "base/stop.h"
#include "src/bench/lab/lab.h"

#include <string.h>

enum { CHECKED = 1 << 16 }; /* bytes that are compared together */

typedef struct measured {
    gm_bench *bench;
    const gm_lab_case *cases;
    double *rates; /* [count], as far as they are known */
} measured;

static int run_case(void *context, gm_queue *queue)
{
    const gm_lab_case *c = context;
    return c->run(c, queue);
}

static int add_row(const measured *m, int at, const gm_bench_timing *timing, double max_error, double mean_error)
{
    const gm_lab_case *c = &m->cases[at];
    gm_bench_row row = gm_bench_row_make(m->bench, c->variant, c->kernel, c->cache, timing);
    memcpy(row.shape, c->shape, sizeof row.shape);
    row.work = c->work;
    row.unit = *c->unit;
    row.computed = c->computed;
    if (c->limit > 0) {
        row.measured = m->rates[c->limit - 1];
        row.measured_of = m->cases[c->limit - 1].variant;
    }
    row.max_error = max_error;
    row.mean_error = mean_error;
    row.published = (gm_bench_published){c->published, c->published_max > 0 ? c->published_max : -1,
                                         c->published_mean > 0 ? c->published_mean : -1};
    row.panel = c->panel;
    row.x = c->x;
    row.y = c->y;
    row.x_name = c->x_name;
    row.y_name = c->y_name;
    return gm_bench_add(m->bench, &row);
}

/* Times the cases [first, first + count), beside the one that is the limit of the first of them, if it is another. */
static int measure_group(const measured *m, int first, int count)
{
    gm_bench_case cases[GM_BENCH_CASES];
    gm_bench_timing timings[GM_BENCH_CASES];
    int beside = m->cases[first].limit > 0, status;
    if (beside)
        cases[count] = (gm_bench_case){run_case, (void *)&m->cases[m->cases[first].limit - 1]};
    for (int i = 0; i < count; i++)
        cases[i] = (gm_bench_case){run_case, (void *)&m->cases[first + i]};
    status = m->cases[first].clock == GM_LAB_HOST ? gm_bench_time_by_clock(m->bench, cases, count + beside, timings)
                                                  : gm_bench_time(m->bench, cases, count + beside, 0, timings);
    if (!status && beside && timings[count].median > 0) /* the rate of now: clocks change */
        m->rates[m->cases[first].limit - 1] = m->cases[m->cases[first].limit - 1].work / timings[count].median;
    for (int i = 0; i < count && !status; i++) {
        const gm_lab_case *c = &m->cases[first + i];
        double max_error = -1, mean_error = -1;
        m->rates[first + i] = timings[i].median > 0 ? c->work / timings[i].median : 0;
        if (c->check)
            status = c->check(c, &max_error, &mean_error);
        if (!status)
            status = add_row(m, first + i, &timings[i], max_error, mean_error);
    }
    return status;
}

/* The cases from `first` on that are timed together: those with the limit of the first, but for one place. */
static int group_of(const gm_lab_case *cases, int first, int count)
{
    int n = 1;
    while (first + n < count && n < GM_BENCH_CASES - 1 && cases[first + n].limit == cases[first].limit)
        n++;
    return n;
}

int gm_lab_measure(gm_bench *bench, const gm_lab_case *cases, int count)
{
    double rates[GM_LAB_CASES] = {0};
    measured m = {bench, cases, rates};
    int status = count <= GM_LAB_CASES ? GM_OK : gm_fail(GM_EINTERNAL, "bench %s: %d cases", bench->test, count);
    for (int first = 0, n; first < count && !status; first += n) {
        n = group_of(cases, first, count);
        status = gm_stop_status();
        if (!status)
            status = measure_group(&m, first, n);
    }
    return status;
}

int64_t gm_lab_size(const gm_bench *bench)
{
    const int64_t wanted = gm_bench_wanted(bench, INT64_C(1) << 30);
    int64_t size = GM_BENCH_PAIR_UNIT;
    while (2 * size <= wanted && 5 * size <= gm_bench_room(bench))
        size *= 2;
    return size;
}

int gm_lab_one_size(gm_bench *bench, int64_t unit, int (*measure)(gm_bench *bench, int64_t bytes))
{
    const char *shapes = bench->job->options->shapes;
    int64_t size = gm_lab_size(bench);
    if (size < unit)
        return gm_bench_skip(bench, "too little of its memory is free");
    return shapes && strchr(shapes, ',')
               ? gm_fail(GM_EUSAGE, "--shapes '%s': bench %s takes one size", shapes, bench->test)
               : gm_bench_each_size(bench, unit, &size, 1, measure);
}

gm_cache_state gm_lab_cache(const gm_bench *bench, int64_t bytes)
{
    return bytes > bench->cache_bytes ? GM_CACHE_COLD : GM_CACHE_WARM;
}

double gm_lab_memory_limit(const gm_bench *bench, int64_t bytes)
{
    return bytes >= GM_BENCH_SEVERAL * bench->cache_bytes ? bench->job->info.memory_limit : 0;
}

double gm_lab_l1_limit(const gm_bench *bench)
{
    return 128.0 * (double)bench->job->info.clock_hz * bench->job->info.multiprocessors;
}

int64_t gm_lab_power_of_two(int64_t most)
{
    int64_t power = 1;
    while (2 * power <= most)
        power *= 2;
    return power;
}

int gm_lab_expect(gm_bench *bench, const gm_lab_case *self, const void *src, const void *right, int64_t bytes,
                  const char *what)
{
    char got[CHECKED];
    int status = GM_OK;
    for (int64_t done = 0, n; done < bytes && !status; done += n) {
        n = gm_min(bytes - done, CHECKED);
        status = gm_bench_download(bench, got, (const char *)src + done, (size_t)n);
        if (!status && memcmp(got, (const char *)right + done, (size_t)n) != 0)
            status = gm_fail(GM_ECHECK, "bench %s: %s %s: %s is wrong", bench->test, self->variant, self->shape, what);
    }
    return status;
}
