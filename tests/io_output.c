/* io_output.c - outputs: refused names, files written in pieces and read back, failures that leave nothing behind. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/size.h"
#include "io/describe.h"
#include "io/output.h"
#include "io/reader.h"
#include "tests/io_each.h"

static gm_output_record record;

/* Files in a folder, hidden ones too, whose name has this in it. */
static int count_files_in(const char *path, const char *part)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    int count = 0;

    while (folder && (entry = readdir(folder)))
        count += strstr(entry->d_name, part) != NULL;
    if (folder)
        closedir(folder);
    return count;
}

static int count_files(const char *part)
{
    return count_files_in(own(""), part);
}

static void copy_file(const char *from, const char *to)
{
    FILE *in = fopen(own(from), "rb"), *out = fopen(own(to), "wb");

    for (int c; in && out && (c = getc(in)) != EOF;)
        putc(c, out);
    if (in)
        fclose(in);
    if (out)
        fclose(out);
}

static void start(const char *name, int force)
{
    memset(&record, 0, sizeof record);
    strcpy(record.file, own(name));
    record.force = force;
    record.sync = 1;
}

static gm_output_dataset *add(const char *name, gm_dtype type, int rank, const int64_t *dims)
{
    gm_output_dataset *dataset = &record.dataset[record.datasets++];

    strcpy(dataset->name, name);
    dataset->type = type;
    dataset->rank = rank;
    for (int d = 0; d < rank; d++)
        dataset->dims[d] = dims[d];
    return dataset;
}

static void touch(const char *name)
{
    FILE *file = fopen(own(name), "w");

    if (file)
        fclose(file);
}

static void check_names(void)
{
    char longer[400];
    gm_dataset input;
    struct stat st;
    hid_t file = make_file("input.h5");
    const hsize_t three = 3;

    put_dataset(file, "/d", H5T_NATIVE_INT, 1, &three, H5P_DEFAULT, H5T_NATIVE_INT, (int[3]){0});
    H5Fclose(file);
    touch("there.h5");
    mkdir(own("folder"), 0777);
    tap_ok(symlink("nowhere", own("dangling.h5")) == 0 && symlink("there.h5", own("link.h5")) == 0
               && symlink("input.h5", own("input_link.h5")) == 0 && link(own("input.h5"), own("hard.h5")) == 0 && mkfifo(own("fifo"), 0600) == 0,
           "files to try");
    tap_ok(gm_describe(own("input.h5"), NULL, &input) == GM_OK, "an input");
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';

    succeeds(gm_output_check(own("new.h5"), 0, 1000, &input, 1), "a new name");
    succeeds(gm_output_check("new.h5", 0, 0, NULL, 0), "a new name in the working folder");
    fails(gm_output_check(own("there.h5"), 0, 0, &input, 1), GM_EOUTPUT, "exists already, expected a new name or --force", "exists");
    succeeds(gm_output_check(own("there.h5"), 1, 0, &input, 1), "exists, with force");
    fails(gm_output_check(own("input.h5"), 1, 0, &input, 1), GM_EOUTPUT, "is one of the inputs", "input");
    fails(gm_output_check(own("input_link.h5"), 1, 0, &input, 1), GM_EOUTPUT, "is one of the inputs", "input by a link");
    fails(gm_output_check(own("hard.h5"), 1, 0, &input, 1), GM_EOUTPUT, "is one of the inputs", "input by another name");
    fails(gm_output_check(own("dangling.h5"), 1, 0, NULL, 0), GM_EOUTPUT, "symbolic link", "dangling link");
    fails(gm_output_check(own("link.h5"), 1, 0, NULL, 0), GM_EOUTPUT, "symbolic link", "link");
    fails(gm_output_check(own("fifo"), 1, 0, NULL, 0), GM_EOUTPUT, "not an ordinary file", "fifo");
    fails(gm_output_check(own("folder"), 1, 0, NULL, 0), GM_EOUTPUT, "is a folder", "folder");
    fails(gm_output_check(own("folder/"), 1, 0, NULL, 0), GM_EOUTPUT, "name of a folder", "slash");
    fails(gm_output_check("", 1, 0, NULL, 0), GM_EUSAGE, "empty", "no name");
    fails(gm_output_check(own("absent/c.h5"), 0, 0, NULL, 0), GM_EOUTPUT, "does not exist", "missing folder");
    fails(gm_output_check(own("there.h5/c.h5"), 0, 0, NULL, 0), GM_EOUTPUT, "Not a directory", "a file for a folder");
    fails(gm_output_check(own(longer), 0, 0, NULL, 0), GM_EOUTPUT, "File name too long", "long name");
    fails(gm_output_check(own("big.h5"), 0, INT64_C(1) << 60, NULL, 0), GM_EOUTPUT, "needs 1", "room");
    fails(gm_output_check("/proc/self/c.h5", 0, 0, NULL, 0), GM_EOUTPUT, "/proc/self", "a folder that takes no files");
    if (geteuid() == 0) {
        tap_skip("root may write everywhere", "a folder without permission");
    } else {
        chmod(own("folder"), 0555);
        fails(gm_output_check(own("folder/c.h5"), 0, 0, NULL, 0), GM_EOUTPUT, "Permission denied", "a folder without permission");
    }
    tap_ok(stat(own("there.h5"), &st) == 0 && st.st_size == 0, "nothing was touched");
}

