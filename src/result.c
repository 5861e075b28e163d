#include "config.h"

#include "src/result.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "io/describe.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* "dir/big.h5" -> "dir/big.<operation>.h5" */
static int default_name(const gm_job *job, const char *input, char *file)
{
    const char *base = strrchr(input, '/'), *dot = strrchr(base ? base : input, '.');
    int stem = dot && dot != input && dot != base + 1 ? (int)(dot - input) : (int)strlen(input);
    int length = snprintf(file, GM_PATH_MAX, "%.*s.%s.h5", stem, input, gm_operation_name(job->options->operation));
    return length < GM_PATH_MAX ? GM_OK : gm_fail(GM_EOUTPUT, "%s: the name of the output would be too long", input);
}

int gm_result_name(const gm_job *job, const char *fallback, char *file, char *dataset)
{
    if (!job->options->output)
        return default_name(job, fallback, file);
    char *name = malloc(2 * GM_NAME_MAX);
    if (!name)
        return gm_fail(GM_EINTERNAL, "no memory for a name");
    char *selection = name + GM_NAME_MAX;
    int status = gm_name_split(job->options->output, file, name, selection);
    if (!status && *selection)
        status = gm_fail(GM_EUSAGE, "--output %s: an output takes no selection", job->options->output);
    if (!status && *name)
        snprintf(dataset, GM_NAME_MAX, "%s%.*s", *name == '/' ? "" : "/", GM_NAME_MAX - 2, name);
    free(name);
    return status;
}

static int read_chunk(const char *text, gm_output_dataset *d)
{
    const char *at = text;
    for (int i = 0; i < d->rank; i++) {
        char *end;
        long long value = strtoll(at, &end, 10);
        int wants_more = i + 1 < d->rank;
        if (end == at || value < 1 || *end != (wants_more ? ',' : '\0'))
            return gm_fail(GM_EUSAGE, "--chunk '%s': expected %d whole numbers from 1 on, with commas between", text, d->rank);
        d->chunk[i] = gm_min(value, gm_max(d->dims[i], 1));
        at = end + 1;
    }
    return GM_OK;
}

/* Chunks are packed in host memory, one at least at a time, from one buffer to another. */
static int check_chunk_memory(const gm_output_dataset *d)
{
    int64_t bytes = (int64_t)gm_dtype_size(d->type);
    for (int i = 0; i < d->rank; i++)
        bytes = gm_mul_sat(bytes, d->chunk[i]);
    int64_t needed = gm_add_sat(gm_mul_sat(bytes, 2), 64 << 10);
    char need[GM_SIZE_TEXT], cap[GM_SIZE_TEXT];
    return needed <= gm_memory_cap(GM_HOST) ? GM_OK
                                            : gm_fail(GM_EDEVICE, "a chunk of the output takes %s of host memory, --host-memory allows %s",
                                                      gm_size_format(needed, need), gm_size_format(gm_memory_cap(GM_HOST), cap));
}

int gm_result_layout(const gm_job *job, gm_output_dataset *d)
{
    const gm_options *o = job->options;
    if (o->deflate > 9)
        return gm_fail(GM_EUSAGE, "--deflate %lld: expected a level from 1 to 9", (long long)o->deflate);
    d->deflate = (int)o->deflate;
    d->shuffle = o->shuffle;
    d->chunked = o->chunk || o->deflate || o->shuffle;
    if (d->chunked && strcmp(o->output_layout, "parts") == 0)
        return gm_fail(GM_EUSAGE, "--output-layout parts takes no --chunk, --deflate or --shuffle, expected --output-layout single");
    int status = GM_OK;
    if (o->chunk)
        status = read_chunk(o->chunk, d);
    else if (d->chunked)
        gm_output_choose_chunk(d);
    return status || !d->chunked ? status : check_chunk_memory(d);
}

/* Room on the disk. Chunked data lie there twice for a while: as they were written or as they will be, and packed. */
static int64_t bytes_of(const gm_output_record *record)
{
    int64_t sum = 0;
    for (int i = 0; i < record->datasets; i++) {
        int64_t bytes = (int64_t)gm_dtype_size(record->dataset[i].type);
        for (int d = 0; d < record->dataset[i].rank; d++)
            bytes = gm_mul_sat(bytes, record->dataset[i].dims[d]);
        sum = gm_add_sat(sum, gm_mul_sat(bytes, record->dataset[i].chunked ? 2 : 1));
    }
    return sum;
}

static const double worth_telling = 2;

static gm_output_layout layout_of(const gm_job *job)
{
    static const char *const names[] = {[GM_OUTPUT_SINGLE] = "single", [GM_OUTPUT_PARTED] = "parts", [GM_OUTPUT_AUTO] = "auto"};
    gm_output_layout layout = GM_OUTPUT_SINGLE;
    while (strcmp(names[layout], job->options->output_layout) != 0)
        layout++;
    return layout;
}

