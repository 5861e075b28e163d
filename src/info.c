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

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_DEVICES = 32 };

/* The devices and processors of one rank: a flat record. */
typedef struct sight {
    char host[GM_HOST_MAX];
    gm_binding binding;
    gm_device_info own; /* of several ranks: the device that this one computes on; kind "": there is none */
    double rate;        /* of exchange with the next rank, bytes per second; 0: unknown */
    int devices;
    gm_device_info device[MOST_DEVICES];
} sight;

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
        snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, error.text);
    }
    if (device)
        ops->close(device);
}

static void look_around(const gm_job *job, sight *s)
{
    memset(s, 0, sizeof *s);
    snprintf(s->host, sizeof s->host, "%s", job->ranks->host);
    for (int k = 0; gm_device_kinds[k]; k++) {
        int count = 0;
        if (gm_device_kinds[k]->count(&count)) {
            gm_error_clear();
            count = 0;
        }
        for (int i = 0; i < count && s->devices < MOST_DEVICES; i++)
            look_at_device(gm_device_kinds[k], i, &s->device[s->devices++]);
    }
}

/* "staged, 1.85 GB/s": to the next rank, and from the last one to the first. */
static char *format_exchange(const gm_job *job, double rate, char *text, size_t room)
{
    const char *path = job->exchange.path;
    if (path[0] && rate > 0)
        snprintf(text, room, "%s, %.3g GB/s", path, rate / 1e9);
    else
        snprintf(text, room, "%s", path[0] ? path : "none");
    return text;
}

/* "cuda 2  NVIDIA H200" */
static void print_own_device(const gm_device_info *d)
{
    printf("%s", d->kind[0] ? d->kind : "-");
    if (d->index >= 0 && d->kind[0])
        printf(" %d", d->index);
    printf("%s%s", d->name[0] ? "  " : "", d->name);
}

static void print_ranks(const gm_job *job, const sight *all)
{
    int size = job->ranks->size, hosts = job->ranks->hosts, are_several = size > 1;
    printf("%d rank%s on %d host%s\n\n", size, size > 1 ? "s" : "", hosts, hosts > 1 ? "s" : "");
    printf("%-5s %-24s %10s  %-16s %-6s %-9s ", "rank", "host", "processors", "which", "bound", "given by");
    printf(are_several ? "%-12s  %-18s  %s\n" : "%s\n", "memory", "to the next", "device");
    for (int r = 0; r < size; r++) {
        const gm_binding *b = &all[r].binding;
        char node[32] = "any node", exchange[32];
        if (b->numa_node >= 0)
            snprintf(node, sizeof node, "node %d of %d", b->numa_node, b->numa_nodes);
        printf("%-5d %-24s %10d  %-16s %-6s %-9s ", r, all[r].host, b->processors, b->list[0] ? b->list : "-",
               b->bound ? "yes" : "no", b->from[0] ? b->from : "-");
        if (are_several) {
            printf("%-12s  %-18s  ", node, format_exchange(job, all[r].rate, exchange, sizeof exchange));
            print_own_device(&all[r].own);
            printf("\n");
        } else {
            printf("%s\n", node);
        }
    }
}

static int same_device(const sight *a, const gm_device_info *x, const sight *b, const gm_device_info *y)
{
    return strcmp(a->host, b->host) == 0 && strcmp(x->kind, y->kind) == 0 && strcmp(x->name, y->name) == 0 &&
           strcmp(x->uuid, y->uuid) == 0;
}

static int sees(const sight *rank, const sight *of, const gm_device_info *device)
{
    for (int i = 0; i < rank->devices; i++)
        if (same_device(rank, &rank->device[i], of, device))
            return 1;
    return 0;
}

/* "name value" where the value is known. */
static void print_rate(const char *name, double value, double unit, const char *word)
{
    if (value > 0)
        printf("  %-12s %.4g %s\n", name, value / unit, word);
}

static void print_device(const gm_job *job, const sight *all, int rank, const gm_device_info *d)
{
    char total[GM_SIZE_TEXT], available[GM_SIZE_TEXT];
    printf("\n%s  %s\n", d->kind, d->name);
    printf("  %-12s %s, rank", "seen by", all[rank].host);
    for (int r = rank; r < job->ranks->size; r++)
        if (sees(&all[r], &all[rank], d))
            printf(" %d", r);
    printf("\n");
    if (d->uuid[0])
        printf("  %-12s %s\n", "uuid", d->uuid);
    if (d->pci[0])
        printf("  %-12s %s\n", "pci", d->pci);
    if (d->numa_node >= 0)
        printf("  %-12s node %d\n", "near memory", d->numa_node);
    if (d->memory_total > 0)
        printf("  %-12s %s, %s free\n", "memory", gm_size_format(d->memory_total, total),
               gm_size_format(d->memory_free, available));
    if (d->capability > 0)
        printf("  %-12s %d.%d\n", "capability", d->capability / 10, d->capability % 10);
    if (d->multiprocessors > 0)
        printf("  %-12s %d\n", "units", d->multiprocessors);
    print_rate("clock", (double)d->clock_hz, 1e6, "MHz");
    print_rate("memory clock", (double)d->memory_clock_hz, 1e6, "MHz");
    print_rate("memory bus", d->memory_bus_bits, 1, "bits");
    print_rate("l2 cache", (double)d->l2_bytes, 1 << 20, "MiB");
    print_rate("memory limit", d->memory_limit, 1e9, "GB/s");
    print_rate("fp32 limit", d->fp32_limit, 1e12, "Tflop/s");
    print_rate("fp64 limit", d->fp64_limit, 1e12, "Tflop/s");
}