/* Writes every dataset of the record in rectangles; elements are their flat index (type I32 and F64). */
static int write_all(int64_t step_rows, int64_t step_cols, size_t gap)
{
    gm_output *output = NULL;
    int status = gm_output_open(&record, &output);

    for (int i = 0; i < record.datasets && !status; i++) {
        const gm_output_dataset *d = &record.dataset[i];
        int64_t rows = d->rank ? d->dims[0] : 1, cols = 1;
        size_t size = gm_dtype_size(d->type);

        for (int k = 1; k < d->rank; k++)
            cols *= d->dims[k];
        for (int64_t row = 0; row < rows && !status; row += step_rows) {
            for (int64_t col = 0; col < cols && !status; col += step_cols) {
                int64_t m = gm_min(step_rows, rows - row), n = gm_min(step_cols, cols - col);
                size_t pitch = (size_t)n * size + gap;
                char *block = aligned_alloc(4096, ((size_t)m * pitch + 4095) / 4096 * 4096);

                for (int64_t r = 0; r < m; r++) {
                    for (int64_t c = 0; c < n; c++) {
                        int32_t flat = (int32_t)((row + r) * cols + col + c);
                        double real = flat;

                        if (d->big_endian)
                            flat = (int32_t)__builtin_bswap32((uint32_t)flat);
                        memcpy(block + (size_t)r * pitch + (size_t)c * size, d->type == GM_I32 ? (void *)&flat : (void *)&real, size);
                    }
                }
                status = gm_output_write(output, i, row, m, col, n, block, pitch);
                free(block);
            }
        }
    }
    if (!status)
        status = gm_output_close(output, NULL);
    else
        gm_output_close(output, NULL);
    for (int rank = 0; rank < gm_max(record.ranks, 1) && !status; rank++)
        status = gm_output_pack(&record, rank, 3);
    return status;
}

/* Wrong elements of dataset i under the final name. */
static int64_t read_back(int i)
{
    const gm_output_dataset *d = &record.dataset[i];
    char text[2 * GM_PATH_MAX];
    gm_dataset found;
    gm_reader *reader = NULL;
    int64_t rows, cols, wrong = 0;
    char *all = NULL;

    snprintf(text, sizeof text, "%s:%s", record.file, d->name);
    if (gm_describe(text, NULL, &found) || found.type != d->type || found.rank != d->rank || gm_reader_open(&found, &reader))
        return 1;
    wrong += found.layout != (d->chunked ? GM_CHUNKED : record.stripe[i] ? GM_VIRTUAL : GM_CONTIGUOUS);
    wrong += found.filters != (d->shuffle != 0) + (d->deflate != 0);
    gm_dataset_matrix(&found, &rows, &cols);
    all = malloc((size_t)(rows * cols) * gm_dtype_size(d->type) + 1);
    if (gm_reader_read(reader, 0, rows, 0, cols, all, (size_t)cols * gm_dtype_size(d->type)))
        wrong++;
    for (int64_t k = 0; k < rows * cols; k++) {
        int32_t flat;
        double real;

        if (d->type == GM_I32) {
            memcpy(&flat, all + k * 4, 4);
            wrong += (found.swap ? (int32_t)__builtin_bswap32((uint32_t)flat) : flat) != k;
        } else {
            memcpy(&real, all + k * 8, 8);
            wrong += real != (double)k;
        }
    }
    free(all);
    gm_reader_close(reader);
    return wrong;
}

