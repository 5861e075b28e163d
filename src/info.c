/* info - ranks, hosts, devices and libraries; or the datasets of a file. */
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "base/text/escape.h"
#include "io/describe/describe.h"
#include "io/write/output.h"
#include "kernels/kernels.h"
#include "src/operation.h"
#include "src/summary/libraries.h"
#include "src/summary/places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* A device that cannot be opened (taken, broken) is listed with the reason instead of its name. */
static void look_at_device(const gm_device_ops *ops, int index, gm_device_info *info)
{
    gm_device *device = NULL;
    int status = ops->open(index, 1, &device);
    if (!status)
        status = ops->describe(device, info);
    if (status) {
        gm_error error;
        gm_error_get(&error);
        gm_error_clear();
        *info = (gm_device_info){.index = -1, .numa_node = -1};
        snprintf(info->kind, sizeof info->kind, "%s", ops->kind);
        gm_escape_line(error.text, info->name, sizeof info->name);
    }
    if (device)
        ops->close(device);
}

static int count_of(const gm_device_ops *ops)
{
    int count = 0;
    if (ops->count(&count)) {
        gm_error_clear();
        count = 0;
    }
    return count;
}

static int64_t count_devices(void)
{
    int64_t count = 0;
    for (int k = 0; gm_device_kinds[k]; k++)
        count += count_of(gm_device_kinds[k]);
    return count;
}

static void look_around(const gm_job *job, int64_t room, gm_place *s)
{
    snprintf(s->host, sizeof s->host, "%s", job->ranks->host);
    for (int k = 0; gm_device_kinds[k]; k++)
        for (int i = 0, count = count_of(gm_device_kinds[k]); i < count && s->devices < room; i++)
            look_at_device(gm_device_kinds[k], i, &s->device[s->devices++]);
}

/* The path by which device memory goes from rank to rank. */
static void print_exchange(const gm_job *job, double rate)
{
    const gm_exchange_choice *x = &job->exchange;
    char reason[GM_ESCAPED * GM_MESSAGE_MAX];
    if (job->ranks->size == 1)
        return;
    printf("\nexchange between ranks, of device memory\n");
    printf("  %-12s %s%s%s\n", "path", x->path[0] ? x->path : "none", x->reason[0] ? ": " : "",
           gm_escape_line(x->reason, reason, sizeof reason));
    if (rate > 0)
        printf("  %-12s %.4g GB/s a rank, all at once\n", "to the next", rate / 1e9);
}

static void print_libraries(const gm_job *job)
{
    char text[GM_VERSION_TEXT];
    printf("\nlibraries\n");
    for (int i = 0; i < GM_LIBRARIES; i++)
        printf("  %-12s %s\n", gm_libraries[i].title, gm_libraries[i].version(text));
    printf("  %-12s %s\n", "CUDA", gm_cuda_version(text));
    if (job->exchange.version[0])
        printf("  %-12s %s\n", "NCCL", job->exchange.version);
}

/* Several ranks open the devices that they compute on, and try a path between them, and its rate: of this rank, and the
 * least. Where none works, that is said, unless the user has asked for one. Collective. */
static int try_exchange_all(gm_job *job, double *own, double *rate)
{
    gm_exchange *exchange = NULL;
    *own = *rate = 0;
    if (job->ranks->size == 1)
        return GM_OK;
    int was_hushed = gm_log_hush(1); /* of the devices all is said */
    int status = gm_job_open_device_all(job, 0);
    gm_log_hush(was_hushed);
    if (!status)
        status = gm_job_open_exchange_all(job, &(gm_exchange_setup){.wanted = "auto", .seconds = INFINITY}, &exchange);
    if (!status)
        status = gm_exchange_rate_all(exchange, own, rate);
    gm_exchange_close_all(exchange);
    if (!status || status == GM_ESTOPPED || strcmp(job->options->exchange, "auto") != 0)
        return status;
    gm_error error;
    gm_error_get(&error);
    gm_error_clear();
    job->exchange.path[0] = '\0';
    memcpy(job->exchange.reason, error.text, sizeof job->exchange.reason);
    return GM_OK;
}

