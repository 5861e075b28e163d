/* chunks.c - chunks read without libhdf5: filters undone, masks, chunks never written, edges, user blocks, damage,
 * memory, many chunks. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/size.h"
#include "io/read/chunk_read.h"
#include "io/read/chunks.h"
#include "io/describe/describe.h"
#include "io/read/reader.h"
#include "tests/io/each.h"

enum { ROWS = 11, COLS = 23, ELEMENTS = ROWS * COLS };
static const hsize_t shape[2] = {ROWS, COLS}, chunk_shape[2] = {4, 5};
static int32_t data[ELEMENTS];

static hid_t chunked(const hsize_t *chunk)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 2, chunk);
    return plist;
}

static hid_t make_latest(const char *name, hsize_t user_block)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE), file;
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Pset_userblock(create, user_block);
    file = H5Fcreate(own(name), H5F_ACC_TRUNC, create, access);
    H5Pclose(create);
    H5Pclose(access);
    return file;
}

/* Describes and opens; an error is a remark. */
static gm_reader *open_reader(const char *text, gm_dataset *record)
{
    gm_reader *reader = NULL;
    int status = gm_describe(own(text), NULL, record);
    if (!status)
        status = gm_reader_open(record, &reader);
    if (status) {
        gm_error error;
        gm_error_get(&error);
        gm_error_clear();
        tap_diag("%s: %s", text, error.text);
    }
    return reader;
}

static int32_t in_order(int32_t value, int swap)
{
    return swap ? (int32_t)__builtin_bswap32((uint32_t)value) : value;
}

/* One test: all of a dataset of int32 in rectangles of every size; element i is want[i]. */
static void check_all(const char *text, const int32_t *want)
{
    int32_t room[ELEMENTS];
    gm_dataset record;
    gm_reader *reader = open_reader(text, &record);
    int64_t wrong = reader ? 0 : ELEMENTS;
    for (int rows = 1; rows <= ROWS && reader; rows += 2) {
        for (int cols = 1; cols <= COLS; cols += 3) {
            for (int r = 0; r + rows <= ROWS; r++) {
                int c = (r * 7) % (COLS - cols + 1);
                if (gm_reader_read(reader, r, rows, c, cols, room, (size_t)cols * 4))
                    wrong++;
                for (int i = 0; i < rows * cols; i++)
                    wrong += in_order(room[i], record.swap) != want[(r + i / cols) * COLS + c + i % cols];
            }
        }
    }
    tap_ok(wrong == 0 && record.raw_chunks, "%s", text);
    gm_reader_close(reader);
}

/* --- files --- */

static void check_filters(void)
{
    static const char *const orders[] = {"sf", "zf", "szf", "fsz",
                                         "zs", "f",  "s"}; /* shuffle, deflate, fletcher32 in the order of writing */
    hid_t file = make_file("filters.h5");
    char name[32];
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        hid_t plist = chunked(chunk_shape);
        for (const char *filter = orders[i]; *filter; filter++) {
            if (*filter == 's')
                H5Pset_shuffle(plist);
            else if (*filter == 'z')
                H5Pset_deflate(plist, 5);
            else
                H5Pset_fletcher32(plist);
        }
        snprintf(name, sizeof name, "/%s", orders[i]);
        put_dataset(file, name, i % 2 ? H5T_STD_I32BE : H5T_STD_I32LE, 2, shape, plist, H5T_NATIVE_INT32, data);
        H5Pclose(plist);
    }
    H5Fclose(file);
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        snprintf(name, sizeof name, "filters.h5:/%s", orders[i]);
        check_all(name, data);
    }
}

