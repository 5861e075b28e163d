/* info - where the program runs and with what; or what a file holds. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/size.h"
#include "io/describe.h"
#include "kernels/kernels.h"
#include "src/flat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 32 };

/* What one rank sees: a flat record. */
typedef struct sight {
    char host[GM_HOST_MAX];
    gm_binding binding;
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
        *info = (gm_device_info){.numa_node = -1};
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
    gm_bind(job->ranks->local_rank, job->ranks->local_size, -1, &s->binding);
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

static void print_ranks(const gm_job *job, const sight *all)
{
    int size = job->ranks->size, hosts = job->ranks->hosts;
    printf("%d rank%s on %d host%s\n\n", size, size > 1 ? "s" : "", hosts, hosts > 1 ? "s" : "");
    printf("%-5s %-24s %10s  %-16s %-6s %s\n", "rank", "host", "processors", "which", "bound", "memory");
    for (int r = 0; r < size; r++) {
        const gm_binding *b = &all[r].binding;
        char node[32] = "any node";
        if (b->numa_node >= 0)
            snprintf(node, sizeof node, "node %d of %d", b->numa_node, b->numa_nodes);
        printf("%-5d %-24s %10d  %-16s %-6s %s\n", r, all[r].host, b->processors, b->list[0] ? b->list : "-", b->bound ? "yes" : "no", node);
    }
}

static int same_device(const sight *a, const gm_device_info *x, const sight *b, const gm_device_info *y)
{
    return strcmp(a->host, b->host) == 0 && strcmp(x->kind, y->kind) == 0 && strcmp(x->name, y->name) == 0 && strcmp(x->uuid, y->uuid) == 0;
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
        printf("  %-12s %s, %s free\n", "memory", gm_size_format(d->memory_total, total), gm_size_format(d->memory_free, available));
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

static void print_libraries(void)
{
    char text[GM_VERSION_TEXT];
    printf("\nlibraries\n");
    printf("  %-12s %s\n", "HDF5", gm_hdf5_version(text));
    printf("  %-12s %s\n", "MPI", gm_mpi_version(text));
    printf("  %-12s %s\n", "BLAS", gm_blas_version(text));
    printf("  %-12s %s\n", "hwloc", gm_hwloc_version(text));
    printf("  %-12s %s\n", "jansson", JANSSON_VERSION);
    printf("  %-12s %s\n", "CUDA", gm_cuda_version(text));
}

static int flush(void)
{
    return fflush(stdout) || ferror(stdout) ? gm_fail(GM_EOUTPUT, "standard output: %s", strerror(errno)) : GM_OK;
}

static int describe_machine_all(const gm_job *job)
{
    sight *mine = malloc(sizeof *mine);
    void *all = NULL;
    int status = mine ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for what this rank sees");
    if (!status && job->ranks->rank == 0)
        status = gm_host_alloc((size_t)job->ranks->size * sizeof *mine, &all);
    status = gm_job_agree_all(job, status);
    if (!status) {
        look_around(job, mine);
        status = gm_job_agree_all(job, gm_gather_all(job->ranks, mine, sizeof *mine, all));
    }
    if (!status && job->ranks->rank == 0) {
        print_ranks(job, all);
        print_devices(job, all);
        print_libraries();
        status = flush();
    }
    gm_host_free(all);
    free(mine);
    return gm_job_agree_all(job, status);
}

/* Width of the columns of the list of datasets. */
typedef struct widths {
    int name, type, shape;
} widths;

static int measure(void *context, const gm_listing *entry)
{
    char shape[GM_SHAPE_TEXT];
    widths *w = context;
    w->name = (int)gm_max(w->name, (int64_t)strlen(entry->name));
    w->type = (int)gm_max(w->type, (int64_t)strlen(entry->type));
    w->shape = (int)gm_max(w->shape, (int64_t)strlen(gm_flat_shape(entry->rank, entry->dims, shape)));
    return GM_OK;
}

static int print_entry(void *context, const gm_listing *entry)
{
    char shape[GM_SHAPE_TEXT];
    const widths *w = context;
    printf("%-*s  %-*s  %-*s  %s\n", w->name, entry->name, w->type, entry->type, w->shape, gm_flat_shape(entry->rank, entry->dims, shape),
           entry->storage);
    return GM_OK;
}

static int describe_file(const char *file)
{
    widths w = {0};
    int status = gm_list(file, measure, &w);
    if (!status)
        status = gm_list(file, print_entry, &w);
    return status ? status : flush();
}

int gm_op_info(gm_job *job)
{
    double from = gm_clock();
    int status = GM_OK;
    if (job->options->operand_count == 0)
        status = describe_machine_all(job);
    else
        status = gm_job_agree_all(job, job->ranks->rank == 0 ? describe_file(job->options->operands[0]) : GM_OK);
    job->report.wall_s = gm_clock() - from;
    return status;
}
