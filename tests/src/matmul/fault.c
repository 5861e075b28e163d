/* A product whose device computes a wrong tile: once, and the tile is computed again; or always: then the check must
 * name it, and leave no output. */
#include "kernels/matmul/calls.h"
#include "src/operation.h"
#include "tests/folder.h"
#include "tests/tap.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gm_ranks ranks;

/* The device as it is, but for its product. */
static gm_device_ops faulty;
static gm_product product;
static const gm_device_ops *real_ops;
static int64_t fault_row, fault_col, fault_rows, fault_cols;
static gm_precision precision = GM_PRECISION_FP32;
static int faults; /* products that are wrong */
static const unsigned char *fault_bytes;

static int run_faulty(gm_queue *queue, const gm_product_call *call)
{
    const gm_product *real = gm_product_find(real_ops, NULL, &(gm_product_query){.precision = precision});
    int status = real->run(queue, call);
    size_t size = gm_dtype_size(real->accumulator);
    /* A tile that is computed again has the place of the fault as well. */
    int64_t row = call->m > fault_row ? fault_row : fault_row % call->tile;
    int64_t col = call->n > fault_col ? fault_col : fault_col % call->tile;
    if (faults-- <= 0)
        return status;
    for (int64_t i = row; i < row + fault_rows && i < call->m && !status; i++)
        for (int64_t j = col; j < col + fault_cols && j < call->n && !status; j++) {
            char *at = (char *)call->acc + (size_t)(i * call->ldacc + j) * size;
            status = fault_bytes ? real_ops->copy_in(queue, at, size, fault_bytes, size, size, 1)
                                 : real_ops->zero(queue, at, size);
        }
    return status;
}

static int allocations_to_fail;

static int alloc_or_fail(gm_device *device, size_t bytes, void **out)
{
    *out = NULL;
    if (allocations_to_fail-- > 0)
        return gm_fail(GM_EDEVICE, "planted: no device memory");
    return real_ops->alloc(device, bytes, out);
}

static const gm_product *give_faulty(gm_device *device, int index)
{
    const gm_product *real = real_ops->product(device, index);
    if (!real || real->precision != precision)
        return real;
    product = *real;
    product.run = run_faulty;
    return &product;
}

static int run(int argc, char **argv, int with_fault, const char *device)
{
    gm_options options;
    gm_job job = {.argc = argc, .argv = argv, .options = &options, .ranks = &ranks};
    int status = gm_agree_all(&ranks, gm_options_parse(argc, argv, &options));
    options.device = device;
    if (!status)
        status = gm_job_open_device_all(&job, !with_fault);
    if (!status && with_fault) {
        real_ops = job.ops;
        faulty = *job.ops;
        faulty.product = give_faulty;
        faulty.alloc = alloc_or_fail;
        job.ops = &faulty;
    }
    if (!status)
        status = gm_operation_run_all(&job);
    gm_job_close_device(&job);
    gm_report_clear(&job.report);
    return status;
}

static void expect(const char *device, const char *in, const char *out, int wanted, const char *message,
                   const char *what)
{
    char line[256], *argv[16] = {"gpumem-run"};
    int argc = 1;
    snprintf(line, sizeof line, "matmul %s -o %s --grid 1x1x1 --precision %s", in, out,
             gm_precision_get(precision)->name);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    int status = run(argc, argv, 1, device);
    gm_error error;
    gm_error_get(&error);
    tap_ok(status == wanted, "%s: %s (status %d)", device, what, status);
    if (*message) {
        tap_ok(strstr(error.text, message) != NULL, "%s: the message names %s", device, message);
        tap_ok(access(out, F_OK) != 0, "%s: no output is left", device);
        tap_diag("%s", error.text);
    }
    gm_error_clear();
    unlink(out);
}

static void test_device(const char *device, const char *in, const char *out)
{
    static const float nan_value = 0.0f / 0.0f, one_more = 1000;
    fault_row = 300;
    fault_col = 500;
    fault_rows = fault_cols = 0;
    expect(device, in, out, GM_OK, "", "without a fault the product passes");
    allocations_to_fail = 2;
    expect(device, in, out, GM_OK, "", "device memory that others took: a smaller plan does");
    allocations_to_fail = 1000;
    expect(device, in, out, GM_EDEVICE, "planted", "no device memory at all");
    allocations_to_fail = 0;
    fault_rows = fault_cols = 20;
    const unsigned char *const bytes[] = {NULL, (const unsigned char *)&nan_value, (const unsigned char *)&one_more};
    static const char *const names[] = {"zeros in a tile", "NaN that no input accounts for", "one wrong element"};
    for (int i = 0; i < 3; i++) {
        char what[128];
        fault_rows = fault_cols = i < 2 ? 20 : 1;
        fault_bytes = bytes[i];
        faults = INT_MAX;
        snprintf(what, sizeof what, "%s, always: caught", names[i]);
        expect(device, in, out, GM_ECHECK, "twice in tile [256:384, 384:512]", what);
        faults = 1;
        snprintf(what, sizeof what, "%s, once: computed again", names[i]);
        expect(device, in, out, GM_OK, "", what);
    }
    fault_rows = fault_cols = 512;
    fault_row = fault_col = 0;
    fault_bytes = NULL;
    faults = 1;
    expect(device, in, out, GM_OK, "", "16 tiles, once: computed again");
    fault_rows = 513;
    faults = 1;
    expect(device, in, out, GM_ECHECK, "in 20 tiles, the first is [0:128, 0:128]", "20 tiles: the device is broken");
}

/* Elements whose squares float64 does not hold: the check of a processor finds faults all the same. */
static void test_huge(const char *in, const char *out)
{
    char operands[160], back[192];
    snprintf(operands, sizeof operands, "huge.h5:/C %s:/B", in);
    snprintf(back, sizeof back, "%s --alpha 1e-190", operands);
    char *argv[] = {"gpumem-run", "matmul", (char *)in, "--precision", "fp64",
                    "--alpha",    "1e200",  "-o",       "huge.h5",     NULL};
    tap_ok(run(9, argv, 0, "cpu") == GM_OK, "huge input is made");
    precision = GM_PRECISION_FP64;
    const char *const cases[] = {operands, back};
    for (int i = 0; i < 2; i++) {
        fault_row = 300;
        fault_col = 500;
        fault_rows = fault_cols = 20;
        fault_bytes = NULL;
        faults = 0;
        expect("cpu", cases[i], out, GM_OK, "", "huge elements pass");
        faults = INT_MAX;
        expect("cpu", cases[i], out, GM_ECHECK, "twice in tile [", "zeros in a tile of huge elements, always: caught");
        faults = 1;
        expect("cpu", cases[i], out, GM_OK, "", "zeros in a tile of huge elements, once: computed again");
    }
    precision = GM_PRECISION_FP32;
}

int main(void)
{
    char *in = "in.h5", *out = "out.h5";
    if (gm_ranks_start_all(&ranks) || folder_enter_all(&ranks))
        return 1;
    char *argv[] = {"gpumem-run", "gen", "matrices", in, "--size", "700", NULL};
    tap_ok(run(6, argv, 0, "cpu") == GM_OK, "input is made");
    test_device("cpu", in, out);
    test_huge(in, out);
    folder_leave_all(&ranks, NULL);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
