/* virtual.c - virtual datasets, read from their sources: the same elements as from libhdf5, in little memory and with
 * few open files; and sources that change. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/size.h"
#include "io/describe/describe.h"
#include "io/read/reader.h"
#include "io/virtual/sources.h"
#include "tests/io/each.h"
#include "tests/io/read/virtual_make.h"

/* All elements of the matrix of a record, as libhdf5 itself reads the virtual dataset. */
static char *read_by_libhdf5(const gm_dataset *record)
{
    size_t size = gm_dtype_size(record->type);
    hsize_t start[GM_RANK_MAX], step[GM_RANK_MAX], count[GM_RANK_MAX];
    char *all = malloc((size_t)gm_dataset_elements(record) * size + 1);
    for (int d = 0; d < record->rank; d++) {
        start[d] = (hsize_t)record->selection.start[d];
        step[d] = (hsize_t)record->selection.step[d];
        count[d] = (hsize_t)record->selection.count[d];
    }
    gm_h5_lock();
    hid_t file = H5Fopen(record->file, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, record->name, H5P_DEFAULT);
    hid_t space = H5Dget_space(set), memory = H5Screate_simple(record->rank, count, NULL);
    hid_t type = record->swap ? gm_h5_type_swapped(record->type) : H5Tcopy(gm_h5_type(record->type));
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, step, count, NULL);
    if (gm_dataset_elements(record) && H5Dread(set, type, memory, space, H5P_DEFAULT, all) < 0)
        memset(all, 0x77, (size_t)gm_dataset_elements(record) * size);
    H5Tclose(type);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    gm_h5_unlock();
    return all;
}

/* Random rectangles that differ from the elements expected. */
static int64_t differences(gm_reader *reader, const gm_dataset *record, const char *expected, int tries)
{
    size_t size = gm_dtype_size(record->type);
    int64_t rows, cols, wrong = 0;
    gm_dataset_matrix(record, &rows, &cols);
    for (int i = 0; i < tries && rows && cols; i++) {
        int64_t row = i ? rand() % rows : 0, col = i ? rand() % cols : 0, m = i ? 1 + rand() % (rows - row) : rows,
                n = i ? 1 + rand() % (cols - col) : cols;
        size_t pitch = ((size_t)n + (size_t)(i % 3)) * size, bytes = (size_t)m * pitch + 8;
        char *x = malloc(bytes), *y = malloc(bytes);
        memset(x, 0x5a, bytes);
        memset(y, 0x5a, bytes);
        for (int64_t r = 0; r < m; r++)
            memcpy(y + (size_t)r * pitch, expected + (size_t)((row + r) * cols + col) * size, (size_t)n * size);
        wrong += gm_reader_read(reader, row, m, col, n, x, pitch) || memcmp(x, y, bytes) != 0;
        free(y);
        free(x);
    }
    return wrong;
}

/* One test: the elements are those of libhdf5, and are read by several threads at once or not, as expected. */
static void check(const char *text, int parallel)
{
    gm_dataset record;
    gm_reader *reader = NULL;
    int64_t before = gm_memory_used(GM_HOST), wrong = 0;
    int status = gm_describe(own(text), NULL, &record);
    gm_error error;
    if (!status)
        status = gm_reader_open(&record, &reader);
    if (!status) {
        char *expected = read_by_libhdf5(&record);
        wrong = differences(reader, &record, expected, 40);
        free(expected);
    }
    gm_reader_close(reader);
    tap_ok(!status && wrong == 0 && gm_reader_is_parallel(&record) == parallel && gm_memory_used(GM_HOST) == before,
           "%s: as from libhdf5, %s", text, parallel ? "by several threads" : "by one");
    if (status) {
        gm_error_get(&error);
        gm_error_clear();
        tap_diag("%s", error.text);
    } else {
        tap_diag("%" PRId64 " rectangles are wrong", wrong);
    }
}

