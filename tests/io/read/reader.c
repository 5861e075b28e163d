/* reader.c - rectangles of datasets of every layout, with selections, against elements that name their own place. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

#include "base/types/dtype.h"
#include "base/size.h"
#include "io/describe/describe.h"
#include "io/read/reader.h"
#include "tests/io/each.h"

enum { RANK = 4, ELEMENTS = 5 * 6 * 7 * 40 };
static const hsize_t shape[RANK] = {5, 6, 7, 40};
static int32_t data[ELEMENTS];

static void make_data(void)
{
    hid_t file, create, plist;
    const hsize_t chunk[RANK] = {2, 3, 7, 16}, blocks[RANK] = {5, 6, 7, 20};
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = i;
    file = make_file("data.h5");
    put_dataset(file, "/native", H5T_NATIVE_INT32, RANK, shape, H5P_DEFAULT, H5T_NATIVE_INT32, data);
    put_dataset(file, "/big", H5T_STD_I32BE, RANK, shape, H5P_DEFAULT, H5T_NATIVE_INT32, data);
    plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, RANK, chunk);
    put_dataset(file, "/chunked", H5T_STD_I32BE, RANK, shape, plist, H5T_NATIVE_INT32, data);
    H5Pset_shuffle(plist);
    H5Pset_deflate(plist, 1);
    put_dataset(file, "/deflated", H5T_NATIVE_INT32, RANK, shape, plist, H5T_NATIVE_INT32, data);
    H5Pclose(plist);
    plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(plist, H5D_COMPACT);
    put_dataset(file, "/compact", H5T_NATIVE_INT32, RANK, shape, plist, H5T_NATIVE_INT32, data);
    H5Pclose(plist);
    plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_value(plist, H5T_NATIVE_INT32, &(int32_t){42});
    put_dataset(file, "/late", H5T_NATIVE_INT32, RANK, shape, plist, H5T_NATIVE_INT32, NULL);
    H5Pclose(plist);
    H5Fclose(file);

    create = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(create, 1024);
    file = H5Fcreate(own("block.h5"), H5F_ACC_TRUNC, create, H5P_DEFAULT);
    put_dataset(file, "/native", H5T_NATIVE_INT32, RANK, shape, H5P_DEFAULT, H5T_NATIVE_INT32, data);
    plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_value(plist, H5T_NATIVE_INT32, &(int32_t){42});
    put_dataset(file, "/late", H5T_NATIVE_INT32, RANK, shape, plist, H5T_NATIVE_INT32, NULL);
    H5Pclose(plist);
    H5Fclose(file);
    H5Pclose(create);

    file = make_file("links.h5");
    H5Lcreate_external("data.h5", "/big", file, "/outside", H5P_DEFAULT, H5P_DEFAULT);
    plist = H5Pcreate(H5P_DATASET_CREATE);
    {
        hid_t space = H5Screate_simple(RANK, shape, NULL), part = H5Screate_simple(RANK, shape, NULL), set;
        for (hsize_t half = 0; half < 2; half++) {
            const hsize_t start[RANK] = {0, 0, 0, 20 * half};
            H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, blocks, NULL);
            H5Sselect_hyperslab(part, H5S_SELECT_SET, start, NULL, blocks, NULL);
            H5Pset_virtual(plist, space, "data.h5", half ? "/deflated" : "/native", part);
        }
        H5Sselect_all(space);
        set = H5Dcreate2(file, "/virtual", H5T_NATIVE_INT32, space, H5P_DEFAULT, plist, H5P_DEFAULT);
        H5Dclose(set);
        H5Sclose(part);
        H5Sclose(space);
    }
    H5Pclose(plist);
    H5Fclose(file);
}

/* The value of element (row, column) of a record's matrix: its place in the dataset. */
static int64_t place(const gm_dataset *record, int64_t row, int64_t col)
{
    int64_t flat = 0, stride = 1, left = col;
    int first = 0;
    while (first < record->rank && record->selection.dropped[first])
        first++;
    for (int d = record->rank - 1; d >= 0; d--) {
        const gm_selection *s = &record->selection;
        int64_t index = 0;
        if (d == first) {
            index = row;
        } else if (!s->dropped[d]) {
            index = left % s->count[d];
            left /= s->count[d];
        }
        flat += (s->start[d] + index * s->step[d]) * stride;
        stride *= record->dims[d];
    }
    return flat;
}

