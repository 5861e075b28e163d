/* output_vfd.c - a virtual file driver for outputs that never fails to write. */
#include "io/write/output_vfd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/vfd.h"

enum {
    PAGE = 4096,
    ALIGN_FROM = 256 * 1024, /* data of this size and more begin at a page of a new file */
    CHUNK_FROM = 1024 * 1024 /* raw data of this size and more are chunks, which libhdf5 does not read again */
};

/* Bytes that were written after an error. */
typedef struct kept {
    struct kept *next;
    haddr_t address;
    size_t bytes;
    char data[];
} kept;

struct gm_output_vfd {
    gm_vfd vfd; /* first */
    hid_t id;
    gm_bytes bytes;
    int is_new, is_open; /* is_open: to the driver */
    int status;          /* of the first error */
    int is_lost;         /* something that libhdf5 has written is not in memory either */
    haddr_t written;     /* the end of the file itself, before an error */
    kept *first, **last;
};

static gm_output_vfd *wanted; /* the file that is being opened; under the lock */

static H5FD_t *open_file(const char *name, unsigned flags, hid_t access, haddr_t max)
{
    gm_output_vfd *file = wanted;
    (void)name, (void)flags, (void)access, (void)max;
    if (!file || file->is_open)
        return NULL;
    memset(&file->vfd.base, 0, sizeof file->vfd.base); /* libhdf5 opens a new file twice */
    file->is_open = 1;
    return &file->vfd.base;
}

static herr_t close_file(H5FD_t *base)
{
    ((gm_output_vfd *)base)->is_open = 0;
    return 0;
}

/* Those of libhdf5's own driver that decide where things lie in the file. With others libhdf5 looks for the file by its
 * name. */