/* Every kind of chunk index, after a user block, and through an external link. */
static void check_indexes(void)
{
    static const hsize_t more[2] = {H5S_UNLIMITED, COLS}, most[2] = {H5S_UNLIMITED, H5S_UNLIMITED}, large[2] = {30, 40};
    static const struct {
        const char *name;
        const hsize_t *chunk, *limit;
        int early, deflate;
    } kinds[] = {{"single", shape, NULL, 0, 1},      {"implicit", chunk_shape, NULL, 1, 0},
                 {"fixed", chunk_shape, NULL, 0, 1}, {"extensible", chunk_shape, more, 0, 1},
                 {"tree", chunk_shape, most, 0, 1},  {"large", large, most, 0, 0},
                 {"edges", chunk_shape, NULL, 0, 2}};
    char name[32];

    for (int latest = 0; latest < 2; latest++) {
        hid_t file = latest ? make_latest("latest.h5", 2048) : make_file("earliest.h5");
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            hid_t space = H5Screate_simple(2, shape, kinds[i].limit), plist = chunked(kinds[i].chunk), set;
            if (kinds[i].early)
                H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY);
            if (kinds[i].deflate)
                H5Pset_deflate(plist, 1);
            if (kinds[i].deflate == 2 && latest)
                H5Pset_chunk_opts(plist, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
            set = H5Dcreate2(file, kinds[i].name, H5T_STD_I32BE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
            if (set < 0 || H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
                tap_ok(0, "%s cannot be made", kinds[i].name);
            H5Dclose(set);
            H5Pclose(plist);
            H5Sclose(space);
        }
        H5Fclose(file);
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            snprintf(name, sizeof name, "%s.h5:/%s", latest ? "latest" : "earliest", kinds[i].name);
            check_all(name, data);
        }
    }
    {
        hid_t file = make_file("link.h5");
        H5Lcreate_external("latest.h5", "/fixed", file, "/outside", H5P_DEFAULT, H5P_DEFAULT);
        H5Fclose(file);
        check_all("link.h5:/outside", data);
    }
}

static void check_unwritten(void)
{
    const hsize_t start[2] = {4, 5};
    hid_t file = make_file("unwritten.h5"), space = H5Screate_simple(2, shape, NULL), set;
    static int32_t want[3][ELEMENTS];
    for (int i = 0; i < 3; i++) { /* 0: default, 1: a fill value, 2: one that is never written */
        hid_t plist = chunked(chunk_shape), memory = H5Screate_simple(2, chunk_shape, NULL);
        int32_t fill = i ? -77 * i : 0, value = 5;

        if (i)
            H5Pset_fill_value(plist, H5T_NATIVE_INT32, &fill);
        if (i == 2)
            H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER);
        H5Pset_deflate(plist, 1);
        set = H5Dcreate2(file,
                         i == 0   ? "zero"
                         : i == 1 ? "fill"
                                  : "never",
                         H5T_STD_I32BE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
        for (int k = 0; k < ELEMENTS; k++)
            want[i][k] = fill;
        if (i != 0) { /* one chunk is there */
            int32_t block[20];

            for (int k = 0; k < 20; k++) {
                block[k] = value + k;
                want[i][(4 + k / 5) * COLS + 5 + k % 5] = block[k];
            }
            H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, chunk_shape, NULL);
            H5Dwrite(set, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, block);
        }
        H5Dclose(set);
        H5Sclose(memory);
        H5Pclose(plist);
    }
    H5Sclose(space);
    H5Fclose(file);
    check_all("unwritten.h5:/zero", want[0]);
    check_all("unwritten.h5:/fill", want[1]);
    check_all("unwritten.h5:/never", want[2]);
}

/* Damaged bytes of a file, before and after it is opened, and the messages. */
static void check_broken(int (*change)(const char *path, const gm_chunk *chunk), const char *name, const char *message)
{
    hid_t file = make_file("broken.h5"), plist = chunked(chunk_shape);
    gm_dataset record;
    gm_reader *reader = NULL;
    gm_chunks chunks = {0};
    int32_t room[ELEMENTS];
    int found = 0, status;
    H5Pset_deflate(plist, 4);
    H5Pset_fletcher32(plist);
    put_dataset(file, "/sum", H5T_STD_I32LE, 2, shape, plist, H5T_NATIVE_INT32, data);
    H5Premove_filter(plist, H5Z_FILTER_FLETCHER32);
    put_dataset(file, "/deflate", H5T_STD_I32LE, 2, shape, plist, H5T_NATIVE_INT32, data);
    H5Pclose(plist);
    H5Fclose(file);
    gm_describe(own_text("broken.h5:", name), NULL, &record);
    gm_chunks_find(&record, "broken", &chunks, &found);
    if (found && chunks.chunk) {
        const int64_t at[2] = {1, 2};
        tap_ok(change(own("broken.h5"), &chunks.chunk[gm_chunks_index(&chunks, at)]) == 0, "%s is broken", name);
    }
    gm_chunks_free(&chunks);
    if (strstr(message, "chunk")) {
        fails(gm_reader_open(&record, &reader), GM_EINPUT, "has changed during the run (modification time)",
              "a file that was written to");
        gm_describe(own_text("broken.h5:", name), NULL, &record);
    }
    status = gm_reader_open(&record, &reader);
    if (!status)
        status = gm_reader_read(reader, 0, ROWS, 0, COLS, room, COLS * 4);
    fails(status, GM_EINPUT, message, name);
    if (reader && strstr(message, "chunk"))
        tap_ok(gm_reader_read(reader, 0, 4, 0, COLS, room, COLS * 4) == GM_OK &&
                   memcmp(room, data, sizeof(int32_t) * 4 * COLS) == 0,
               "other chunks can be read");
    gm_reader_close(reader);
}

