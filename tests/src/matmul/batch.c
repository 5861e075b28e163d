/* A batch on a device that is slow, works in queues of its own and does not address host memory: the bits of the
 * processor, in groups and frame by frame. A frame that is computed wrong once is computed again; one that is wrong
 * always is named. */
#include "kernels/matmul/calls.h"
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include "base/log.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES = 40, SIDE = 50 };

static gm_ranks ranks;
static int64_t device_memory;

/* --- A product that is wrong in one frame --- */

static const gm_device_ops *real_ops;
static gm_device_ops faulty_ops;
static gm_product faulty_product;
static int faults;          /* products that are still to be wrong */
static int without_schemes; /* products that had no place for the counts of their schemes */
static int takes_batch, is_alone;
static int64_t victim, seen; /* frame, of rank 0; frames that were multiplied */

/* Wrong are the victim's product and those that compute it again: of groups when all frames have been seen, of
 * products of their own the next one. */
static int multiply(gm_queue *queue, const gm_product_call *call)
{
    int64_t batch = call->batch > 1 ? call->batch : 1, frame = victim - seen;
    int again = frame < 0 && (is_alone ? frame == -1 : seen >= FRAMES / ranks.size);
    int status = gm_product_find(real_ops, NULL, &(gm_product_query){.precision = GM_PRECISION_FP32})->run(queue, call);
    seen += batch;
    without_schemes += call->schemes == NULL;
    if (status || faults == 0 || !(again || (frame >= 0 && frame < batch)))
        return status;
    faults--;
    return real_ops->zero(queue, (float *)call->acc + (again ? 0 : frame) * call->next_acc, SIDE / 2 * sizeof(float));
}

static const gm_product *give_product(gm_device *device, int index)
{
    const gm_product *real = real_ops->product(device, index);
    if (!real || real->precision != GM_PRECISION_FP32)
        return real;
    faulty_product = *real;
    faulty_product.run = multiply;
    faulty_product.batches &= takes_batch;
    return &faulty_product;
}

static void use_slow_device(gm_job *job)
{
    job->ops = slow_device_ops(job->ops);
    gm_memory_set_cap(GM_DEVICE, device_memory);
}

static void use_faulty_device(gm_job *job)
{
    use_slow_device(job);
    real_ops = job->ops;
    faulty_ops = *job->ops;
    faulty_ops.product = give_product;
    job->ops = &faulty_ops;
    seen = 0;
}

/* --- Runs --- */

static const struct {
    const char *name, *options;
    int64_t device_memory;
} ways[] = {
    {"groups", "--buffer 0", INT64_C(64) << 20},
    {"groups by buffers", "--buffer 64K", INT64_C(64) << 20},
    {"small groups", "--piece 100000", INT64_C(64) << 20},
    {"little memory", "", INT64_C(1) << 20},
    {"products", "--piece 8000", INT64_C(64) << 20},
    {"products by buffers", "--piece 8000 --buffer 64K", INT64_C(64) << 20},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static int run(command_setup *setup, int way, const char *out)
{
    device_memory = ways[way].device_memory;
    return command_run_all(&ranks, setup,
                           "matmul --batch in.h5:/images[:%d] in.h5:/images[%d:] --transpose b --threads 2 "
                           "-o %s --force --no-sync --device cpu %s",
                           FRAMES, FRAMES, out, ways[way].options);
}

static int is_clean(const char *out)
{
    return command_same_data("clean.h5", out, (size_t)FRAMES * SIDE * SIDE * sizeof(float));
}

static void check(int way)
{
    char name[32];
    gm_error error;
    is_alone = strncmp(ways[way].name, "products", 8) == 0;
    int status = run(use_slow_device, way, "c.h5");
    tap_ok(status == GM_OK && is_clean("c.h5"), "%s: the bits of the processor (status %d)", ways[way].name, status);
    for (takes_batch = 0; takes_batch < 2; takes_batch++) {
        faults = ranks.rank == 0;
        victim = 5;
        status = run(use_faulty_device, way, "c.h5");
        tap_ok(status == GM_OK && is_clean("c.h5") && faults == 0,
               "%s: a frame that is wrong once is computed again (status %d)", ways[way].name, status);
    }
    faults = ranks.rank == 0 ? 2 : 0;
    takes_batch = way % 2;
    status = run(use_faulty_device, way, "none.h5");
    gm_error_get(&error);
    snprintf(name, sizeof name, "in tile [%lld, 0:50", (long long)victim);
    int is_named = ranks.rank > 0 ||
                   (strstr(error.text, "the product failed its check twice") && strstr(error.text, name));
    tap_ok(status == GM_ECHECK && is_named && access("none.h5", F_OK),
           "%s: frames that are wrong always are an error: %s", ways[way].name, error.text);
    faults = 0;
    gm_error_clear();
}

/* A and B are one matrix for all frames, and C0 is a stack. */
static int run_shared(command_setup *setup, const char *out, const char *options)
{
    return command_run_all(&ranks, setup,
                           "matmul --batch in.h5:/images[0] in.h5:/images[0] --transpose b --add "
                           "in.h5:/images[:%d] -o %s --force --no-sync --device cpu %s",
                           FRAMES, out, options);
}

static void check_shared(void)
{
    device_memory = INT64_C(64) << 20;
    int status = run_shared(NULL, "clean.h5", "--piece 8000");
    tap_ok(status == GM_OK, "one matrix as A and B, frames one by one");
    status = run_shared(NULL, "c.h5", "");
    tap_ok(status == GM_OK && is_clean("c.h5"), "in groups, the same bits");
    status = run_shared(use_slow_device, "c.h5", "");
    tap_ok(status == GM_OK && is_clean("c.h5"), "in groups on a device, the same bits");
}

int main(void)
{
    if (gm_ranks_start_all(&ranks) || folder_enter_all(&ranks))
        return 1;
    gm_log_setup(0, GM_QUIET);
    int status = command_run_all(&ranks, NULL,
                                 "gen stack in.h5 --frames %d --height %d --width %d --type f32 "
                                 "--no-sync",
                                 2 * FRAMES, SIDE, SIDE);
    tap_ok(status == GM_OK, "input is made");
    status = run(NULL, 0, "clean.h5");
    tap_ok(status == GM_OK, "the processor's product");
    for (int way = 0; way < WAYS; way++)
        check(way);
    check_shared();
    tap_ok(without_schemes == 0, "each product has a place for its schemes");
    folder_leave_all(&ranks, NULL);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
