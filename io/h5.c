/* h5.c - the lock around libhdf5, its error texts and the types that both sides know. */
#include "io/h5.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int prepared;          /* under the mutex, as float16 is */
static hid_t float16 = H5I_INVALID_HID;

void gm_h5_lock(void)
{
    pthread_mutex_lock(&mutex);
    if (!prepared) {
        /* Locks fail on many cluster file systems. libhdf5 reads the variable when it starts. */
        setenv("HDF5_USE_FILE_LOCKING", "BEST_EFFORT", 0);
        /* At exit libhdf5 would touch a file again that it could not close on a full disk, and crash. We leave none open. */
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
        snprintf(text, GM_H5_TEXT, "%s", entry->desc ? entry->desc : entry->func_name);
    return 0;
}

char *gm_h5_error(char *text)
{
    strcpy(text, "no reason given");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, text);
    return text;
}

hid_t gm_h5_float16(void)
{
    if (float16 < 0) {
        hid_t type = H5Tcopy(H5T_NATIVE_FLOAT);

        /* sign at bit 15, 5 bits of exponent at 10, 10 of mantissa at 0: before the size, which may not cut a field off */
        if (H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 || H5Tset_size(type, 2) < 0 || H5Tset_ebias(type, 15) < 0)
            H5Tclose(type);
        else
            float16 = type;
    }
    return float16;
}

hid_t gm_h5_type(gm_dtype type)
{
    const hid_t types[] = {
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) h5,
#include "base/dtypes.def"
#undef GM_DTYPE
    };
    return types[type];
}

hid_t gm_h5_type_swapped(gm_dtype type)
{
    hid_t copy = H5Tcopy(gm_h5_type(type));

    if (copy >= 0 && H5Tset_order(copy, H5Tget_order(copy) == H5T_ORDER_LE ? H5T_ORDER_BE : H5T_ORDER_LE) < 0) {
        H5Tclose(copy);
        copy = H5I_INVALID_HID;
    }
    return copy;
}

hid_t gm_h5_access(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    if (access >= 0 && H5Pset_fapl_sec2(access) < 0) {
        H5Pclose(access);
        access = H5I_INVALID_HID;
    }
    return access;
}

/* What can be said without libhdf5, in better words than its own. */
static int check_input(const char *file)
{
    struct stat st;

    if (stat(file, &st))
        return gm_fail(GM_EINPUT, "%s: %s, expected an HDF5 file", file, errno == ENOENT ? "no such file" : strerror(errno));
    if (S_ISDIR(st.st_mode))
        return gm_fail(GM_EINPUT, "%s: is a folder, expected an HDF5 file", file);
    if (!S_ISREG(st.st_mode))
        return gm_fail(GM_EINPUT, "%s: is not an ordinary file, expected an HDF5 file", file);
    if (access(file, R_OK))
        return gm_fail(GM_EINPUT, "%s: cannot be read: %s", file, strerror(errno));
    if (st.st_size == 0)
        return gm_fail(GM_EINPUT, "%s: is empty, expected an HDF5 file", file);
    return GM_OK;
}

int gm_h5_open_by(const char *file, hid_t access, hid_t *id)
{
    char reason[GM_H5_TEXT];
    int status = check_input(file);

    *id = H5I_INVALID_HID;
    if (status)
        return status;
    if (H5Fis_hdf5(file) == 0)
        return gm_fail(GM_EINPUT, "%s: is not an HDF5 file", file);
    *id = H5Fopen(file, H5F_ACC_RDONLY, access);
    if (*id < 0)
        status = gm_fail(GM_EINPUT, "%s: cannot be opened, the file is damaged, cut or in use: %s", file, gm_h5_error(reason));
    return status;
}

int gm_h5_open(const char *file, hid_t *id)
{
    hid_t access = gm_h5_access();
    int status = gm_h5_open_by(file, access, id);

    if (access >= 0)
        H5Pclose(access);
    return status;
}