/* The device of this rank and its processors, near to it; without one, those that it has anyway. Collective. */
static int find_place_all(gm_job *job, gm_place *mine)
{
    int64_t bound = job->binding.processors; /* with its device, as that of other ranks or not */
    int status = gm_job_agree_all(job, gm_min_all(&bound));
    if (!status && bound == 0)
        status = gm_job_bind_all(job, -1, 1);
    mine->binding = job->binding;
    mine->own = job->info;
    return status;
}

/* Room for the devices of this rank and, on rank 0, for the records of all ranks, which their devices follow. */
static int allocate(const gm_job *job, int64_t room, gm_place *mine, void **all)
{
    mine->device = calloc((size_t)room, sizeof *mine->device);
    if (!mine->device)
        return gm_fail(GM_EDEVICE, "no memory for the list of devices");
    size_t bytes = sizeof *mine + (size_t)room * sizeof *mine->device;
    return job->ranks->rank == 0 ? gm_host_alloc((size_t)job->ranks->size * bytes, all) : GM_OK;
}

/* Collective. */
static int gather_all(const gm_job *job, int64_t room, const gm_place *mine, gm_place *all)
{
    gm_device_info *devices = all ? (gm_device_info *)(all + job->ranks->size) : NULL;
    int status = gm_gather_all(job->ranks, mine, sizeof *mine, all);
    if (!status)
        status = gm_gather_all(job->ranks, mine->device, (size_t)room * sizeof *devices, devices);
    for (int r = 0; all && r < job->ranks->size; r++)
        all[r].device = devices + r * room;
    return gm_job_agree_all(job, status);
}

static int describe_machine_all(gm_job *job)
{
    gm_place mine = {.devices = 0};
    void *all = NULL;
    double rate = 0;
    int64_t least = -count_devices();
    int status = gm_job_agree_all(job, gm_min_all(&least));
    if (!status)
        status = gm_job_agree_all(job, allocate(job, -least, &mine, &all));
    if (!status) {
        look_around(job, -least, &mine);
        status = try_exchange_all(job, &mine.rate, &rate);
    }
    if (!status)
        status = find_place_all(job, &mine);
    if (!status)
        status = gather_all(job, -least, &mine, all);
    if (!status && job->ranks->rank == 0) {
        gm_places_print(all, job->ranks->size, job->ranks->hosts, job->exchange.path);
        print_exchange(job, rate);
        print_libraries(job);
        status = gm_stdout_flush();
    }
    gm_host_free(all);
    free(mine.device);
    return gm_job_agree_all(job, status);
}

/* The list of datasets: the width of each column, measured before it is printed. */
enum { COLUMNS = 4 };
typedef struct list {
    int printing, width[COLUMNS];
} list;

static int list_entry(void *context, const gm_listing *entry)
{
    const char *const words[COLUMNS] = {entry->name, entry->type, entry->shape, entry->storage};
    list *l = context;
    for (int i = 0; i < COLUMNS; i++) {
        char *text = gm_escape_line_copy(words[i]);
        if (!text)
            return gm_fail(GM_EDEVICE, "no memory for the list of datasets");
        int columns = gm_escape_columns(text), last = i == COLUMNS - 1;
        if (l->printing)
            printf("%s%*s%s", text, last ? 0 : l->width[i] - columns, "", last ? "\n" : "  ");
        else
            l->width[i] = (int)gm_max(l->width[i], columns);
        free(text);
    }
    return GM_OK;
}

static int describe_file(const char *file)
{
    list l = {0};
    int status = gm_list(file, list_entry, &l);
    l.printing = 1;
    if (!status)
        status = gm_list(file, list_entry, &l);
    return status ? status : gm_stdout_flush();
}