static void check_round(const char *what, int64_t step_rows, int64_t step_cols, size_t gap)
{
    double seconds = 0;
    int64_t wrong = 0;

    if (!succeeds(gm_output_create(&record), what))
        return;
    tap_ok((record.force || access(record.file, F_OK) != 0) && access(record.temporary, F_OK) == 0, "not there before it is finished");
    succeeds(write_all(step_rows, step_cols, gap), "written");
    succeeds(gm_output_finish(&record, NULL, 0, &seconds), "finished");
    for (int i = 0; i < record.datasets; i++)
        wrong += read_back(i);
    tap_ok(wrong == 0 && seconds >= 0, "%s: read back", what);
    tap_ok(count_files(".tmp") == 0 && count_files(".raw") == 0, "no temporary file is left");
}

static void check_forms(void)
{
    static const int64_t matrix[2] = {70, 333}, stack[3] = {9, 20, 31}, none[2] = {0, 7}, vector[1] = {1000}, chunk[3] = {2, 7, 31};
    gm_output_dataset *d;
    struct stat st;
    mode_t mask = umask(027);

    start("contiguous.h5", 0);
    add("/C", GM_F64, 2, matrix);
    add("/deep/er/d", GM_I32, 3, stack)->big_endian = 1;
    add("/none", GM_F64, 2, none);
    add("/scalar", GM_F64, 0, NULL);
    add("/vector", GM_I32, 1, vector);
    check_round("contiguous", 11, 100, 0);
    tap_ok(stat(record.file, &st) == 0 && (st.st_mode & 0777) == 0640, "permissions by the mask");
    umask(mask);
    fails(gm_output_finish(&record, NULL, 0, NULL), GM_EOUTPUT, "cannot be opened again", "finished twice");

    start("whole.h5", 0);
    add("/C", GM_F64, 2, matrix);
    check_round("whole rows with a gap", 70, 333, 16);

    start("chunked.h5", 0);
    record.ranks = 3;
    d = add("/chunked", GM_I32, 3, stack);
    d->chunked = 1;
    memcpy(d->chunk, chunk, sizeof chunk);
    d->deflate = 4;
    d->shuffle = 1;
    d->big_endian = 1;
    add("/plain", GM_F64, 2, matrix);
    add("/auto", GM_F64, 2, matrix)->deflate = 1;
    d = add("/none", GM_F64, 2, none);
    d->chunked = 1;
    d->chunk[0] = d->chunk[1] = 4;
    d = add("/large_chunk", GM_I32, 1, vector);
    d->chunked = 1;
    d->chunk[0] = 5000;
    check_round("chunked beside plain", 4, 50, 8);

    gm_memory_set_cap(GM_HOST, gm_memory_used(GM_HOST) + 20000); /* blocks of a few chunks only */
    start("small.h5", 0);
    d = add("/chunked", GM_I32, 3, stack);
    d->chunked = 1;
    d->chunk[0] = 2;
    d->chunk[1] = 6;
    d->chunk[2] = 5;
    d->shuffle = 1;
    check_round("chunked, with little memory", 9, 1000, 0);
    gm_memory_set_cap(GM_HOST, 8192);
    start("none.h5", 0);
    d = add("/chunked", GM_I32, 3, stack);
    d->chunked = 1;
    memcpy(d->chunk, stack, sizeof stack);
    gm_output_create(&record);
    fails(write_all(9, 1000, 0), GM_EDEVICE, "--host-memory", "no memory for a chunk");
    gm_output_discard(&record);
    gm_memory_set_cap(GM_HOST, INT64_MAX);
    tap_ok(count_files("none.h5") == 0, "nothing is left of it");
}

/* Can the record be written its way on this file system? */
static int works(gm_way way)
{
    gm_output *output = NULL;
    int status = gm_output_create(&record);

    if (!status)
        status = gm_output_open(&record, &output);
    gm_output_close(output, NULL);
    gm_output_discard(&record);
    gm_error_clear();
    return !status && record.way == way;
}

