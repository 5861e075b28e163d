/* The pairs of bench link, on three ranks of slow devices, whose memory the others map: each ordered pair and the
 * ring have a row; wrong bytes on one rank are an error; memory that cannot be shared, or reached, is a row without a
 * rate. */
#include "src/bench/machine/pairs.h"

#include "base/log.h"
#include "tests/src/command.h"
#include "tests/src/slow/memory.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 3 };

static gm_ranks ranks;
static gm_device_ops ops;
static const gm_device_ops *slow;
static int refuses, is_unreached, is_corrupt; /* on this rank: share, open_shared; the memory that it shares */

static int share(gm_device *device, const void *memory, gm_shared_memory *shared, char why[GM_SHARED_WHY])
{
    int status = slow->share(device, memory, shared, why);
    if (refuses)
        snprintf(why, GM_SHARED_WHY, "planted: it is not shared");
    if (is_corrupt)
        slow_memory_find(memory, 0)[(5 << 20) / 2] ^= 1;
    return status;
}

static int open_shared(gm_device *device, const gm_shared_memory *shared, void **memory, char why[GM_SHARED_WHY])
{
    *memory = NULL;
    snprintf(why, GM_SHARED_WHY, "planted: it is too far");
    return is_unreached ? GM_OK : slow->open_shared(device, shared, memory, why);
}

/* --- Runs --- */

static int is_brief;                           /* the pairs of the ring only */
static int outcome, reached, unreached, rings; /* of the last one; rows: on rank 0 */
static gm_error error;

static void count_rows(const gm_bench *bench)
{
    reached = unreached = rings = 0;
    for (int i = 0; i < bench->row_count; i++) {
        const gm_bench_row *row = &bench->rows[i];
        int is_ring = strstr(row->variant, "ring") != NULL, has_rate = gm_bench_rate(row) > 0;
        rings += is_ring && has_rate;
        reached += !is_ring && has_rate;
        unreached += !has_rate && strcmp(row->kernel, "out of reach") == 0;
    }
}

/* In the place of an operation: the pairs alone, of a job whose device is open. */
static void measure_pairs(gm_job *job)
{
    const gm_device_ops *real = job->ops;
    gm_bench bench = {.job = job, .test = "link", .is_brief = is_brief};
    slow = slow_device_ops(real);
    ops = *slow;
    ops.share = share;
    ops.open_shared = open_shared;
    job->ops = &ops;
    outcome = gm_bench_open_all(job, &bench);
    if (!outcome)
        outcome = gm_bench_pairs_all(&bench);
    count_rows(&bench);
    gm_bench_close(&bench);
    job->ops = real;
    gm_error_get(&error);
    gm_error_clear();
}

static void test_rows(const char *name, int pairs, int lost, int whole)
{
    int status = command_run_all(&ranks, measure_pairs, "bench --list --device cpu --threads 1 --host-memory 400M");
    tap_ok(!status && outcome == GM_OK, "%s: status %d %s", name, outcome, error.text);
    tap_ok(ranks.rank != 0 || (reached == pairs && unreached == lost && rings == whole),
           "%s: %d pairs, %d out of reach, %d rings", name, reached, unreached, rings);
}

int main(void)
{
    if (gm_ranks_start_all(&ranks) || ranks.size != RANKS)
        return 1;
    gm_log_setup(ranks.rank == 0, GM_QUIET);
    test_rows("good", 6, 0, 1);
    is_brief = 1;
    test_rows("good, in brief", 3, 0, 1);
    refuses = ranks.rank == 1;
    test_rows("memory that is not shared", 2, 1, 0);
    refuses = 0;
    is_unreached = ranks.rank == 2;
    test_rows("memory out of reach", 2, 1, 0);
    is_unreached = 0;
    is_corrupt = ranks.rank == 1;
    command_run_all(&ranks, measure_pairs, "bench --list --device cpu --threads 1 --host-memory 400M");
    tap_ok(outcome == GM_ECHECK && strstr(error.text, "wrong bytes arrived from the device of rank 1"),
           "wrong bytes: %s", error.text);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