/* --- Leftovers --- */

typedef struct leftovers {
    int clean, others; /* remove those of ended runs; of other hosts as well */
    int count, removed;
} leftovers;

static void describe_owner(const gm_leftover *found, char *text, size_t room)
{
    static const char *const states[] = {[GM_OWNER_DEAD] = "ended",
                                         [GM_OWNER_ALIVE] = "running",
                                         [GM_OWNER_ELSEWHERE] = "on another host, or of an earlier start of this one"};
    snprintf(text, room, "process %ld, %s", found->process, states[found->owner]);
}

static int print_leftover(void *context, const gm_leftover *found)
{
    char size[GM_SIZE_TEXT], owner[128], path[GM_ESCAPED * GM_PATH_MAX];
    leftovers *l = context;
    int may = l->clean && (found->owner == GM_OWNER_DEAD || (found->owner == GM_OWNER_ELSEWHERE && l->others));
    int removed = may && gm_output_remove_leftover(found);
    describe_owner(found, owner, sizeof owner);
    printf("%12s %10.1f h  %s%s  %s\n", gm_size_format(found->bytes, size), difftime(time(NULL), found->changed) / 3600,
           owner, removed ? ", removed" : "", gm_escape_line(found->path, path, sizeof path));
    l->count++;
    l->removed += removed;
    return GM_OK;
}

static int list_leftovers(const gm_options *o)
{
    leftovers l = {.clean = o->clean, .others = o->force};
    struct stat st;
    if (stat(o->leftovers, &st) || !S_ISDIR(st.st_mode))
        return gm_fail(GM_EINPUT, "--leftovers %s: no such folder", o->leftovers);
    int status = gm_leftovers_each(o->leftovers, NULL, print_leftover, &l);
    if (status)
        return status;
    char folder[GM_ESCAPED * GM_PATH_MAX];
    printf("%d temporary file%s or folder%s in %s", l.count, l.count == 1 ? "" : "s", l.count == 1 ? "" : "s",
           gm_escape_line(o->leftovers, folder, sizeof folder));
    printf(l.clean ? ", %d removed\n" : "\n", l.removed);
    return gm_stdout_flush();
}

static int check_words(const gm_options *o)
{
    if (o->clean && !o->leftovers)
        return gm_fail(GM_EUSAGE, "--clean needs --leftovers FOLDER");
    if (o->leftovers && o->operand_count > 0)
        return gm_fail(GM_EUSAGE, "--leftovers %s: expected no FILE beside it, found %s", o->leftovers, o->operands[0]);
    return GM_OK;
}

/* The report must not replace the file, or one that its datasets are read from. */
static int check_report(gm_job *job)
{
    gm_dataset all = {.name = ""};
    const char *file = job->options->operand_count ? job->options->operands[0] : NULL;
    snprintf(all.file, sizeof all.file, "%s", file ? file : "");
    return gm_report_check(job, &all, file != NULL, NULL);
}

/* The part of rank 0 alone. */
static int look(gm_job *job)
{
    int status = check_report(job);
    if (status)
        return status;
    return job->options->leftovers ? list_leftovers(job->options) : describe_file(job->options->operands[0]);
}

static int is_of_files(const gm_options *o)
{
    return o->operand_count > 0 || o->leftovers;
}

static int run_all(gm_run *run)
{
    gm_job *job = run->job;
    const gm_options *o = job->options;
    int status = gm_job_agree_all(job, check_words(o));
    if (status)
        return status;
    if (is_of_files(o))
        return gm_job_agree_all(job, job->ranks->rank == 0 ? look(job) : GM_OK);
    status = gm_job_agree_all(job, job->ranks->rank == 0 ? check_report(job) : GM_OK);
    return status ? status : describe_machine_all(job);
}

const gm_operation gm_op_info = {.is_of_files = is_of_files, .run_all = run_all};