/* Every way of writing, forced: pages and half pages, dense in memory and with gaps. */
static void check_ways(void)
{
    static const int64_t pages[2] = {300, 1024}, odd[2] = {700, 333};

    for (gm_way way = GM_WAY_PLAIN; way < GM_WAYS; way++) {
        for (int gap = 0; gap < 2; gap++) {
            char name[64];

            snprintf(name, sizeof name, "%s%d.h5", gm_way_name(way), gap);
            start(name, 0);
            add("/pages", GM_F64, 2, pages);
            add("/odd", GM_I32, 2, odd);
            record.way = way;
            if (works(way))
                check_round(name, gap ? 11 : 64, gap ? 100 : 1024, gap ? 24 : 0);
            else
                tap_skip("this file system cannot", "%s", name);
            tap_ok(count_files(name) == (access(own(name), F_OK) == 0), "%s: nothing else is left", name);
        }
    }
    start("asked.h5", 0);
    add("/pages", GM_F64, 2, pages);
    record.layout = GM_OUTPUT_AUTO;
    check_round("a small one", 64, 1024, 0);
    tap_ok(record.way == GM_WAY_PLAIN && record.parts == 0 && gm_output_gain(&record) == 0, "is written plainly, unprobed");
}

/* 256 MiB, of which nothing is written: the probe leaves nothing behind, and finds that something works. */
static void check_probe(void)
{
    static const int64_t large[2] = {1 << 15, 1 << 10};

    start("sizable.h5", 0);
    add("/large", GM_F64, 2, large);
    record.threads = 2;
    if (!succeeds(gm_output_create(&record), "a large output"))
        return;
    tap_ok(record.way != GM_WAY_PROBED && record.rate[GM_WAY_PLAIN] > 0, "probed: %s", gm_way_name(record.way));
    tap_ok(count_files(".probe") == 0 && count_files("sizable.h5") == 1, "the probe leaves nothing behind");
    gm_output_discard(&record);
    tap_ok(count_files("sizable.h5") == 0, "discarded");
}

static void remove_part(int part)
{
    char path[GM_PATH_MAX];

    snprintf(path, sizeof path, "%s/part-%02d.h5", record.folder, part);
    unlink(path);
}

/* Parts with stripes of different numbers of rows; a dataset too small for all of them; what cannot lie in parts. */
static void check_parts(void)
{
    static const int64_t matrix[2] = {70, 333}, stack[3] = {9, 20, 31}, none[2] = {0, 7}, vector[1] = {5}, large[2] = {37, 1 << 18};
    char name[GM_PATH_MAX];
    gm_dataset found;
    int64_t wrong = 0;

    start("100%.h5", 0);
    record.layout = GM_OUTPUT_PARTED;
    record.threads = 7;
    add("/C", GM_F64, 2, matrix);
    add("/deep/er/d", GM_I32, 3, stack)->big_endian = 1;
    add("/none", GM_F64, 2, none);
    add("/scalar", GM_F64, 0, NULL);
    add("/vector", GM_I32, 1, vector);
    check_round("parts", 11, 100, 8);
    tap_ok(record.parts == 7 && count_files("100%.h5") == 2, "7 parts in one folder");

    start("stripes.h5", 0);
    record.layout = GM_OUTPUT_PARTED;
    record.threads = 3;
    add("/C", GM_F64, 2, large); /* stripes of 2 rows: 18 and a half */
    check_round("stripes", 7, 1 << 17, 0);
    tap_ok(record.parts == 3 && record.stripe[0] == 2, "of 2 rows");

    mkdir(own("away"), 0777);
    snprintf(name, sizeof name, "%s/%s", own("away"), strrchr(record.folder, '/') + 1);
    rename(record.folder, name);
    strcpy(record.folder, name);
    rename(own("stripes.h5"), own("away/renamed.h5"));
    tap_ok(symlink("away/renamed.h5", own("linked.h5")) == 0, "moved, renamed and linked");
    for (int i = 0; i < 2; i++) {
        strcpy(record.file, own(i ? "linked.h5" : "away/renamed.h5"));
        wrong += read_back(0);
    }
    tap_ok(wrong == 0, "it is still whole");
    gm_error_clear();
    remove_part(1);
    fails(gm_describe(record.file, NULL, &found), GM_EINPUT, "part-01.h5", "a part that is missing");
}

