/* chunk_vfd.c - a virtual file driver that finds raw chunks. */
#include "io/chunk_vfd.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct chunk_file {
    H5FD_t base; /* libhdf5's, first */
    int fd;
    dev_t device;
    ino_t inode;
    haddr_t end_allocated, end;
} chunk_file;

/* While a chunk is looked for: raw reads go here. Under the lock. */
static gm_chunk_place *sought;

static H5FD_t *open_file(const char *name, unsigned flags, hid_t access, haddr_t max)
{
    chunk_file *file;
    struct stat st;

    (void)access, (void)max;
    if (flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT))
        return NULL;
    file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->fd = open(name, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &st)) {
        if (file->fd >= 0)
            close(file->fd);
        free(file);
        return NULL;
    }
    file->device = st.st_dev;
    file->inode = st.st_ino;
    file->end = (haddr_t)st.st_size;
    return &file->base;
}

static herr_t close_file(H5FD_t *base)
{
    chunk_file *file = (chunk_file *)base;

    close(file->fd);
    free(file);
    return 0;
}

static int compare_files(const H5FD_t *a, const H5FD_t *b)
{
    const chunk_file *x = (const chunk_file *)a, *y = (const chunk_file *)b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static herr_t query(const H5FD_t *base, unsigned long *features)
{
    (void)base;
    *features = H5FD_FEAT_ACCUMULATE_METADATA_READ | H5FD_FEAT_SUPPORTS_SWMR_IO;
    return 0;
}

static haddr_t get_end_allocated(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const chunk_file *)base)->end_allocated;
}

static herr_t set_end_allocated(H5FD_t *base, H5FD_mem_t type, haddr_t address)
{
    (void)type;
    ((chunk_file *)base)->end_allocated = address;
    return 0;
}

static haddr_t get_end(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const chunk_file *)base)->end;
}

/* The part of a request that lies behind the end of the file reads as zeros, as with libhdf5's own driver. */
static herr_t read_file(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes, void *buffer)
{
    const chunk_file *file = (const chunk_file *)base;
    char *to = buffer;

    (void)transfer;
    if (sought && type == H5FD_MEM_DRAW) {
        sought->address = address;
        sought->bytes = bytes;
        return 0;
    }
    while (bytes) {
        ssize_t got = pread(file->fd, to, bytes, (off_t)address);

        if (got < 0 && errno != EINTR)
            return -1;
        if (got == 0)
            break;
        if (got > 0) {
            to += got;
            address += (haddr_t)got;
            bytes -= (size_t)got;
        }
    }
    for (; bytes; bytes--)
        *to++ = 0;
    return 0;
}

static herr_t refuse_to_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes, const void *buffer)
{
    (void)base, (void)type, (void)transfer, (void)address, (void)bytes, (void)buffer;
    return -1;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 2)
    .version = H5FD_CLASS_VERSION,
#endif
#if H5_VERSION_GE(1, 13, 0)
    .value = 60000, /* of those that are free for anybody's use */
#endif
    .name = "gpumem_chunks",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = open_file,
    .close = close_file,
    .cmp = compare_files,
    .query = query,
    .get_eoa = get_end_allocated,
    .set_eoa = set_end_allocated,
    .get_eof = get_end,
    .read = read_file,
    .write = refuse_to_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t gm_chunk_vfd_access(void)
{
    static hid_t id = H5I_INVALID_HID; /* stays registered */
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    if (id < 0)
        id = H5FDregister(&driver);
    if (access >= 0 && (id < 0 || H5Pset_driver(access, id, NULL) < 0)) {
        H5Pclose(access);
        access = H5I_INVALID_HID;
    }
    return access;
}

/* Reads the element at offset as libhdf5 would for anybody. Returns whether it can. */
static int can_read(hid_t set, hid_t space, const hsize_t *offset)
{
    static const hsize_t ones[H5S_MAX_RANK] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    };
    hid_t one = H5Screate(H5S_SCALAR), type = H5Dget_type(set); /* no conversion: it would take longer than all the rest */
    char element[64];
    int can = one >= 0 && type >= 0 && H5Tget_size(type) <= sizeof element
              && H5Sselect_hyperslab(space, H5S_SELECT_SET, offset, NULL, ones, NULL) >= 0
              && H5Dread(set, type, one, space, H5P_DEFAULT, element) >= 0;

    if (type >= 0)
        H5Tclose(type);
    if (one >= 0)
        H5Sclose(one);
    return can;
}

int gm_chunk_vfd_find(hid_t set, hid_t space, const hsize_t *offset, gm_chunk_place *place)
{
    char nothing;
    int found;

    *place = (gm_chunk_place){HADDR_UNDEF, 0, 0};
    sought = place;
    found = H5Dread_chunk(set, H5P_DEFAULT, offset, &place->skipped, &nothing) >= 0 && place->address != HADDR_UNDEF;
    sought = NULL;
    if (found)
        return 0;
    /* A chunk that was never written is an error to H5Dread_chunk(), and to H5Dget_chunk_storage_size() of 1.10.8 as well, as a damaged
     * file is. Only the former can be read: as the fill value. */
    *place = (gm_chunk_place){HADDR_UNDEF, 0, 0};
    return !can_read(set, space, offset);
}
