/* Every strategy of reading yields the right bytes; every strategy of writing removes its files. */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/size.h"
#include "io/describe/describe.h"
#include "io/bench/benchmark.h"
#include "tests/io/each.h"

enum { ROWS = 300, COLS = 1001, PIECE = 64 * 1024, THREADS = 3 };
static int32_t data[ROWS * COLS];

static void make_data(void)
{
    const hsize_t shape[2] = {ROWS, COLS}, chunk[2] = {7, 500};
    hid_t file = make_file("dataset.h5"), plist = H5Pcreate(H5P_DATASET_CREATE);
    for (int i = 0; i < ROWS * COLS; i++)
        data[i] = i * 7 + 1;
    put_dataset(file, "/plain", H5T_NATIVE_INT32, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT32, data);
    H5Pset_chunk(plist, 2, chunk);
    H5Pset_deflate(plist, 1);
    put_dataset(file, "/packed", H5T_NATIVE_INT32, 2, shape, plist, H5T_NATIVE_INT32, data);
    H5Pclose(plist);
    H5Fclose(file);
}

/* The bytes that a strategy must read; the caller frees them. */
static char *expected(const gm_dataset *dataset, gm_read_strategy strategy, int64_t bytes)
{
    char *all = malloc((size_t)bytes);
    int fd;
    if (strategy == GM_READ_HDF5 || strategy == GM_READ_READER) {
        memcpy(all, data, gm_min(bytes, sizeof data));
        return all;
    }
    fd = open(dataset->data_file, O_RDONLY);
    if (pread(fd, all, (size_t)bytes, dataset->direct ? dataset->offset / 4096 * 4096 : 0) != bytes)
        memset(all, 0x5a, (size_t)bytes);
    close(fd);
    return all;
}

static void check_read(const char *name, gm_read_strategy strategy, int64_t most, int64_t piece)
{
    gm_dataset dataset;
    gm_read_benchmark *benchmark = NULL;
    char *slots = aligned_alloc(4096, (size_t)(THREADS * piece)), *right;
    int64_t bytes = 0, at = 0, wrong = 0;
    double seconds;
    int status = gm_describe(own_text("dataset.h5:", name), NULL, &dataset);
    status = status ? status : gm_read_benchmark_open(&dataset, strategy, most, piece, &benchmark);
    if (!status && !benchmark && strategy == GM_READ_DIRECT) {
        tap_skip("not supported by this file system", "%s by %s", name, gm_read_strategy_name(strategy));
        free(slots);
        return;
    }
    status = status ? status : gm_read_benchmark_run(benchmark, THREADS, slots, 100, &bytes, &seconds);
    if (succeeds(status, gm_read_strategy_name(strategy))) {
        tap_ok(bytes == gm_read_benchmark_bytes(benchmark) && bytes > 0 && bytes <= most, "%s by %s: %lld bytes", name,
               gm_read_strategy_name(strategy), (long long)bytes);
        right = expected(&dataset, strategy, bytes);
        for (int64_t i = 0;
             i < gm_read_benchmark_pieces(benchmark) && strategy != GM_READ_MEMORY && strategy != GM_READ_MMAP; i++) {
            wrong += gm_read_benchmark_read(benchmark, i, slots) != GM_OK;
            wrong += memcmp(slots, right + at, (size_t)gm_read_benchmark_piece_bytes(benchmark, i)) != 0;
            at += gm_read_benchmark_piece_bytes(benchmark, i);
        }
        tap_ok(wrong == 0 && (at == 0 || at == bytes), "%s by %s: the bytes of each piece", name,
               gm_read_strategy_name(strategy));
        free(right);
    }
    gm_read_benchmark_close(benchmark);
    free(slots);
}

static int entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static void check_write(void)
{
    char *block = aligned_alloc(4096, (size_t)THREADS * PIECE);
    const char *file = own("dataset.h5");
    int before = entries(own("."));
    memset(block, 7, (size_t)THREADS * PIECE);
    for (gm_write_strategy strategy = GM_WRITE_PLAIN; strategy < GM_WRITE_STRATEGIES; strategy++) {
        gm_write_benchmark t = {.strategy = strategy,
                                .files = 1,
                                .threads = THREADS,
                                .blocks = 20,
                                .block_bytes = PIECE,
                                .data = block,
                                .stride = PIECE,
                                .limit = 100,
                                .sync = strategy == GM_WRITE_PLAIN};
        tap_ok(gm_write_benchmark_run(file, &t) > 0 || strategy > GM_WRITE_ALLOCATED, "written: %s",
               gm_write_strategy_name(strategy));
    }
    tap_ok(gm_write_benchmark_run(file, &(gm_write_benchmark){.strategy = GM_WRITE_PLAIN,
                                                              .files = THREADS,
                                                              .threads = THREADS,
                                                              .blocks = 20,
                                                              .block_bytes = PIECE,
                                                              .data = block,
                                                              .stride = PIECE,
                                                              .limit = 100}) > 0,
           "written: parts");
    tap_ok(gm_write_benchmark_run(own("none/dataset.h5"), &(gm_write_benchmark){.strategy = GM_WRITE_PLAIN,
                                                                                .files = 1,
                                                                                .threads = 1,
                                                                                .blocks = 1,
                                                                                .block_bytes = PIECE,
                                                                                .data = block,
                                                                                .limit = 100}) == 0,
           "not written: a missing folder");
    tap_ok(entries(own(".")) == before, "no file is left");
    free(block);
}

int main(void)
{
    make_data();
    for (gm_read_strategy strategy = GM_READ_MEMORY; strategy < GM_READ_STRATEGIES; strategy++) {
        check_read("/plain", strategy, 1 << 24, PIECE);
        check_read("/plain", strategy, 100000, 4096);
        check_read("/packed", strategy, 1 << 24, PIECE);
    }
    check_write();
    return tap_done();
}