/* Threads of all ranks; rank 0 has it then. Collective. */
static int count_threads_all(const gm_job *job, int *sum)
{
    int *all = calloc((size_t)job->ranks->size, sizeof *all);
    int status = gm_job_agree_all(job, all ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the description of the output"));
    if (!status)
        status = gm_job_agree_all(job, gm_gather_all(job->ranks, &job->threads, sizeof job->threads, all));
    *sum = 0;
    for (int r = 0; r < job->ranks->size && !status && job->ranks->rank == 0; r++)
        *sum += all[r];
    free(all);
    return status;
}

/* Checks and creates. Rank 0, on a thread beside the main one. */
static int create(const gm_job *job, const gm_dataset *inputs, int input_count, gm_output_record *record)
{
    record->layout = layout_of(job);
    record->behind = 1;
    record->ranks = job->ranks->size;
    record->hosts = job->ranks->hosts;
    int status = gm_output_check(record->file, record->force, bytes_of(record), inputs, input_count);
    if (!status)
        status = gm_output_create(record);
    double gain = status ? 0 : gm_output_gain(record);
    if (gain >= worth_telling && !record->parts && !gm_options_given(job->options, "output-layout"))
        gm_note("%s: --output-layout parts would be written up to %.1f times as fast here", record->file, gain);
    return status;
}

/* What the thread that makes the file is given, and what it gives back. */
typedef struct gm_maker {
    const gm_job *job;
    gm_output_record *record;
    const gm_dataset *inputs;
    int input_count;
    pthread_t thread;
    sem_t created;   /* `status` is there; filling goes on */
    int status, filled;
} maker;

static void *make(void *argument)
{
    maker *m = argument;
    m->status = create(m->job, m->inputs, m->input_count, m->record);
    int created = m->status == GM_OK;
    sem_post(&m->created);
    if (created)
        m->filled = gm_output_fill(m->record);
    return NULL;
}

static int start_maker(maker *m, gm_result *result)
{
    sigset_t all, before;
    sem_init(&m->created, 0, 0);
    sigfillset(&all); /* signals are for the main thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&m->thread, NULL, make, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return gm_fail(GM_EINTERNAL, "the system gives no thread for the output: %s", strerror(error));
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

int gm_result_begin_all(gm_job *job, const gm_output_record *record, const gm_dataset *inputs, int input_count, int status, gm_result *result)
{
    int threads;
    maker *m = NULL;
    memset(result, 0, sizeof *result);
    result->record = calloc(1, sizeof *result->record);
    if (job->ranks->rank == 0)
        m = calloc(1, sizeof *m);
    if ((!result->record || (job->ranks->rank == 0 && !m)) && !status)
        status = gm_fail(GM_EINTERNAL, "no memory for the description of the output");
    status = gm_job_agree_all(job, status);
    if (!status)
        status = count_threads_all(job, &threads);
    if (!status && m) {
        *result->record = *record;
        result->record->threads = threads;
        *m = (maker){.job = job, .record = result->record, .inputs = inputs, .input_count = input_count};
        status = start_maker(m, result);
    }
    status = gm_job_agree_all(job, status);
    if (!status)
        return GM_OK;
    if (result->maker)
        end_maker(result); /* cannot be: nothing fails behind it */
    else
        free(m);
    free(result->record);
    result->record = NULL;
    return status;
}

int gm_result_open_all(gm_job *job, int status, gm_result *result)
{
    int made = gm_result_wait(result), created = result->maker && made == GM_OK;
    status = gm_job_agree_all(job, status ? status : made);
    if (!status)
        status = gm_job_agree_all(job, gm_broadcast_all(result->record, sizeof *result->record));
    if (!status)
        status = gm_job_agree_all(job, gm_output_open(result->record, &result->output));
    if (status) {
        gm_output_close(result->output, NULL);
        result->output = NULL;
        end_maker(result);
        if (created)
            gm_output_discard(result->record);
        free(result->record);
        result->record = NULL;
    }
    return status;
}

int gm_result_create_all(gm_job *job, const gm_output_record *record, const gm_dataset *inputs, int input_count, int status, gm_result *result)
{
    status = gm_result_begin_all(job, record, inputs, input_count, status, result);
    return status ? status : gm_result_open_all(job, GM_OK, result);
}

enum { INPUTS_MAX = 3 * GM_PATH_MAX };

/* The command line as it was given, quoted where a shell would need it. */
static char *command_line(const gm_job *job)
{
    size_t length = 1;
    for (int i = 0; i < job->argc; i++)
        length += strlen(job->argv[i]) + 3;
    char *text = malloc(length), *at = text;
    for (int i = 0; text && i < job->argc; i++) {
        const char *quote = strpbrk(job->argv[i], " \t\"'*?[]$&;|<>()") ? "'" : "";
        at += sprintf(at, "%s%s%s%s", i ? " " : "", quote, job->argv[i], quote);
    }
    return text;
}

/* "tooth.h5:/exchange/data[:,0,:], ...", of what the report lists as inputs. */
static char *input_names(const gm_job *job)
{
    static const char *const keys[] = {"file", "dataset", "selection"};
    char *text = calloc(1, INPUTS_MAX);
    size_t index, length = 0;
    json_t *input;
    if (!text)
        return NULL;
    json_array_foreach(job->report.inputs, index, input)
        for (int k = 0; k < 3; k++) {
            const char *before = k == 1 ? ":" : k == 0 && index ? ", " : "";
            int more = snprintf(text + length, INPUTS_MAX - length, "%s%s", before, json_string_value(json_object_get(input, keys[k])));
            length += (size_t)gm_min(more, (int64_t)(INPUTS_MAX - length - 1));
        }
    return text;
}

/* The attributes of an input, as far as they can be copied. */
static int copy_attributes(const gm_result *result)
{
    char title[GM_PATH_MAX], first[GM_NAME_MAX];
    int skipped = 0;
    int status = result->attributes ? gm_output_copy_attributes(result->record, 0, result->attributes, &skipped, first) : GM_OK;
    if (!status && skipped > 0)
        gm_note("%s: %d attributes could not be copied, the first of them is '%s'", gm_dataset_title(result->attributes, title), skipped, first);
    return status;
}

enum { OWN_ATTRIBUTES = 5, EXTRA_ATTRIBUTES = 16 };

static int finish_file(gm_job *job, const gm_result *result, const gm_attribute *extra, int extra_count)
{
    json_t *options = gm_report_options(job);
    char *options_text = options ? json_dumps(options, JSON_COMPACT) : NULL;
    char *command = command_line(job), *inputs = input_names(job);
    int status = options_text && command && inputs ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for the attributes of the output");
    gm_attribute all[OWN_ATTRIBUTES + EXTRA_ATTRIBUTES] = {
        {.name = "operation", .kind = GM_ATTRIBUTE_TEXT, .text = gm_operation_name(job->options->operation)},
        {.name = "version", .kind = GM_ATTRIBUTE_TEXT, .text = PACKAGE_VERSION},
        {.name = "command", .kind = GM_ATTRIBUTE_TEXT, .text = command},
        {.name = "options", .kind = GM_ATTRIBUTE_TEXT, .text = options_text},
        {.name = "inputs", .kind = GM_ATTRIBUTE_TEXT, .text = inputs},
    };
    for (int i = 0; i < extra_count && i < EXTRA_ATTRIBUTES; i++)
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

/* "output" of the report: what it is, how it was written, what the probe found (GB/s) if there was one. New reference. */
static json_t *describe(const gm_output_record *record)
{
    json_t *datasets = json_array(), *probed = json_object();
    for (int i = 0; i < record->datasets; i++)
        json_array_append_new(datasets, json_string(record->dataset[i].name));
    for (gm_way way = GM_WAY_PLAIN; way < GM_WAYS; way++)
        if (record->rate[way] > 0)
            json_object_set_new(probed, gm_way_name(way), json_real(record->rate[way] / 1e9));
    if (record->parts_rate > 0)
        json_object_set_new(probed, "parts", json_real(record->parts_rate / 1e9));
    return json_pack("{s:s, s:o, s:s, s:s, s:i, s:o}", "file", record->file, "datasets", datasets, "layout",
                     record->parts ? "parts" : "single", "way", record->raw[0] ? "packed" : gm_way_name(record->way), "parts",
                     record->parts, "probed_gbs", probed);
}

/* Every rank closes, then packs its share of the chunks. Collective. */
static int close_all(gm_job *job, gm_result *result, int status)
{
    double from = gm_clock(), synced = job->report.sync_s;
    int filled = end_maker(result), closed = gm_output_close(result->output, &job->report.sync_s);
    result->output = NULL;
    status = gm_job_agree_all(job, status ? status : filled ? filled : closed);
    if (!status)
        status = gm_job_agree_all(job, gm_output_pack(result->record, job->ranks->rank, job->threads));
    job->report.times.seconds[GM_PHASE_WRITE] += gm_clock() - from - (job->report.sync_s - synced);
    return status;
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
    status = gm_job_agree_all(job, status);
    free(result->record);
    result->record = NULL;
    return status;
}