/* The parts of an output that is replaced go, and nothing else; they are no input either. */
static void check_parts_end(void)
{
    static const int64_t vector[1] = {1000};
    char old[GM_PATH_MAX], part[GM_PATH_MAX + 16];
    gm_dataset inputs[2];

    for (int i = 0; i < 3; i++) { /* parts; parts in place of parts; one file in place of parts */
        start("again.h5", 1);
        record.layout = i < 2 ? GM_OUTPUT_PARTED : GM_OUTPUT_SINGLE;
        record.threads = 4;
        add("/v", GM_I32, 1, vector);
        check_round("again", 100, 1, 0);
        if (i > 0)
            tap_ok(access(old, F_OK) != 0 && count_files("again.h5") == 2 - i / 2, "the old parts are gone");
        strcpy(old, record.folder);
    }
    start("mixed.h5", 1);
    record.layout = GM_OUTPUT_PARTED;
    add("/v", GM_I32, 1, vector);
    check_round("mixed", 100, 1, 0);
    strcpy(old, record.folder);
    snprintf(part, sizeof part, "%s/part-00.h5", record.folder);
    tap_ok(link(record.file, own("copy.h5")) == 0 && symlink(part, own("part.h5")) == 0 && gm_describe(part, NULL, &inputs[0]) == GM_OK,
           "its own parts as inputs");
    fails(gm_output_check(record.file, 1, 0, inputs, 1), GM_EOUTPUT, "is one of the inputs", "a part");
    gm_describe(own("part.h5"), NULL, &inputs[0]);
    fails(gm_output_check(record.file, 1, 0, inputs, 1), GM_EOUTPUT, "is one of the inputs", "a part by a link");
    start("other.h5", 1);
    add("/v", GM_I32, 1, vector);
    check_round("other", 100, 1, 0);
    copy_file("mixed.h5", "copied.h5");
    gm_describe(own("copied.h5"), NULL, &inputs[0]);
    fails(gm_output_check(own("mixed.h5"), 1, 0, inputs, 1), GM_EOUTPUT, "is made of it", "a copy that shares the parts");
    succeeds(gm_output_check(own("other.h5"), 1, 0, inputs, 1), "another file");

    snprintf(part, sizeof part, "%s/mine.txt", old);
    fclose(fopen(part, "w"));
    start("mixed.h5", 1);
    add("/v", GM_I32, 1, vector);
    check_round("a folder with something else in it", 100, 1, 0);
    tap_ok(access(part, F_OK) == 0, "what is not ours stays");
}

static void check_parts_bad(void)
{
    static const int64_t vector[1] = {1000};

    start("parted.h5", 0);
    record.layout = GM_OUTPUT_PARTED;
    add("/v", GM_I32, 1, vector)->deflate = 1;
    fails(gm_output_create(&record), GM_EUSAGE, "takes no chunks", "compressed parts");
    start("parted.h5", 0);
    record.layout = GM_OUTPUT_PARTED;
    add("/v", GM_I32, 1, vector);
    gm_output_create(&record);
    tap_ok(count_files("parted.h5") == 2, "a folder and a temporary file");
    gm_output_discard(&record);
    gm_output_discard(&record);
    tap_ok(count_files("parted.h5") == 0, "discarded");
    start("absent/parted.h5", 0);
    record.layout = GM_OUTPUT_PARTED;
    add("/v", GM_I32, 1, vector);
    fails(gm_output_create(&record), GM_EOUTPUT, "No such file", "a missing folder");
}

/* Noise is stored as it is, with a mask that says so. */
static void check_noise(void)
{
    static const int64_t vector[1] = {100000};
    int32_t *noise = malloc((size_t)vector[0] * 4), *back = malloc((size_t)vector[0] * 4);
    gm_output *output;
    gm_dataset found;
    gm_reader *reader = NULL;

    for (int64_t i = 0; i < vector[0]; i++)
        noise[i] = (int32_t)gm_random_bits(1, (uint64_t)i);
    start("noise.h5", 0);
    add("/v", GM_I32, 1, vector)->deflate = 9;
    record.dataset[0].shuffle = 1;
    record.dataset[0].chunked = 1;
    record.dataset[0].chunk[0] = 999;
    succeeds(gm_output_create(&record) || gm_output_open(&record, &output) || gm_output_write(output, 0, 0, vector[0], 0, 1, noise, 4)
                 || gm_output_close(output, NULL) || gm_output_pack(&record, 0, 2) || gm_output_finish(&record, NULL, 0, NULL),
             "noise");
    succeeds(gm_describe(own("noise.h5"), NULL, &found) || gm_reader_open(&found, &reader) || gm_reader_read(reader, 0, vector[0], 0, 1, back, 4),
             "reads");
    tap_ok(memcmp(noise, back, (size_t)vector[0] * 4) == 0, "the same noise");
    gm_reader_close(reader);
    free(noise);
    free(back);
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
            gm_way way;
            gm_output_layout layout;
            int deflate;
        } forms[] = {{GM_WAY_PLAIN, GM_OUTPUT_SINGLE, 0},  {GM_WAY_ALLOCATED, GM_OUTPUT_SINGLE, 0}, {GM_WAY_MAPPED, GM_OUTPUT_SINGLE, 0},
                     {GM_WAY_PLAIN, GM_OUTPUT_PARTED, 0}, {GM_WAY_PLAIN, GM_OUTPUT_SINGLE, 1},    {GM_WAY_MAPPED, GM_OUTPUT_SINGLE, -1}};
        int64_t files = count_files_in(folder, "");
        int status;

        start("mount/c.h5", 0);
        record.way = forms[i].way;
        record.layout = forms[i].layout;
        add("/C", GM_F64, 2, forms[i].deflate < 0 ? small : large)->deflate = gm_max(forms[i].deflate, 0);
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
    *(int *)status = gm_output_fill(&record);
    return NULL;
}

