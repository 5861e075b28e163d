/* parts.c - outputs in several files: distributed, replaced, removed, refused. */
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "base/file/new_file.h"
#include "tests/io/write/each.h"

enum { PART_PATH = GM_PATH_MAX + 32 };

static const char *path_of(int part, char path[PART_PATH])
{
    snprintf(path, PART_PATH, "%s/part-%02d.h5", record.folder, part);
    return path;
}

static void remove_part(int part)
{
    char path[PART_PATH];
    unlink(path_of(part, path));
}

/* Parts with stripes of different numbers of rows; a dataset too small for all of them; datasets that cannot be in
 * parts. */
static void check_parts(void)
{
    static const int64_t matrix[2] = {70, 333}, stack[3] = {9, 20, 31}, none[2] = {0, 7}, vector[1] = {5},
                         large[2] = {37, 1 << 18};
    char name[GM_PATH_MAX];
    gm_dataset found;
    int64_t wrong = 0;
    start("100%.h5", 0);
    record.layout = GM_OUTPUT_PARTS;
    record.threads = 7;
    add("/C", GM_DTYPE_F64, 2, matrix);
    add("/deep/er/d", GM_DTYPE_I32, 3, stack)->big_endian = 1;
    add("/none", GM_DTYPE_F64, 2, none);
    add("/scalar", GM_DTYPE_F64, 0, NULL);
    add("/vector", GM_DTYPE_I32, 1, vector);
    check_round("parts", 11, 100, 8);
    tap_ok(record.parts == 7 && count_files("100%.h5") == 2, "7 parts in one folder");

    start("stripes.h5", 0);
    record.layout = GM_OUTPUT_PARTS;
    record.threads = 3;
    add("/C", GM_DTYPE_F64, 2, large); /* stripes of 2 rows: 18 and a half */
    check_round("stripes", 7, 1 << 17, 0);
    tap_ok(record.parts == 12 && record.stripe[0] == 2, "12 parts for 3 threads, stripes of 2 rows");

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
        record.layout = i < 2 ? GM_OUTPUT_PARTS : GM_OUTPUT_SINGLE;
        record.threads = 4;
        add("/v", GM_DTYPE_I32, 1, vector);
        check_round("again", 100, 1, 0);
        if (i > 0)
            tap_ok(access(old, F_OK) != 0 && count_files("again.h5") == 2 - i / 2, "the old parts are gone");
        strcpy(old, record.folder);
    }
    start("mixed.h5", 1);
    record.layout = GM_OUTPUT_PARTS;
    add("/v", GM_DTYPE_I32, 1, vector);
    check_round("mixed", 100, 1, 0);
    strcpy(old, record.folder);
    snprintf(part, sizeof part, "%s/part-00.h5", record.folder);
    tap_ok(link(record.file, own("copy.h5")) == 0 && symlink(part, own("part.h5")) == 0 &&
               gm_describe(part, NULL, &inputs[0]) == GM_OK,
           "its own parts as inputs");
    fails(gm_output_check(record.file, 1, 0, inputs, 1), GM_EOUTPUT, "is one of the inputs", "a part");
    gm_describe(own("part.h5"), NULL, &inputs[0]);
    fails(gm_output_check(record.file, 1, 0, inputs, 1), GM_EOUTPUT, "is one of the inputs", "a part by a link");
    start("other.h5", 1);
    add("/v", GM_DTYPE_I32, 1, vector);
    check_round("other", 100, 1, 0);
    copy_file("mixed.h5", "copied.h5");
    gm_describe(own("copied.h5"), NULL, &inputs[0]);
    fails(gm_output_check(own("mixed.h5"), 1, 0, inputs, 1), GM_EOUTPUT, "is a virtual dataset over it",
          "a copy that shares the parts");
    succeeds(gm_output_check(own("other.h5"), 1, 0, inputs, 1), "another file");

    snprintf(part, sizeof part, "%s/mine.txt", old);
    fclose(fopen(part, "w"));
    start("mixed.h5", 1);
    add("/v", GM_DTYPE_I32, 1, vector);
    check_round("a folder with something else in it", 100, 1, 0);
    tap_ok(access(part, F_OK) == 0, "a file of someone else stays");
}

static void check_parts_bad(void)
{
    static const int64_t vector[1] = {1000};
    start("parted.h5", 0);
    record.layout = GM_OUTPUT_PARTS;
    add("/v", GM_DTYPE_I32, 1, vector)->deflate = 1;
    fails(gm_output_create(&record), GM_EUSAGE, "takes no chunks", "compressed parts");
    start("parted.h5", 0);
    record.layout = GM_OUTPUT_PARTS;
    add("/v", GM_DTYPE_I32, 1, vector);
    gm_output_create(&record);
    tap_ok(count_files("parted.h5") == 1 + gm_new_file_has_name(record.temporary), "a folder and a temporary file");
    gm_output_discard(&record);
    gm_output_discard(&record);
    tap_ok(count_files("parted.h5") == 0, "discarded");
    start("absent/parted.h5", 0);
    record.layout = GM_OUTPUT_PARTS;
    add("/v", GM_DTYPE_I32, 1, vector);
    fails(gm_output_create(&record), GM_EOUTPUT, "No such file", "a missing folder");
}

