/* finish.c - completes the temporary file of an output and renames it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/flush.h"
#include "base/file/folder.h"
#include "base/file/new_file.h"
#include "base/status.h"
#include "base/stop.h"
#include "io/bytes.h"
#include "io/write/output_vfd.h"
#include "io/write/pack.h"
#include "io/write/parts.h"
#include "io/write/record.h"

enum { TEXT_MAX = 60 * 1024 };

/* Length of a text that is cut to TEXT_MAX bytes, not inside a character. */
static size_t cut_length(const char *text)
{
    size_t length = strlen(text);
    if (length > TEXT_MAX)
        for (length = TEXT_MAX; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;)
            length--;
    return length;
}

/* UTF-8 of variable length, which h5py returns as str. */
static hid_t text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    return gm_h5_ready(type,
                       type >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0);
}

static int write_attribute(hid_t set, hid_t space, hid_t text, const gm_attribute *attribute)
{
    static char cut[TEXT_MAX + 1]; /* under the lock */
    const char *start = cut;
    const struct {
        hid_t type;
        const void *value;
    } kinds[] = {
        [GM_ATTRIBUTE_TEXT] = {text, &start},
        [GM_ATTRIBUTE_REAL] = {H5T_NATIVE_DOUBLE, &attribute->real},
        [GM_ATTRIBUTE_INTEGER] = {H5T_NATIVE_INT64, &attribute->integer},
    };
    hid_t id, type = kinds[attribute->kind].type;

    if (attribute->kind == GM_ATTRIBUTE_TEXT)
        snprintf(cut, cut_length(attribute->text) + 1, "%s", attribute->text);
    id = H5Acreate2(set, attribute->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    int ok = id >= 0 && H5Awrite(id, type, kinds[attribute->kind].value) >= 0;
    if (id >= 0)
        ok = H5Aclose(id) >= 0 && ok;
    return ok;
}

static int write_attributes(hid_t set, const char *title, const gm_attribute *attributes, int count)
{
    char reason[GM_H5_TEXT];
    hid_t space = H5Screate(H5S_SCALAR), text = text_type();
    int ok = space >= 0 && text >= 0, status = GM_OK;
    for (int i = 0; i < count && ok; i++) /* replaces attributes that were copied from an input */
        ok = H5Aexists(set, attributes[i].name) <= 0 || H5Adelete(set, attributes[i].name) >= 0;
    for (int i = 0; i < count && ok; i++) {
        ok = write_attribute(set, space, text, &attributes[i]);
        if (!ok)
            status = gm_fail(GM_EOUTPUT, "%s: attribute %s cannot be written: %s", title, attributes[i].name,
                             gm_h5_error(reason));
    }
    if (!ok && !status)
        status = gm_fail(GM_EOUTPUT, "%s: attributes cannot be written: %s", title, gm_h5_error(reason));
    gm_h5_close(text);
    gm_h5_close(space);
    return status;
}

static int finish_dataset(const gm_output_vfd *file, const gm_output_record *record, int index,
                          const gm_attribute *attributes, int count)
{
    char title[GM_PATH_MAX + GM_NAME_MAX], reason[GM_H5_TEXT];
    const gm_output_dataset *dataset = &record->dataset[index];
    hid_t set = H5Dopen2(gm_output_vfd_id(file), dataset->name, H5P_DEFAULT);
    int status = GM_OK;
    snprintf(title, sizeof title, "%s:%s", record->file, dataset->name);
    if (set < 0)
        return gm_fail(GM_EOUTPUT, "%s: cannot be opened again: %s", title, gm_h5_error(reason));
    if (dataset->chunked)
        status = gm_pack_place(file, set, record, index, title);
    if (!status)
        status = write_attributes(set, title, attributes, count);
    if (H5Dclose(set) < 0)
        status = gm_fail(GM_EOUTPUT, "%s: closing failed: %s", title, gm_h5_error(reason));
    return status;
}

static int finish_file(gm_output_record *record, const gm_attribute *attributes, int count)
{
    gm_output_vfd *file;
    gm_pack_drop_raw(record); /* it has been packed: its space is needed */
    int fd = gm_record_reopen(record);
    if (fd < 0)
        return GM_EOUTPUT;
    gm_h5_lock();
    int status = gm_output_vfd_open(fd, record->file, &file);
    for (int i = 0; i < record->datasets && !status; i++)
        status = finish_dataset(file, record, i, attributes, count);
    status = gm_output_vfd_close(file, status);
    gm_h5_unlock();
    return gm_bytes_close(fd, record->file, status);
}

static int flush(const gm_output_record *record, const char *path, int flags)
{
    int status = GM_OK, fd = open(path, flags | O_CLOEXEC),
        failed = fd < 0 ? errno : gm_file_flush_stoppable(fd, &status);
    if (fd >= 0 && close(fd) && !failed && errno != EINTR)
        failed = errno;
    if (status)
        return status;
    return failed && failed != EINVAL /* a file system that cannot flush a folder */
               ? gm_fail(GM_EOUTPUT, "%s: flushing %s to the disk failed: %s", record->file, path, strerror(failed))
               : GM_OK;
}

/* Flushes all files of the output. Other ranks have flushed the data that they wrote into parts, but not the metadata
 * of libhdf5. */
static int flush_files(const gm_output_record *record)
{
    char path[GM_PATH_MAX];
    int status = GM_OK;
    for (int part = 0; part < record->parts && !status; part++)
        status = flush(record, gm_parts_path(record, part, path), O_RDWR);
    if (!status && record->folder[0])
        status = flush(record, record->folder, O_RDONLY | O_DIRECTORY);
    return status ? status : flush(record, record->temporary, O_RDWR);
}

/* The file that is to be replaced, and its parts. They are found before: afterwards a signal would hinder that. */
typedef struct old {
    struct stat st;
    int exists;
    gm_parts_owner owner;
    char folder[GM_PATH_MAX];
} old;

static int find_old(const gm_output_record *record, old *o)
{
    o->exists = record->force && lstat(record->file, &o->st) == 0 && S_ISREG(o->st.st_mode);
    if (o->exists)
        o->owner = gm_parts_find(record->file, record->file, o->folder);
    return o->exists && o->owner == GM_PARTS_UNKNOWN ? gm_stop_status() : GM_OK;
}

/* Removes what was replaced, which another run may have made meanwhile. */
static void drop_old(const gm_output_record *record, const old *o, const char *replaced)
{
    struct stat st;
    if (o->exists && lstat(replaced, &st) == 0 && st.st_dev == o->st.st_dev && st.st_ino == o->st.st_ino)
        gm_parts_drop(replaced, record->file, o->owner, o->folder);
    else
        gm_parts_release(replaced, record->file);
}

/* Gives the file its name. A replaced file is removed after the folder was flushed: until then the disk may have the
 * old name. */
static int publish(gm_output_record *record)
{
    char replaced[GM_PATH_MAX];
    old o;
    int status = find_old(record, &o);
    if (gm_new_file_has_name(record->temporary)) { /* some errors come only now */
        status = gm_bytes_close(record->descriptor, record->file, status);
        record->descriptor = -1;
    }
    if (!status && record->folder[0])
        gm_folder_commit(record->folder, record->descriptor, record->temporary);
    if (!status)
        status = gm_new_file_publish(record->file, record->descriptor, record->temporary, record->force, replaced);
    if (status)
        return status;
    gm_new_file_discard(record->descriptor, ""); /* closes it */
    record->descriptor = -1;
    record->temporary[0] = '\0';
    if (record->folder[0])
        gm_folder_keep(record->folder);
    if (record->sync)
        status = gm_new_file_flush_folder(record->file);
    if (replaced[0])
        drop_old(record, &o, replaced);
    return status;
}

int gm_output_finish(gm_output_record *record, const gm_attribute *attributes, int count, double *sync_seconds)
{
    int status = finish_file(record, attributes, count);
    double start = gm_clock();
    if (!status && record->sync)
        status = flush_files(record);
    if (!status)
        status = publish(record);
    if (record->temporary[0]) /* not published */
        gm_output_discard(record);
    else
        gm_pack_discard(record);
    if (sync_seconds && record->sync)
        *sync_seconds += gm_clock() - start;
    return status;
}
