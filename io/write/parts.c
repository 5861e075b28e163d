/* parts.c - outputs in several files: the distribution of rows, the virtual dataset over them, the folder of a replaced
 * output.
 *
 * Rows are distributed to the parts in stripes, round robin: rows that are written at the same time are close together,
 * but in different files. */
#include "io/write/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/folder.h"
#include "base/log.h"
#include "base/size.h"
#include "base/status.h"
#include "io/worker.h"
#include "io/write/record.h"

static const char mark[] = "gpumem_parts";

/* A stripe is about one write of a thread. With too many of them libhdf5 reads the virtual dataset slowly. */
enum {
    STRIPE_BYTES = 4 << 20,
    STRIPES_MAX = 16384 /* of all parts */,
    PARTS_A_THREAD = 4,
    NAME_ROOM = 32,
    COPY_MAX = 1 << 20
};

/* Distributes the rows of a dataset to as many parts as there are threads, or to several times as many where stripes
 * suffice: then a slow thread does not hold up the others in its file. Returns the number of parts. */
static int distribute(gm_output_record *record, int index)
{
    const gm_output_dataset *dataset = &record->dataset[index];
    int64_t rows = dataset->rank ? dataset->dims[0] : 0,
            row = gm_record_columns(dataset) * (int64_t)gm_dtype_size(dataset->type), stripe, parts;
    if (rows == 0 || row == 0)
        return 0;
    stripe = gm_max(1, STRIPE_BYTES / row);
    parts = gm_min(gm_max(gm_max(2, record->threads),
                          gm_min(gm_ceil_div(rows, stripe), (int64_t)PARTS_A_THREAD * record->threads)),
                   GM_OUTPUT_PARTS_MAX);
    stripe = gm_min(gm_ceil_div(rows, parts), stripe);
    record->stripe[index] = gm_max(stripe, gm_ceil_div(rows, STRIPES_MAX));
    return (int)gm_min(parts, gm_ceil_div(rows, record->stripe[index]));
}

int gm_parts_plan(gm_output_record *record)
{
    int parts = 0;
    record->parts = 0;
    for (int i = 0; i < record->datasets; i++) {
        record->stripe[i] = 0;
        if (record->layout == GM_OUTPUT_PARTS)
            parts = (int)gm_max(parts, distribute(record, i));
    }
    if (parts == 0)
        return GM_OK;
    int status = gm_folder_make(record->file, record->folder);
    if (!status)
        record->parts = parts;
    return status;
}

char *gm_parts_path(const gm_output_record *record, int part, char *path)
{
    char name[NAME_ROOM];
    snprintf(name, sizeof name, GM_FOLDER_PART, part);
    if (snprintf(path, GM_PATH_MAX, "%s/%s", record->folder, name) >= GM_PATH_MAX)
        path[0] = '\0'; /* no file has this name */
    return path;
}

int64_t gm_parts_rows(const gm_output_record *record, int index, int part)
{
    int64_t rows = record->dataset[index].dims[0], stripe = record->stripe[index], round = stripe * record->parts, full,
            left;
    if (round == 0)
        return 0;
    full = rows / round;
    left = rows % round - part * stripe;
    return full * stripe + gm_max(0, gm_min(left, stripe));
}

/* To libhdf5 a per cent sign in the name of a file begins a block number, unless there are two. */
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

/* Consecutive rows of a part, from row `from` on, that are `stripes` stripes of the dataset, from stripe `stripe` on.
 */
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
    hid_t part;
    for (int d = 0; d < dataset->rank; d++) {
        dims[d] = step[d] = block[d] = (hsize_t)dataset->dims[d];
        count[d] = 1;
    }
    start[0] = (hsize_t)(r->stripe * record->stripe[index]);
    step[0] = (hsize_t)(record->stripe[index] * record->parts);
    count[0] = (hsize_t)r->stripes;
    block[0] = (hsize_t)r->rows;
    hid_t whole = H5Screate_simple(dataset->rank, dims, NULL);
    int ok = whole >= 0 && H5Sselect_hyperslab(whole, H5S_SELECT_SET, start, step, count, block) >= 0;

    dims[0] = (hsize_t)gm_parts_rows(record, index, r->part);
    start[0] = (hsize_t)r->from;
    count[0] = 1;
    block[0] = (hsize_t)(r->stripes * r->rows);
    part = H5Screate_simple(dataset->rank, dims, NULL);
    ok = ok && part >= 0 && H5Sselect_hyperslab(part, H5S_SELECT_SET, start, NULL, count, block) >= 0;

    escape(gm_parts_path(record, r->part, path) + (slash ? slash + 1 - record->folder : 0), relative, sizeof relative);
    ok = ok && H5Pset_virtual(plist, whole, relative, dataset->name, part) >= 0;
    gm_h5_close(part);
    gm_h5_close(whole);
    return ok;
}

