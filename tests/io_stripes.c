/* io_stripes.c - virtual datasets of whole rows, read from their parts: the same bytes as libhdf5 gives, and which of them are read that way. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/size.h"
#include "io/describe.h"
#include "io/reader.h"
#include "io/stripe_read.h"
#include "io/stripes.h"
#include "tests/io_each.h"
#include "tests/io_stripes_make.h"

/* Is it read from the parts? */
static int is_striped(const gm_dataset *record)
{
    gm_stripe_reader *stripes = NULL;
    int status = record->row_runs ? gm_stripe_reader_open(record, "test", &stripes) : GM_OK, striped = stripes != NULL;

    gm_stripe_reader_close(stripes);
    return striped && !status;
}

/* Rectangles of two readers that differ. */
static int64_t differences(gm_reader *a, gm_reader *b, const gm_dataset *record, int tries)
{
    size_t size = gm_dtype_size(record->type);
    int64_t rows, cols, wrong = 0;

    gm_dataset_matrix(record, &rows, &cols);
    for (int i = 0; i < tries && rows && cols; i++) {
        int64_t row = i ? rand() % rows : 0, col = i ? rand() % cols : 0, m = i ? 1 + rand() % (rows - row) : rows, n = i ? 1 + rand() % (cols - col) : cols;
        size_t pitch = ((size_t)n + (size_t)(i % 3)) * size, bytes = (size_t)m * pitch + 8;
        char *x = malloc(bytes), *y = malloc(bytes);

        memset(x, 0x5a, bytes);
        memset(y, 0x5a, bytes);
        if (gm_reader_read(a, row, m, col, n, x, pitch) || gm_reader_read(b, row, m, col, n, y, pitch))
            wrong++;
        wrong += memcmp(x, y, bytes) != 0;
        free(y);
        free(x);
    }
    return wrong;
}

/* One test: what is read is what libhdf5 reads, and whether it is read from the parts. */
static void check(const char *text, int striped)
{
    gm_dataset record, plain;
    gm_reader *reader = NULL, *other = NULL;
    int64_t before = gm_memory_used(GM_HOST), wrong = 0;
    int status = gm_describe(own(text), NULL, &record), found;
    gm_error error;

    plain = record;
    plain.row_runs = 0;
    if (!status)
        status = gm_reader_open(&record, &reader);
    if (!status)
        status = gm_reader_open(&plain, &other);
    if (!status)
        wrong = differences(reader, other, &record, 40);
    gm_reader_close(reader);
    gm_reader_close(other);
    found = !status && is_striped(&record);
    tap_ok(!status && wrong == 0 && found == striped && gm_memory_used(GM_HOST) == before, "%s: %s", text, striped ? "from its parts" : "by libhdf5");
    if (status) {
        gm_error_get(&error);
        gm_error_clear();
        tap_diag("%s", error.text);
    } else if (wrong || found != striped) {
        tap_diag("%" PRId64 " rectangles are wrong, %s its parts", wrong, found ? "from" : "not from");
    }
}

static void check_kinds(void)
{
    static const char *const striped[] = {"stripes", "swapped", "half", "line", "deep", "shuffled", "every", "torn", "planes", "column", "halves", "end", "own"};
    static const char *const other[] = {"gap", "hole", "overlap", "chunked", "order", "narrow", "sign", "float", "outside", "compact", "late", "link",
                                        "nested", "columns", "over", "irregular", "unlimited"};
    static const char *const selections[] = {"[::2,1:8:3]", "[1:,3]", "[4]", "[3::5,::4]", "[2:2]", "[1:9:7,5:]"};
    static const char *const deep_selections[] = {"[1:29:3,::2]", "[:,3,1]", "[7,:,::1]", "[::13,1:4:2,1]", "[5,2,1]"};
    char text[128];

    for (size_t i = 0; i < sizeof striped / sizeof striped[0]; i++) {
        snprintf(text, sizeof text, "rows.h5:/%s", striped[i]);
        check(text, 1);
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        snprintf(text, sizeof text, "rows.h5:/%s", other[i]);
        check(text, 0);
    }
    for (size_t i = 0; i < sizeof selections / sizeof selections[0]; i++) {
        for (int which = 0; which < 4; which++) {
            snprintf(text, sizeof text, "rows.h5:/%s%s", striped[which == 3 ? 5 : which], selections[i]);
            check(text, 1);
        }
        snprintf(text, sizeof text, "rows.h5:/gap%s", selections[i]);
        check(text, 0);
    }
    for (size_t i = 0; i < sizeof deep_selections / sizeof deep_selections[0]; i++) {
        snprintf(text, sizeof text, "rows.h5:/deep%s", deep_selections[i]);
        check(text, 1);
    }
    check("rows.h5:/line[1::4]", 1);
    check("rows.h5:/line[30]", 1);
    check("rows.h5:/planes[::3,1:,1]", 1);
}