/* Space that comes behind: written from the end, so that the first one to write waits the longest. */
static void check_behind(void)
{
    static const int64_t large[2] = {21000, 1000};
    const gm_way ways[] = {GM_WAY_ALLOCATED, GM_WAY_MAPPED, GM_WAY_DIRECT};
    double *row = malloc((size_t)large[1] * sizeof *row), first[2] = {-1, -1};
    gm_output *output;
    gm_dataset dataset;
    gm_reader *reader;
    char title[64];

    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        pthread_t thread;
        int filled = -1;

        start("behind.h5", 1);
        add("/C", GM_F64, 2, large);
        record.way = ways[w];
        record.behind = 1;
        record.hosts = 1;
        snprintf(title, sizeof title, "space that comes behind, %s", gm_way_name(ways[w]));
        if (!works(ways[w])) {
            tap_skip("not on this file system", "%s", title);
            continue;
        }
        record.way = ways[w];
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
        status = gm_describe(own("behind.h5"), NULL, &dataset) || gm_reader_open(&dataset, &reader);
        for (int64_t i = 0; i < large[0] && !status; i += 997) {
            status = gm_reader_read(reader, i, 1, 0, 2, first, sizeof first) || first[1] != (double)(i * large[1] + 1);
        }
        if (succeeds(status, "and read back"))
            gm_reader_close(reader);
    }
    unlink(own("behind.h5"));
    free(row);
}

/* Space that ends behind the first slice: who waits for more fails as well, and no file is left. */
static void check_behind_full(void)
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
    for (gm_way way = GM_WAY_ALLOCATED; way <= GM_WAY_MAPPED; way++) {
        pthread_t thread;
        int filled = -1;

        start("mount/c.h5", 0);
        add("/C", GM_F64, 2, large);
        record.way = way;
        record.behind = 1;
        succeeds(gm_output_create(&record) || gm_output_open(&record, &output), "there is space for the beginning");
        if (way == GM_WAY_ALLOCATED) /* mappings wait for all of it */
            succeeds(gm_output_write(output, 0, 0, 1, 0, 1000, row, 0), "which can be written");
        pthread_create(&thread, NULL, fill, &filled);
        fails(gm_output_write(output, 0, 20999, 1, 0, 1000, row, 0), GM_EOUTPUT, "c.h5: no space for 16", "not the end");
        pthread_join(thread, NULL);
        tap_ok(filled == GM_EOUTPUT, "the space ended");
        gm_error_clear();
        gm_output_close(output, NULL);
        gm_output_discard(&record);
        tap_ok(count_files_in(folder, "c.h5") == 0, "nothing is left of it");
    }
    umount(folder);
}

static void check_force(void)
{
    static const int64_t vector[1] = {10};

    start("meanwhile.h5", 0);
    add("/v", GM_I32, 1, vector);
    gm_output_create(&record);
    write_all(10, 1, 0);
    touch("meanwhile.h5");
    fails(gm_output_finish(&record, NULL, 0, NULL), GM_EOUTPUT, "has come into being meanwhile", "a file that came between");
    tap_ok(count_files("meanwhile.h5") == 1, "is left alone, and nothing else stays");
    start("meanwhile.h5", 1);
    add("/v", GM_I32, 1, vector);
    gm_output_create(&record);
    write_all(10, 1, 0);
    succeeds(gm_output_finish(&record, NULL, 0, NULL), "with force");
    tap_ok(read_back(0) == 0 && count_files("meanwhile.h5") == 1, "it is replaced");
}

