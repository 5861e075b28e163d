#include "config.h"

#include "src/result.h"

#include "base/clock.h"
#include "base/file/new_file.h"
#include "base/log.h"
#include "base/size.h"
#include "base/stop.h"
#include "base/text/escape.h"
#include "base/text/words.h"
#include "base/thread.h"
#include "io/describe/describe.h"

#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "dir/big.h5" -> "dir/big.<operation>.h5" */
static int default_name(const gm_job *job, const char *input, char *file)
{
    const char *base = strrchr(input, '/'), *dot = strrchr(base ? base : input, '.');
    int stem = dot && dot != input && dot != base + 1 ? (int)(dot - input) : (int)strlen(input);
    int length = snprintf(file, GM_PATH_MAX, "%.*s.%s.h5", stem, input, gm_operation_name(job->options->operation));
    return length < GM_PATH_MAX ? GM_OK : gm_fail(GM_EOUTPUT, "%s: the name of the output would be too long", input);
}

/* Is a part of the name ".."? */
static int has_parent(const char *name)
{
    for (const char *at = name; (at = strstr(at, "..")) != NULL; at += 2)
        if ((at == name || at[-1] == '/') && (at[2] == '\0' || at[2] == '/'))
            return 1;
    return 0;
}

int gm_result_name(const gm_job *job, const char *fallback, char *file, char *dataset)
{
    if (!job->options->output)
        return default_name(job, fallback, file);
    char *name = malloc(2 * GM_NAME_MAX);
    if (!name)
        return gm_fail(GM_EDEVICE, "no memory for a name");
    char *selection = name + GM_NAME_MAX;
    int status = gm_name_split(job->options->output, file, name, selection);
    if (!status && *selection && strcmp(selection, "[]") != 0)
        status = gm_fail(GM_EUSAGE,
                         "--output %s: an output takes no selection; [] after it makes it a part of the name",
                         job->options->output);
    if (!status && has_parent(name))
        status = gm_fail(GM_EUSAGE, "--output %s: expected a name without .., which HDF5 takes for the name of a group",
                         job->options->output);
    if (!status && *name)
        snprintf(dataset, GM_NAME_MAX, "%s%.*s", *name == '/' ? "" : "/", GM_NAME_MAX - 2, name);
    free(name);
    return status;
}

static int read_chunk(const char *text, gm_output_dataset *d)
{
    if (gm_integers_parse(text, ',', d->rank, d->chunk))
        return gm_fail(GM_EUSAGE, "--chunk '%s': expected %d integers from 1 to %" PRId64 " separated by commas", text,
                       d->rank, INT64_MAX);
    for (int i = 0; i < d->rank; i++)
        d->chunk[i] = gm_min(d->chunk[i], gm_max(d->dims[i], 1));
    return GM_OK;
}

int gm_result_layout(const gm_job *job, gm_output_dataset *d)
{
    const gm_options *o = job->options;
    if (o->deflate > 9)
        return gm_fail(GM_EUSAGE, "--deflate %lld: expected a level from 0 (no compression) to 9",
                       (long long)o->deflate);
    if (d->rank == 0 && o->chunk)
        return gm_fail(GM_EUSAGE, "--chunk %s: the output is a scalar, which has no chunks", o->chunk);
    if (d->rank == 0 && (o->deflate || o->shuffle))
        gm_note("the output is a scalar, which is not compressed");
    if (d->rank == 0)
        return GM_OK;
    d->deflate = (int)o->deflate;
    d->shuffle = o->shuffle;
    d->chunked = o->chunk || o->deflate || o->shuffle;
    if (d->chunked && strcmp(o->output_layout, "parts") == 0)
        return gm_fail(
            GM_EUSAGE,
            "--output-layout parts takes no --chunk, --deflate or --shuffle, expected --output-layout single");
    int status = GM_OK;
    if (o->chunk)
        status = read_chunk(o->chunk, d);
    else if (d->chunked)
        gm_output_choose_chunk(d);
    return status;
}