int gm_parts_map(hid_t plist, const gm_output_record *record, int index)
{
    const gm_output_dataset *dataset = &record->dataset[index];
    int64_t stripe = record->stripe[index], full = dataset->dims[0] / stripe, rest = dataset->dims[0] % stripe;
    double nan = NAN;
    int ok = 1;
    /* Readers see the fill value where a part is missing. */
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

/* Copies bytes [from, to) of one file to another. Returns whether it succeeded. */
static int copy_range(int in, int out, int64_t from, int64_t to)
{
    size_t bytes = (size_t)(to - from);
    char *buffer = to - from <= COPY_MAX ? malloc(bytes + 1) : NULL;
    int ok = buffer && pread(in, buffer, bytes, from) == (ssize_t)bytes &&
             pwrite(out, buffer, bytes, from) == (ssize_t)bytes;
    free(buffer);
    return ok;
}

int gm_parts_copy(gm_output_record *record, int part)
{
    char before[GM_PATH_MAX], path[GM_PATH_MAX];
    int64_t rows = gm_parts_rows(record, 0, part), begin = part > 0 ? record->part_offset[part - 1][0] : 0;
    int64_t end = begin +
                  rows * gm_record_columns(&record->dataset[0]) * (int64_t)gm_dtype_size(record->dataset[0].type);
    int in = -1, out = -1, ok = 0;
    struct stat st;
    if (begin == 0 || record->datasets != 1 || gm_parts_rows(record, 0, part - 1) != rows)
        return 0;
    in = open(gm_parts_path(record, part - 1, before), O_RDONLY | O_CLOEXEC);
    out = open(gm_parts_path(record, part, path), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (in >= 0 && out >= 0)
        ok = fstat(in, &st) == 0 && st.st_size >= end && copy_range(in, out, 0, begin) &&
             copy_range(in, out, end, st.st_size) && ftruncate(out, st.st_size) == 0;
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) && errno != EINTR)
        ok = 0;
    if (ok)
        record->part_offset[part][0] = begin;
    else if (out >= 0)
        unlink(path);
    return ok;
}

int gm_parts_mark(hid_t file, const gm_output_record *record)
{
    const char *slash = strrchr(record->folder, '/'), *base = slash ? slash + 1 : record->folder;
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), attribute = H5I_INVALID_HID;
    int ok = type >= 0 && space >= 0 && H5Tset_size(type, strlen(base) + 1) >= 0 &&
             H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
    if (ok)
        attribute = H5Acreate2(file, mark, type, space, H5P_DEFAULT, H5P_DEFAULT);
    ok = attribute >= 0 && H5Awrite(attribute, type, base) >= 0;
    if (attribute >= 0)
        ok = H5Aclose(attribute) >= 0 && ok;
    gm_h5_close(space);
    gm_h5_close(type);
    return ok;
}

/* Reads the mark of a file to base [size]. Returns whether there is one. */
static int read_mark(hid_t file, char *base, size_t size)
{
    hid_t attribute = H5Aopen(file, mark, H5P_DEFAULT),
          type = attribute >= 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    int ok = type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
             H5Tget_size(type) < size && H5Aread(attribute, type, base) >= 0;
    if (ok)
        base[H5Tget_size(type)] = '\0';
    gm_h5_close(type);
    gm_h5_close(attribute);
    return ok;
}

/* A call of the worker: the mark of the file named by the argument; nothing for any other file. */
static int find_mark(const void *argument, size_t bytes, gm_reply *reply)
{
    const char *file = argument;
    char base[GM_NAME_MAX];
    hid_t id = bytes > 0 && H5Fis_hdf5(file) > 0 ? gm_h5_open_as(file, H5F_ACC_RDONLY) : H5I_INVALID_HID;
    int status = id >= 0 && read_mark(id, base, sizeof base) ? gm_reply_add(reply, base, strlen(base) + 1) : GM_OK;
    gm_h5_close(id);
    return status;
}

/* The mark of a file, to be freed; NULL when it has none. Fails when that is not known. */
static int ask_mark(const char *path, char **base)
{
    void *reply = NULL;
    int quiet = gm_error_hush(1);
    int status = gm_worker_run(path, find_mark, path, strlen(path) + 1, &reply, NULL);
    gm_error_hush(quiet);
    *base = reply;
    return status;
}

gm_parts_owner gm_parts_find(const char *path, const char *file, char *folder)
{
    char beside[GM_PATH_MAX], *base;
    struct stat st;
    gm_parts_owner owner = ask_mark(path, &base) ? GM_PARTS_UNKNOWN : base ? GM_PARTS_OTHER : GM_PARTS_NONE;
    if (base && gm_folder_is_of(base, file) &&
        snprintf(folder, GM_PATH_MAX, "%s/%s", gm_path_folder(file, beside), base) < GM_PATH_MAX &&
        lstat(folder, &st) == 0 && S_ISDIR(st.st_mode))
        owner = GM_PARTS_OWN;
    if (owner != GM_PARTS_OWN)
        folder[0] = '\0';
    free(base);
    return owner;
}

void gm_parts_drop(const char *path, const char *file, gm_parts_owner owner, const char *folder)
{
    if (owner == GM_PARTS_UNKNOWN) { /* the next run may find out */
        gm_warn("%s: the replaced file is kept as %s: it cannot be read, and may have parts", file, path);
        return;
    }
    if (owner == GM_PARTS_OTHER)
        gm_note("%s: the parts of the replaced file are kept: it was moved or copied from another file", file);
    else if (owner == GM_PARTS_OWN && gm_folder_has_other_master(folder, path))
        gm_note("%s: the parts of the replaced file are kept in %s: the file has another hard link", file, folder);
    else
        gm_folder_remove(folder);
    unlink(path);
}

void gm_parts_release(const char *path, const char *file)
{
    char folder[GM_PATH_MAX];
    gm_parts_owner owner = gm_parts_find(path, file, folder);
    gm_parts_drop(path, file, owner, folder);
}
