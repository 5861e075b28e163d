/* output.c - outputs: refused names, files written in pieces and read back, failures that leave no file. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "tests/io/write/each.h"

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
    tap_ok(symlink("nowhere", own("dangling.h5")) == 0 && symlink("there.h5", own("link.h5")) == 0 &&
               symlink("input.h5", own("input_link.h5")) == 0 && link(own("input.h5"), own("hard.h5")) == 0 &&
               mkfifo(own("fifo"), 0600) == 0,
           "files to try");
    tap_ok(gm_describe(own("input.h5"), NULL, &input) == GM_OK, "an input");
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';

    succeeds(gm_output_check(own("new.h5"), 0, 1000, &input, 1), "a new name");
    succeeds(gm_output_check("new.h5", 0, 0, NULL, 0), "a new name in the working folder");
    fails(gm_output_check(own("there.h5"), 0, 0, &input, 1), GM_EOUTPUT,
          "exists already, expected a new name or --force", "exists");
    succeeds(gm_output_check(own("there.h5"), 1, 0, &input, 1), "exists, with force");
    fails(gm_output_check(own("input.h5"), 1, 0, &input, 1), GM_EOUTPUT, "is one of the inputs", "input");
    fails(gm_output_check(own("input_link.h5"), 1, 0, &input, 1), GM_EOUTPUT, "is one of the inputs",
          "input by a link");
    fails(gm_output_check(own("hard.h5"), 1, 0, &input, 1), GM_EOUTPUT, "is one of the inputs",
          "input by another name");
    fails(gm_output_check(own("dangling.h5"), 1, 0, NULL, 0), GM_EOUTPUT, "symbolic link", "dangling link");
    fails(gm_output_check(own("link.h5"), 1, 0, NULL, 0), GM_EOUTPUT, "symbolic link", "link");
    fails(gm_output_check(own("fifo"), 1, 0, NULL, 0), GM_EOUTPUT, "not a regular file", "fifo");
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
        fails(gm_output_check(own("folder/c.h5"), 0, 0, NULL, 0), GM_EOUTPUT, "Permission denied",
              "a folder without permission");
    }
    tap_ok(stat(own("there.h5"), &st) == 0 && st.st_size == 0, "nothing was touched");
}

static void check_forms(void)
{
    static const int64_t matrix[2] = {70, 333}, stack[3] = {9, 20, 31}, none[2] = {0, 7}, vector[1] = {1000},
                         chunk[3] = {2, 7, 31};
    gm_output_dataset *d;
    struct stat st;
    mode_t mask = umask(027);
    start("contiguous.h5", 0);
    add("/C", GM_DTYPE_F64, 2, matrix);
    add("/deep/er/d", GM_DTYPE_I32, 3, stack)->big_endian = 1;
    add("/none", GM_DTYPE_F64, 2, none);
    add("/scalar", GM_DTYPE_F64, 0, NULL);
    add("/vector", GM_DTYPE_I32, 1, vector);
    check_round("contiguous", 11, 100, 0);
    tap_ok(stat(record.file, &st) == 0 && (st.st_mode & 0777) == 0640, "permissions by the mask");
    umask(mask);
    fails(gm_output_finish(&record, NULL, 0, NULL), GM_EOUTPUT, "cannot be opened again", "finished twice");

    start("whole.h5", 0);
    add("/C", GM_DTYPE_F64, 2, matrix);
    check_round("whole rows with a gap", 70, 333, 16);

    start("chunked.h5", 0);
    record.ranks = 3;
    d = add("/chunked", GM_DTYPE_I32, 3, stack);
    d->chunked = 1;
    memcpy(d->chunk, chunk, sizeof chunk);
    d->deflate = 4;
    d->shuffle = 1;
    d->big_endian = 1;
    add("/plain", GM_DTYPE_F64, 2, matrix);
    add("/auto", GM_DTYPE_F64, 2, matrix)->deflate = 1;
    d = add("/none", GM_DTYPE_F64, 2, none);
    d->chunked = 1;
    d->chunk[0] = d->chunk[1] = 4;
    d = add("/large_chunk", GM_DTYPE_I32, 1, vector);
    d->chunked = 1;
    d->chunk[0] = 5000;
    check_round("chunked beside plain", 4, 50, 8);

    gm_memory_set_cap(GM_HOST, gm_memory_used(GM_HOST) + 20000); /* blocks of a few chunks only */
    start("small.h5", 0);
    d = add("/chunked", GM_DTYPE_I32, 3, stack);
    d->chunked = 1;
    d->chunk[0] = 2;
    d->chunk[1] = 6;
    d->chunk[2] = 5;
    d->shuffle = 1;
    check_round("chunked, with little memory", 9, 1000, 0);
    gm_memory_set_cap(GM_HOST, 8192);
    start("none.h5", 0);
    d = add("/chunked", GM_DTYPE_I32, 3, stack);
    d->chunked = 1;
    memcpy(d->chunk, stack, sizeof stack);
    gm_output_create(&record);
    fails(write_all(9, 1000, 0), GM_EDEVICE, "--host-memory", "no memory for a chunk");
    gm_output_discard(&record);
    gm_memory_set_cap(GM_HOST, INT64_MAX);
    tap_ok(count_files("none.h5") == 0, "nothing is left of it");
}

