#include "config.h"

#include "src/report.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "io/write/output.h"
#include "src/job.h"
#include "src/summary/times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

json_t *gm_report_words(const gm_job *job)
{
    json_t *words = json_array();
    for (int i = 0; i < job->argc; i++)
        json_array_append_new(words, gm_json_text(job->argv[i]));
    return words;
}

json_t *gm_report_dataset(const gm_dataset *d)
{
    json_t *shape = json_array();
    for (int i = 0; i < d->view_rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)d->view[i]));
    json_int_t bytes = (json_int_t)(gm_dataset_elements(d) * (int64_t)gm_dtype_size(d->type));
    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:I}", "file", gm_json_text(d->file), "dataset", gm_json_text(d->name),
                     "selection", gm_json_text(d->selected), "type", gm_dtype_name(d->type), "shape", shape, "bytes",
                     bytes);
}

static void add_option(void *context, const char *name, const char *value)
{
    json_object_set_new(context, name, gm_json_text(value));
}

json_t *gm_report_options(const gm_job *job)
{
    json_t *options = json_object();
    gm_options_each(job->options, add_option, options);
    return options;
}

static json_t *hosts(const gm_rank_record *all, int size)
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

static json_t *devices(const gm_rank_record *all, int size)
{
    json_t *list = json_array();
    for (int r = 0; r < size; r++)
        json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:o, s:s, s:s}", "rank", r, "host", all[r].host, "kind",
                                              all[r].device.kind, "name", gm_json_text(all[r].device.name), "uuid",
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
                                      x->reason[0] ? gm_json_text(x->reason) : json_null(), "nccl",
                                      x->version[0] ? json_string(x->version) : json_null()));
}

static void set_owned(json_t *root, const char *key, json_t **value)
{
    if (*value)
        json_object_set(root, key, *value);
}

static json_t *per_rank(const gm_rank_record *all, int size)
{
    json_t *list = json_array();
    for (int r = 0; r < size; r++)
        json_array_append_new(list, gm_rank_json(all, r));
    return list;
}

/* In units of 10^12 and 10^9; over the longest phase of a rank. */
static json_t *rates(const gm_run_times *t)
{
    double compute = t->row[GM_PHASE_COMPUTE].most, read = t->row[GM_PHASE_READ].most,
           write = t->row[GM_PHASE_WRITE].most;
    return json_pack("{s:f, s:f, s:f, s:f}", "tflops", t->wall > 0 ? t->flop / t->wall / 1e12 : 0, "compute_tflops",
                     compute > 0 ? t->flop / compute / 1e12 : 0, "read_gbs", read > 0 ? t->bytes_read / read / 1e9 : 0,
                     "write_gbs", write > 0 ? t->bytes_written / write / 1e9 : 0);
}

static json_t *compose(gm_job *job, const gm_rank_record *all, const gm_run_times *times, int exit)
{
    gm_report *r = &job->report;
    int size = job->ranks->size;
    int64_t peak_host = 0, peak_device = 0;
    for (int i = 0; i < size; i++) {
        peak_host = gm_max(peak_host, all[i].peak_host);
        peak_device = gm_max(peak_device, all[i].peak_device);
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
    gm_times_report(times, all, r->has_streamed && exit <= GM_DIFFER, root);
    json_object_set_new(root, "peak_host_bytes", json_integer((json_int_t)peak_host));
    json_object_set_new(root, "peak_device_bytes", json_integer((json_int_t)peak_device));
    json_object_set_new(root, "flop", json_real(times->flop));
    json_object_set_new(root, "bytes_read", json_integer((json_int_t)times->bytes_read));
    json_object_set_new(root, "bytes_written", json_integer((json_int_t)times->bytes_written));
    json_object_set_new(root, "rates", rates(times));
    json_object_set_new(root, "libraries", gm_versions_json(&all[0].versions));
    json_object_set_new(root, "per_rank", per_rank(all, size));
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
    const gm_options *o = job->options;
    gm_report *r = &job->report;
    int here = o->report && job->ranks->rank == 0, wanted[] = {o->report != NULL, !o->quiet};
    gm_json_start();
    int status = gm_job_agree_all(job, here ? gm_text_open(&r->file, o->report, o->force, GM_REPORT_KIND) : GM_OK);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(wanted, sizeof wanted));
    r->is_wanted = wanted[0];
    r->is_line_wanted = wanted[1];
    return status;
}

