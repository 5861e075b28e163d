/* chunk_faults.c - a read that fails while chunks are looked up, or while H5Dread reads: never zeros, always an error
 * or the elements. The linker replaces pread() by the one below (-Wl,--wrap). */
#include <errno.h>
#include <unistd.h>

#include "io/describe/describe.h"
#include "io/read/reader.h"
#include "io/worker.h"
#include "tests/io/each.h"

enum { ROWS = 60, COLS = 20, ELEMENTS = ROWS * COLS, FILL = 7 };
enum { EACH = 10, STEP = 13 }; /* valgrind, which takes minutes for all reads: the first ones, and of the others some */

static int reads_left = -1; /* until pread() fails; -1: it does not */
static int in_worker;       /* it fails in the process that looks chunks up, not in the one that reads them itself */
static pid_t reader_process;
static int failures; /* of pread(), 1 or more: so many in a row */

ssize_t __real_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t bytes, off_t offset);

ssize_t __wrap_pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    if (in_worker != (getpid() != reader_process))
        return __real_pread(fd, buffer, bytes, offset);
    if (reads_left == 0 && failures > 0) {
        failures--;
        errno = EIO;
        return -1;
    }
    reads_left -= reads_left > 0;
    return __real_pread(fd, buffer, bytes, offset);
}

static int32_t data[ELEMENTS];

static hid_t chunked(hsize_t rows)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 2, (hsize_t[2]){rows, 5});
    H5Pset_fill_value(plist, H5T_NATIVE_INT32, &(int32_t){FILL});
    return plist;
}

static void make_data(void)
{
    const hsize_t dims[2] = {ROWS, COLS};
    hid_t file = make_file("faults.h5"), plist = chunked(2), set;
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = 1000 + i;
    put_dataset(file, "/plain", H5T_NATIVE_INT32, 2, dims, plist, H5T_NATIVE_INT32, data);
    H5Pset_deflate(plist, 1);
    put_dataset(file, "/deflate", H5T_NATIVE_INT32, 2, dims, plist, H5T_NATIVE_INT32, data);
    put_dataset(file, "/sparse", H5T_NATIVE_INT32, 2, dims, plist, H5T_NATIVE_INT32, NULL);
    set = H5Dopen2(file, "/sparse", H5P_DEFAULT);
    hid_t space = H5Dget_space(set), memory = H5Screate_simple(2, dims, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[2]){10, 5}, NULL, (hsize_t[2]){20, 10}, NULL);
    H5Sselect_hyperslab(memory, H5S_SELECT_SET, (hsize_t[2]){10, 5}, NULL, (hsize_t[2]){20, 10}, NULL);
    H5Dwrite(set, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, data);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    H5Pclose(plist);
    plist = chunked(2);
    H5Pset_scaleoffset(plist, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT);
    put_dataset(file, "/scaled", H5T_NATIVE_INT32, 2, dims, plist, H5T_NATIVE_INT32, data);
    H5Pclose(plist);
    H5Fclose(file);
}

static int32_t expected(const char *name, int i)
{
    int row = i / COLS, col = i % COLS;
    return strcmp(name, "/sparse") == 0 && (row < 10 || row >= 30 || col < 5 || col >= 15) ? FILL : data[i];
}

/* Opens and reads a dataset whose n-th pread fails; a worker that starts now fails with it. Returns whether a read
 * failed: there were more than n. */
static int try_read(const gm_dataset *record, const char *name, int n, int times, int *wrong)
{
    static int32_t got[ELEMENTS];
    gm_reader *reader = NULL;
    if (in_worker)
        gm_worker_stop(); /* the next one is a fork with these: */
    reads_left = n;
    failures = times;
    int status = gm_reader_open(record, &reader);
    if (!status)
        status = gm_reader_read_range(reader, 0, ELEMENTS, got);
    gm_reader_close(reader);
    reads_left = -1;
    failures = 0;
    gm_error error;
    gm_error_get(&error);
    gm_error_clear();
    for (int i = 0; i < ELEMENTS && !status; i++)
        if (got[i] != expected(name, i)) {
            tap_diag("%s, read %d: element %d is %d", name, n, i, (int)got[i]);
            ++*wrong;
            break;
        }
    if (status && status != GM_EINPUT) {
        tap_diag("%s, read %d: status %d: %s", name, n, status, error.text);
        ++*wrong;
    }
    return status != GM_OK;
}

static void check(const char *name, int times, int where)
{
    char text[GM_PATH_MAX];
    gm_dataset record;
    int wrong = 0, n = 0, failed = 0, whole = 0, step = getenv("GPUMEM_TEST_MEMCHECK") ? STEP : 1;
    in_worker = where;
    snprintf(text, sizeof text, "%s:%s", own("faults.h5"), name);
    int described = gm_describe(text, NULL, &record) == GM_OK;
    for (; described && n < 400 && whole < 3; n += n < EACH ? 1 : step) { /* beyond the last read nothing fails */
        int fails_now = try_read(&record, name, n, times, &wrong);
        failed += fails_now;
        whole = fails_now ? 0 : whole + 1;
    }
    gm_worker_stop(); /* it has this in_worker */
    tap_ok(!wrong && failed > 3 && whole == 3, "%s: %d failures at any of %d reads %s", name, times, n,
           where ? "of the worker" : "of elements");
}

int main(void)
{
    static const char *const names[] = {"/plain", "/deflate", "/sparse", "/scaled"};
    reader_process = getpid();
    make_data();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (int times = 1; times <= 3; times += 2)
            for (int where = strcmp(names[i], "/scaled") == 0; where <= 1; where++) /* only libhdf5 reads /scaled */
                check(names[i], times, where);
    }
    return tap_done();
}
