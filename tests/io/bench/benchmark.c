/* Every strategy of reading yields the right bytes, also in shares; every strategy of writing removes its files, also
 * one of two writers, which holds the bytes of both. */
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
    const gm_write_benchmark usual = {.strategy = GM_WRITE_PLAIN,
                                      .files = 1,
                                      .threads = THREADS,
                                      .blocks = 20,
                                      .block_bytes = PIECE,
                                      .data = block,
                                      .stride = PIECE,
                                      .limit = 100};
    gm_write_benchmark t = usual;
    for (t.strategy = GM_WRITE_PLAIN; t.strategy < GM_WRITE_STRATEGIES; t.strategy++) {
        t.sync = t.strategy == GM_WRITE_PLAIN;
        tap_ok(gm_write_benchmark_run(file, &t) > 0 || t.strategy > GM_WRITE_ALLOCATED, "written: %s",
               gm_write_strategy_name(t.strategy));
    }
    t = usual;
    t.files = THREADS;
    tap_ok(gm_write_benchmark_run(file, &t) > 0, "written: parts");
    t = usual;
    t.limit = -1;
    tap_ok(gm_write_benchmark_run(file, &t) > 0, "the first block is written where the limit has passed before");
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

/* Shares of several processes: their pieces follow each other. */
static void check_cut(gm_read_strategy strategy)
{
    enum { SHARES = 3 };
    gm_dataset dataset;
    char *one = aligned_alloc(4096, PIECE), *other = aligned_alloc(4096, PIECE);
    gm_read_benchmark *all = NULL;
    int64_t done = 0, wrong = 0, bytes = 0;
    if (gm_describe(own_text("dataset.h5:", "/plain"), NULL, &dataset) ||
        gm_read_benchmark_open(&dataset, strategy, INT64_MAX, PIECE, &all))
        wrong++;
    for (int share = 0; share < SHARES && all; share++) {
        gm_read_benchmark *part = NULL;
        wrong += gm_read_benchmark_open(&dataset, strategy, INT64_MAX, PIECE, &part) != GM_OK;
        gm_read_benchmark_cut(part, share, SHARES);
        for (int64_t i = 0; i < gm_read_benchmark_pieces(part); i++, done++) {
            size_t n = (size_t)gm_read_benchmark_piece_bytes(part, i);
            wrong += gm_read_benchmark_read(part, i, one) || gm_read_benchmark_read(all, done, other) ||
                     gm_read_benchmark_piece_bytes(all, done) != (int64_t)n || memcmp(one, other, n) != 0;
        }
        bytes += gm_read_benchmark_bytes(part);
        gm_read_benchmark_close(part);
    }
    tap_ok(all && wrong == 0 && done == gm_read_benchmark_pieces(all) && bytes == gm_read_benchmark_bytes(all),
           "%s: three shares are all pieces, once each", gm_read_strategy_name(strategy));
    gm_read_benchmark_close(all);
    free(one);
    free(other);
}

/* Two runs write one file: the first makes it, the second opens it by its name. */
static void check_shared(gm_write_strategy strategy)
{
    enum { BLOCKS = 5, BEFORE = 2 };
    char *data = aligned_alloc(4096, 2 * PIECE), *got = aligned_alloc(4096, BLOCKS * PIECE);
    gm_write_benchmark t[2];
    memset(data, 1, PIECE);
    memset(data + PIECE, 2, PIECE);
    for (int i = 0; i < 2; i++)
        t[i] = (gm_write_benchmark){.strategy = strategy,
                                    .files = 1,
                                    .threads = 1,
                                    .blocks = i ? BLOCKS - BEFORE : BEFORE,
                                    .before = i ? BEFORE : 0,
                                    .all = BLOCKS,
                                    .block_bytes = PIECE,
                                    .data = data + i * PIECE,
                                    .stride = PIECE,
                                    .limit = 100};
    int before = entries(own("."));
    for (int nameless = 0; nameless < 2; nameless++) {
        double allocated;
        gm_write_run *first = gm_write_run_open(own("dataset.h5"), &t[0], NULL, nameless),
                     *second = first ? gm_write_run_open(own("dataset.h5"), &t[1], gm_write_run_name(first), 0) : NULL;
        int fd = first ? open(gm_write_run_name(first), O_RDONLY) : -1, wrong = 0;
        if (!first || !second) {
            tap_skip("not possible here", "%s: a file of two", gm_write_strategy_name(strategy));
        } else {
            gm_write_run_hide(first);
            int64_t bytes = gm_write_run_write(second, &allocated);
            bytes += gm_write_run_write(first, &allocated);
            wrong += bytes != BLOCKS * PIECE || read(fd, got, BLOCKS * PIECE) != BLOCKS * PIECE;
            for (int64_t i = 0; i < BLOCKS * PIECE && !wrong; i++)
                wrong += got[i] != (i < BEFORE * PIECE ? 1 : 2);
            tap_ok(!wrong, "%s: a file of two, %s", gm_write_strategy_name(strategy), nameless ? "nameless" : "named");
        }
        if (fd >= 0)
            close(fd);
        gm_write_run_close(second);
        gm_write_run_close(first);
    }
    tap_ok(entries(own(".")) == before, "%s: no file is left", gm_write_strategy_name(strategy));
    free(data);
    free(got);
}

int main(void)
{
    make_data();
    for (gm_read_strategy strategy = GM_READ_MEMORY; strategy < GM_READ_STRATEGIES; strategy++) {
        check_read("/plain", strategy, 1 << 24, PIECE);
        check_read("/plain", strategy, 100000, 4096);
        check_read("/packed", strategy, 1 << 24, PIECE);
    }
    for (gm_read_strategy strategy = GM_READ_PREAD; strategy < GM_READ_STRATEGIES; strategy++)
        if (strategy != GM_READ_MMAP && strategy != GM_READ_DIRECT)
            check_cut(strategy);
    check_write();
    for (gm_write_strategy strategy = GM_WRITE_PLAIN; strategy < GM_WRITE_STRATEGIES; strategy++)
        check_shared(strategy);
    return tap_done();
}
