/* input_vfd.c - a virtual file driver that reads files, remembers what failed, and finds raw chunks. */
#include "io/input_vfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/status.h"
#include "io/dataset.h"
#include "io/vfd.h"
#include "io/worker.h"

typedef struct input_file {
    gm_vfd vfd; /* first */
    int fd;
    char *name;
} input_file;

/* Under the lock, as all of this. */
static int reads_elements;
static gm_input_place *sought, *watched;

static struct {
    int is_set, number; /* errno; 0: the file ended */
    uint64_t at, bytes;
    char name[GM_PATH_MAX];
} failure;

void gm_input_reads_elements(int on)
{
    reads_elements = on;
}

void gm_input_seek(gm_input_place *place)
{
    sought = place;
}

void gm_input_watch(gm_input_place *place)
{
    watched = place;
}

void gm_input_error_clear(void)
{
    failure.is_set = 0;
}

int gm_input_has_error(void)
{
    return failure.is_set;
}

int gm_input_fail(void)
{
    if (failure.number == ENOMEM)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", failure.name);
    if (failure.number)
        return gm_fail(GM_EINPUT, "%s: cannot be read: %" PRIu64 " bytes at %" PRIu64 ": %s", failure.name,
                       failure.bytes, failure.at, strerror(failure.number));
    return gm_fail(GM_EINPUT, "%s: ends before byte %" PRIu64 ": it is truncated, or became shorter", failure.name,
                   failure.at + failure.bytes);
}

/* Remembers the first failure. Returns what the driver returns for one. */
static herr_t fail(const char *name, int number, uint64_t at, uint64_t bytes)
{
    if (!failure.is_set) {
        failure.is_set = 1;
        failure.number = number;
        failure.at = at;
        failure.bytes = bytes;
        strncpy(failure.name, name, sizeof failure.name - 1);
    }
    return -1;
}

static void free_file(input_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    free(file->name);
    free(file);
}

/* A file that is missing is not a failure to read: the caller says what it is. */
static H5FD_t *open_file(const char *name, unsigned flags, hid_t access, haddr_t max)
{
    struct stat st;
    (void)access, (void)max;
    if (flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT))
        return NULL;
    input_file *file = calloc(1, sizeof *file);
    char *copy = strdup(name);
    if (!file || !copy) {
        free(file);
        free(copy);
        fail(name, ENOMEM, 0, 0);
        return NULL;
    }
    file->name = copy;
    gm_worker_waits(1);
    file->fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for its writer */
    gm_worker_waits(0);
    if (file->fd < 0 || fstat(file->fd, &st) || !S_ISREG(st.st_mode)) {
        if (file->fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EIO))
            fail(name, errno, 0, 0);
        free_file(file);
        return NULL;
    }
    file->vfd.device = st.st_dev;
    file->vfd.inode = st.st_ino;
    file->vfd.end = (haddr_t)st.st_size;
    return &file->vfd.base;
}

static herr_t close_file(H5FD_t *base)
{
    free_file((input_file *)base);
    return 0;
}

static herr_t query(const H5FD_t *base, unsigned long *features)
{
    (void)base;
    *features = H5FD_FEAT_ACCUMULATE_METADATA_READ | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_SUPPORTS_SWMR_IO |
                H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

/* The superblock is looked for where a file may have ended: there, bytes past the end are zeros. */
static herr_t read_file(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes, void *buffer)
{
    const input_file *file = (const input_file *)base;
    char *to = buffer;
    (void)transfer;
    if (type == H5FD_MEM_DRAW && watched)
        *watched = (gm_input_place){address, bytes};
    if (type == H5FD_MEM_DRAW && sought) {
        *sought = (gm_input_place){address, bytes};
        return 0;
    }
    if (type == H5FD_MEM_DRAW)
        gm_worker_progress();
    if (type != H5FD_MEM_DRAW || !reads_elements)
        gm_worker_allow(bytes);
    gm_worker_waits(1);
    while (bytes) {
        ssize_t got = pread(file->fd, to, bytes, (off_t)address);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || (got == 0 && type != H5FD_MEM_SUPER)) {
            gm_worker_waits(0);
            return fail(file->name, got ? errno : 0, address, bytes);
        }
        if (got == 0) {
            memset(to, 0, bytes);
            got = (ssize_t)bytes;
        }
        to += got;
        address += (haddr_t)got;
        bytes -= (size_t)got;
    }
    gm_worker_waits(0);
    return 0;
}

/* As the driver of libhdf5 with HDF5_USE_FILE_LOCKING=BEST_EFFORT: a file that is open for writing is refused. */
static herr_t lock_file(H5FD_t *base, hbool_t exclusive)
{
    int how = (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB;
    return flock(((const input_file *)base)->fd, how) && errno == EWOULDBLOCK ? -1 : 0;
}

static herr_t unlock_file(H5FD_t *base)
{
    flock(((const input_file *)base)->fd, LOCK_UN);
    return 0;
}

static herr_t refuse_to_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes,
                              const void *buffer)
{
    (void)base, (void)type, (void)transfer, (void)address, (void)bytes, (void)buffer;
    return -1;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 2)
    .version = H5FD_CLASS_VERSION,
#endif
#if H5_VERSION_GE(1, 13, 0)
    .value = 60000, /* of the range that is free for any use */
#endif
    .name = "gpumem_input",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = open_file,
    .close = close_file,
    .cmp = gm_vfd_compare,
    .query = query,
    .get_eoa = gm_vfd_end_allocated,
    .set_eoa = gm_vfd_set_end_allocated,
    .get_eof = gm_vfd_end,
    .read = read_file,
    .write = refuse_to_write,
    .lock = lock_file,
    .unlock = unlock_file,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* The driver stays registered. */
static hid_t driver_id(void)
{
    static hid_t id = H5I_INVALID_HID;
    if (id < 0)
        id = H5FDregister(&driver);
    return id;
}

hid_t gm_input_access(void)
{
    static hid_t access = H5I_INVALID_HID;
    if (access < 0) {
        hid_t made = H5Pcreate(H5P_FILE_ACCESS), id = driver_id();
        if (made >= 0 && id >= 0 && H5Pset_driver(made, id, NULL) >= 0)
            access = made;
        else if (made >= 0)
            H5Pclose(made);
    }
    return access;
}

int gm_input_reads(hid_t object)
{
    hid_t file = H5Iget_file_id(object), access = file >= 0 ? H5Fget_access_plist(file) : H5I_INVALID_HID;
    int reads = access >= 0 && H5Pget_driver(access) == driver_id();
    if (access >= 0)
        H5Pclose(access);
    if (file >= 0)
        H5Fclose(file);
    return reads;
}
