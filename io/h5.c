/* h5.c - the lock around libhdf5, its error texts and the types that both sides know. */
#include "io/h5.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "base/text/escape.h"
#include "io/input_vfd.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int prepared;           /* under the mutex, as are the next two */
static hid_t types[GM_DTYPES]; /* 0: not made yet */
static hid_t access_list;

void gm_h5_lock(void)
{
    pthread_mutex_lock(&mutex);
    if (!prepared) {
        /* Locks fail on many cluster file systems. libhdf5 reads the variable when it starts. */
        setenv("HDF5_USE_FILE_LOCKING", "BEST_EFFORT", 0);
        /* At exit libhdf5 would access a file again that it could not close on a full disk, and crash. The program
         * closes all. */
        H5dont_atexit();
        prepared = 1;
    }
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* each time: a thread-safe libhdf5 keeps it for every thread */
}

void gm_h5_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

static herr_t take_first(unsigned n, const H5E_error2_t *entry, void *text)
{
    if (n == 0)
        gm_escape_cut(entry->desc ? entry->desc : entry->func_name, text, GM_H5_TEXT);
    return 0;
}

char *gm_h5_error(char *text)
{
    strcpy(text, "no reason given");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, text);
    return text;
}

void gm_h5_close(hid_t id)
{
    static herr_t (*const closers[H5I_NTYPES])(hid_t) = {
        [H5I_FILE] = H5Fclose,    [H5I_GROUP] = H5Gclose, [H5I_DATATYPE] = H5Tclose,   [H5I_DATASPACE] = H5Sclose,
        [H5I_DATASET] = H5Dclose, [H5I_ATTR] = H5Aclose,  [H5I_GENPROP_LST] = H5Pclose};
    if (id >= 0 && H5Iget_type(id) > 0 && closers[H5Iget_type(id)])
        closers[H5Iget_type(id)](id);
}

hid_t gm_h5_ready(hid_t id, int ok)
{
    if (!ok)
        gm_h5_close(id);
    return ok ? id : H5I_INVALID_HID;
}

static hid_t make_integer(int is_signed, size_t bits)
{
    hid_t type = H5Tcopy(is_signed ? H5T_NATIVE_SCHAR : H5T_NATIVE_UCHAR);
    return gm_h5_ready(type, type >= 0 && H5Tset_precision(type, bits) >= 0);
}

/* The fields are those of base/types/float.h. They come before the size, which may not cut one off. */
static hid_t make_float(size_t bytes, size_t digits)
{
    hid_t type = H5Tcopy(H5T_NATIVE_DOUBLE);
    size_t sign = 8 * bytes - 1, fraction = digits - 1, bias = (size_t)gm_format_bias((int)bytes, (int)digits);
    return gm_h5_ready(type, type >= 0 && H5Tset_fields(type, sign, fraction, sign - fraction, 0, fraction) >= 0 &&
                                 H5Tset_size(type, bytes) >= 0 && H5Tset_ebias(type, bias) >= 0);
}

hid_t gm_h5_type(gm_dtype type)
{
    size_t bytes = gm_dtype_size(type), digits = (size_t)gm_dtype_digits(type);
    gm_dtype_kind kind = gm_dtype_get_kind(type);
    if (types[type] <= 0)
        types[type] = kind == GM_FLOAT ? make_float(bytes, digits) : make_integer(kind == GM_SIGNED, 8 * bytes);
    return types[type];
}

hid_t gm_h5_type_swapped(gm_dtype type)
{
    hid_t copy = H5Tcopy(gm_h5_type(type));
    return gm_h5_ready(
        copy, copy >= 0 && H5Tset_order(copy, H5Tget_order(copy) == H5T_ORDER_LE ? H5T_ORDER_BE : H5T_ORDER_LE) >= 0);
}

/* Access by the plain POSIX driver. Made at its first use, negative on failure. Not to be closed. */
static hid_t plain_access(void)
{
    if (access_list <= 0) {
        hid_t made = H5Pcreate(H5P_FILE_ACCESS);
        access_list = gm_h5_ready(made, made >= 0 && H5Pset_fapl_sec2(made) >= 0);
    }
    return access_list;
}

/* Errors that are found without libhdf5, with clearer messages. */
static int check_input(const char *file)
{
    struct stat st;
    if (stat(file, &st))
        return gm_fail(GM_EINPUT, "%s: %s, expected an HDF5 file", file,
                       errno == ENOENT ? "no such file" : strerror(errno));
    if (S_ISDIR(st.st_mode))
        return gm_fail(GM_EINPUT, "%s: is a folder, expected an HDF5 file", file);
    if (!S_ISREG(st.st_mode))
        return gm_fail(GM_EINPUT, "%s: is not a regular file, expected an HDF5 file", file);
    if (st.st_size == 0)
        return gm_fail(GM_EINPUT, "%s: is empty, expected an HDF5 file", file);
    return GM_OK;
}

/* The reason why a file was not opened, looked for only then: a dataset in parts has many files. */
static int fail_open(const char *file)
{
    char reason[GM_H5_TEXT];
    gm_h5_error(reason); /* the next call of libhdf5 replaces it */
    if (access(file, R_OK))
        return gm_fail(GM_EINPUT, "%s: cannot be read: %s", file, strerror(errno));
    if (H5Fis_hdf5(file) == 0)
        return gm_fail(GM_EINPUT, "%s: is not an HDF5 file", file);
    return gm_fail(GM_EINPUT, "%s: cannot be opened, the file is damaged, truncated or in use: %s", file, reason);
}

int gm_h5_open(const char *file, hid_t *id)
{
    int status = check_input(file);
    *id = H5I_INVALID_HID;
    if (status)
        return status;
    *id = gm_input_access() < 0 ? H5I_INVALID_HID : H5Fopen(file, H5F_ACC_RDONLY, gm_input_access());
    return *id < 0 ? fail_open(file) : GM_OK;
}

hid_t gm_h5_open_as(const char *file, unsigned flags)
{
    return plain_access() < 0 ? H5I_INVALID_HID : H5Fopen(file, flags, plain_access());
}
