/* A reduction on a device whose memory is its own: the processor, made to copy as if it were one, with memory that
 * begins as garbage. Every mode must give the bits of the processor as it is. */
#include "io/describe/describe.h"
#include "io/read/reader.h"
#include "src/operation.h"
#include "tests/folder.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gm_ranks ranks;
static gm_device_ops staged;
static const gm_device_ops *real_ops;
static int64_t copied_in;

static int alloc_garbage(gm_device *device, size_t bytes, void **out)
{
    int status = real_ops->alloc(device, bytes, out);
    if (!status)
        memset(*out, 0xa5, bytes);
    return status;
}

static int count_copy(gm_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                      int64_t rows)
{
    copied_in += (int64_t)width * rows;
    return real_ops->copy_in(queue, dst, dst_pitch, src, src_pitch, width, rows);
}

static int run(int argc, char **argv, int apart)
{
    gm_options options;
    gm_job job = {.argc = argc, .argv = argv, .options = &options, .ranks = &ranks};
    int status = gm_agree_all(&ranks, gm_options_parse(argc, argv, &options));
    if (!status)
        status = gm_job_open_device_all(&job, 1);
    if (!status && apart) {
        real_ops = job.ops;
        staged = *job.ops;
        staged.unified = 0;
        staged.alloc = alloc_garbage;
        staged.copy_in = count_copy;
        job.ops = &staged;
    }
    if (!status)
        status = gm_operation_run_all(&job);
    gm_job_close_device(&job);
    gm_report_clear(&job.report);
    return status;
}

/* A dataset's bytes; the caller frees them. */
static void *load(const char *file, const char *name, int64_t *bytes)
{
    char operand[128];
    gm_dataset *d = malloc(sizeof *d);
    gm_reader *reader = NULL;
    void *memory = NULL;
    snprintf(operand, sizeof operand, "%s:/%s", file, name);
    if (d && gm_describe(operand, NULL, d) == GM_OK && gm_reader_open(d, &reader) == GM_OK) {
        *bytes = gm_dataset_elements(d) * (int64_t)gm_dtype_size(d->type);
        memory = malloc((size_t)*bytes + 1);
        if (memory && gm_reader_read_range(reader, 0, gm_dataset_elements(d), memory)) {
            free(memory);
            memory = NULL;
        }
    }
    gm_reader_close(reader);
    free(d);
    return memory;
}

static void compare(const char *in, int64_t in_bytes, const char *axis, const char *piece)
{
    static const char *const names[] = {"count", "min", "max",  "sum",    "sumsq", "mean",
                                        "var",   "std", "norm", "argmin", "argmax"};
    char out[2][64], wrong[128] = "";
    int status = GM_OK;
    for (int apart = 0; apart < 2 && !status; apart++) {
        snprintf(out[apart], sizeof out[apart], "%d.h5", apart);
        char *argv[] = {"gpumem-run",
                        "reduce",
                        (char *)in,
                        "-o",
                        out[apart],
                        "--axis",
                        (char *)axis,
                        "--force",
                        "--no-sync",
                        "--piece",
                        (char *)piece,
                        "--stat",
                        "count,min,max,sum,sumsq,mean,var,std,norm,argmin,argmax",
                        NULL};
        copied_in = 0;
        status = run(13, argv, apart);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !status; i++) {
        int64_t bytes = 0, other = 0;
        void *a = load(out[0], names[i], &bytes), *b = load(out[1], names[i], &other);
        if (!a || !b || bytes != other || memcmp(a, b, (size_t)bytes) != 0)
            strcat(strcat(wrong, " "), names[i]);
        free(a);
        free(b);
    }
    tap_ok(status == GM_OK && !*wrong && copied_in == in_bytes,
           "%s, --axis %s, --piece %s: same bits through memory of its own, every byte once%s", in, axis, piece, wrong);
    gm_error_clear();
}

int main(void)
{
    static const char *const types[] = {"f32", "u16"}, *const axes[] = {"frame", "pixel", "1", "vector"},
                             *const pieces[] = {"20K", "150K", "4M"};
    if (gm_ranks_start_all(&ranks) || folder_enter_all(&ranks))
        return 1;
    for (int t = 0; t < 2; t++) {
        char in[64];
        snprintf(in, sizeof in, "%s.h5", types[t]);
        char *argv[] = {"gpumem-run", "gen",     "stack", in,       "--frames",       "70", "--height",
                        "90",         "--width", "110",   "--type", (char *)types[t], NULL};
        tap_ok(run(12, argv, 0) == GM_OK, "input is made");
        for (int a = 0; a < 4; a++)
            for (int p = 0; p < 3; p++)
                compare(in, INT64_C(70) * 90 * 110 * (t ? 2 : 4), axes[a], pieces[p]);
    }
    folder_leave_all(&ranks, NULL);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
