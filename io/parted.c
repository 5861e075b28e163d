/* parted.c - outputs in several files: how rows are dealt to them, the virtual dataset over them, the folder of an output that is replaced.
 *
 * Rows go to the parts in stripes, in turn: what is written at one time lies close together, and in different files nevertheless. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/size.h"
#include "base/status.h"
#include "io/scratch.h"

static const char mark[] = "gpumem_parts", infix[] = ".parts-", part_name[] = "part-%02d.h5";

/* A stripe has about what one thread writes at once. With too many of them libhdf5 takes long to read the virtual dataset. */
enum { STRIPE_BYTES = 4 << 20, STRIPES_MAX = 16384 /* of all parts */, PARTS_A_THREAD = 4, NAME_ROOM = 32, COPY_MAX = 1 << 20 };

/* Deals the rows of a dataset to as many parts as there are threads, or to several times as many where stripes suffice: a thread that lags behind then
 * has its file for itself while the others go on. Returns the number of parts. */
static int deal(gm_output_record *record, int index)
{
    const gm_output_dataset *dataset = &record->dataset[index];
    int64_t rows = dataset->rank ? dataset->dims[0] : 0, row = gm_output_columns(dataset) * (int64_t)gm_dtype_size(dataset->type), stripe, parts;

    if (rows == 0 || row == 0)
        return 0;
    stripe = gm_max(1, STRIPE_BYTES / row);
    parts = gm_min(gm_max(gm_max(2, record->threads), gm_min(gm_ceil_div(rows, stripe), (int64_t)PARTS_A_THREAD * record->threads)), GM_OUTPUT_PARTS);
    stripe = gm_min(gm_ceil_div(rows, parts), stripe);
    record->stripe[index] = gm_max(stripe, gm_ceil_div(rows, STRIPES_MAX));
    return (int)gm_min(parts, gm_ceil_div(rows, record->stripe[index]));
}

int gm_parted_plan(gm_output_record *record)
{
    int dealt = 0;
    const char *slash = strrchr(record->file, '/'), *base = slash ? slash + 1 : record->file;

    record->parts = 0;
    for (int i = 0; i < record->datasets; i++) {
        record->stripe[i] = 0;
        if (record->layout == GM_OUTPUT_PARTED)
            dealt = (int)gm_max(dealt, deal(record, i));
    }
    if (dealt == 0)
        return GM_OK;
    snprintf(record->folder, sizeof record->folder, "%.*s%.200s%s%012" PRIx64, (int)(base - record->file), record->file, base, infix,
             gm_output_id());
    if (mkdir(record->folder, 0777)) {
        int why = errno;

        record->folder[0] = '\0'; /* not ours */
        return gm_fail(GM_EOUTPUT, "%s: no folder for its parts can be made: %s", record->file, strerror(why));
    }
    record->parts = dealt;
    return GM_OK;
}

char *gm_parted_path(const gm_output_record *record, int part, char *path)
{
    char name[NAME_ROOM];

    snprintf(name, sizeof name, part_name, part);
    if (snprintf(path, GM_PATH_MAX, "%s/%s", record->folder, name) >= GM_PATH_MAX)
        path[0] = '\0'; /* no file has this name */
    return path;
}

int64_t gm_parted_rows(const gm_output_record *record, int index, int part)
{
    int64_t rows = record->dataset[index].dims[0], stripe = record->stripe[index], round = stripe * record->parts, full, left;

    if (round == 0)
        return 0;
    full = rows / round;
    left = rows % round - part * stripe;
    return full * stripe + gm_max(0, gm_min(left, stripe));
}

/* A per cent sign in the name of a file stands for a number in libhdf5's eyes, unless there are two. */
static void escape(const char *from, char *to, size_t room)
{
    size_t length = 0;

    for (; *from && length + 3 < room; from++) {
        to[length++] = *from;
        if (*from == '%')
            to[length++] = '%';
    }
    to[length] = '\0';
}

/* Rows of a part, one after the other there from row `from` on, that are so many stripes of the dataset, from stripe `stripe` on. */
typedef struct run {
    int part;
    int64_t from, stripe, stripes, rows; /* rows: of each stripe */
} run;

static int map_run(hid_t plist, const gm_output_record *record, int index, const run *r)
{
    char path[GM_PATH_MAX], relative[2 * GM_PATH_MAX];
    const gm_output_dataset *dataset = &record->dataset[index];
    const char *slash = strrchr(record->folder, '/');
    hsize_t start[GM_RANK_MAX] = {0}, step[GM_RANK_MAX], count[GM_RANK_MAX], block[GM_RANK_MAX], dims[GM_RANK_MAX];
    hid_t whole, part;
    int ok;

    for (int d = 0; d < dataset->rank; d++) {
        dims[d] = step[d] = block[d] = (hsize_t)dataset->dims[d];
        count[d] = 1;
    }
    start[0] = (hsize_t)(r->stripe * record->stripe[index]);
    step[0] = (hsize_t)(record->stripe[index] * record->parts);
    count[0] = (hsize_t)r->stripes;
    block[0] = (hsize_t)r->rows;
    whole = H5Screate_simple(dataset->rank, dims, NULL);
    ok = whole >= 0 && H5Sselect_hyperslab(whole, H5S_SELECT_SET, start, step, count, block) >= 0;

    dims[0] = (hsize_t)gm_parted_rows(record, index, r->part);
    start[0] = (hsize_t)r->from;
    count[0] = 1;
    block[0] = (hsize_t)(r->stripes * r->rows);
    part = H5Screate_simple(dataset->rank, dims, NULL);
    ok = ok && part >= 0 && H5Sselect_hyperslab(part, H5S_SELECT_SET, start, NULL, count, block) >= 0;

    escape(gm_parted_path(record, r->part, path) + (slash ? slash + 1 - record->folder : 0), relative, sizeof relative);
    ok = ok && H5Pset_virtual(plist, whole, relative, dataset->name, part) >= 0;
    if (part >= 0)
        H5Sclose(part);
    if (whole >= 0)
        H5Sclose(whole);
    return ok;
}

