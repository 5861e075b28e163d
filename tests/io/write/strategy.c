/* strategy.c - write strategies and the space of an output: probed, allocated while others write, missing. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/file/new_file.h"
#include "base/stop.h"
#include "tests/io/write/each.h"

/* Every write strategy, forced: pages and half pages, dense in memory and with gaps. */
static void check_ways(void)
{
    static const int64_t pages[2] = {300, 1024}, odd[2] = {700, 333};
    for (gm_write_strategy strategy = GM_WRITE_PLAIN; strategy < GM_WRITE_STRATEGIES; strategy++) {
        for (int gap = 0; gap < 2; gap++) {
            char name[64];
            snprintf(name, sizeof name, "%s%d.h5", gm_write_strategy_name(strategy), gap);
            start(name, 0);
            add("/pages", GM_DTYPE_F64, 2, pages);
            add("/odd", GM_DTYPE_I32, 2, odd);
            record.strategy = strategy;
            if (works(strategy))
                check_round(name, gap ? 11 : 64, gap ? 100 : 1024, gap ? 24 : 0);
            else
                tap_skip("this file system cannot", "%s", name);
            tap_ok(count_files(name) == (access(own(name), F_OK) == 0), "%s: nothing else is left", name);
        }
    }
    start("asked.h5", 0);
    add("/pages", GM_DTYPE_F64, 2, pages);
    record.layout = GM_OUTPUT_AUTO;
    check_round("a small one", 64, 1024, 0);
    tap_ok(record.strategy == GM_WRITE_PLAIN && record.parts == 0 && gm_output_gain(&record) == 0,
           "is written plainly, unprobed");
}

/* 256 MiB, of which nothing is written: the probe leaves no file, and finds a strategy. */
static void check_probe(void)
{
    static const int64_t large[2] = {1 << 15, 1 << 10};
    start("sizable.h5", 0);
    add("/large", GM_DTYPE_F64, 2, large);
    record.threads = 2;
    if (!succeeds(gm_output_create(&record), "a large output"))
        return;
    tap_ok(record.strategy != GM_WRITE_PROBED && record.rate[GM_WRITE_PLAIN] > 0, "probed: %s",
           gm_write_strategy_name(record.strategy));
    tap_ok(count_files(".probe") == 0 && count_files("sizable.h5") == gm_new_file_has_name(record.temporary),
           "the probe leaves no file");
    gm_output_discard(&record);
    tap_ok(count_files("sizable.h5") == 0, "discarded");
}

/* A file system that is full for good: 8 MiB of memory, where a test may mount one. */
static void check_full_mount(void)
{
    static const int64_t small[2] = {100, 1000}, large[2] = {2000, 1000};
    const char *folder = own("mount");
    int mounted;
    mkdir(folder, 0777);
    mounted = mount("tmpfs", folder, "tmpfs", 0, "size=8m") == 0;
    if (!mounted)
        tap_skip("no file system can be mounted here", "a full file system");
    for (int i = 0; i < 6 && mounted; i++) {
        static const struct {
            gm_write_strategy strategy;
            gm_output_layout layout;
            int deflate;
        } forms[] = {{GM_WRITE_PLAIN, GM_OUTPUT_SINGLE, 0},  {GM_WRITE_ALLOCATED, GM_OUTPUT_SINGLE, 0},
                     {GM_WRITE_MAPPED, GM_OUTPUT_SINGLE, 0}, {GM_WRITE_PLAIN, GM_OUTPUT_PARTS, 0},
                     {GM_WRITE_PLAIN, GM_OUTPUT_SINGLE, 1},  {GM_WRITE_MAPPED, GM_OUTPUT_SINGLE, -1}};
        int64_t files = count_files_in(folder, "");
        int status;

        start("mount/c.h5", 0);
        record.strategy = forms[i].strategy;
        record.layout = forms[i].layout;
        add("/C", GM_DTYPE_F64, 2, forms[i].deflate < 0 ? small : large)->deflate = gm_max(forms[i].deflate, 0);
        status = gm_output_create(&record);
        if (!status)
            status = write_all(100, 1000, 0);
        if (forms[i].deflate < 0) {
            succeeds(status, "there is room for a small one");
        } else {
            fails(status, GM_EOUTPUT, "No space left on device", "a full file system");
        }
        gm_output_discard(&record);
        tap_ok(count_files_in(folder, "") == files, "nothing is left of it");
    }
    if (mounted)
        umount(folder);
}