/* Each device once, however many ranks see it. */
static void print_devices(const gm_job *job, const sight *all)
{
    for (int r = 0; r < job->ranks->size; r++)
        for (int i = 0; i < all[r].devices; i++) {
            int before = 0;
            for (int q = 0; q < r && !before; q++)
                before = sees(&all[q], &all[r], &all[r].device[i]);
            if (!before)
                print_device(job, all, r, &all[r].device[i]);
        }
    for (int k = 0; gm_device_kinds[k]; k++)
        if (gm_device_kinds[k]->absence())
            printf("\n%s  none: %s\n", gm_device_kinds[k]->kind, gm_device_kinds[k]->absence());
}

/* How device memory goes from rank to rank. */
static void print_exchange(const gm_job *job, double rate)
{
    const gm_exchange_choice *x = &job->exchange;
    if (job->ranks->size == 1)
        return;
    printf("\nexchange between ranks, of device memory\n");
    printf("  %-12s %s%s%s\n", "path", x->path[0] ? x->path : "none", x->reason[0] ? ": " : "", x->reason);
    print_rate("to the next", rate, 1e9, "GB/s a rank, all at once");
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
        status = gm_job_open_exchange_all(job, "auto", &exchange);
    if (!status)
        status = gm_exchange_rate_all(exchange, own, rate);
    gm_exchange_close(exchange);
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
static int find_place_all(gm_job *job, sight *mine)
{
    int64_t bound = job->binding.processors; /* with its device, as that of other ranks or not */
    int status = gm_job_agree_all(job, gm_min_all(&bound));
    if (!status && bound == 0)
        status = gm_bind_all(job->ranks, -1, &job->binding);
    mine->binding = job->binding;
    mine->own = job->info;
    return status;
}

static int describe_machine_all(gm_job *job)
{
    sight *mine = malloc(sizeof *mine);
    void *all = NULL;
    double rate = 0;
    int status = mine ? GM_OK : gm_fail(GM_EDEVICE, "no memory for the list of devices");
    if (!status && job->ranks->rank == 0)
        status = gm_host_alloc((size_t)job->ranks->size * sizeof *mine, &all);
    status = gm_job_agree_all(job, status);
    if (!status) {
        look_around(job, mine);
        status = try_exchange_all(job, &mine->rate, &rate);
    }
    if (!status)
        status = find_place_all(job, mine);
    if (!status)
        status = gm_job_agree_all(job, gm_gather_all(job->ranks, mine, sizeof *mine, all));
    if (!status && job->ranks->rank == 0) {
        print_ranks(job, all);
        print_devices(job, all);
        print_exchange(job, rate);
        print_libraries(job);
        status = gm_stdout_flush();
    }
    gm_host_free(all);
    free(mine);
    return gm_job_agree_all(job, status);
}

/* The list of datasets: the width of each column, measured before it is printed. */
enum { COLUMNS = 4 };
typedef struct list {
    int printing, width[COLUMNS];
} list;

static int list_entry(void *context, const gm_listing *entry)
{
    char shape[GM_SHAPE_TEXT];
    const char *const words[COLUMNS] = {entry->name, entry->type, gm_shape_format(entry->rank, entry->dims, shape),
                                        entry->storage};
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

/* What rank 0 does alone. */
static int look(gm_job *job)
{
    int status = check_report(job);
    if (status)
        return status;
    return job->options->leftovers ? list_leftovers(job->options) : describe_file(job->options->operands[0]);
}

static int run_all(gm_run *run)
{
    gm_job *job = run->job;
    const gm_options *o = job->options;
    int status = gm_job_agree_all(job, check_words(o));
    if (status)
        return status;
    if (o->operand_count > 0 || o->leftovers)
        return gm_job_agree_all(job, job->ranks->rank == 0 ? look(job) : GM_OK);
    status = gm_job_agree_all(job, job->ranks->rank == 0 ? check_report(job) : GM_OK);
    return status ? status : describe_machine_all(job);
}

const gm_operation gm_op_info = {.run_all = run_all};
