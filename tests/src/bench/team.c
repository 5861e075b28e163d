/* Tests of all devices at once, on three ranks, whose device is the processor made slow and without host memory of its
 * own: rows of each rank and of all, wrong bytes and failures on one rank, and the rates of a team. */
#include "src/bench/team.h"

#include "base/clock.h"
#include "base/log.h"
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include <jansson.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static gm_ranks ranks;
static gm_device_ops faulty;
static const gm_device_ops *slow;
static int is_corrupt, fails_after = -1; /* on this rank: its results; copies to the device that succeed */

static int faulty_copy_in(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                          int64_t rows)
{
    static const char wrong[1];
    if (fails_after == 0)
        return gm_fail(GM_EDEVICE, "planted: a copy fails");
    fails_after -= fails_after > 0;
    int status = slow->copy_in(queue, dst, dst_pitch, src, src_pitch, width, rows);
    return status || !is_corrupt ? status : slow->copy_in(queue, (char *)dst + width - 1, 1, wrong, 1, 1, 1);
}

static gm_product product;
static const gm_product *slow_product;

static int faulty_product_run(gm_queue *queue, const gm_product_call *call)
{
    int status = slow_product->run(queue, call);
    return status || !is_corrupt ? status : slow->zero(queue, call->acc, (size_t)call->ldacc * sizeof(float));
}

static const gm_product *faulty_product(gm_device *device, int index)
{
    const gm_product *real = slow->product(device, index);
    if (!real || real->precision != GM_PRECISION_FP32)
        return real;
    slow_product = real;
    product = *real;
    product.run = faulty_product_run;
    return &product;
}

static void plant(gm_job *job)
{
    slow = slow_device_ops(job->ops);
    faulty = *slow;
    faulty.copy_in = faulty_copy_in;
    faulty.product = faulty_product;
    job->ops = &faulty;
}

static int same_on_all_ranks(int status)
{
    int64_t least = status, most = -status;
    return !gm_min_all(&least) && !gm_min_all(&most) && least == -most;
}

static int run(const char *line, gm_error *error)
{
    int status = command_run_all(&ranks, plant, "bench %s --device cpu --threads 1 -q --json r.json --force", line);
    gm_error_get(error);
    gm_error_clear();
    return status;
}

/* Rows of r.json whose variant ends so. Rank 0. */
static int count_rows(const json_t *rows, const char *end, int members)
{
    int count = 0;
    size_t i;
    json_t *row;
    json_array_foreach (rows, i, row) {
        const char *variant = json_string_value(json_object_get(row, "variant"));
        const json_t *all = json_object_get(row, "ranks");
        int good = json_number_value(json_object_get(row, "rate")) > 0 &&
                   (members == 1 ? !all : json_integer_value(json_object_get(all, "count")) == members) &&
                   (members == 1 || json_number_value(json_object_get(all, "rate_min")) > 0) &&
                   (members > 1) == !json_is_null(json_object_get(row, "limit"));
        count += good && strlen(variant) > strlen(end) && strcmp(variant + strlen(variant) - strlen(end), end) == 0;
    }
    return count;
}

static json_t *load_rows(json_t **root)
{
    *root = json_load_file("r.json", 0, NULL);
    return json_object_get(*root, "rows");
}

static void test_link(void)
{
    enum { DIRECTIONS = 3, SIZES = 2 };
    gm_error error;
    int status = run("link --shapes 16M,32M", &error);
    tap_ok(status == GM_OK, "bench link: %s", error.text);
    if (ranks.rank == 0) {
        json_t *root, *rows = load_rows(&root);
        int wanted = DIRECTIONS * SIZES;
        tap_ok((int)json_array_size(rows) == wanted * (ranks.size + 1), "bench link: a row for each rank and for all");
        for (int r = 0; r < ranks.size; r++) {
            char end[32];
            snprintf(end, sizeof end, ", rank %d", r);
            tap_ok(count_rows(rows, end, 1) == wanted, "bench link: rank %d alone", r);
        }
        tap_ok(count_rows(rows, ", 3 ranks", 3) == wanted, "bench link: all ranks, beside the ranks alone");
        json_decref(root);
    }
    is_corrupt = ranks.rank == ranks.size - 1;
    status = run("link --shapes 32M", &error);
    is_corrupt = 0;
    tap_ok(status == GM_ECHECK && same_on_all_ranks(status) && strstr(error.text, "wrong bytes arrived") &&
               strstr(error.text, "(rank 2"),
           "bench link: wrong bytes on one rank: %s", error.text);
}

