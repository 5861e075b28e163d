#include "src/run.h"

#include "base/size.h"
#include "io/describe/describe.h"
#include "io/virtual/sources.h"
#include "src/operation.h"
#include "src/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gm_run_describe_input(gm_run *run, int index, const char *text, const char *preferred)
{
    run->shape.inputs = index + 1;
    return gm_describe(text, preferred, &run->input[index]);
}

/* "/group/" of --output, if there are several datasets, becomes "/group". */
static void cut_slashes(char *name)
{
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] == '/')
        name[--length] = '\0';
}

int gm_run_describe_output(gm_run *run, const char *name, gm_dtype type, int rank, const int64_t *dims)
{
    const gm_options *o = run->job->options;
    gm_output_record *record = run->record;
    gm_output_dataset *d = &record->dataset[record->datasets];
    char wanted[GM_NAME_MAX] = "";
    int several = run->operation->several_outputs, status = GM_OK;
    *d = (gm_output_dataset){.type = type, .rank = rank};
    memcpy(d->dims, dims, (size_t)rank * sizeof *dims);
    if (record->datasets == 0) {
        record->force = o->force;
        record->sync = !o->no_sync;
    }
    if (!record->file[0] || o->output)
        status = gm_result_name(run->job, run->shape.inputs ? run->input[run->shape.swapped].file : "", record->file,
                                wanted);
    if (!status && strcmp(record->file, "-") == 0)
        status = gm_fail(GM_EUSAGE,
                         "the output '-' must be the name of a file, it cannot be written to standard output "
                         "(./-: a file of this name)");
    if (several)
        cut_slashes(wanted);
    if (!status && strcmp(wanted, "/") == 0)
        status = gm_fail(GM_EUSAGE, "--output %s: expected the name of a dataset, / is a group", o->output);
    int length = snprintf(d->name, sizeof d->name, "%s%s", several || !*wanted ? wanted : "",
                          !several && *wanted ? wanted : name);
    if (!status && length >= (int)sizeof d->name)
        status = gm_fail(GM_EUSAGE, "--output %s: the name of the dataset is too long", o->output);
    if (!status && (rank > 0 || record->datasets == 0))
        status = gm_result_layout(run->job, d);
    record->datasets++;
    run->shape.outputs = record->datasets;
    return status;
}

int gm_run_describe_moved(gm_run *run, const gm_dataset *data, int rank, const int64_t *dims)
{
    gm_output_dataset *d = &run->record->dataset[run->record->datasets];
    int status = gm_run_describe_output(run, data->name, data->type, rank, dims);
    d->big_endian = data->swap == gm_is_little_endian();
    return status;
}

int gm_run_axis_parse(const gm_dataset *d, const char *text, size_t length, int *axis)
{
    char number[sizeof "-9223372036854775808"];
    int64_t value;
    if (length >= sizeof number)
        return 1;
    memcpy(number, text, length);
    number[length] = '\0';
    if (gm_integer_parse(number, -d->view_rank, d->view_rank - 1, &value))
        return 1;
    *axis = (int)(value < 0 ? value + d->view_rank : value);
    return 0;
}

int gm_run_axis(const gm_dataset *d, const char *text, int *axis)
{
    char title[GM_PATH_MAX];
    if (gm_run_axis_parse(d, text, strlen(text), axis) == 0)
        return GM_OK;
    return gm_fail(GM_EUSAGE, "--axis '%s': %s has %d dimension%s, expected a number from %d to %d", text,
                   gm_dataset_title(d, title), d->view_rank, d->view_rank == 1 ? "" : "s", -d->view_rank,
                   d->view_rank - 1);
}

/* Host bytes that readers of the inputs take with the budget's threads (*most), and with one thread (*least). */
static void reader_bytes(const gm_dataset *input, int inputs, const gm_ring_budget *budget, int64_t *most,
                         int64_t *least)
{
    *most = *least = 0;
    for (int i = 0; i < inputs; i++) {
        *most = gm_add_sat(*most, gm_reader_bytes(&input[i], budget->threads, budget->host));
        *least = gm_add_sat(*least, gm_reader_bytes(&input[i], 1, budget->host));
    }
}