static void check_bad(void)
{
    static const int64_t vector[1] = {10}, huge[2] = {INT64_C(1) << 40, INT64_C(1) << 40}, large[1] = {INT64_C(1) << 33};
    gm_output *output = NULL;
    int value = 0;

    start("bad.h5", 0);
    add("/a", GM_I32, 1, vector);
    add("/a/b", GM_I32, 1, vector);
    fails(gm_output_create(&record), GM_EOUTPUT, "bad.h5:/a/b: cannot be created", "a dataset for a group");
    start("bad.h5", 0);
    add("/a", GM_I32, 2, huge);
    fails(gm_output_create(&record), GM_EOUTPUT, "2^63", "too large");
    start("bad.h5", 0);
    add("/a", GM_I32, 1, large)->chunked = 1;
    record.dataset[0].chunk[0] = large[0];
    fails(gm_output_create(&record), GM_EUSAGE, "less than 4 GiB", "a chunk that is too large");
    record.dataset[0].chunk[0] = 0;
    fails(gm_output_create(&record), GM_EUSAGE, "expected 1 or more", "a chunk of nothing");
    start("absent/bad.h5", 0);
    add("/a", GM_I32, 1, vector);
    fails(gm_output_create(&record), GM_EOUTPUT, "No such file", "a missing folder");
    tap_ok(count_files("bad.h5") == 0, "nothing is left of them");

    start("bad.h5", 0);
    add("/a", GM_I32, 1, vector);
    gm_output_create(&record);
    succeeds(gm_output_open(&record, &output), "open");
    fails(gm_output_write(output, 0, 9, 2, 0, 1, &value, 4), GM_EINTERNAL, "lie outside", "rows beyond the end");
    fails(gm_output_write(output, 1, 0, 1, 0, 1, &value, 4), GM_EINTERNAL, "lie outside", "a dataset that is not there");
    succeeds(gm_output_close(output, NULL), "close");
    gm_output_discard(&record);
    gm_output_discard(&record);
    fails(gm_output_open(&record, &output), GM_EOUTPUT, "cannot be opened for writing", "after it was discarded");
    succeeds(gm_output_close(NULL, NULL), "no output");
    tap_ok(count_files("bad.h5") == 0, "discarded");
}

/* A limit on the size of files stands for a full disk. */
static void check_full(void)
{
    static const int64_t matrix[2] = {100, 1000};
    struct rlimit old, limit;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    start("full.h5", 0);
    add("/C", GM_F64, 2, matrix);
    gm_output_create(&record);
    limit = old;
    limit.rlim_cur = 400000;
    setrlimit(RLIMIT_FSIZE, &limit);
    fails(write_all(10, 1000, 0), GM_EOUTPUT, "failed: File too large, expected room for 781", "no space");
    gm_output_discard(&record);
    start("full.h5", 0);
    add("/C", GM_F64, 2, matrix);
    fails(gm_output_create(&record), GM_EOUTPUT, "full.h5: cannot be created", "no space at the start");
    setrlimit(RLIMIT_FSIZE, &old);

    start("full.h5", 0);
    add("/C", GM_F64, 2, matrix)->chunked = 1;
    record.dataset[0].chunk[0] = record.dataset[0].chunk[1] = 100;
    gm_output_create(&record);
    write_all(100, 1000, 0);
    setrlimit(RLIMIT_FSIZE, &limit);
    fails(gm_output_pack(&record, 0, 2), GM_EOUTPUT, "full.h5: writing", "no space for packed chunks");
    fails(gm_output_finish(&record, NULL, 0, NULL), GM_EOUTPUT, "full.h5", "no space at the end");
    setrlimit(RLIMIT_FSIZE, &old);
    tap_ok(count_files("full.h5") == 0, "nothing is left of it");
}