static void test_failure(void)
{
    gm_error error;
    static const char *const lines[] = {"link --shapes 4M", "scaling matmul --shapes 96"};
    for (int i = 0; i < 2; i++)
        for (int after = 0; after < 100; after += after < 2 ? 1 : 60) {
            fails_after = ranks.rank == 1 ? after : -1;
            int status = run(lines[i], &error);
            fails_after = -1;
            tap_ok(same_on_all_ranks(status) &&
                       (status == GM_OK ? after > 0 : status == GM_EDEVICE && strstr(error.text, "(rank 1")),
                   "bench %s: rank 1 fails after %d copies: %s", lines[i], after, error.text);
        }
}

static void test_scaling(void)
{
    enum { PRECISIONS = 7 }; /* of the processor */
    gm_error error;
    int status = run("scaling matmul --shapes 150x70x300", &error);
    tap_ok(status == GM_OK, "bench scaling: %s", error.text);
    if (ranks.rank == 0) {
        json_t *root, *rows = load_rows(&root);
        tap_ok(json_array_size(rows) == PRECISIONS * 5, "bench scaling: each precision, five rows each");
        tap_ok(count_rows(rows, ", 1 rank", 1) == PRECISIONS && count_rows(rows, "strong, 2 ranks", 2) == PRECISIONS &&
                   count_rows(rows, "strong, 3 ranks", 3) == PRECISIONS &&
                   count_rows(rows, "weak, 2 ranks", 2) == PRECISIONS &&
                   count_rows(rows, "weak, 3 ranks", 3) == PRECISIONS,
               "bench scaling: one rank, then each way on two and three");
        json_decref(root);
    }
    is_corrupt = ranks.rank == 1;
    status = run("scaling matmul --shapes 96", &error);
    is_corrupt = 0;
    tap_ok(status == GM_ECHECK && same_on_all_ranks(status) && strstr(error.text, "relative error") &&
               strstr(error.text, "(rank 1"),
           "bench scaling: a wrong row of C on one rank: %s", error.text);
}

/* The ranks' sleeps in milliseconds: their order stays on a busy machine. */
static const int naps_ms[] = {10, 20, 200};

static int nap(void *context, gm_team_share *share)
{
    const double *work = context;
    nanosleep(&(struct timespec){.tv_nsec = naps_ms[ranks.rank] * 1000000L}, NULL);
    share->work = *work;
    share->is_impossible = *work < 0 && ranks.rank == 1;
    return GM_OK;
}

static void test_team(void)
{
    gm_job job = {.ranks = &ranks};
    gm_bench bench = {.job = &job, .is_brief = 1};
    double work = 6;
    gm_team_work naps = {.run = nap, .context = &work};
    gm_bench_row row = {0};
    int status = gm_team_time_all(&bench, &(gm_team){0, 3}, &naps, &row);
    tap_ok(status == GM_OK && row.ranks == 3, "a team of all ranks");
    if (ranks.rank == 0) {
        tap_ok(row.work == 18 && row.timing.median >= 0.2 && row.timing.repetitions >= 5,
               "its work is that of all, its time that of the last: %g in %g s", row.work, row.timing.median);
        tap_ok(row.slow_rank == 2 && row.rate_min <= 6 / 0.2 && row.rate_max > row.rate_min && row.rate_max <= 6 / 0.01,
               "the rates of its ranks: %g to %g", row.rate_min, row.rate_max);
    }
    naps.repetitions = 3;
    naps.work = 36; /* half of it is done */
    row = (gm_bench_row){0};
    status = gm_team_time_all(&bench, &(gm_team){1, 2}, &naps, &row);
    tap_ok(status == GM_OK && (ranks.rank || (row.work == 36 && row.timing.median >= 0.6 &&
                                              row.timing.repetitions == 3 && row.ranks == 2)),
           "a repetition that does a third counts by its rate: %g in %g s", row.work, row.timing.median);
    work = -1;
    row = (gm_bench_row){0};
    status = gm_team_time_all(&bench, &(gm_team){0, 3}, &naps, &row);
    tap_ok(status == GM_OK && row.work == 0, "what a rank cannot do has no rate");
}

int main(void)
{
    if (gm_ranks_start_all(&ranks))
        return 1;
    gm_log_setup(ranks.rank == 0, GM_QUIET);
    if (folder_enter_all(&ranks))
        return 1;
    test_team();
    test_link();
    test_scaling();
    test_failure();
    tap_ok(folder_leave_all(&ranks, "r.json"), "no other files are left");
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