static int write_at(const char *path, int64_t offset, const void *bytes, size_t count)
{
    int fd = open(path, O_RDWR), bad = fd < 0 || pwrite(fd, bytes, count, offset) != (ssize_t)count;
    close(fd);
    return bad;
}

static int break_middle(const char *path, const gm_chunk *chunk)
{
    return write_at(path, chunk->address + chunk->bytes / 2, "\xa5\x5a\x11", 3);
}

static int break_head(const char *path, const gm_chunk *chunk)
{
    return write_at(path, chunk->address, "\0\0", 2);
}

static int cut_file(const char *path, const gm_chunk *chunk)
{
    return truncate(path, chunk->address + chunk->bytes / 2);
}

static void check_damage(void)
{
    gm_dataset record;
    gm_reader *reader;
    check_broken(break_middle, "/sum", "broken.h5:/sum: chunk (1, 2): checksum is wrong");
    check_broken(break_head, "/deflate", "broken.h5:/deflate: chunk (1, 2): does not inflate");
    check_broken(cut_file, "/deflate", "broken.h5");

    /* cut between opening and reading */
    reader = open_reader("filters.h5:/szf", &record);
    if (reader) {
        int32_t room[ELEMENTS];
        tap_ok(truncate(own("filters.h5"), 2048) == 0, "a file is cut");
        fails(gm_reader_read(reader, 0, ROWS, 0, COLS, room, COLS * 4), GM_EINPUT, "filters.h5:/szf: the file ends",
              "while it is read");
    }
    gm_reader_close(reader);
}

/* --- memory, threads, many chunks --- */

static void make_large(void)
{
    const hsize_t dims[2] = {256, 1024}, chunk[2] = {64, 512};
    hid_t file = make_file("large.h5"), plist = chunked(chunk);
    int32_t *values = malloc(256 * 1024 * sizeof *values);
    for (int i = 0; i < 256 * 1024; i++)
        values[i] = i;
    H5Pset_shuffle(plist);
    H5Pset_deflate(plist, 1);
    put_dataset(file, "/d", H5T_STD_I32BE, 2, dims, plist, H5T_NATIVE_INT32, values);
    H5Pclose(plist);
    H5Fclose(file);
    free(values);
}

typedef struct task {
    gm_reader *reader;
    int swap, index;
    int64_t wrong;
} task;

static void *read_much(void *context)
{
    task *t = context;
    int32_t *room = malloc(7 * 1024 * sizeof *room);
    for (int i = 0; i < 80; i++) {
        int64_t row = (i * 11 + t->index * 3) % 249, col = i * 5 % 300, cols = 400 + i;
        if (gm_reader_read(t->reader, row, 7, col, cols, room, (size_t)cols * 4))
            t->wrong++;
        for (int64_t k = 0; k < 7 * cols; k++)
            t->wrong += in_order(room[k], t->swap) != (row + k / cols) * 1024 + col + k % cols;
    }
    free(room);
    return NULL;
}