int gm_run_takes_any(const gm_run *run)
{
    int any = 1;
    for (int i = 0; i < run->shape.inputs; i++)
        any &= gm_reader_takes_any(&run->input[i]);
    return any;
}

gm_ring_request gm_run_ring_request(const gm_run *run, const gm_ring_budget *budget)
{
    gm_ring_request request = {.piece = run->job->options->piece, .depth = run->job->options->depth};
    reader_bytes(run->input, run->shape.inputs, budget, &request.readers, &request.readers_least);
    return request;
}

gm_work gm_run_work(const gm_run *run, double read, double written)
{
    double copies = run->job->ops->unified ? 0 : 1, slot = fmax((double)run->ring.slot, 1);
    return (gm_work){.read = read,
                     .to_device = copies * read,
                     .memory = read + written,
                     .from_device = copies * written,
                     .write = written,
                     .first_read = fmin(slot, read),
                     .last_out = fmin(slot, written),
                     .pieces = fmax(read, written) / slot,
                     .times = 1};
}

int gm_run_open_readers(gm_run *run)
{
    int status = GM_OK;
    for (int i = 0; i < run->shape.inputs && !status; i++)
        status = gm_reader_open(&run->input[i], &run->reader[i]);
    return status;
}

int gm_run_open_ring(gm_run *run)
{
    const gm_job *job = run->job;
    gm_stream_setup setup = {.ops = job->ops,
                             .device = job->device,
                             .piece = run->ring.slot,
                             .depth = run->ring.depth,
                             .buffer = run->ring.buffer,
                             .out_at = run->out_at,
                             .out = run->ring.out,
                             .threads = run->threads,
                             .progress = gm_progress_add,
                             .progress_context = &run->progress};
    return gm_stream_open(&setup, &run->stream);
}

int gm_run_check_inputs_all(const gm_run *run, int status)
{
    for (int i = 0; i < run->shape.inputs && !status; i++)
        status = gm_sources_check(&run->input[i]);
    return gm_job_agree_all(run->job, status);
}

void gm_run_close(gm_run *run)
{
    gm_stream_close(run->stream);
    run->stream = NULL;
    for (int i = 0; i < GM_RUN_INPUTS; i++) {
        gm_reader_close(run->reader[i]);
        run->reader[i] = NULL;
    }
    gm_pool_release(&run->pool);
}

static void add(gm_run *run, gm_attribute attribute)
{
    if (run->attributes < GM_RESULT_ATTRIBUTES)
        run->attribute[run->attributes] = attribute;
    run->attributes++; /* one too many ends the run: gm_result_finish_all() */
}

void gm_run_add_text(gm_run *run, const char *name, const char *text)
{
    add(run, (gm_attribute){.name = name, .kind = GM_ATTRIBUTE_TEXT, .text = text});
}

void gm_run_add_real(gm_run *run, const char *name, double value)
{
    add(run, (gm_attribute){.name = name, .kind = GM_ATTRIBUTE_REAL, .real = value});
}

void gm_run_add_integer(gm_run *run, const char *name, int64_t value)
{
    add(run, (gm_attribute){.name = name, .kind = GM_ATTRIBUTE_INTEGER, .integer = value});
}

int gm_run_share_sources_all(const gm_job *job, const gm_dataset *input)
{
    int is_first = job->ranks->rank == 0;
    size_t bytes = (size_t)input->sources_bytes;
    if (bytes == 0 || job->ranks->size == 1)
        return GM_OK;
    void *data = is_first ? NULL : malloc(bytes);
    const void *known = is_first ? gm_sources_export(input) : data;
    int status = known ? GM_OK : gm_fail(GM_EDEVICE, "%s: no memory for a table of its parts", input->file);
    status = gm_job_agree_all(job, status);
    if (!status) /* rank 0 sends, and its table stays as it is */
        status = gm_job_agree_all(job, gm_broadcast_all((void *)(uintptr_t)known, bytes));
    if (!status)
        status = gm_job_agree_all(job, gm_sources_import(input, known));
    free(data);
    return status;
}