static int32_t swapped(int32_t value)
{
    return (int32_t)__builtin_bswap32((uint32_t)value);
}

/* Wrong elements of one rectangle, read to rows of pitch bytes; the gaps between rows must stay as they were. */
static int64_t read_rectangle(gm_reader *reader, const gm_dataset *record, int64_t row, int64_t rows, int64_t col,
                              int64_t cols, size_t pitch, int constant)
{
    size_t bytes = (size_t)rows * pitch + 64;
    char *room = malloc(bytes);
    int64_t wrong = 0;
    memset(room, 0x5a, bytes);
    if (gm_reader_read(reader, row, rows, col, cols, room, pitch))
        wrong++;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            int32_t got, want = constant ? constant : (int32_t)place(record, row + i, col + j);
            memcpy(&got, room + (size_t)i * pitch + (size_t)j * sizeof got, sizeof got);
            wrong += (record->swap ? swapped(got) : got) != want;
        }
        for (size_t gap = (size_t)cols * 4; gap < pitch; gap++)
            wrong += room[(size_t)i * pitch + gap] != 0x5a;
    }
    free(room);
    return wrong;
}

/* Wrong elements of a range. */
static int64_t read_range(gm_reader *reader, const gm_dataset *record, int64_t first, int64_t count, int constant)
{
    int32_t *room = malloc(((size_t)count + 1) * sizeof *room);
    int64_t wrong = 0, rows, cols;
    gm_dataset_matrix(record, &rows, &cols);
    room[count] = 77;
    if (gm_reader_read_range(reader, first, count, room))
        wrong++;
    for (int64_t i = 0; i < count; i++) {
        int32_t want = constant ? constant : (int32_t)place(record, (first + i) / cols, (first + i) % cols);
        wrong += (record->swap ? swapped(room[i]) : room[i]) != want;
    }
    wrong += room[count] != 77;
    free(room);
    return wrong;
}

static void check_dataset(const char *text, int direct, int constant)
{
    gm_dataset record;
    gm_reader *reader = NULL;
    int64_t rows, cols, wrong = 0;
    int status = gm_describe(own(text), NULL, &record);
    if (!status)
        status = gm_reader_open(&record, &reader);
    if (!succeeds(status, text))
        return;
    gm_dataset_matrix(&record, &rows, &cols);
    wrong += read_rectangle(reader, &record, 0, rows, 0, cols, (size_t)cols * 4, constant);
    wrong += read_rectangle(reader, &record, 0, rows, 0, cols, (size_t)cols * 4 + 12, constant);
    wrong += read_rectangle(reader, &record, 0, rows, 0, cols, (size_t)cols * 4 + 3, constant);
    wrong += read_rectangle(reader, &record, 0, rows, 0, 0, 4, constant);
    wrong += read_rectangle(reader, &record, rows, 0, 0, cols, (size_t)cols * 4, constant);
    for (int i = 0; i < 60 && rows && cols; i++) {
        int64_t row = rand() % rows, col = rand() % cols, m = 1 + rand() % (rows - row), n = 1 + rand() % (cols - col);
        wrong += read_rectangle(reader, &record, row, m, col, n, (size_t)n * 4 + (size_t)(i % 3) * 4, constant);
    }
    for (int i = 0; i < 20 && rows && cols; i++) {
        int64_t first = rand() % (rows * cols), count = i ? rand() % (rows * cols - first + 1) : 0;
        wrong += read_range(reader, &record, first, count, constant);
    }
    gm_reader_close(reader);
    tap_ok(wrong == 0 && record.direct == direct, "%s: %" PRId64 " x %" PRId64 "%s", text, rows, cols,
           record.direct ? ", direct" : "");
    if (wrong)
        tap_diag("%" PRId64 " wrong", wrong);
}

static void check_layouts(void)
{
    static const char *const selections[] = {
        "",          "[1:4,::2]", "[3]",         "[:,:,:,7]",  "[:,2,3,4]",   "[::2,1:5:3,::3,::7]",
        "[1,2,3,4]", "[2:2]",     "[:,:,:,5:9]", "[::4,:,-1]", "[:,:,:,::39]"};
    static const struct {
        const char *name;
        int direct, constant;
    } datasets[] = {{"data.h5:/native", 1, 0},   {"data.h5:/big", 1, 0},     {"data.h5:/chunked", 0, 0},
                    {"data.h5:/deflated", 0, 0}, {"data.h5:/compact", 0, 0}, {"data.h5:/late", 0, 42},
                    {"block.h5:/native", 1, 0},  {"block.h5:/late", 0, 42},  {"links.h5:/outside", 1, 0},
                    {"links.h5:/virtual", 0, 0}};

    for (size_t i = 0; i < sizeof datasets / sizeof datasets[0]; i++) {
        for (size_t j = 0; j < sizeof selections / sizeof selections[0]; j++) {
            char text[128];
            snprintf(text, sizeof text, "%s%s", datasets[i].name, selections[j]);
            check_dataset(text, datasets[i].direct, datasets[i].constant);
        }
    }
}