int gm_parted_map(hid_t plist, const gm_output_record *record, int index)
{
    const gm_output_dataset *dataset = &record->dataset[index];
    int64_t stripe = record->stripe[index], full = dataset->dims[0] / stripe, rest = dataset->dims[0] % stripe;
    double nan = NAN;
    int ok = 1;

    /* Where a part is missing, readers see the fill value. */
    if (gm_dtype_get_kind(dataset->type) == GM_FLOAT)
        ok = H5Pset_fill_value(plist, H5T_NATIVE_DOUBLE, &nan) >= 0;
    for (int part = 0; part < record->parts && ok; part++) {
        int64_t stripes = full / record->parts + (part < full % record->parts);

        if (stripes > 0)
            ok = map_run(plist, record, index, &(run){part, 0, part, stripes, stripe});
        if (ok && rest > 0 && full % record->parts == part)
            ok = map_run(plist, record, index, &(run){part, stripes * stripe, full, 1, rest});
    }
    return ok;
}

/* Bytes [from, to) of one file to another. Returns whether that went well. */
static int copy_range(int in, int out, int64_t from, int64_t to)
{
    size_t bytes = (size_t)(to - from);
    char *buffer = to - from <= COPY_MAX ? malloc(bytes + 1) : NULL;
    int ok = buffer && pread(in, buffer, bytes, from) == (ssize_t)bytes && pwrite(out, buffer, bytes, from) == (ssize_t)bytes;

    free(buffer);
    return ok;
}

int gm_parted_copy(gm_output_record *record, int part)
{
    char before[GM_PATH_MAX], path[GM_PATH_MAX];
    int64_t rows = gm_parted_rows(record, 0, part), begin = part > 0 ? record->part_offset[part - 1][0] : 0;
    int64_t end = begin + rows * gm_output_columns(&record->dataset[0]) * (int64_t)gm_dtype_size(record->dataset[0].type);
    int in = -1, out = -1, ok = 0;
    struct stat st;

    if (begin == 0 || record->datasets != 1 || gm_parted_rows(record, 0, part - 1) != rows)
        return 0;
    in = open(gm_parted_path(record, part - 1, before), O_RDONLY | O_CLOEXEC);
    out = open(gm_parted_path(record, part, path), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (in >= 0 && out >= 0)
        ok = fstat(in, &st) == 0 && st.st_size >= end && copy_range(in, out, 0, begin) && copy_range(in, out, end, st.st_size)
             && ftruncate(out, st.st_size) == 0;
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    if (ok)
        record->part_offset[part][0] = begin;
    else if (out >= 0)
        unlink(path);
    return ok;
}

int gm_parted_mark(hid_t file, const gm_output_record *record)
{
    const char *slash = strrchr(record->folder, '/'), *base = slash ? slash + 1 : record->folder;
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), attribute = H5I_INVALID_HID;
    int ok = type >= 0 && space >= 0 && H5Tset_size(type, strlen(base) + 1) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0;

    if (ok)
        attribute = H5Acreate2(file, mark, type, space, H5P_DEFAULT, H5P_DEFAULT);
    ok = attribute >= 0 && H5Awrite(attribute, type, base) >= 0;
    if (attribute >= 0)
        ok = H5Aclose(attribute) >= 0 && ok;
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return ok;
}

/* The mark of a file; base has room for size bytes. Returns whether there is one. */
static int read_mark(hid_t file, char *base, size_t size)
{
    hid_t attribute = H5Aopen(file, mark, H5P_DEFAULT), type = attribute >= 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    int ok = type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && H5Tget_size(type) < size
             && H5Aread(attribute, type, base) >= 0;

    if (ok)
        base[H5Tget_size(type)] = '\0';
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
    return ok;
}

void gm_parted_find(const char *file, char *folder)
{
    char beside[GM_PATH_MAX], base[GM_NAME_MAX];
    struct stat st;
    hid_t id = H5I_INVALID_HID, access;
    int found;

    folder[0] = '\0';
    gm_h5_lock();
    access = gm_h5_access();
    if (access >= 0 && H5Fis_hdf5(file) > 0)
        id = H5Fopen(file, H5F_ACC_RDONLY, access);
    found = id >= 0 && read_mark(id, base, sizeof base);
    if (id >= 0)
        H5Fclose(id);
    if (access >= 0)
        H5Pclose(access);
    gm_h5_unlock();
    if (!found || strchr(base, '/') || !strstr(base, infix))
        return;
    if (snprintf(folder, GM_PATH_MAX, "%s/%s", gm_output_folder(file, beside), base) >= GM_PATH_MAX || lstat(folder, &st) || !S_ISDIR(st.st_mode))
        folder[0] = '\0';
}

void gm_parted_remove(const char *folder)
{
    char path[GM_PATH_MAX];
    DIR *entries = folder[0] ? opendir(folder) : NULL;
    struct dirent *entry;

    if (!entries)
        return;
    while ((entry = readdir(entries))) {
        char expected[NAME_ROOM];
        int part;

        if (sscanf(entry->d_name, "part-%d", &part) != 1)
            continue;
        snprintf(expected, sizeof expected, part_name, part);
        if (strcmp(entry->d_name, expected) == 0 && snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < GM_PATH_MAX)
            unlink(path);
    }
    closedir(entries);
    if (rmdir(folder))
        gm_warn("%s: the folder of parts that are no longer needed cannot be removed: %s", folder, strerror(errno));
}