static void check_threads(int64_t cap, int raw, int64_t places)
{
    enum { THREADS = 4 };
    int64_t before = gm_memory_used(GM_HOST), wrong = 0, place, used;
    gm_dataset record;
    gm_reader *reader;
    pthread_t threads[THREADS];
    task tasks[THREADS];

    gm_memory_set_cap(GM_HOST, cap);
    reader = open_reader("large.h5:/d", &record);
    if (!reader) {
        tap_ok(0, "large.h5 opens");
        return;
    }
    used = gm_memory_used(GM_HOST) - before;
    tap_ok((used > 0) == raw, "within %" PRId64 " bytes, %s", cap, raw ? "decoded here" : "by libhdf5");
    place = gm_reader_bytes(&record, 2, INT64_MAX) - gm_reader_bytes(&record, 1, INT64_MAX);
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (task){reader, record.swap, i, 0};
        pthread_create(&threads[i], NULL, read_much, &tasks[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong += tasks[i].wrong;
    }
    tap_ok(wrong == 0, "%d threads at once", THREADS);
    tap_ok(!raw || gm_memory_used(GM_HOST) - before <= used + (places - 1) * (place ? place : cap),
           "with %" PRId64 " places at most", places);
    gm_reader_close(reader);
    tap_ok(gm_memory_used(GM_HOST) == before, "nothing is left");
    gm_memory_set_cap(GM_HOST, INT64_MAX);
}

static void check_units(void)
{
    static const struct {
        const char *selection;
        int64_t rows, cols;
    } wants[] = {{"", 64, 512},     {"[64:]", 64, 512}, {"[3:]", 1, 512}, {"[:,::2]", 64, 256},
                 {"[::3]", 1, 512}, {"[5]", 512, 1},    {"[:,7]", 64, 1}};
    gm_dataset record;
    int bad = 0;

    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        if (gm_describe(own_text("large.h5:/d", wants[i].selection), NULL, &record) ||
            gm_dataset_row_unit(&record) != wants[i].rows || gm_dataset_col_unit(&record) != wants[i].cols) {
            tap_diag("%s: %" PRId64 " x %" PRId64, wants[i].selection, gm_dataset_row_unit(&record),
                     gm_dataset_col_unit(&record));
            bad++;
        }
    }
    tap_ok(!bad, "units of rows and columns");
}

static void check_many(void)
{
    const int few = getenv("GPUMEM_TEST_MEMCHECK") != NULL, count = few ? 10000 : 100000;
    const hsize_t dims[2] = {(hsize_t)count, 4}, chunk[2] = {1, 4};
    hid_t file = make_file("many.h5"), plist = chunked(chunk), set;
    const char *const names[] = {"many.h5:/written", "many.h5:/sparse"};
    gm_dataset record;
    gm_reader *reader;

    H5Pset_shuffle(plist);
    put_dataset(file, "/written", H5T_NATIVE_INT32, 2, dims, plist, H5T_NATIVE_INT32, NULL);
    put_dataset(file, "/sparse", H5T_NATIVE_INT32, 2, dims, plist, H5T_NATIVE_INT32, NULL);
    for (int which = 0; which < 2; which++) {
        set = H5Dopen2(file, strchr(names[which], '/'), H5P_DEFAULT);
        for (int i = 0; i < count; i += which ? count / 2 : 1)
            H5Dwrite_chunk(set, H5P_DEFAULT, 0, (hsize_t[2]){(hsize_t)i, 0}, 16, (int32_t[4]){i & 255});
        H5Dclose(set);
    }
    H5Pclose(plist);
    H5Fclose(file);
    for (int which = 0; which < 2; which++) {
        double from = gm_clock(), opened;
        int32_t last[4];
        reader = open_reader(names[which], &record);
        opened = gm_clock() - from;
        tap_diag("%s: %d chunks are open after %.3f s", names[which], count, opened);
        tap_ok(reader && (opened < 5 || few), "%s: %d chunks open in seconds, also on a busy machine", names[which],
               count);
        tap_ok(reader && !gm_reader_read(reader, count - 1, 1, 0, 4, last, 16) && last[3] == 0, "the last of them");
        gm_reader_close(reader);
    }
}

int main(void)
{
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = 1000003 * i;
    check_filters();
    check_indexes();
    check_unwritten();
    check_damage();
    make_large();
    check_units();
    check_threads(INT64_MAX, 1, 4);
    check_threads(5 * 1024 * 1024 / 4, 1, 4);
    check_threads(400 * 1024, 0, 0);
    check_many();
    return tap_done();
}
