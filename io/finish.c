/* finish.c - an output under its temporary name becomes the file that was asked for. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/status.h"
#include "io/pack.h"
#include "io/scratch.h"

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

/* UTF-8 of variable length: what h5py gives back as str. */
static hid_t text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    if (type >= 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
        H5Tclose(type);
        type = H5I_INVALID_HID;
    }
    return type;
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
    int ok;

    if (attribute->kind == GM_ATTRIBUTE_TEXT)
        snprintf(cut, cut_length(attribute->text) + 1, "%s", attribute->text);
    id = H5Acreate2(set, attribute->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    ok = id >= 0 && H5Awrite(id, type, kinds[attribute->kind].value) >= 0;
    if (id >= 0)
        ok = H5Aclose(id) >= 0 && ok;
    return ok;
}

static int write_attributes(hid_t set, const char *title, const gm_attribute *attributes, int count)
{
    char reason[GM_H5_TEXT];
    hid_t space = H5Screate(H5S_SCALAR), text = text_type();
    int ok = space >= 0 && text >= 0, status = GM_OK;

    for (int i = 0; i < count && ok; i++) /* one that was copied from an input gives way */
        ok = H5Aexists(set, attributes[i].name) <= 0 || H5Adelete(set, attributes[i].name) >= 0;
    for (int i = 0; i < count && ok; i++) {
        ok = write_attribute(set, space, text, &attributes[i]);
        if (!ok)
            status = gm_fail(GM_EOUTPUT, "%s: attribute %s cannot be written: %s", title, attributes[i].name, gm_h5_error(reason));
    }
    if (!ok && !status)
        status = gm_fail(GM_EOUTPUT, "%s: attributes cannot be written: %s", title, gm_h5_error(reason));
    if (text >= 0)
        H5Tclose(text);
    if (space >= 0)
        H5Sclose(space);
    return status;
}

static int finish_dataset(hid_t file, const gm_output_record *record, int index, const gm_attribute *attributes, int count)
{
    char title[GM_PATH_MAX + GM_NAME_MAX], reason[GM_H5_TEXT];
    const gm_output_dataset *dataset = &record->dataset[index];
    hid_t set = H5Dopen2(file, dataset->name, H5P_DEFAULT);
    int status = GM_OK;

    snprintf(title, sizeof title, "%s:%s", record->file, dataset->name);
    if (set < 0)
        return gm_fail(GM_EOUTPUT, "%s: cannot be opened again: %s", title, gm_h5_error(reason));
    if (dataset->chunked)
        status = gm_pack_place(set, record, index, title);
    if (!status)
        status = write_attributes(set, title, attributes, count);
    if (H5Dclose(set) < 0)
        status = gm_fail(GM_EOUTPUT, "%s: closing failed: %s", title, gm_h5_error(reason));
    return status;
}

static int finish_file(const gm_output_record *record, const gm_attribute *attributes, int count)
{
    char reason[GM_H5_TEXT];
    hid_t access, file = H5I_INVALID_HID;
    int status = GM_OK;

    if (gm_output_has_scratch(record)) /* it has been packed: its room is wanted */
        unlink(record->raw);
    gm_h5_lock();
    access = gm_h5_access();
    if (access >= 0)
        file = H5Fopen(record->temporary, H5F_ACC_RDWR, access);
    if (file < 0)
        status = gm_fail(GM_EOUTPUT, "%s: cannot be opened again: %s", record->file, gm_h5_error(reason));
    for (int i = 0; i < record->datasets && !status; i++)
        status = finish_dataset(file, record, i, attributes, count);
    if (!status && H5Fflush(file, H5F_SCOPE_GLOBAL) < 0)
        status = gm_fail(GM_EOUTPUT, "%s: writing failed: %s", record->file, gm_h5_error(reason));
    if (file >= 0 && H5Fclose(file) < 0)
        status = gm_fail(GM_EOUTPUT, "%s: closing failed: %s", record->file, gm_h5_error(reason));
    if (access >= 0)
        H5Pclose(access);
    gm_h5_unlock();
    return status;
}

static int sync_path(const gm_output_record *record, const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC), failed = 0;

    if (fd < 0 || fsync(fd))
        failed = errno == EINVAL ? 0 : errno; /* a file system that cannot flush a folder */
    if (fd >= 0 && close(fd) && !failed && errno != EINTR)
        failed = errno;
    return failed ? gm_fail(GM_EOUTPUT, "%s: flushing %s to the disk failed: %s", record->file, path, strerror(failed)) : GM_OK;
}

/* Gives the file its name. Without force nothing may be replaced that came there meanwhile: link() refuses where rename() would not. */
static int take_name(const gm_output_record *record)
{
    struct stat st;
    int existed = 0;

    if (!record->force) {
        if (link(record->temporary, record->file) == 0) {
            unlink(record->temporary);
            return GM_OK;
        }
        existed = errno == EEXIST || lstat(record->file, &st) == 0; /* not every file system has links */
    }
    if (existed)
        return gm_fail(GM_EOUTPUT, "%s: has come into being meanwhile, expected a new name or --force", record->file);
    if (rename(record->temporary, record->file))
        return gm_fail(GM_EOUTPUT, "%s: cannot be given to the finished file: %s", record->file, strerror(errno));
    return GM_OK;
}

/* All that stands under the new name. Parts that other ranks wrote have been flushed by them, but what libhdf5 wrote into them has not. */
static int sync_files(const gm_output_record *record)
{
    char path[GM_PATH_MAX];
    int status = GM_OK;

    for (int part = 0; part < record->parts && !status; part++)
        status = sync_path(record, gm_parted_path(record, part, path), O_RDWR);
    if (!status && record->folder[0])
        status = sync_path(record, record->folder, O_RDONLY | O_DIRECTORY);
    return status ? status : sync_path(record, record->temporary, O_RDWR);
}

int gm_output_finish(const gm_output_record *record, const gm_attribute *attributes, int count, double *sync_seconds)
{
    char old_parts[GM_PATH_MAX] = "", folder[GM_PATH_MAX];
    double start, spent = 0;
    int status = finish_file(record, attributes, count);

    start = gm_clock();
    if (!status && record->sync)
        status = sync_files(record);
    spent += gm_clock() - start;
    if (!status && record->force)
        gm_parted_find(record->file, old_parts);
    if (!status)
        status = take_name(record);
    if (status) {
        gm_output_discard(record);
        return status;
    }
    gm_pack_discard(record);
    gm_parted_remove(old_parts);
    start = gm_clock();
    if (record->sync)
        status = sync_path(record, gm_output_folder(record->file, folder), O_RDONLY | O_DIRECTORY);
    spent += gm_clock() - start;
    if (sync_seconds)
        *sync_seconds += spent;
    return status;
}
