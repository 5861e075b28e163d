/* bench file: one measurement, repeated, as a row of the table. */
#include "src/bench/file/file.h"

#include "base/size.h"

#include <stdio.h>

enum { REPETITIONS = 5 };

int gm_file_test_add(const gm_file_test *test, const gm_file_row *r, const gm_team_work *work, double *rate)
{
    const gm_ranks *ranks = test->bench->job->ranks;
    char size[GM_SIZE_TEXT];
    gm_team_work all = *work;
    gm_bench_row row = gm_bench_row_make(test->bench, "", r->strategy, r->cache, &(gm_bench_timing){0});
    all.repetitions = REPETITIONS;
    all.work = (double)r->bytes;
    int status = gm_team_time_all(test->bench, &(gm_team){0, ranks->size}, &all, &row);
    if (status || row.work == 0) /* of ranks other than 0 too: the row is rank 0's */
        return status ? status : gm_job_agree_all(test->bench->job, GM_OK);
    snprintf(row.variant, sizeof row.variant, "%s %s x%d", r->kind, r->strategy, r->threads);
    gm_size_format(r->bytes, size);
    snprintf(row.shape, sizeof row.shape, ranks->size > 1 ? "%s, %d ranks" : "%s", size, ranks->size);
    row.measured = r->limit;
    row.measured_of = r->limit_of;
    row.rival = r->rival;
    row.threads = r->threads;
    *rate = gm_bench_rate(&row);
    return gm_job_agree_all(test->bench->job, gm_bench_add(test->bench, &row));
}