static void check_attributes(void)
{
    static const int64_t vector[1] = {10};
    char *text = malloc(200001), *back = NULL;
    gm_attribute attributes[] = {
        {"note", GM_ATTRIBUTE_TEXT, "Größe \"1\"", 0, 0},
        {"alpha", GM_ATTRIBUTE_REAL, NULL, 0.1, 0},
        {"count", GM_ATTRIBUTE_INTEGER, NULL, 0, INT64_C(1) << 40},
        {"long", GM_ATTRIBUTE_TEXT, text, 0, 0},
        {"long2", GM_ATTRIBUTE_TEXT, text, 0, 0},
        {"empty", GM_ATTRIBUTE_TEXT, "", 0, 0},
    };
    hid_t file, set, id, type;
    double real = 0;
    int64_t integer = 0;

    for (int i = 0; i < 200000; i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    memmove(text + 1, text, 199999);
    text[0] = 'x'; /* so that 60 KiB end inside a character */
    text[199999] = text[200000] = '\0';
    start("attributes.h5", 0);
    add("/a", GM_I32, 1, vector);
    add("/b", GM_I32, 1, vector)->deflate = 1;
    gm_output_create(&record);
    write_all(10, 1, 0);
    succeeds(gm_output_finish(&record, attributes, 6, NULL), "attributes");
    file = H5Fopen(own("attributes.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(file, "/b", H5P_DEFAULT);
    id = H5Aopen(set, "alpha", H5P_DEFAULT);
    H5Aread(id, H5T_NATIVE_DOUBLE, &real);
    H5Aclose(id);
    id = H5Aopen(set, "count", H5P_DEFAULT);
    H5Aread(id, H5T_NATIVE_INT64, &integer);
    H5Aclose(id);
    tap_ok(real == 0.1 && integer == INT64_C(1) << 40, "numbers");
    id = H5Aopen(set, "long2", H5P_DEFAULT);
    type = H5Aget_type(id);
    H5Aread(id, type, &back);
    tap_ok(back && strlen(back) == 60 * 1024 - 1 && !strncmp(back, text, strlen(back)), "a long text is cut between characters");
    H5free_memory(back);
    H5Tclose(type);
    H5Aclose(id);
    id = H5Aopen(set, "note", H5P_DEFAULT);
    type = H5Aget_type(id);
    H5Aread(id, type, &back);
    tap_ok(back && !strcmp(back, "Größe \"1\"") && H5Tget_cset(type) == H5T_CSET_UTF8, "a text");
    H5free_memory(back);
    H5Tclose(type);
    H5Aclose(id);
    H5Dclose(set);
    H5Fclose(file);
    free(text);

    attributes[1].name = "note";
    start("twice.h5", 0);
    add("/a", GM_I32, 1, vector);
    gm_output_create(&record);
    write_all(10, 1, 0);
    fails(gm_output_finish(&record, attributes, 2, NULL), GM_EOUTPUT, "twice.h5:/a: attribute note", "an attribute given twice");
    tap_ok(count_files("twice.h5") == 0, "nothing is left of it");
}

static void check_bits(void)
{
    static const int64_t vector[1] = {100};
    char *one = malloc(1 << 20), *two = malloc(1 << 20);
    size_t bytes[2] = {0, 1};

    for (int i = 0; i < 2; i++) {
        FILE *file;

        start(i ? "two.h5" : "one.h5", 0);
        add("/a", GM_I32, 1, vector);
        gm_output_create(&record);
        write_all(10, 1, 0);
        gm_output_finish(&record, NULL, 0, NULL);
        file = fopen(record.file, "rb");
        if (file) {
            bytes[i] = fread(i ? two : one, 1, 1 << 20, file);
            fclose(file);
        }
    }
    tap_ok(bytes[0] == bytes[1] && !memcmp(one, two, bytes[0]), "the same output has the same bytes");
    free(one);
    free(two);
}

static void check_chunk_choice(void)
{
    gm_output_dataset d = {.type = GM_U16, .rank = 3, .dims = {1000, 2048, 2048}};
    gm_output_dataset small = {.type = GM_F64, .rank = 2, .dims = {10, 20}};

    gm_output_choose_chunk(&d);
    gm_output_choose_chunk(&small);
    tap_ok(d.chunked && d.chunk[0] == 1 && d.chunk[1] == 256 && d.chunk[2] == 2048, "1 MiB of a frame");
    tap_ok(small.chunk[0] == 10 && small.chunk[1] == 20, "a small dataset is one chunk");
}

int main(void)
{
    int before = 0, after = 0;

    H5Fclose(make_file("first.h5"));
    for (int fd = 0; fd < 256; fd++)
        before += fcntl(fd, F_GETFD) >= 0;
    check_names();
    check_forms();
    check_ways();
    check_probe();
    check_parts();
    check_parts_end();
    check_parts_bad();
    check_noise();
    check_force();
    check_bad();
    check_attributes();
    check_bits();
    check_chunk_choice();
    for (int fd = 0; fd < 256; fd++)
        after += fcntl(fd, F_GETFD) >= 0;
    tap_ok(before == after, "no file is left open");
    check_behind();
    check_full_mount();
    check_behind_full();
    check_full(); /* last: libhdf5 does not let go of a file that it could not close */
    return tap_done();
}
