/* The pairs of bench link, on three ranks whose device memory is a file that the others map: each ordered pair and the
 * ring have a row; wrong bytes on one rank are an error; memory that cannot be shared, or reached, is a row without a
 * rate. */
#include "src/bench/machine/pairs.h"

#include "base/log.h"
#include "tests/src/command.h"
#include "tests/src/slow/memory.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 3, BLOCKS = 64 };

static gm_ranks ranks;
static gm_device_ops ops;
static gm_measure_ops measure;
static int refuses, is_unreached, is_corrupt; /* on this rank: share, attach; the memory that it shares */

static struct {
    void *memory;
    size_t bytes;
    char name[GM_SHARED_NAME];
} blocks[BLOCKS];

static int find_block(const void *memory)
{
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].memory == memory)
            return i;
    return -1;
}

static void *map(const char *name, size_t *bytes, int flags)
{
    char path[512];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "/tmp", name);
    int file = open(path, O_RDWR | flags, 0600);
    if (file < 0 || (flags && ftruncate(file, (off_t)*bytes)))
        return NULL;
    *bytes = (size_t)lseek(file, 0, SEEK_END);
    void *memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static int alloc(gm_device *device, size_t bytes, void **out)
{
    static int number;
    int i = find_block(NULL);
    (void)device;
    blocks[i].bytes = bytes + 16;
    snprintf(blocks[i].name, sizeof blocks[i].name, "gpu-%d-%d", ranks.rank, number++);
    *out = blocks[i].memory = map(blocks[i].name, &blocks[i].bytes, O_CREAT);
    if (*out)
        slow_memory_add(*out, bytes);
    return *out ? GM_OK : gm_fail(GM_EDEVICE, "no file for device memory");
}

static void release(gm_device *device, void *memory)
{
    int i = memory ? find_block(memory) : -1;
    (void)device;
    if (i < 0)
        return;
    slow_memory_remove(memory);
    munmap(memory, blocks[i].bytes);
    blocks[i].memory = NULL;
}

static int share(gm_device *device, void *memory, gm_shared_memory *shared, char why[GM_SHARED_WHY])
{
    (void)device;
    memset(shared, 0, sizeof *shared);
    snprintf(why, GM_SHARED_WHY, "%s", refuses ? "planted: it is not shared" : "");
    memcpy(shared->name, blocks[find_block(memory)].name, sizeof shared->name);
    if (is_corrupt)
        ((char *)memory)[(5 << 20) / 2] ^= 1;
    return GM_OK;
}

static int attach(gm_device *device, const gm_shared_memory *shared, void **memory, char why[GM_SHARED_WHY])
{
    size_t bytes;
    (void)device;
    snprintf(why, GM_SHARED_WHY, "%s", is_unreached ? "planted: it is too far" : "");
    *memory = is_unreached ? NULL : map(shared->name, &bytes, 0);
    if (*memory)
        slow_memory_add(*memory, bytes);
    return GM_OK;
}

static void detach(gm_device *device, void *memory)
{
    (void)device;
    if (memory) {
        slow_memory_remove(memory);
        munmap(memory, 4 << 20);
    }
}

/* --- Runs --- */

static int is_brief;                           /* the pairs of the ring only */
static int outcome, reached, unreached, rings; /* of the last one; rows: on rank 0 */
static gm_error error;

static void count_rows(const gm_bench *bench)
{
    reached = unreached = rings = 0;
    for (int i = 0; i < bench->row_count; i++) {
        const gm_bench_row *row = &bench->rows[i];
        int is_ring = strstr(row->variant, "ring") != NULL, has_rate = gm_bench_rate(row) > 0;
        rings += is_ring && has_rate;
        reached += !is_ring && has_rate;
        unreached += !has_rate && strcmp(row->kernel, "out of reach") == 0;
    }
}

/* In the place of an operation: the pairs alone, of a job whose device is open. */
static void measure_pairs(gm_job *job)
{
    const gm_device_ops *real = job->ops;
    gm_bench bench = {.job = job, .test = "link", .is_brief = is_brief};
    ops = *slow_device_ops(real);
    measure = *real->measure;
    measure.share = share;
    measure.attach = attach;
    measure.detach = detach;
    ops.alloc = alloc;
    ops.free = release;
    ops.measure = &measure;
    job->ops = &ops;
    outcome = gm_bench_open_all(job, &bench);
    if (!outcome)
        outcome = gm_bench_pairs_all(&bench);
    count_rows(&bench);
    gm_bench_close(&bench);
    job->ops = real;
    gm_error_get(&error);
    gm_error_clear();
}

static void test_rows(const char *name, int pairs, int lost, int whole)
{
    int status = command_run_all(&ranks, measure_pairs, "bench --list --device cpu --threads 1 --host-memory 400M");
    tap_ok(!status && outcome == GM_OK, "%s: status %d %s", name, outcome, error.text);
    tap_ok(ranks.rank != 0 || (reached == pairs && unreached == lost && rings == whole),
           "%s: %d pairs, %d out of reach, %d rings", name, reached, unreached, rings);
}

int main(void)
{
    if (gm_ranks_start_all(&ranks) || ranks.size != RANKS)
        return 1;
    gm_log_setup(ranks.rank == 0, GM_QUIET);
    test_rows("good", 6, 0, 1);
    is_brief = 1;
    test_rows("good, in brief", 3, 0, 1);
    refuses = ranks.rank == 1;
    test_rows("memory that is not shared", 2, 1, 0);
    refuses = 0;
    is_unreached = ranks.rank == 2;
    test_rows("memory out of reach", 2, 1, 0);
    is_unreached = 0;
    is_corrupt = ranks.rank == 1;
    command_run_all(&ranks, measure_pairs, "bench --list --device cpu --threads 1 --host-memory 400M");
    tap_ok(outcome == GM_ECHECK && strstr(error.text, "wrong bytes arrived from the device of rank 1"),
           "wrong bytes: %s", error.text);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
