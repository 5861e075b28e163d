#include "src/summary/places.h"

#include "base/size.h"
#include "kernels/kernels.h"

#include <stdio.h>
#include <string.h>

/* "staged, 1.85 GB/s": to the next rank, and from the last one to the first. */
static char *format_exchange(const char *path, double rate, char *text, size_t room)
{
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

static void print_ranks(const gm_place *all, int size, int hosts, const char *path)
{
    int are_several = size > 1;
    printf("%d rank%s on %d host%s\n\n", size, size > 1 ? "s" : "", hosts, hosts > 1 ? "s" : "");
    printf("%-5s %-24s %10s  %-16s %-6s %-9s ", "rank", "host", "processors", "which", "bound", "given by");
    printf(are_several ? "%-12s  %-21s  %s\n" : "%s\n", "memory", "to the next", "device");
    for (int r = 0; r < size; r++) {
        const gm_binding *b = &all[r].binding;
        char node[32] = "any node", exchange[32];
        if (b->numa_node >= 0)
            snprintf(node, sizeof node, "node %d of %d", b->numa_node, b->numa_nodes);
        printf("%-5d %-24s %10d  %-16s %-6s %-9s ", r, all[r].host, b->processors, b->list[0] ? b->list : "-",
               b->bound ? "yes" : "no", b->from[0] ? b->from : "-");
        if (are_several) {
            printf("%-12s  %-21s  ", node, format_exchange(path, all[r].rate, exchange, sizeof exchange));
            print_own_device(&all[r].own);
            printf("\n");
        } else {
            printf("%s\n", node);
        }
    }
}

static int same_device(const gm_place *a, const gm_device_info *x, const gm_place *b, const gm_device_info *y)
{
    return strcmp(a->host, b->host) == 0 && strcmp(x->kind, y->kind) == 0 && strcmp(x->name, y->name) == 0 &&
           strcmp(x->uuid, y->uuid) == 0;
}

static int sees(const gm_place *rank, const gm_place *of, const gm_device_info *device)
{
    for (int i = 0; i < rank->devices; i++)
        if (same_device(rank, &rank->device[i], of, device))
            return 1;
    return 0;
}

/* " 0 1 4-7": the ranks that see a device of this one, three or more in turn by the first and the last. */
static void print_observers(const gm_place *all, int size, int rank, const gm_device_info *device)
{
    for (int first = rank, end; first < size; first = end + 1) {
        for (end = first; end < size && sees(&all[end], &all[rank], device); end++)
            ;
        if (end - first > 2)
            printf(" %d-%d", first, end - 1);
        for (int r = first; r < end && end - first <= 2; r++)
            printf(" %d", r);
    }
    printf("\n");
}

/* "name value" where the value is known. */
static void print_rate(const char *name, double value, double unit, const char *word)
{
    if (value > 0)
        printf("  %-12s %.4g %s\n", name, value / unit, word);
}

static void print_device(const gm_place *all, int size, int rank, const gm_device_info *d)
{
    char total[GM_SIZE_TEXT], available[GM_SIZE_TEXT];
    printf("\n%s  %s\n", d->kind, d->name);
    printf("  %-12s %s, rank", "seen by", all[rank].host);
    print_observers(all, size, rank, d);
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
static void print_devices(const gm_place *all, int size)
{
    for (int r = 0; r < size; r++)
        for (int i = 0; i < all[r].devices; i++) {
            int before = 0;
            for (int q = 0; q < r && !before; q++)
                before = sees(&all[q], &all[r], &all[r].device[i]);
            if (!before)
                print_device(all, size, r, &all[r].device[i]);
        }
    for (int k = 0; gm_device_kinds[k]; k++)
        if (gm_device_kinds[k]->absence())
            printf("\n%s  none: %s\n", gm_device_kinds[k]->kind, gm_device_kinds[k]->absence());
}

void gm_places_print(const gm_place *all, int size, int hosts, const char *path)
{
    print_ranks(all, size, hosts, path);
    print_devices(all, size);
}