/* Columns far apart, and rows longer than one read. */
static void check_wide(void)
{
    enum { ROWS = 6, COLS = 200000 };
    const hsize_t wide[2] = {ROWS, COLS};
    int32_t *values = malloc((size_t)ROWS * COLS * sizeof *values);
    hid_t file = make_file("wide.h5");

    for (int i = 0; i < ROWS * COLS; i++)
        values[i] = i;
    put_dataset(file, "/w", H5T_NATIVE_INT32, 2, wide, H5P_DEFAULT, H5T_NATIVE_INT32, values);
    H5Fclose(file);
    free(values);
    check_dataset("wide.h5:/w[:,::3]", 1, 0);
    check_dataset("wide.h5:/w[::2,::5000]", 1, 0);
    check_dataset("wide.h5:/w[:,5]", 1, 0);
    check_dataset("wide.h5:/w[1:4]", 1, 0);
}

static void check_scalar(void)
{
    hid_t file = make_file("scalar.h5");
    gm_dataset record;
    gm_reader *reader = NULL;
    double value = 0;
    int status;
    put_dataset(file, "/s", H5T_NATIVE_DOUBLE, 0, NULL, H5P_DEFAULT, H5T_NATIVE_DOUBLE, &(double){2.5});
    H5Fclose(file);
    status = gm_describe(own("scalar.h5"), NULL, &record);
    if (!status)
        status = gm_reader_open(&record, &reader);
    if (!status)
        status = gm_reader_read(reader, 0, 1, 0, 1, &value, 8);
    gm_reader_close(reader);
    succeeds(status, "a scalar");
    tap_ok(value == 2.5, "is read");
}

/* 24 bits by conversion; bfloat16, as others make it, as it is. */
/* Integers of fewer bits than their bytes, big-endian: libhdf5 itself loses the sign where it converts to the order of
 * this machine. A virtual dataset has them too, and as its fill value, or converts them. */
enum { PADDED = 5, MAPPED = 4 };

static int64_t integer_at(const char *at, size_t size, int swap)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits = bits << 8 | (unsigned char)at[swap ? i : size - 1 - i];
    return (int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size);
}

static void check_padded_dataset(const char *name, size_t size, const int64_t *want, int count)
{
    gm_dataset record;
    gm_reader *reader = NULL;
    char found[PADDED * sizeof(int64_t)];
    int status = gm_describe(own_text("padded.h5:", name), NULL, &record);
    if (!status)
        status = gm_reader_open(&record, &reader);
    if (!status)
        status = gm_reader_read(reader, 0, count, 0, 1, found, size);
    gm_reader_close(reader);
    int good = !status && gm_dtype_size(record.type) == size && gm_dtype_get_kind(record.type) == GM_SIGNED;
    for (int i = 0; i < count && good; i++)
        good = integer_at(found + (size_t)i * size, size, record.swap) == want[i];
    tap_ok(good, "%s: big-endian integers of fewer bits than their bytes", name);
}