/* Bytes of the parts that have memory. */
static int64_t allocated(void)
{
    char path[PART_PATH];
    struct stat st;
    int64_t bytes = 0;
    for (int part = 0; part < record.parts; part++)
        bytes += stat(path_of(part, path), &st) == 0 ? (int64_t)st.st_blocks * 512 : 0;
    return bytes;
}

/* Until so many bytes have memory, for 20 s at most. */
static int await(int64_t bytes)
{
    for (int i = 0; i < 20000 && allocated() < bytes; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return allocated() >= bytes;
}

enum { AHEAD_ROWS = 64, AHEAD_COLUMNS = 1 << 18, AHEAD_BYTES = AHEAD_ROWS * AHEAD_COLUMNS * 4 };

static int create_in_memory(void)
{
    static const int64_t matrix[2] = {AHEAD_ROWS, AHEAD_COLUMNS};
    start("ahead.h5", 0);
    snprintf(record.file, sizeof record.file, "/dev/shm/gpumem-test-%ld.h5", (long)getpid());
    record.layout = GM_OUTPUT_PARTS;
    record.threads = 2;
    add("/C", GM_DTYPE_I32, 2, matrix);
    return gm_output_create(&record);
}

/* Begins to allocate all, and writes a little if it should; then the output is closed. Returns whether it was, and
 * nothing has been allocated from then on. */
static int stops(int writes)
{
    const int32_t none[5][2] = {{-1}};
    gm_output *output;
    int status = create_in_memory();
    if (status)
        return 0;
    status = gm_output_open(&record, &output);
    if (!status) {
        gm_output_allocate_parts(output, 0, 1, 2);
        if (writes)
            status = gm_output_write(output, 0, 3, 1, 5, 2, none, sizeof none[0]);
        int closed = gm_output_close(output, NULL);
        status = status ? status : closed;
    }
    int64_t then = allocated();
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    int ok = !status && allocated() == then && then < AHEAD_BYTES;
    gm_output_discard(&record);
    return ok;
}

/* On a busy machine all may be allocated before the main thread goes on. */
static int stops_once(int writes)
{
    int ok = 0;
    for (int attempt = 0; attempt < 10 && !ok; attempt++)
        ok = stops(writes);
    return ok;
}

/* Memory of parts that is allocated before they are written. */
static void check_parts_ahead(void)
{
    gm_output *output[2];
    struct statfs fs;
    if (statfs("/dev/shm", &fs) || fs.f_type != TMPFS_MAGIC || fs.f_bavail * (uint64_t)fs.f_bsize < 2 * AHEAD_BYTES) {
        tap_skip("no room in /dev/shm", "memory of parts that is allocated ahead");
        return;
    }
    tap_ok(stops_once(0), "an output that is closed is allocated no further");
    tap_ok(stops_once(1), "nor one that is written to");

    if (!succeeds(create_in_memory(), "parts in memory"))
        return;
    int opened = 0;
    while (opened < 2 && succeeds(gm_output_open(&record, &output[opened]), "opened"))
        opened++;
    if (opened == 2) {
        int64_t before = allocated();
        gm_output_allocate_parts(output[0], 1, 2, 0);
        tap_ok(record.parts == 8 && allocated() == before && before < AHEAD_BYTES / 8, "no thread, no memory");
        gm_output_allocate_parts(output[0], 0, 2, 2);
        tap_ok(await(AHEAD_BYTES / 2) && allocated() < AHEAD_BYTES, "one rank has allocated half of the parts");
        gm_output_allocate_parts(output[1], 1, 2, 9);
        tap_ok(await(AHEAD_BYTES), "the other one has allocated the others");
    }
    for (int i = 0; i < opened; i++)
        succeeds(gm_output_close(output[i], NULL), "closed");
    succeeds(write_all(16, AHEAD_COLUMNS, 0), "written");
    succeeds(gm_output_finish(&record, NULL, 0, NULL), "finished");
    tap_ok(read_back(0) == 0, "read back");
    for (int part = 0; part < record.parts; part++)
        remove_part(part);
    rmdir(record.folder);
    unlink(record.file);
}

int main(void)
{
    int before;
    H5Fclose(make_file("first.h5"));
    before = open_files();
    check_parts();
    check_parts_end();
    check_parts_bad();
    check_parts_ahead();
    tap_ok(open_files() == before, "no file is left open");
    return tap_done();
}
