/* io_trial.c - the ways that bench times do what they say: every way of reading brings the right bytes, every way of writing leaves nothing behind. */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/size.h"
#include "io/describe.h"
#include "io/trial.h"
#include "tests/io_each.h"

enum { ROWS = 300, COLS = 1001, PIECE = 64 * 1024, THREADS = 3 };
static int32_t data[ROWS * COLS];

static void make_data(void)
{
    const hsize_t shape[2] = {ROWS, COLS}, chunk[2] = {7, 500};
    hid_t file = make_file("trial.h5"), plist = H5Pcreate(H5P_DATASET_CREATE);

    for (int i = 0; i < ROWS * COLS; i++)
        data[i] = i * 7 + 1;
    put_dataset(file, "/plain", H5T_NATIVE_INT32, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT32, data);
    H5Pset_chunk(plist, 2, chunk);
    H5Pset_deflate(plist, 1);
    put_dataset(file, "/packed", H5T_NATIVE_INT32, 2, shape, plist, H5T_NATIVE_INT32, data);
    H5Pclose(plist);
    H5Fclose(file);
}

/* The bytes that a way should deliver; the caller frees them. */
static char *expected(const gm_dataset *dataset, gm_read_way way, int64_t bytes)
{
    char *all = malloc((size_t)bytes);
    int fd;

    if (way == GM_READ_HDF5 || way == GM_READ_READER) {
        memcpy(all, data, gm_min(bytes, sizeof data));
        return all;
    }
    fd = open(dataset->data_file, O_RDONLY);
    if (pread(fd, all, (size_t)bytes, dataset->direct ? dataset->offset / 4096 * 4096 : 0) != bytes)
        memset(all, 0x5a, (size_t)bytes);
    close(fd);
    return all;
}

static void check_read(const char *name, gm_read_way way, int64_t most, int64_t piece)
{
    gm_dataset dataset;
    gm_trial *trial = NULL;
    char *slots = aligned_alloc(4096, (size_t)(THREADS * piece)), *right;
    int64_t bytes = 0, at = 0, wrong = 0;
    double seconds;
    int status = gm_describe(own_text("trial.h5:", name), NULL, &dataset);

    status = status ? status : gm_trial_open(&dataset, way, most, piece, &trial);
    if (!status && !trial && way == GM_READ_DIRECT) {
        tap_skip("not on this file system", "%s by %s", name, gm_read_way_name(way));
        free(slots);
        return;
    }
    status = status ? status : gm_trial_run(trial, THREADS, slots, 100, &bytes, &seconds);
    if (succeeds(status, gm_read_way_name(way))) {
        tap_ok(bytes == gm_trial_bytes(trial) && bytes > 0 && bytes <= most, "%s by %s: %lld bytes", name, gm_read_way_name(way), (long long)bytes);
        right = expected(&dataset, way, bytes);
        for (int64_t i = 0; i < gm_trial_pieces(trial) && way != GM_READ_MEMORY && way != GM_READ_MMAP; i++) {
            wrong += gm_trial_read(trial, i, slots) != GM_OK;
            wrong += memcmp(slots, right + at, (size_t)gm_trial_piece_bytes(trial, i)) != 0;
            at += gm_trial_piece_bytes(trial, i);
        }
        tap_ok(wrong == 0 && (at == 0 || at == bytes), "%s by %s: the right ones", name, gm_read_way_name(way));
        free(right);
    }
    gm_trial_close(trial);
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
    const char *file = own("trial.h5");
    int before = entries(own("."));

    memset(block, 7, (size_t)THREADS * PIECE);
    for (gm_way way = GM_WAY_PLAIN; way < GM_WAYS; way++) {
        gm_write_trial t = {.way = way, .files = 1, .threads = THREADS, .blocks = 20, .block_bytes = PIECE, .data = block, .stride = PIECE,
                            .limit = 100, .sync = way == GM_WAY_PLAIN};

        tap_ok(gm_trial_write(file, &t) > 0 || way > GM_WAY_ALLOCATED, "written: %s", gm_way_name(way));
    }
    tap_ok(gm_trial_write(file, &(gm_write_trial){.way = GM_WAY_PLAIN, .files = THREADS, .threads = THREADS, .blocks = 20, .block_bytes = PIECE,
                                                  .data = block, .stride = PIECE, .limit = 100}) > 0, "written: parts");
    tap_ok(gm_trial_write(own("none/trial.h5"), &(gm_write_trial){.way = GM_WAY_PLAIN, .files = 1, .threads = 1, .blocks = 1, .block_bytes = PIECE,
                                                                  .data = block, .limit = 100}) == 0, "not written: a folder that is not there");
    tap_ok(entries(own(".")) == before, "nothing is left behind");
    free(block);
}

int main(void)
{
    make_data();
    for (gm_read_way way = GM_READ_MEMORY; way < GM_READ_WAYS; way++) {
        check_read("/plain", way, 1 << 24, PIECE);
        check_read("/plain", way, 100000, 4096);
        check_read("/packed", way, 1 << 24, PIECE);
    }
    check_write();
    return tap_done();
}