static void check_kinds(void)
{
    static const char *const parallel[] = {"stripes",   "swapped", "half",    "line",    "deep",      "shuffled",
                                           "every",     "torn",    "planes",  "end",     "halves",    "column",
                                           "own",       "gap",     "hole",    "overlap", "link",      "chunked",
                                           "irregular", "nested",  "columns", "over",    "unlimited", "order"};
    static const char *const serial[] = {"narrow", "sign", "float", "outside", "compact", "late"};
    static const char *const selections[] = {"[::2,1:8:3]", "[1:,3]", "[4]", "[3::5,::4]", "[2:2]", "[1:9:7,5:]"};
    static const char *const deep_selections[] = {"[1:29:3,::2]", "[:,3,1]", "[7,:,::1]", "[::13,1:4:2,1]", "[5,2,1]"};
    char text[128];
    for (size_t i = 0; i < sizeof parallel / sizeof parallel[0]; i++) {
        snprintf(text, sizeof text, "rows.h5:/%s", parallel[i]);
        check(text, 1);
    }
    for (size_t i = 0; i < sizeof serial / sizeof serial[0]; i++) {
        snprintf(text, sizeof text, "rows.h5:/%s", serial[i]);
        check(text, 0);
    }
    for (size_t i = 0; i < sizeof selections / sizeof selections[0]; i++) {
        static const char *const some[] = {"stripes", "half", "shuffled", "gap", "overlap", "chunked", "torn"};
        for (size_t which = 0; which < sizeof some / sizeof some[0]; which++) {
            snprintf(text, sizeof text, "rows.h5:/%s%s", some[which], selections[i]);
            check(text, 1);
        }
    }
    for (size_t i = 0; i < sizeof deep_selections / sizeof deep_selections[0]; i++) {
        snprintf(text, sizeof text, "rows.h5:/deep%s", deep_selections[i]);
        check(text, 1);
    }
    check("rows.h5:/line[1::4]", 1);
    check("rows.h5:/line[30]", 1);
    check("rows.h5:/planes[::3,1:,1]", 1);
}

/* The counts of the mappings. */
static void check_table(void)
{
    gm_dataset record;
    gm_sources s;
    gm_describe(own("rows.h5:/stripes"), NULL, &record);
    tap_ok(gm_sources_find(&record, &s) && s.files == 5 && s.sources == 5 && s.source[0].patches == 5 &&
               s.source[0].complete,
           "five mappings to four sources, each described once, cover the dataset");
    gm_describe(own("rows.h5:/overlap"), NULL, &record);
    tap_ok(gm_sources_find(&record, &s) && !s.source[0].apart && !s.source[0].complete, "two that overlap do not");
    gm_describe(own("rows.h5:/gap"), NULL, &record);
    tap_ok(gm_sources_find(&record, &s) && s.source[0].apart && !s.source[0].complete, "nor do two with a gap");
    gm_describe(own("rows.h5:/deep"), NULL, &record);
    record.sources_hash++;
    gm_reader *reader = NULL;
    fails(gm_reader_open(&record, &reader), GM_EINPUT, "has changed during the run (its parts)",
          "another table than this process finds");
}

static void check_memory(void)
{
    gm_dataset record;
    gm_describe(own("rows.h5:/chunked"), NULL, &record);
    int64_t bytes = gm_reader_bytes(&record, 1, INT64_C(1) << 20);
    gm_memory_set_cap(GM_HOST, bytes);
    check("rows.h5:/chunked", 1);
    tap_ok(gm_memory_peak(GM_HOST) <= bytes, "with %" PRId64 " bytes, and no more", bytes);
    gm_memory_set_cap(GM_HOST, record.sources_bytes / 2);
    gm_reader *reader = NULL;
    fails(gm_reader_open(&record, &reader), GM_EDEVICE, "host", "with too few");
    gm_memory_set_cap(GM_HOST, INT64_MAX);
}

typedef struct task {
    gm_reader *reader;
    const gm_dataset *record;
    const char *expected;
    int64_t wrong;
} task;

static void *read_much(void *context)
{
    task *t = context;
    t->wrong = differences(t->reader, t->record, t->expected, 30);
    return NULL;
}

/* With fewer places than threads or sources. */
static void check_threads(const char *text, int files)
{
    enum { THREADS = 6 };
    struct rlimit before, limit;
    gm_dataset record;
    gm_reader *reader = NULL;
    pthread_t threads[THREADS];
    task tasks[THREADS];
    int64_t wrong = 0;
    gm_describe(own(text), NULL, &record);
    char *expected = read_by_libhdf5(&record);
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)files;
    setrlimit(RLIMIT_NOFILE, &limit);
    succeeds(gm_reader_open(&record, &reader), text);
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (task){reader, &record, expected, 0};
        if (pthread_create(&threads[i], NULL, read_much, &tasks[i]))
            return;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong += tasks[i].wrong;
    }
    setrlimit(RLIMIT_NOFILE, &before);
    gm_reader_close(reader);
    free(expected);
    tap_ok(wrong == 0, "%s: %d threads at once, %d files", text, THREADS, files);
}