static herr_t query(const H5FD_t *base, unsigned long *features)
{
    (void)base;
    *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
                H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

/* Copies what of [address, address + bytes) is in memory. Later writes replace earlier ones. */
static void read_kept(const gm_output_vfd *file, haddr_t address, size_t bytes, char *to)
{
    for (const kept *k = file->first; k; k = k->next) {
        haddr_t begin = k->address > address ? k->address : address;
        haddr_t end = k->address + k->bytes < address + bytes ? k->address + k->bytes : address + bytes;
        if (begin < end)
            memcpy(to + (begin - address), k->data + (begin - k->address), (size_t)(end - begin));
    }
}

/* Bytes past the end of the file read as zeros, as with libhdf5's own driver. */
static herr_t read_file(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes, void *buffer)
{
    gm_output_vfd *file = (gm_output_vfd *)base;
    size_t there = address >= file->written ? 0 : (size_t)gm_min((int64_t)bytes, (int64_t)(file->written - address));
    (void)type, (void)transfer;
    int failed = file->is_lost || gm_bytes_read(&file->bytes, (int64_t)address, buffer, there);
    if (failed) {
        file->status = file->status ? file->status : GM_EOUTPUT;
        return -1;
    }
    memset((char *)buffer + there, 0, bytes - there);
    read_kept(file, address, bytes, buffer);
    return 0;
}

static void keep(gm_output_vfd *file, H5FD_mem_t type, haddr_t address, size_t bytes, const void *buffer)
{
    if (type == H5FD_MEM_DRAW && bytes >= CHUNK_FROM)
        return;
    kept *k = file->is_lost ? NULL : malloc(sizeof *k + bytes);
    if (!k) {
        file->is_lost = 1;
        return;
    }
    *k = (kept){.address = address, .bytes = bytes};
    memcpy(k->data, buffer, bytes);
    *file->last = k;
    file->last = &k->next;
}

static herr_t write_file(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes,
                         const void *buffer)
{
    gm_output_vfd *file = (gm_output_vfd *)base;
    haddr_t end = address + bytes;
    (void)transfer;
    if (!file->status)
        file->status = gm_bytes_write(&file->bytes, (int64_t)address, buffer, bytes);
    if (file->status)
        keep(file, type, address, bytes, buffer);
    else if (end > file->written)
        file->written = end;
    if (end > file->vfd.end)
        file->vfd.end = end;
    return 0;
}

static int set_size(const gm_output_vfd *file, haddr_t size)
{
    int failed;
    while ((failed = ftruncate(file->bytes.fd, (off_t)size)) && errno == EINTR)
        ;
    return failed ? gm_fail(GM_EOUTPUT, "%s: cannot %s %llu bytes: %s", file->bytes.title,
                            file->is_new ? "be created with" : "grow to", (unsigned long long)size, strerror(errno))
                  : GM_OK;
}

static herr_t truncate_file(H5FD_t *base, hid_t transfer, hbool_t closing)
{
    gm_output_vfd *file = (gm_output_vfd *)base;
    (void)transfer, (void)closing;
    if (!file->status && file->vfd.end != file->vfd.end_allocated) {
        file->status = set_size(file, file->vfd.end_allocated);
        if (!file->status)
            file->written = file->vfd.end_allocated;
    }
    file->vfd.end = file->vfd.end_allocated;
    return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 2)
    .version = H5FD_CLASS_VERSION,
#endif
#if H5_VERSION_GE(1, 13, 0)
    .value = 60001, /* of the range that is free for any use */
#endif
    .name = "gpumem_output",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .open = open_file,
    .close = close_file,
    .cmp = gm_vfd_compare,
    .query = query,
    .get_eoa = gm_vfd_end_allocated,
    .set_eoa = gm_vfd_set_end_allocated,
    .get_eof = gm_vfd_end,
    .read = read_file,
    .write = write_file,
    .truncate = truncate_file,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* libhdf5 keeps a file that it could not close: it is never to touch the caller's descriptor again. */
static void release(gm_output_vfd *file)
{
    if (file->is_open) {
        file->status = file->status ? file->status : GM_EOUTPUT;
        file->is_lost = 1;
        return;
    }
    while (file->first) {
        kept *k = file->first;
        file->first = k->next;
        free(k);
    }
    free(file);
}

static hid_t make_access(const gm_output_vfd *file)
{
    static hid_t id = H5I_INVALID_HID; /* stays registered */
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (id < 0)
        id = H5FDregister(&driver);
    return gm_h5_ready(access, access >= 0 && id >= 0 && H5Pset_driver(access, id, NULL) >= 0 &&
                                   (!file->is_new || H5Pset_alignment(access, ALIGN_FROM, PAGE) >= 0));
}

/* Finds out about the file, and empties a new one. */
static int look(gm_output_vfd *file)
{
    struct stat st;
    if (fstat(file->bytes.fd, &st))
        return gm_fail(GM_EOUTPUT, "%s: its size cannot be determined: %s", file->bytes.title, strerror(errno));
    file->vfd.device = st.st_dev;
    file->vfd.inode = st.st_ino;
    if (file->is_new)
        return st.st_size > 0 ? set_size(file, 0) : GM_OK;
    file->vfd.end = file->written = (haddr_t)st.st_size;
    return GM_OK;
}

static int attach(int fd, int is_new, const char *title, gm_output_vfd **out)
{
    char reason[GM_H5_TEXT];
    gm_output_vfd *file = calloc(1, sizeof *file);
    *out = NULL;
    if (!file)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    file->bytes = (gm_bytes){.fd = fd, .code = GM_EOUTPUT, .title = title};
    file->is_new = is_new;
    file->last = &file->first;
    int status = look(file);
    hid_t access = status ? H5I_INVALID_HID : make_access(file);
    file->id = H5I_INVALID_HID;
    wanted = file;
    if (access >= 0)
        file->id = is_new ? H5Fcreate(title, H5F_ACC_TRUNC, H5P_DEFAULT, access) : H5Fopen(title, H5F_ACC_RDWR, access);
    wanted = NULL;
    if (file->id < 0) {
        status = gm_fail(GM_EOUTPUT, "%s: cannot be %s: %s", title, is_new ? "created" : "opened again",
                         gm_h5_error(reason));
        release(file);
        file = NULL;
    }
    gm_h5_close(access);
    *out = file;
    return status;
}

int gm_output_vfd_create(int fd, const char *title, gm_output_vfd **file)
{
    return attach(fd, 1, title, file);
}

int gm_output_vfd_open(int fd, const char *title, gm_output_vfd **file)
{
    return attach(fd, 0, title, file);
}

hid_t gm_output_vfd_id(const gm_output_vfd *file)
{
    return file->id;
}

int gm_output_vfd_status(const gm_output_vfd *file)
{
    return file->status;
}

int gm_output_vfd_close(gm_output_vfd *file, int status)
{
    char reason[GM_H5_TEXT];
    if (!file)
        return status;
    int closed = H5Fclose(file->id) >= 0 && !file->is_open;
    status = status ? status : file->status;
    if (!closed && !status)
        status = gm_fail(GM_EOUTPUT, "%s: closing failed: %s", file->bytes.title, gm_h5_error(reason));
    release(file);
    return status;
}
