/* bench file: one measurement, repeated, as a row of the table. */
#include "src/bench/file/file.h"

#include "base/size.h"
#include "base/stop.h"

#include <stdio.h>

enum { REPETITIONS = 5 };

int gm_file_test_add(const gm_file_test *test, const gm_file_row *r, gm_file_run *run, void *context, double *rate)
{
    double seconds[REPETITIONS];
    int status = GM_OK;
    for (int i = 0; i < REPETITIONS && !status; i++) {
        int64_t bytes = 0;
        status = gm_stop_status();
        if (!status)
            status = run(context, &bytes, &seconds[i]);
        if (!status && bytes == 0)
            return GM_OK;
        seconds[i] *= status ? 0 : (double)r->bytes / (double)bytes;
    }
    if (status)
        return status;
    gm_bench_timing timing = {.calls = 1};
    gm_bench_summarize(seconds, REPETITIONS, &timing);
    gm_bench_row row = gm_bench_row_make(test->bench, "", r->strategy, r->cache, &timing);
    snprintf(row.variant, sizeof row.variant, "%s %s x%d", r->kind, r->strategy, r->threads);
    gm_size_format(r->bytes, row.shape);
    row.work = (double)r->bytes;
    row.measured = r->limit;
    row.measured_of = r->limit_of;
    row.rival = r->rival;
    row.threads = r->threads;
    if (rate)
        *rate = row.work / timing.median;
    return gm_bench_add(test->bench, &row);
}