/* Ranges of elements that begin and end inside rows. */
static void check_ranges(void)
{
    static const int64_t stack[3] = {9, 20, 31}, chunk[3] = {2, 7, 31}, none[2] = {0, 7};
    enum { ELEMENTS = 9 * 20 * 31, STEP = 1000 };
    double *all = malloc(ELEMENTS * sizeof *all);
    gm_output *output = NULL;
    gm_output_dataset *d;
    int status;

    for (int i = 0; i < ELEMENTS; i++)
        all[i] = i;
    start("ranges.h5", 0);
    add("/contiguous", GM_DTYPE_F64, 3, stack);
    d = add("/chunked", GM_DTYPE_F64, 3, stack);
    d->chunked = 1;
    memcpy(d->chunk, chunk, sizeof chunk);
    add("/scalar", GM_DTYPE_F64, 0, NULL);
    add("/none", GM_DTYPE_F64, 2, none);
    succeeds(gm_output_create(&record) || gm_output_open(&record, &output), "ranges of elements");
    status = gm_output_write_range(output, 2, 0, 1, all) || gm_output_write_range(output, 3, 0, 0, all);
    for (int i = 0; i < 2; i++)
        for (int64_t at = 0; at < ELEMENTS && !status; at += STEP)
            status = gm_output_write_range(output, i, at, gm_min(STEP, ELEMENTS - at), all + at);
    succeeds(status, "ranges written");
    fails(gm_output_write_range(output, 0, ELEMENTS - 1, 2, all), GM_EINTERNAL, "lie outside", "a range past the end");
    fails(gm_output_write_range(output, 0, -1, 1, all), GM_EINTERNAL, "lie outside", "a negative range");
    fails(gm_output_write_range(output, 3, 0, 1, all), GM_EINTERNAL, "lie outside", "a range of an empty dataset");
    fails(gm_output_write_range(output, 4, 0, 1, all), GM_EINTERNAL, "lie outside", "a range of a missing dataset");
    succeeds(gm_output_close(output, NULL) || gm_output_pack(&record, 0, 2) || gm_output_finish(&record, NULL, 0, NULL),
             "ranges finished");
    tap_ok(read_back(0) == 0 && read_back(1) == 0 && read_back(2) == 0, "ranges read back");
    free(all);
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
    add("/v", GM_DTYPE_I32, 1, vector)->deflate = 9;
    record.dataset[0].shuffle = 1;
    record.dataset[0].chunked = 1;
    record.dataset[0].chunk[0] = 999;
    succeeds(gm_output_create(&record) || gm_output_open(&record, &output) ||
                 gm_output_write(output, 0, 0, vector[0], 0, 1, noise, 4) || gm_output_close(output, NULL) ||
                 gm_output_pack(&record, 0, 2) || gm_output_finish(&record, NULL, 0, NULL),
             "noise");
    succeeds(gm_describe(own("noise.h5"), NULL, &found) || gm_reader_open(&found, &reader) ||
                 gm_reader_read(reader, 0, vector[0], 0, 1, back, 4),
             "reads");
    tap_ok(memcmp(noise, back, (size_t)vector[0] * 4) == 0, "the same noise");
    gm_reader_close(reader);
    free(noise);
    free(back);
}

static void check_force(void)
{
    static const int64_t vector[1] = {10};
    start("meanwhile.h5", 0);
    add("/v", GM_DTYPE_I32, 1, vector);
    gm_output_create(&record);
    write_all(10, 1, 0);
    touch("meanwhile.h5");
    fails(gm_output_finish(&record, NULL, 0, NULL), GM_EOUTPUT, "was created by another process meanwhile",
          "a file that came between");
    tap_ok(count_files("meanwhile.h5") == 1, "is left alone, and nothing else stays");
    start("meanwhile.h5", 1);
    add("/v", GM_DTYPE_I32, 1, vector);
    gm_output_create(&record);
    write_all(10, 1, 0);
    succeeds(gm_output_finish(&record, NULL, 0, NULL), "with force");
    tap_ok(read_back(0) == 0 && count_files("meanwhile.h5") == 1, "it is replaced");
}

