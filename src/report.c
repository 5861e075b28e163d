#include "config.h"

#include "src/report.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text/escape.h"
#include "io/write/output.h"
#include "src/job.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The measurements of one rank: a flat record. */
typedef struct rank_record {
    char host[GM_HOST_MAX];
    gm_device_info device;
    gm_phase_times times;
    double flop, init_s;
    int64_t bytes_read, bytes_written;
    int64_t peak_host, peak_device;
} rank_record;

/* jansson leaves out what it has no memory for. */
static atomic_int lacking;

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        atomic_store(&lacking, 1);
    return memory;
}

int gm_report_memory(void)
{
    return atomic_load(&lacking) ? gm_fail(GM_EDEVICE, "no memory for the report or the attributes of the output")
                                 : GM_OK;
}

json_t *gm_report_text(const char *text)
{
    char *copy = gm_escape_utf8_copy(text);
    json_t *string = copy ? json_string(copy) : NULL;
    if (!copy)
        atomic_store(&lacking, 1);
    free(copy);
    return string;
}

json_t *gm_report_words(const gm_job *job)
{
    json_t *words = json_array();
    for (int i = 0; i < job->argc; i++)
        json_array_append_new(words, gm_report_text(job->argv[i]));
    return words;
}

json_t *gm_report_dataset(const gm_dataset *d)
{
    json_t *shape = json_array();
    for (int i = 0; i < d->view_rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)d->view[i]));
    json_int_t bytes = (json_int_t)(gm_dataset_elements(d) * (int64_t)gm_dtype_size(d->type));
    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:I}", "file", gm_report_text(d->file), "dataset",
                     gm_report_text(d->name), "selection", gm_report_text(d->selected), "type", gm_dtype_name(d->type),
                     "shape", shape, "bytes", bytes);
}

static void add_option(void *context, const char *name, const char *value)
{
    json_object_set_new(context, name, gm_report_text(value));
}

json_t *gm_report_options(const gm_job *job)
{
    json_t *options = json_object();
    gm_options_each(job->options, add_option, options);
    return options;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static json_t *phases(const rank_record *all, int size)
{
    double *seconds = allocate((size_t)size * sizeof *seconds);
    json_t *object = json_object();
    for (int phase = 0; seconds && phase < GM_PHASES; phase++) {
        for (int r = 0; r < size; r++)
            seconds[r] = all[r].times.seconds[phase];
        qsort(seconds, (size_t)size, sizeof *seconds, by_size);
        json_object_set_new(
            object, gm_phase_name((gm_phase)phase),
            json_pack("{s:f, s:f, s:f}", "min", seconds[0], "median", seconds[size / 2], "max", seconds[size - 1]));
    }
    free(seconds);
    return object;
}

static json_t *hosts(const rank_record *all, int size)
{
    json_t *list = json_array();
    for (int r = 0; r < size; r++) {
        int seen = 0;
        for (size_t i = 0; i < json_array_size(list); i++)
            seen |= strcmp(json_string_value(json_array_get(list, i)), all[r].host) == 0;
        if (!seen)
            json_array_append_new(list, json_string(all[r].host));
    }
    return list;
}

static json_t *devices(const rank_record *all, int size)
{
    json_t *list = json_array();
    for (int r = 0; r < size; r++)
        json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:o, s:s, s:s}", "rank", r, "host", all[r].host, "kind",
                                              all[r].device.kind, "name", gm_report_text(all[r].device.name), "uuid",
                                              all[r].device.uuid, "pci", all[r].device.pci));
    return list;
}

static json_t *start_of(const gm_start_times *start)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "mpi", start->mpi, "device", start->device, "wait", start->wait,
                     "describe", start->describe, "plan", start->plan);
}

/* Of a run that exchanges device memory. */
static void set_exchange(json_t *root, const gm_exchange_choice *x)
{
    if (x->path[0])
        json_object_set_new(root, "exchange",
                            json_pack("{s:s, s:o, s:o}", "path", x->path, "reason",
                                      x->reason[0] ? gm_report_text(x->reason) : json_null(), "nccl",
                                      x->version[0] ? json_string(x->version) : json_null()));
}

static void set_owned(json_t *root, const char *key, json_t **value)
{
    if (*value)
        json_object_set(root, key, *value);
}

