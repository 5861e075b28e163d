/* each.h - common to the tests of io/: paths in the test's own folder, files made by libhdf5, expected errors. */
#ifndef GM_TESTS_IO_EACH_H
#define GM_TESTS_IO_EACH_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "io/dataset.h"
#include "io/h5.h"
#include "io/worker.h"
#include "tests/tap.h"

/* A name in the test's folder; good until the eighth call after this one. */
static inline char *own(const char *name)
{
    static char paths[8][GM_PATH_MAX];
    static int next;
    char *path = paths[next++ % 8];
    const char *folder = getenv("TMPDIR");
    snprintf(path, GM_PATH_MAX, "%s/%s", folder ? folder : "/tmp", name);
    return path;
}

/* "FILE:rest" with a file of the test's folder. */
static inline char *own_text(const char *file, const char *rest)
{
    char both[512];
    snprintf(both, sizeof both, "%s%s", file, rest);
    return own(both);
}

/* A real file; NULL where there is none. */
static inline char *real_file(const char *name)
{
    static char path[GM_PATH_MAX];
    const char *folder = getenv("GPUMEM_TEST_DATA");
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "../shared/data", name);
    file = fopen(path, "r");
    if (file)
        fclose(file);
    return file ? path : NULL;
}

/* One test: a call failed with this code, and its message has this in it. */
static inline void fails(int status, int code, const char *part, const char *what)
{
    gm_error error;
    int ok;
    gm_error_get(&error);
    gm_error_clear();
    ok = status == code && error.code == code && strstr(error.text, part);
    tap_ok(ok, "%s: %s", what, part);
    if (!ok)
        tap_diag("status %d, code %d, message \"%s\"", status, error.code, error.text);
}

/* One test: a call succeeded. */
static inline int succeeds(int status, const char *what)
{
    gm_error error;
    gm_error_get(&error);
    gm_error_clear();
    tap_ok(status == GM_OK, "%s", what);
    if (status != GM_OK)
        tap_diag("status %d: %s", status, error.text);
    return status == GM_OK;
}

static inline hid_t make_file(const char *name)
{
    gm_h5_lock(); /* prepares the library: before any other call of it */
    gm_h5_unlock();
    return H5Fcreate(own(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}

/* Creates a dataset (plist may be H5P_DEFAULT) and writes data of the type memory into it, if there are any. */
static inline void put_dataset(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims, hid_t plist,
                               hid_t memory, const void *data)
{
    hid_t space = rank ? H5Screate_simple(rank, dims, NULL) : H5Screate(H5S_SCALAR);
    hid_t links = H5Pcreate(H5P_LINK_CREATE), set;
    H5Pset_create_intermediate_group(links, 1);
    set = H5Dcreate2(file, name, type, space, links, plist, H5P_DEFAULT);
    if (set < 0 || (data && H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0))
        printf("Bail out! %s cannot be made\n", name);
    H5Dclose(set);
    H5Pclose(links);
    H5Sclose(space);
}

/* Files that this process has open, without the socket to the worker. */
static inline int open_files(void)
{
    int count = 0;
    struct stat st;
    for (int fd = 0; fd < 256; fd++)
        count += fstat(fd, &st) == 0 && !S_ISSOCK(st.st_mode);
    return count;
}

static inline int count_ids(const void *argument, size_t bytes, gm_reply *reply)
{
    static const H5I_type_t kinds[] = {H5I_FILE, H5I_GROUP, H5I_DATASET, H5I_DATASPACE, H5I_DATATYPE, H5I_GENPROP_LST};
    hsize_t sum = 0, count;
    (void)argument, (void)bytes;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (H5Inmembers(kinds[i], &count) >= 0)
            sum += count;
    return gm_reply_add(reply, &sum, sizeof sum);
}

/* Objects of libhdf5 that are open in the worker: files, groups, datasets, spaces, types and property lists. */
static inline hsize_t open_ids(void)
{
    hsize_t *found, sum = 0;
    if (gm_worker_run("open_ids", count_ids, NULL, 0, (void **)&found, NULL) == GM_OK)
        sum = *found;
    free(found);
    return sum;
}

#endif