static void check_bad(void)
{
    static const int64_t vector[1] = {10}, huge[2] = {INT64_C(1) << 40, INT64_C(1) << 40},
                         large[1] = {INT64_C(1) << 33};
    gm_output *output = NULL;
    int value = 0;
    start("bad.h5", 0);
    add("/a", GM_DTYPE_I32, 1, vector);
    add("/a/b", GM_DTYPE_I32, 1, vector);
    fails(gm_output_create(&record), GM_EOUTPUT, "bad.h5:/a/b: cannot be created", "a dataset for a group");
    start("bad.h5", 0);
    add("/a", GM_DTYPE_I32, 2, huge);
    fails(gm_output_create(&record), GM_EOUTPUT, "2^63", "too large");
    start("bad.h5", 0);
    add("/a", GM_DTYPE_I32, 1, large)->chunked = 1;
    record.dataset[0].chunk[0] = large[0];
    fails(gm_output_create(&record), GM_EUSAGE, "less than 4 GiB", "a chunk that is too large");
    record.dataset[0].chunk[0] = 0;
    fails(gm_output_create(&record), GM_EUSAGE, "expected 1 or more", "a chunk of nothing");
    start("absent/bad.h5", 0);
    add("/a", GM_DTYPE_I32, 1, vector);
    fails(gm_output_create(&record), GM_EOUTPUT, "No such file", "a missing folder");
    tap_ok(count_files("bad.h5") == 0, "nothing is left of them");

    start("bad.h5", 0);
    add("/a", GM_DTYPE_I32, 1, vector);
    gm_output_create(&record);
    succeeds(gm_output_open(&record, &output), "open");
    fails(gm_output_write(output, 0, 9, 2, 0, 1, &value, 4), GM_EINTERNAL, "lie outside", "rows beyond the end");
    fails(gm_output_write(output, 1, 0, 1, 0, 1, &value, 4), GM_EINTERNAL, "lie outside",
          "a dataset that is not there");
    succeeds(gm_output_close(output, NULL), "close");
    gm_output_discard(&record);
    gm_output_discard(&record);
    fails(gm_output_open(&record, &output), GM_EOUTPUT, "cannot be opened for writing", "after it was discarded");
    succeeds(gm_output_close(NULL, NULL), "no output");
    tap_ok(count_files("bad.h5") == 0, "discarded");
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
    add("/a", GM_DTYPE_I32, 1, vector);
    add("/b", GM_DTYPE_I32, 1, vector)->deflate = 1;
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
    tap_ok(back && strlen(back) == 60 * 1024 - 1 && !strncmp(back, text, strlen(back)),
           "a long text is cut between characters");
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
    add("/a", GM_DTYPE_I32, 1, vector);
    gm_output_create(&record);
    write_all(10, 1, 0);
    fails(gm_output_finish(&record, attributes, 2, NULL), GM_EOUTPUT, "twice.h5:/a: attribute note",
          "an attribute given twice");
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
        add("/a", GM_DTYPE_I32, 1, vector);
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
    gm_output_dataset d = {.type = GM_DTYPE_U16, .rank = 3, .dims = {1000, 2048, 2048}};
    gm_output_dataset small = {.type = GM_DTYPE_F64, .rank = 2, .dims = {10, 20}};
    gm_output_choose_chunk(&d);
    gm_output_choose_chunk(&small);
    tap_ok(d.chunked && d.chunk[0] == 1 && d.chunk[1] == 256 && d.chunk[2] == 2048, "1 MiB of a frame");
    tap_ok(small.chunk[0] == 10 && small.chunk[1] == 20, "a small dataset is one chunk");
}

/* Temporary files with names, as on several hosts; in a shared folder someone makes links of the names that follow. */
static void check_named(void)
{
    static const int64_t matrix[2] = {70, 333};
    char planted[GM_PATH_MAX + 16];
    struct stat st;
    for (int chunked = 0; chunked < 2; chunked++) {
        start("named.h5", 1);
        record.named = 1;
        add("/C", GM_DTYPE_F64, 2, matrix)->deflate = chunked;
        check_round("named", 11, 100, 0);
        tap_ok(count_files("named.h5") == 1, "nothing else is left");
    }
    start("spooled.h5", 0);
    record.ranks = 2;
    add("/C", GM_DTYPE_F64, 2, matrix)->deflate = 1;
    touch("victim");
    succeeds(gm_output_create(&record), "with a spool");
    snprintf(planted, sizeof planted, "%s.1", record.spool);
    tap_ok(symlink(own("victim"), planted) == 0, "a link has the name of a spool");
    succeeds(write_all(11, 100, 0), "written");
    succeeds(gm_output_finish(&record, NULL, 0, NULL), "finished");
    tap_ok(read_back(0) == 0 && stat(own("victim"), &st) == 0 && st.st_size == 0 && count_files("spooled.h5") == 1,
           "the link was not followed");
}

int main(void)
{
    int before;
    H5Fclose(make_file("first.h5"));
    before = open_files();
    check_names();
    check_forms();
    check_ranges();
    check_noise();
    check_force();
    check_bad();
    check_attributes();
    check_bits();
    check_chunk_choice();
    check_named();
    tap_ok(open_files() == before, "no file is left open");
    return tap_done();
}