static json_t *compose(gm_job *job, const rank_record *all, int exit)
{
    gm_report *r = &job->report;
    int size = job->ranks->size;
    double flop = 0, compute = 0, read_s = 0, write_s = 0, bytes_read = 0, bytes_written = 0;
    int64_t peak_host = 0, peak_device = 0;
    for (int i = 0; i < size; i++) {
        flop += all[i].flop;
        bytes_read += (double)all[i].bytes_read;
        bytes_written += (double)all[i].bytes_written;
        compute = all[i].times.seconds[GM_PHASE_COMPUTE] > compute ? all[i].times.seconds[GM_PHASE_COMPUTE] : compute;
        read_s = all[i].times.seconds[GM_PHASE_READ] > read_s ? all[i].times.seconds[GM_PHASE_READ] : read_s;
        write_s = all[i].times.seconds[GM_PHASE_WRITE] > write_s ? all[i].times.seconds[GM_PHASE_WRITE] : write_s;
        peak_host = all[i].peak_host > peak_host ? all[i].peak_host : peak_host;
        peak_device = all[i].peak_device > peak_device ? all[i].peak_device : peak_device;
    }
    char started[32];
    time_t seconds = (time_t)r->started;
    struct tm utc;
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));

    json_t *root = json_pack("{s:s, s:s, s:s, s:o, s:s, s:f, s:f, s:f, s:i, s:i, s:o, s:o}", "schema",
                             "gpumem.report/1", "operation", gm_operation_name(job->options->operation), "version",
                             PACKAGE_VERSION, "command", gm_report_words(job), "started", started, "init_s", r->init_s,
                             "wall_s", r->wall_s, "sync_s", r->sync_s, "exit", exit, "ranks", size, "hosts",
                             hosts(all, size), "devices", devices(all, size));
    set_owned(root, "inputs", &r->inputs);
    set_owned(root, "output", &r->output);
    json_object_set_new(root, "options", gm_report_options(job));
    set_owned(root, "plan", &r->plan);
    json_object_set_new(root, "start", start_of(&r->start));
    set_exchange(root, &job->exchange);
    json_object_set_new(root, "phases", phases(all, size));
    json_object_set_new(root, "peak_host_bytes", json_integer((json_int_t)peak_host));
    json_object_set_new(root, "peak_device_bytes", json_integer((json_int_t)peak_device));
    json_object_set_new(root, "flop", json_real(flop));
    json_object_set_new(root, "bytes_read", json_integer((json_int_t)bytes_read));
    json_object_set_new(root, "bytes_written", json_integer((json_int_t)bytes_written));
    json_object_set_new(root, "rates",
                        json_pack("{s:f, s:f, s:f, s:f}", "tflops", r->wall_s > 0 ? flop / r->wall_s / 1e12 : 0,
                                  "compute_tflops", compute > 0 ? flop / compute / 1e12 : 0, "read_gbs",
                                  read_s > 0 ? bytes_read / read_s / 1e9 : 0, "write_gbs",
                                  write_s > 0 ? bytes_written / write_s / 1e9 : 0));
    set_owned(root, "verification", &r->verification);
    if (r->results)
        set_owned(root, "results", &r->results);
    else
        json_object_set_new(root, "results", json_object());
    return root;
}

int gm_report_check(gm_job *job, const gm_dataset *inputs, int count, const char *output)
{
    gm_file_list sources = {0};
    gm_text_file *file = &job->report.file;
    int status = gm_text_is_at_stake(file) ? gm_output_sources(inputs, count, &sources) : GM_OK;
    if (!status)
        status = gm_text_check(file, &sources, output);
    gm_file_list_free(&sources);
    return status;
}

int gm_report_open_all(gm_job *job)
{
    int here = job->options->report && job->ranks->rank == 0;
    json_set_alloc_funcs(allocate, free);
    return gm_job_agree_all(
        job, here ? gm_text_open(&job->report.file, job->options->report, job->options->force, GM_REPORT_KIND) : GM_OK);
}

static int write_file(gm_job *job, const rank_record *all, int exit)
{
    gm_text_file *file = &job->report.file;
    if (!gm_text_may_publish(file)) { /* the run failed before the inputs were known */
        gm_note("%s: exists and is no report, which might be an input: not replaced", file->name);
        return GM_OK;
    }
    json_t *root = compose(job, all, exit);
    errno = ENOMEM;
    int failed = !root || json_dumpf(root, file->stream, JSON_INDENT(2)) || fputc('\n', file->stream) == EOF;
    json_decref(root);
    int status = gm_report_memory();
    if (!status)
        return gm_text_publish(file, failed);
    gm_text_discard(file);
    return status;
}

int gm_report_write_all(gm_job *job, int exit)
{
    const gm_report *r = &job->report;
    rank_record mine = {.device = job->info,
                        .times = r->times,
                        .flop = r->flop,
                        .init_s = r->init_s,
                        .bytes_read = r->bytes_read,
                        .bytes_written = r->bytes_written,
                        .peak_host = gm_memory_peak(GM_HOST),
                        .peak_device = gm_memory_peak(GM_DEVICE)};
    strcpy(mine.host, job->ranks->host);
    rank_record *all = calloc((size_t)job->ranks->size, sizeof *all);
    int status = gm_job_agree_all(job, all ? GM_OK : gm_fail(GM_EDEVICE, "no memory for the report"));
    if (!status)
        status = gm_gather_all(job->ranks, &mine, sizeof mine, all);
    if (!status && job->report.file.stream)
        status = write_file(job, all, exit);
    free(all);
    return gm_job_agree_all(job, status);
}

void gm_report_clear(gm_report *r)
{
    json_decref(r->inputs);
    json_decref(r->output);
    json_decref(r->plan);
    json_decref(r->verification);
    json_decref(r->results);
    gm_text_discard(&r->file);
}