/* Space on the disk. Chunked data are there twice while they are packed: in the scratch file or in the output, and in
 * spools. */
static int64_t bytes_of(const gm_output_record *record)
{
    int64_t sum = 0;
    for (int i = 0; i < record->datasets; i++) {
        const gm_output_dataset *d = &record->dataset[i];
        int64_t bytes = gm_mul_sat((int64_t)gm_dtype_size(d->type), gm_product_sat(d->dims, d->rank));
        sum = gm_add_sat(sum, gm_mul_sat(bytes, d->chunked ? 2 : 1));
    }
    return sum;
}

static const double min_gain = 2;

static gm_output_layout layout_of(const gm_job *job)
{
    static const char *const names[] = {
        [GM_OUTPUT_SINGLE] = "single", [GM_OUTPUT_PARTS] = "parts", [GM_OUTPUT_AUTO] = "auto"};
    return (gm_output_layout)gm_word_index(names, GM_OUTPUT_AUTO + 1, job->options->output_layout);
}

/* Threads of this rank -> of all ranks. Collective. */
static int count_threads_all(const gm_job *job, int *threads)
{
    uint64_t sum = (uint64_t)*threads;
    int status = gm_job_agree_all(job, gm_sum_counts_all(&sum, 1));
    *threads = (int)sum;
    return status;
}

int gm_result_ask_for_names_all(const gm_job *job, int *named)
{
    gm_file_probe probe = {.path = ""};
    int64_t opens = job->ranks->hosts <= 1;
    int fd = -1, status = GM_OK;
    if (job->ranks->size > 1 && opens) {
        if (job->ranks->rank == 0)
            fd = gm_file_probe_make(&probe);
        status = gm_job_agree_all(job, gm_broadcast_all(&probe, sizeof probe));
        opens = gm_file_probe_try(&probe);
        if (!status)
            status = gm_job_agree_all(job, gm_min_all(&opens));
        if (fd >= 0)
            close(fd);
    }
    *named = !opens;
    return status;
}

/* Checks and creates. Rank 0, on a thread of its own. */
static int create(const gm_job *job, const gm_dataset *inputs, int input_count, gm_output_record *record)
{
    record->layout = layout_of(job);
    record->overlap = 1;
    record->ranks = job->ranks->size;
    record->hosts = job->ranks->hosts;
    int status = gm_output_check(record->file, record->force, bytes_of(record), inputs, input_count);
    if (!status)
        status = gm_output_create(record);
    double gain = status ? 0 : gm_output_gain(record);
    if (gain >= min_gain && !record->parts && !job->options->given[GM_OPTION_ROW_output_layout])
        gm_note("%s: with --output-layout parts the output would be written up to %.1f times as fast", record->file,
                gain);
    return status;
}

/* The arguments and results of the thread that creates the file. */
typedef struct gm_maker {
    const gm_job *job;
    gm_output_record *record;
    const gm_dataset *inputs;
    int input_count;
    pthread_t thread;
    sem_t created; /* `status` is there; filling goes on */
    int status, filled;
} maker;

static void *make(void *argument)
{
    maker *m = argument;
    m->status = create(m->job, m->inputs, m->input_count, m->record);
    int created = m->status == GM_OK;
    sem_post(&m->created);
    if (created)
        m->filled = gm_output_allocate(m->record);
    return NULL;
}

static int start_maker(maker *m, gm_result *result)
{
    sem_init(&m->created, 0, 0);
    int error = gm_thread_start(&m->thread, make, m);
    if (error)
        return gm_fail(GM_EDEVICE, "cannot create a thread for the output: %s", strerror(error));
    result->maker = m;
    return GM_OK;
}

/* Waits until the file has all its space, or could not have it. */
static int end_maker(gm_result *result)
{
    maker *m = result->maker;
    if (!m)
        return GM_OK;
    pthread_join(m->thread, NULL);
    int status = m->status ? m->status : m->filled;
    sem_destroy(&m->created);
    free(m);
    result->maker = NULL;
    return status;
}