static void write_byte(const char *name, int64_t at)
{
    char byte;
    int fd = open(own(name), O_RDWR);
    if (fd < 0 || pread(fd, &byte, 1, at) != 1 || pwrite(fd, &byte, 1, at) != 1 || close(fd))
        tap_diag("%s was not changed", name);
}

static void check_changes(void)
{
    gm_dataset record, source;
    gm_reader *reader = NULL;
    int32_t room[2 * ROWS * COLS];
    const size_t pitch = COLS * 4;
    gm_describe(own("rows.h5:/end"), NULL, &record);
    gm_describe(own("end.h5:/i"), NULL, &source);
    record.dims[0]++;
    fails(gm_reader_open(&record, &reader), GM_EINPUT, "has changed during the run (shape)", "another shape");
    record.dims[0]--;
    succeeds(gm_reader_open(&record, &reader), "a reader of two sources");
    write_byte("end.h5", source.offset);
    fails(gm_sources_check(&record), GM_EINPUT, "end.h5: has changed during the run (modification time)",
          "at the end, a source that was written to");
    fails(gm_reader_read(reader, ROWS, ROWS, 0, COLS, room, pitch), GM_EINPUT, "rows.h5:/end: its part ",
          "opening it then");
    gm_reader_close(reader);

    gm_describe(own("rows.h5:/end"), NULL, &record);
    gm_reader_open(&record, &reader);
    tap_ok(gm_sources_check(&record) == GM_OK && gm_reader_read(reader, 0, 2 * ROWS, 0, COLS, room, pitch) == GM_OK,
           "all is well when it is described again");
    tap_ok(truncate(own("end.h5"), source.offset + 100) == 0, "the source is cut");
    fails(gm_reader_read(reader, ROWS, ROWS, 0, COLS, room, pitch), GM_EINPUT, "rows.h5:/end: its part ", "reading it");
    tap_ok(gm_reader_read(reader, 0, ROWS, 0, COLS, room, pitch) == GM_OK, "the first one is there");
    gm_reader_close(reader);
    succeeds(gm_reader_open(&record, &reader), "a reader opens its sources when it needs them");
    fails(gm_reader_read(reader, ROWS, ROWS, 0, COLS, room, pitch), GM_EINPUT, "end.h5 ends at byte ", "opening it");
    fails(gm_sources_check(&record), GM_EINPUT, "end.h5: has changed during the run (size)", "at the end");
    remove(own("end.h5"));
    fails(gm_reader_read(reader, ROWS, ROWS, 0, COLS, room, pitch), GM_EINPUT, "cannot be opened: No such file",
          "opening a source that was removed");
    fails(gm_sources_check(&record), GM_EINPUT, "has changed during the run (it was removed)", "at the end");
    gm_reader_close(reader);
    fails(gm_describe(own("rows.h5:/end"), NULL, &record), GM_EINPUT, "its part end.h5:/i is missing: no such file",
          "describing it");
    gm_describe(own("rows.h5:/halves"), NULL, &record);
    link(own("p1.h5"), own("copy.h5"));
    rename(own("p0.h5"), own("old.h5"));
    rename(own("copy.h5"), own("p0.h5"));
    gm_reader_open(&record, &reader);
    fails(gm_reader_read(reader, 0, ROWS, 0, COLS, room, pitch), GM_EINPUT, "has changed during the run (another file)",
          "a source that was replaced");
    gm_reader_close(reader);
}

int main(void)
{
    make_virtual_files();
    check_memory();
    check_kinds();
    check_table();
    check_threads("rows.h5:/stripes[:,::3]", 1000);
    check_threads("rows.h5:/stripes", 40);
    check_threads("rows.h5:/chunked", 40);
    check_threads("rows.h5:/narrow", 1000);
    make_many_parts(300);
    check_threads("many.h5:/more", 48);
    check_threads("many.h5:/more[:,4:6]", 1000);
    check_changes();
    return tap_done();
}