static void *fill(void *status)
{
    *(int *)status = gm_output_allocate(&record);
    return NULL;
}

/* Space that is allocated while others write: written from the end, so that the first one to write waits the longest.
 */
static void check_overlap(void)
{
    static const int64_t large[2] = {21000, 1000};
    const gm_write_strategy strategies[] = {GM_WRITE_ALLOCATED, GM_WRITE_MAPPED, GM_WRITE_DIRECT};
    double *row = malloc((size_t)large[1] * sizeof *row), first[2] = {-1, -1};
    gm_output *output;
    gm_dataset dataset;
    gm_reader *reader;
    char title[64];
    for (size_t w = 0; w < sizeof strategies / sizeof strategies[0]; w++) {
        pthread_t thread;
        int filled = -1;
        start("overlap.h5", 1);
        add("/C", GM_DTYPE_F64, 2, large);
        record.strategy = strategies[w];
        record.overlap = 1;
        record.hosts = 1;
        snprintf(title, sizeof title, "overlapped allocation, %s", gm_write_strategy_name(strategies[w]));
        if (!works(strategies[w])) {
            tap_skip("not on this file system", "%s", title);
            continue;
        }
        record.strategy = strategies[w];
        int status = gm_output_create(&record) || gm_output_open(&record, &output);
        tap_ok(!status && record.space > large[0] * large[1] * 8, "%s: it is to come", title);
        pthread_create(&thread, NULL, fill, &filled);
        for (int64_t i = large[0]; i-- > 0 && !status;) {
            for (int64_t j = 0; j < large[1]; j++)
                row[j] = (double)(i * large[1] + j);
            status = gm_output_write(output, 0, i, 1, 0, large[1], row, 0);
        }
        pthread_join(thread, NULL);
        succeeds(status || filled || gm_output_close(output, NULL) || gm_output_finish(&record, NULL, 0, NULL), title);
        status = gm_describe(own("overlap.h5"), NULL, &dataset) || gm_reader_open(&dataset, &reader);
        for (int64_t i = 0; i < large[0] && !status; i += 997) {
            status = gm_reader_read(reader, i, 1, 0, 2, first, sizeof first) || first[1] != (double)(i * large[1] + 1);
        }
        if (succeeds(status, "and read back"))
            gm_reader_close(reader);
    }
    unlink(own("overlap.h5"));
    free(row);
}

/* After the failure of a run neither the allocation nor a writer that waits for it goes on to its end. */
static void check_abandoned(void)
{
    static const int64_t large[2] = {21000, 1000};
    const double row[1000] = {0};
    gm_output *output = NULL;
    for (gm_write_strategy strategy = GM_WRITE_ALLOCATED; strategy <= GM_WRITE_MAPPED; strategy++) {
        pthread_t thread;
        int filled = -1;
        struct stat st;
        if (!works(strategy)) {
            tap_skip("not on this file system", "%s: abandoned", gm_write_strategy_name(strategy));
            continue;
        }
        start("overlap.h5", 1);
        add("/C", GM_DTYPE_F64, 2, large);
        record.strategy = strategy;
        record.overlap = 1;
        succeeds(gm_output_create(&record) || gm_output_open(&record, &output), "abandoned while space is to come");
        gm_stop_abandon(1);
        pthread_create(&thread, NULL, fill, &filled);
        int status = gm_output_write(output, 0, 20999, 1, 0, 1000, row, 0);
        pthread_join(thread, NULL);
        gm_stop_abandon(0);
        tap_ok(filled == GM_EPEER && status == GM_EPEER && !fstat(record.descriptor, &st) && st.st_size < record.space,
               "%s: neither goes on", gm_write_strategy_name(strategy));
        gm_output_close(output, NULL);
        gm_output_discard(&record);
        gm_error_clear();
    }
}