static void check_padded(void)
{
    const hsize_t count = MAPPED, all = PADDED;
    hid_t file = make_file("padded.h5"), type = H5I_INVALID_HID, plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t from = H5Screate_simple(1, &count, NULL), to = H5Screate_simple(1, &all, NULL);
    int64_t want[4][PADDED], swapped[PADDED];
    char name[32];
    for (int i = 0; i < 4; i++) /* the last one is of 4 bytes */
        for (int offset = 0; offset < 3; offset += 2) {
            static const size_t sizes[] = {1, 2, 8, 4};
            const int64_t half = INT64_C(1) << (8 * sizes[i] - 4);
            memcpy(want[i], (int64_t[PADDED]){-half, half - 1, -1, 0, -2}, sizeof want[i]);
            for (int k = 0; k < PADDED; k++)
                swapped[k] = (int64_t)__builtin_bswap64((uint64_t)want[i][k]);
            type = H5Tcopy(H5T_STD_I64BE);
            H5Tset_precision(type, 8 * sizes[i] - 3);
            H5Tset_size(type, sizes[i]);
            H5Tset_offset(type, (size_t)offset);
            snprintf(name, sizeof name, "/%zu.%d", sizes[i], offset);
            put_dataset(file, name, type, 1, &count, H5P_DEFAULT, H5T_STD_I64BE, swapped);
        }
    H5Sselect_hyperslab(to, H5S_SELECT_SET, &(hsize_t){0}, NULL, &count, NULL);
    H5Pset_virtual(plist, to, own("padded.h5"), "/4.0", from);
    H5Tset_offset(type, 0);
    H5Pset_fill_value(plist, H5T_STD_I64BE, &swapped[MAPPED]);
    put_dataset(file, "/virtual", type, 1, &all, plist, 0, NULL);
    put_dataset(file, "/converted", H5T_STD_I32LE, 1, &all, plist, 0, NULL);
    H5Sclose(from);
    H5Sclose(to);
    H5Pclose(plist);
    H5Fclose(file);
    check_padded_dataset("/1.0", 1, want[0], MAPPED);
    check_padded_dataset("/1.2", 1, want[0], MAPPED);
    check_padded_dataset("/2.0", 2, want[1], MAPPED);
    check_padded_dataset("/2.2", 2, want[1], MAPPED);
    check_padded_dataset("/8.0", 8, want[2], MAPPED);
    check_padded_dataset("/8.2", 8, want[2], MAPPED);
    check_padded_dataset("/4.0", 4, want[3], MAPPED);
    check_padded_dataset("/4.2", 4, want[3], MAPPED);
    check_padded_dataset("/virtual", 4, want[3], PADDED);
    check_padded_dataset("/converted", 4, want[3], PADDED);
}

static void check_conversion(void)
{
    static const uint16_t brain[3] = {0x3f80, 0xc049, 0x7f80}; /* 1, -3.140625, infinity */
    const hsize_t three = 3;
    hid_t file = make_file("convert.h5"), small = H5Tcopy(H5T_STD_I32BE), bf16 = H5Tcopy(H5T_IEEE_F32LE);
    gm_dataset record;
    gm_reader *reader = NULL;
    int32_t integers[3] = {0};
    uint16_t floats[3] = {0};
    int status;
    H5Tset_precision(small, 24);
    H5Tset_size(small, 3);
    H5Tset_fields(bf16, 15, 7, 8, 0, 7);
    H5Tset_size(bf16, 2);
    H5Tset_order(bf16, H5T_ORDER_LE);
    put_dataset(file, "/i24", small, 1, &three, H5P_DEFAULT, H5T_NATIVE_INT32, (int32_t[3]){-8388608, 8388607, -1});
    put_dataset(file, "/bf16", bf16, 1, &three, H5P_DEFAULT, bf16, brain);
    H5Tclose(small);
    H5Tclose(bf16);
    H5Fclose(file);
    status = gm_describe(own("convert.h5:/i24"), NULL, &record);
    if (!status)
        status = gm_reader_open(&record, &reader);
    if (!status)
        status = gm_reader_read(reader, 0, 3, 0, 1, integers, 4);
    gm_reader_close(reader);
    tap_ok(!status && integers[0] == -8388608 && integers[1] == 8388607 && integers[2] == -1, "24-bit integers");
    reader = NULL;
    status = gm_describe(own("convert.h5:/bf16"), NULL, &record);
    if (!status)
        status = gm_reader_open(&record, &reader);
    if (!status)
        status = gm_reader_read(reader, 0, 3, 0, 1, floats, 2);
    gm_reader_close(reader);
    tap_ok(!status && record.type == GM_DTYPE_BF16 && record.direct && memcmp(floats, brain, sizeof brain) == 0,
           "bfloat16");
}