/* Adjacent rows are one stripe, and the table says where they are. */
static void check_table(void)
{
    gm_dataset record;
    gm_stripes stripes;
    int found = 0, ok;

    gm_describe(own("rows.h5:/stripes"), NULL, &record);
    ok = gm_stripes_find(&record, "test", &stripes, &found) == GM_OK && found && stripes.parts == 4 && stripes.count == 11;
    for (int64_t row = 0; row < 31 && ok; row++) {
        const gm_stripe *s = gm_stripes_at(&stripes, row);

        ok = s->row == row / 3 * 3 && s->rows == (row < 30 ? 3 : 1) && strstr(stripes.part[s->part].path, stripe_parts[row / 3 % 4]);
    }
    tap_ok(ok, "a table of 11 stripes in 4 parts");
    gm_stripes_free(&stripes);
    gm_describe(own("rows.h5:/halves"), NULL, &record);
    ok = gm_stripes_find(&record, "test", &stripes, &found) == GM_OK && found && stripes.count == 2;
    tap_ok(ok, "of two where rows lie together");
    gm_stripes_free(&stripes);
    setenv("HDF5_VDS_PREFIX", "/somewhere", 1);
    tap_ok(!is_striped(&record), "none where HDF5_VDS_PREFIX names a folder for parts");
    unsetenv("HDF5_VDS_PREFIX");
    tap_ok(is_striped(&record), "but else");
}

/* More files than may be open. */
static void check_files(void)
{
    make_many_parts(GM_STRIPES_PARTS + 1);
    check("many.h5:/more", 0);
    check("many.h5:/fit", sysconf(_SC_OPEN_MAX) >= 4 * GM_STRIPES_PARTS);
}

static void check_memory(void)
{
    gm_dataset record;
    int64_t bytes;

    gm_describe(own("rows.h5:/stripes"), NULL, &record);
    bytes = gm_reader_bytes(&record, 3);
    tap_ok(bytes >= 11 * (int64_t)sizeof(gm_stripe) && bytes < 16384, "an open reader takes up to %" PRId64 " bytes", bytes);
    gm_memory_set_cap(GM_HOST, bytes);
    check("rows.h5:/stripes", 1);
    tap_ok(gm_memory_peak(GM_HOST) <= bytes, "and no more");
    gm_memory_set_cap(GM_HOST, 100);
    check("rows.h5:/stripes", 0);
    gm_memory_set_cap(GM_HOST, INT64_MAX);
    record.row_runs = INT64_C(1) << 40;
    tap_ok(gm_reader_bytes(&record, 3) == 0 && !is_striped(&record), "nothing for too many stripes");
}

typedef struct task {
    gm_reader *reader, *other;
    const gm_dataset *record;
    int64_t wrong;
} task;

static void *read_much(void *context)
{
    task *t = context;

    t->wrong = differences(t->reader, t->other, t->record, 30);
    return NULL;
}

static void check_threads(void)
{
    enum { THREADS = 4 };
    gm_dataset record, plain;
    gm_reader *reader = NULL, *other = NULL;
    pthread_t threads[THREADS];
    task tasks[THREADS];
    int64_t wrong = 0;

    gm_describe(own("rows.h5:/stripes[:,::3]"), NULL, &record);
    plain = record;
    plain.row_runs = 0;
    gm_reader_open(&record, &reader);
    gm_reader_open(&plain, &other);
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (task){reader, other, &record, 0};
        if (pthread_create(&threads[i], NULL, read_much, &tasks[i]))
            return;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong += tasks[i].wrong;
    }
    gm_reader_close(reader);
    gm_reader_close(other);
    tap_ok(wrong == 0, "%d threads at once", THREADS);
}

static void check_damage(void)
{
    gm_dataset record, source;
    gm_reader *reader = NULL;
    int32_t room[ROWS * COLS];
    int64_t cut, written;
    int fd;

    gm_describe(own("rows.h5:/end"), NULL, &record);
    gm_describe(own("end.h5:/i"), NULL, &source);
    cut = source.offset + 100;
    succeeds(gm_reader_open(&record, &reader), "a reader of two parts");
    tap_ok(truncate(own("end.h5"), cut) == 0, "the second part is cut");
    fails(gm_reader_read(reader, ROWS, ROWS, 0, COLS, room, COLS * 4), GM_EINPUT, "rows.h5:/end: its part ", "reading it");
    tap_ok(gm_reader_read(reader, 0, ROWS, 0, COLS, room, COLS * 4) == GM_OK, "the first one is there");
    gm_reader_close(reader);
    fails(gm_reader_open(&record, &reader), GM_EINPUT, "end.h5: cannot be opened, the file is damaged", "opening it");
    /* where the file's own head says that it is as short as it is: an old head, without a checksum */
    fd = open(own("end.h5"), O_RDWR);
    tap_ok(pread(fd, &written, 8, 40) == 8 && written > cut && pwrite(fd, &cut, 8, 40) == 8 && close(fd) == 0, "its head agrees");
    fails(gm_reader_open(&record, &reader), GM_EINPUT, "end.h5 ends at byte ", "opening it");
    remove(own("end.h5"));
    fails(gm_reader_open(&record, &reader), GM_EINPUT, "its part end.h5:/i is missing: no such file", "opening what went away");
    fails(gm_describe(own("rows.h5:/end"), NULL, &record), GM_EINPUT, "its part end.h5:/i is missing: no such file", "describing it");
}

/* Another dataset of that name since it was described. */
static void check_changed(void)
{
    gm_dataset record;
    gm_reader *reader = NULL;

    gm_describe(own("rows.h5:/stripes"), NULL, &record);
    record.dims[0]++;
    fails(gm_reader_open(&record, &reader), GM_EINPUT, "is not the dataset that was found before", "another shape");
    record.dims[0]--;
    record.row_runs = 1;
    tap_ok(!is_striped(&record), "more stripes than before are left to libhdf5");
}

int main(void)
{
    make_stripes();
    check_memory();
    check_kinds();
    check_table();
    check_files();
    check_threads();
    check_changed();
    check_damage();
    return tap_done();
}