/* Space that ends after the first slice: a writer that waits for more fails as well, and no file is left. */
static void check_overlap_full(void)
{
    static const int64_t large[2] = {21000, 1000};
    const char *folder = own("mount");
    double row[1000] = {0};
    gm_output *output = NULL;
    mkdir(folder, 0777);
    if (mount("tmpfs", folder, "tmpfs", 0, "size=100m")) {
        tap_skip("no file system can be mounted here", "space that ends");
        return;
    }
    for (gm_write_strategy strategy = GM_WRITE_ALLOCATED; strategy <= GM_WRITE_MAPPED; strategy++) {
        pthread_t thread;
        int filled = -1;
        start("mount/c.h5", 0);
        add("/C", GM_DTYPE_F64, 2, large);
        record.strategy = strategy;
        record.overlap = 1;
        succeeds(gm_output_create(&record) || gm_output_open(&record, &output), "there is space for the beginning");
        if (strategy == GM_WRITE_ALLOCATED) /* mappings wait for all of it */
            succeeds(gm_output_write(output, 0, 0, 1, 0, 1000, row, 0), "which can be written");
        pthread_create(&thread, NULL, fill, &filled);
        fails(gm_output_write(output, 0, 20999, 1, 0, 1000, row, 0), GM_EOUTPUT, "c.h5: no space for 16",
              "not the end");
        pthread_join(thread, NULL);
        tap_ok(filled == GM_EOUTPUT, "the space ended");
        gm_error_clear();
        gm_output_close(output, NULL);
        gm_output_discard(&record);
        tap_ok(count_files_in(folder, "c.h5") == 0, "nothing is left of it");
    }
    umount(folder);
}

/* A limit on the size of files stands for a full disk. */
static void check_full(void)
{
    static const int64_t matrix[2] = {100, 1000};
    struct rlimit old, limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    start("full.h5", 0);
    add("/C", GM_DTYPE_F64, 2, matrix);
    gm_output_create(&record);
    limit = old;
    limit.rlim_cur = 400000;
    setrlimit(RLIMIT_FSIZE, &limit);
    fails(write_all(10, 1000, 0), GM_EOUTPUT, "failed: File too large, expected room for 781", "no space");
    gm_output_discard(&record);
    start("full.h5", 0);
    add("/C", GM_DTYPE_F64, 2, matrix);
    fails(gm_output_create(&record), GM_EOUTPUT, "full.h5: cannot be created", "no space at the start");
    setrlimit(RLIMIT_FSIZE, &old);

    start("full.h5", 0);
    add("/C", GM_DTYPE_F64, 2, matrix)->chunked = 1;
    record.dataset[0].chunk[0] = record.dataset[0].chunk[1] = 100;
    gm_output_create(&record);
    write_all(100, 1000, 0);
    setrlimit(RLIMIT_FSIZE, &limit);
    fails(gm_output_pack(&record, 0, 2), GM_EOUTPUT, "full.h5: writing", "no space for packed chunks");
    fails(gm_output_finish(&record, NULL, 0, NULL), GM_EOUTPUT, "full.h5", "no space at the end");
    setrlimit(RLIMIT_FSIZE, &old);
    tap_ok(count_files("full.h5") == 0, "nothing is left of it");
}

int main(void)
{
    int before;
    H5Fclose(make_file("first.h5"));
    before = open_files();
    check_ways();
    check_probe();
    check_overlap();
    check_full_mount();
    check_abandoned();
    check_overlap_full();
    check_full();
    tap_ok(open_files() == before, "no file is left open");
    return tap_done();
}