static int write_file(gm_job *job, const gm_rank_record *all, const gm_run_times *times, int exit)
{
    gm_text_file *file = &job->report.file;
    if (!gm_text_may_publish(file)) { /* the run failed before the inputs were known */
        gm_note("%s: exists and is not a report: not replaced, as it might be an input", file->name);
        return GM_OK;
    }
    json_t *root = compose(job, all, times, exit);
    errno = ENOMEM;
    int failed = !root || json_dumpf(root, file->stream, JSON_INDENT(2)) || fputc('\n', file->stream) == EOF;
    json_decref(root);
    int status = gm_json_memory();
    if (!status)
        return gm_text_publish(file, failed);
    gm_text_discard(file);
    return status;
}

static void measure(const gm_job *job, gm_rank_record *mine)
{
    const gm_report *r = &job->report;
    memset(mine, 0, sizeof *mine);
    strcpy(mine->host, job->ranks->host);
    mine->binding = job->binding;
    mine->threads = job->threads;
    mine->device = job->info;
    gm_versions_find(&mine->versions);
    gm_slurm_find(&mine->slurm);
    mine->times = r->times;
    mine->init_s = r->init_s;
    mine->sync_s = r->sync_s;
    mine->flop = r->flop;
    mine->bytes_read = r->bytes_read;
    mine->bytes_written = r->bytes_written;
    mine->peak_host = gm_memory_peak(GM_HOST);
    mine->peak_device = gm_memory_peak(GM_DEVICE);
}

/* all: room for the records of all ranks on rank 0, NULL elsewhere. Collective. */
static int end_all(gm_job *job, gm_rank_record *all, int exit)
{
    gm_rank_record mine;
    gm_run_times times;
    measure(job, &mine);
    int status = gm_gather_all(job->ranks, &mine, sizeof mine, all);
    if (!status && all)
        gm_times_find(all, job->ranks->size, job->report.wall_s, &times);
    if (!status && job->report.file.stream)
        status = write_file(job, all, &times, exit);
    status = gm_job_agree_all(job, status);
    if (!status && all && job->report.has_streamed && exit <= GM_DIFFER)
        gm_times_say(&times, all);
    return status;
}

/* Collective. */
static int gather_and_end_all(gm_job *job, int exit)
{
    int is_first = job->ranks->rank == 0;
    gm_rank_record *all = is_first ? calloc((size_t)job->ranks->size, sizeof *all) : NULL;
    int status = is_first && !all ? gm_fail(GM_EDEVICE, "no memory for the report of all ranks") : GM_OK;
    status = gm_job_agree_all(job, status);
    if (!status)
        status = end_all(job, all, exit);
    free(all);
    return status;
}

int gm_report_end_all(gm_job *job, int status)
{
    const gm_report *r = &job->report;
    if (!r->is_wanted && !(r->is_line_wanted && r->has_streamed))
        return status;
    gm_error cause, error;
    gm_error_get(&cause); /* a failure is reported as well, and must outlive that */
    gm_error_clear();
    int written = gather_and_end_all(job, status);
    if (written && !r->is_wanted) { /* the work is done, and stays so */
        gm_error_get(&error);
        gm_warn("the times of the ranks cannot be collected: %s", error.text);
        gm_error_clear();
        written = GM_OK;
    }
    if (status > GM_DIFFER) {
        gm_error_clear();
        gm_fail(cause.code, "%s", cause.text);
    }
    return status ? status : written;
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