int gm_result_wait(gm_result *result)
{
    maker *m = result->maker;
    if (!m)
        return GM_OK;
    while (sem_wait(&m->created) && errno == EINTR)
        ;
    sem_post(&m->created);
    return m->status;
}

/* Removes what the thread has created, if it has. */
static void abandon(gm_result *result)
{
    gm_stop_abandon(1);
    int created = result->maker && gm_result_wait(result) == GM_OK;
    end_maker(result);
    if (created)
        gm_output_discard(result->record);
}

int gm_result_begin_all(gm_job *job, int threads, gm_output_record *record, const gm_dataset *inputs, int input_count,
                        gm_result *result)
{
    int named = 0, first = job->ranks->rank == 0;
    *result = (gm_result){.record = record, .inputs = inputs, .input_count = input_count};
    gm_stop_abandon(0);
    maker *m = first ? calloc(1, sizeof *m) : NULL;
    int status = gm_job_agree_all(job, first && !m ? gm_fail(GM_EDEVICE, "no memory to create the output") : GM_OK);
    if (!status)
        status = count_threads_all(job, &threads);
    if (!status)
        status = gm_result_ask_for_names_all(job, &named);
    if (!status && first) {
        record->threads = threads;
        record->named = named;
        *m = (maker){.job = job, .record = record, .inputs = inputs, .input_count = input_count};
        status = start_maker(m, result);
    }
    status = gm_job_agree_all(job, status);
    if (status && !result->maker)
        free(m);
    else if (status)
        abandon(result);
    return status;
}

int gm_result_open_all(gm_job *job, int status, gm_result *result)
{
    int made = gm_result_wait(result);
    status = gm_job_agree_all(job, status ? status : made);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(result->record, sizeof *result->record));
    if (!status)
        status = gm_job_agree_all(job, gm_output_open(result->record, &result->output));
    if (status) {
        gm_output_close(result->output, NULL);
        result->output = NULL;
        abandon(result);
    }
    return status;
}

/* "tooth.h5:/exchange/data[:,0,:], ...", of the inputs in the report. */
static char *input_names(const gm_job *job)
{
    static const struct {
        const char *key, *before;
    } parts[] = {{"file", ", "}, {"dataset", ":"}, {"selection", ""}};
    size_t index, room = 1, length = 0;
    json_t *input;
    json_array_foreach (job->report.inputs, index, input)
        for (int k = 0; k < 3; k++)
            room += 2 + json_string_length(json_object_get(input, parts[k].key));
    char *text = calloc(1, room);
    json_array_foreach (job->report.inputs, index, input)
        for (int k = 0; text && k < 3; k++) {
            const char *value = json_string_value(json_object_get(input, parts[k].key));
            length += (size_t)sprintf(text + length, "%s%s", k || index ? parts[k].before : "", value ? value : "");
        }
    return text;
}

/* The attributes of an input, as far as the output can hold them. */
static int copy_attributes(const gm_result *result)
{
    char title[GM_PATH_MAX], first[GM_NAME_MAX];
    int skipped = 0;
    int status = result->attributes
                     ? gm_output_copy_attributes(result->record, 0, result->attributes, &result->axes, &skipped, first)
                     : GM_OK;
    if (!status && skipped > 0)
        gm_warn("%s: %d attribute%s could not be copied, the first of them is '%s'",
                gm_dataset_title(result->attributes, title), skipped, skipped > 1 ? "s" : "", first);
    for (int i = 0; i < result->input_count && !status; i++) /* no input has changed until now */
        status = gm_dataset_check(&result->inputs[i], gm_dataset_title(&result->inputs[i], title));
    return status;
}

enum { OWN_ATTRIBUTES = 5 };