static void check_damage(void)
{
    gm_dataset record;
    gm_reader *reader = NULL;
    char room[64];
    int fd;
    gm_describe(own("data.h5:/native"), NULL, &record);
    succeeds(gm_reader_open(&record, &reader), "open");
    fails(gm_reader_read(reader, 3, 3, 0, 1, room, 4), GM_EINTERNAL, "lie outside", "rows beyond the end");
    fails(gm_reader_read(reader, 0, 1, -1, 1, room, 4), GM_EINTERNAL, "lie outside", "a column before the start");
    fails(gm_reader_read(reader, 0, 2, 0, 4, room, 8), GM_EINTERNAL, "do not fit", "a short pitch");
    tap_ok(truncate(own("data.h5"), record.offset + 1000) == 0, "the file is cut");
    fails(gm_reader_read(reader, 0, 1, 1000, 4, room, 16), GM_EINPUT, "damaged or truncated", "reading beyond the cut");
    gm_reader_close(reader);
    fails(gm_reader_open(&record, &reader), GM_EINPUT, "damaged or truncated", "opening a cut file");
    remove(own("data.h5"));
    fails(gm_reader_open(&record, &reader), GM_EINPUT, "No such file", "opening a file that went away");
    record.direct = 0;
    fails(gm_reader_open(&record, &reader), GM_EINPUT, "no such file", "opening it by libhdf5");
    gm_reader_close(NULL);

    /* a chunk that does not inflate */
    gm_describe(own("damaged.h5:/d"), NULL, &record);
    fd = open(own("damaged.h5"), O_RDWR);
    for (off_t at = 4096; at < 40000; at += 512)
        if (pwrite(fd, "garbage!", 8, at) != 8)
            break;
    close(fd);
    if (gm_reader_open(&record, &reader) == GM_OK) {
        char *all = malloc(sizeof data);
        fails(gm_reader_read(reader, 0, 5, 0, 6 * 7 * 40, all, 6 * 7 * 40 * 4), GM_EINPUT,
              "damaged.h5:/d: chunk (0, 0, 0, 0): does not inflate", "a damaged chunk");
        free(all);
    }
    gm_reader_close(reader);
}

static void make_damaged(void)
{
    hid_t file = make_file("damaged.h5"), plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, RANK, shape);
    H5Pset_deflate(plist, 1);
    put_dataset(file, "/d", H5T_NATIVE_INT32, RANK, shape, plist, H5T_NATIVE_INT32, data);
    H5Pclose(plist);
    H5Fclose(file);
}

typedef struct task {
    gm_reader *reader;
    const gm_dataset *record;
    int64_t wrong;
} task;

static void *read_much(void *context)
{
    task *t = context;
    for (int i = 0; i < 50; i++)
        t->wrong += read_rectangle(t->reader, t->record, i % 5, 1, i, 900, 3600, 0);
    return NULL;
}

static void check_threads(void)
{
    enum { THREADS = 4 };
    gm_dataset record[2];
    gm_reader *reader[2] = {NULL};
    pthread_t threads[THREADS];
    task tasks[THREADS];
    int64_t wrong = 0;

    gm_describe(own("data.h5:/native[:,:,::2]"), NULL, &record[0]);
    gm_describe(own("data.h5:/deflated"), NULL, &record[1]);
    gm_reader_open(&record[0], &reader[0]);
    gm_reader_open(&record[1], &reader[1]);
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (task){reader[i % 2], &record[i % 2], 0};
        if (pthread_create(&threads[i], NULL, read_much, &tasks[i]))
            return;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong += tasks[i].wrong;
    }
    gm_reader_close(reader[0]);
    gm_reader_close(reader[1]);
    tap_ok(wrong == 0, "%d threads at once", THREADS);
}

static void check_real(void)
{
    char text[GM_PATH_MAX + 64];
    gm_dataset record;
    gm_reader *reader = NULL;
    uint16_t frame[22 * 26];
    char *path = real_file("diad_k11_imaging.h5");
    int64_t sum = 0;
    if (!path) {
        tap_skip("the real files are not here", "a real detector's frames");
        return;
    }
    snprintf(text, sizeof text, "%s", path);
    gm_describe(text, NULL, &record);
    if (succeeds(gm_reader_open(&record, &reader), "a real detector's frames")) {
        for (int64_t i = 0; i < record.dims[0]; i++) {
            if (gm_reader_read(reader, i, 1, 0, 22 * 26, frame, sizeof frame))
                break;
            for (size_t j = 0; j < sizeof frame / sizeof frame[0]; j++)
                sum += frame[j];
        }
    }
    gm_reader_close(reader);
    tap_ok(sum > 0, "sum of all pixels: %" PRId64, sum);
}

int main(void)
{
    make_data();
    make_damaged();
    check_layouts();
    check_wide();
    check_scalar();
    check_conversion();
    check_padded();
    check_threads();
    check_real();
    check_damage();
    return tap_done();
}