static int finish_file(gm_job *job, const gm_result *result, const gm_attribute *extra, int extra_count)
{
    json_t *options = gm_report_options(job);
    char *options_text = options ? json_dumps(options, JSON_COMPACT) : NULL;
    char *command = gm_escape_words(job->argc, job->argv), *inputs = input_names(job);
    int status = options_text && command && inputs ? gm_json_memory()
                                                   : gm_fail(GM_EDEVICE, "no memory for the attributes of the output");
    gm_attribute all[OWN_ATTRIBUTES + GM_RESULT_ATTRIBUTES] = {
        {.name = "operation", .kind = GM_ATTRIBUTE_TEXT, .text = gm_operation_name(job->options->operation)},
        {.name = "version", .kind = GM_ATTRIBUTE_TEXT, .text = PACKAGE_VERSION},
        {.name = "command", .kind = GM_ATTRIBUTE_TEXT, .text = command},
        {.name = "options", .kind = GM_ATTRIBUTE_TEXT, .text = options_text},
        {.name = "inputs", .kind = GM_ATTRIBUTE_TEXT, .text = inputs},
    };
    if (!status && extra_count > GM_RESULT_ATTRIBUTES)
        status = gm_fail(GM_EINTERNAL, "%d attributes of the output, expected at most %d", extra_count,
                         GM_RESULT_ATTRIBUTES);
    for (int i = 0; i < extra_count && !status; i++)
        all[OWN_ATTRIBUTES + i] = extra[i];
    if (!status)
        status = copy_attributes(result);
    if (!status)
        status = gm_output_finish(result->record, all, OWN_ATTRIBUTES + extra_count, &job->report.sync_s);
    else
        gm_output_discard(result->record);
    free(inputs);
    free(command);
    free(options_text);
    json_decref(options);
    return status;
}

/* "output" of the report: the file, how it was written, and the rates (GB/s) of a probe if there was one. New
 * reference. */
static json_t *describe(const gm_output_record *record)
{
    json_t *datasets = json_array(), *probed = json_object();
    for (int i = 0; i < record->datasets; i++)
        json_array_append_new(datasets, gm_json_text(record->dataset[i].name));
    for (gm_write_strategy strategy = GM_WRITE_PLAIN; strategy < GM_WRITE_STRATEGIES; strategy++)
        if (record->rate[strategy] > 0)
            json_object_set_new(probed, gm_write_strategy_name(strategy), json_real(record->rate[strategy] / 1e9));
    if (record->parts_rate > 0)
        json_object_set_new(probed, "parts", json_real(record->parts_rate / 1e9));
    return json_pack("{s:o, s:o, s:s, s:s, s:i, s:o}", "file", gm_json_text(record->file), "datasets", datasets,
                     "layout", record->parts ? "parts" : "single", "way",
                     gm_output_is_packed(record) ? "packed" : gm_write_strategy_name(record->strategy), "parts",
                     record->parts, "probed_gbs", probed);
}

/* Every rank closes, then packs its share of the chunks. It writes meanwhile, without the time in which it waits for
 * the others, who may flush for long. Collective. */
static int close_all(gm_job *job, gm_result *result, int status)
{
    double from = gm_clock(), synced = job->report.sync_s, *writing = &job->report.times.seconds[GM_PHASE_WRITE];
    if (status)
        gm_stop_abandon(1);
    int filled = end_maker(result), closed = gm_output_close(result->output, &job->report.sync_s);
    result->output = NULL;
    *writing += gm_clock() - from - (job->report.sync_s - synced);
    status = gm_job_agree_all(job, status ? status : filled ? filled : closed);
    if (status)
        return status;
    from = gm_clock();
    int packed = gm_output_pack(result->record, job->ranks->rank, job->threads);
    *writing += gm_clock() - from;
    return gm_job_agree_all(job, packed);
}

int gm_result_finish_all(gm_job *job, gm_result *result, const gm_attribute *extra, int extra_count, int status)
{
    status = close_all(job, result, status);
    if (job->ranks->rank == 0 && !status) {
        status = finish_file(job, result, extra, extra_count);
        job->report.output = describe(result->record);
    } else if (job->ranks->rank == 0) {
        gm_output_discard(result->record);
    }
    return gm_agree_late_all(job->ranks, status);
}
