/* reads.c - finds the files that a dataset is read from. */
#include "io/describe/reads.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/status.h"
#include "base/text/hash.h"
#include "io/describe/external.h"
#include "io/describe/names.h"
#include "io/virtual/mappings.h"
#include "io/worker.h"

enum { DEPTH_MAX = 16 }; /* of virtual datasets made of virtual datasets */

/* The argument of the call. */
typedef struct question {
    char file[GM_PATH_MAX], name[GM_NAME_MAX];
} question;

/* The findings of the call. */
typedef struct walk {
    const char *title;
    gm_file_list list;
    uint64_t *seen; /* hashes of the sources that were visited */
    int seen_count, seen_room;
    int status; /* of a callback of libhdf5 */
} walk;

static int add_file(walk *w, gm_file_role role, const char *path)
{
    struct stat st;
    return stat(path, &st) ? GM_OK : gm_file_list_add(&w->list, role, st.st_dev, st.st_ino);
}

/* Many mappings are of one source. Returns 1 when this one was visited, -1 without memory. */
static int was_seen(walk *w, const char *path, const char *name)
{
    uint64_t hash = gm_hash_text(gm_hash_text(GM_HASH_START, path) + 1, name);
    for (int i = w->seen_count - 1; i >= 0; i--)
        if (w->seen[i] == hash)
            return 1;
    if (w->seen_count == w->seen_room) {
        int room = 2 * w->seen_room + 64;
        uint64_t *more = realloc(w->seen, (size_t)room * sizeof *more);
        if (!more)
            return -1;
        w->seen = more;
        w->seen_room = room;
    }
    w->seen[w->seen_count++] = hash;
    return 0;
}

static herr_t pass_link(const char *parent, const char *group, const char *file, const char *object, unsigned *flags,
                        hid_t access, void *context)
{
    walk *w = context;
    (void)group, (void)file, (void)object, (void)flags, (void)access;
    if (!w->status)
        w->status = add_file(w, GM_FILE_LINKED, parent);
    return 0;
}

/* Opens a dataset, and adds the files that external links lead through. */
static hid_t open_set(hid_t file, const char *name, walk *w)
{
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS), set = H5I_INVALID_HID;
    if (access >= 0 && H5Pset_elink_cb(access, pass_link, w) >= 0)
        set = H5Dopen2(file, name, access);
    gm_h5_close(access);
    return set;
}

static int visit_external(hid_t set, walk *w)
{
    hid_t plist = H5Dget_create_plist(set);
    int count = plist >= 0 && H5Pget_layout(plist) == H5D_CONTIGUOUS ? H5Pget_external_count(plist) : 0;
    int status = GM_OK;
    for (int i = 0; i < count && !status; i++) {
        char path[GM_PATH_MAX];
        int64_t offset, bytes;
        status = gm_external_get(set, plist, i, w->title, path, &offset, &bytes);
        if (!status)
            status = add_file(w, GM_FILE_EXTERNAL, path);
    }
    gm_h5_close(plist);
    return status;
}

/* A level of virtual datasets made of virtual datasets. */
typedef struct level {
    walk *walk;
    int depth;
} level;

static int visit_set(hid_t file, const char *name, gm_file_role role, level l);

static int visit_mapping(void *context, const gm_mapping_found *map)
{
    const level *l = context;
    hid_t file = H5I_INVALID_HID;
    gm_worker_progress();
    int seen = was_seen(l->walk, map->path, map->name);
    if (seen < 0)
        return gm_fail(GM_EDEVICE, "%s: no memory for the list of its sources", l->walk->title);
    if (seen)
        return GM_OK;
    int status = add_file(l->walk, GM_FILE_VIRTUAL, map->path);
    if (!status)
        status = gm_h5_open(map->path, &file);
    if (!status)
        status = visit_set(file, map->name, GM_FILE_VIRTUAL, (level){l->walk, l->depth + 1});
    gm_h5_close(file);
    return status;
}

static int visit_set(hid_t file, const char *name, gm_file_role role, level l)
{
    char path[GM_PATH_MAX];
    walk *w = l.walk;
    if (l.depth > DEPTH_MAX)
        return gm_fail(GM_EINPUT, "%s: virtual datasets are nested more than %d deep", w->title, DEPTH_MAX);
    hid_t set = open_set(file, name, w);
    if (set < 0)
        return w->status ? w->status
                         : gm_fail(GM_EINPUT, "%s: %s cannot be opened to find the files that it is read from",
                                   w->title, name);
    int status = w->status;
    ssize_t length = H5Fget_name(set, path, sizeof path); /* after external links */
    if (!status && length > 0 && length < GM_PATH_MAX)
        status = add_file(w, role == GM_FILE_INPUT ? GM_FILE_LINKED : role, path);
    if (!status)
        status = visit_external(set, w);
    if (!status)
        status = gm_mappings_visit(set, w->title, visit_mapping, &l);
    H5Dclose(set);
    return status;
}

/* All datasets of a file that can be opened. */
static int visit_all(hid_t file, walk *w)
{
    gm_names names = {0};
    int status = gm_names_find(file, w->title, &names);
    for (int i = 0; i < names.count && !status; i++) {
        int quiet = gm_error_hush(1);
        status = visit_set(file, names.name[i], GM_FILE_INPUT, (level){w, 0});
        gm_error_hush(quiet);
        if (status == GM_EINPUT)
            status = GM_OK;
    }
    gm_names_free(&names);
    return status;
}

/* The call of the worker: replies the entries of the list. */
static int find(const void *argument, size_t bytes, gm_reply *reply)
{
    const question *q = argument;
    walk w = {.title = q->file};
    hid_t file = H5I_INVALID_HID;
    (void)bytes;
    int status = gm_file_list_begin(&w.list, q->file);
    if (!status)
        status = add_file(&w, GM_FILE_INPUT, q->file);
    if (!status)
        status = gm_h5_open(q->file, &file);
    if (!status)
        status = q->name[0] ? visit_set(file, q->name, GM_FILE_INPUT, (level){&w, 0}) : visit_all(file, &w);
    gm_h5_close(file);
    if (!status)
        status = gm_reply_add(reply, w.list.entry, (size_t)w.list.count * sizeof *w.list.entry);
    free(w.seen);
    gm_file_list_free(&w.list);
    return status;
}

int gm_reads_add(const char *file, const char *name, gm_file_list *list)
{
    void *found = NULL;
    size_t bytes = 0;
    question *q = calloc(1, sizeof *q);
    if (!q)
        return gm_fail(GM_EDEVICE, "%s: no memory for the list of its files", file);
    snprintf(q->file, sizeof q->file, "%s", file);
    snprintf(q->name, sizeof q->name, "%s", name);
    int status = gm_worker_run(file, find, q, sizeof *q, &found, &bytes);
    if (!status)
        status = gm_file_list_begin(list, file);
    const gm_file_entry *entry = found;
    for (size_t i = 0; i < bytes / sizeof *entry && !status; i++)
        status = gm_file_list_add(list, (gm_file_role)entry[i].role, entry[i].device, entry[i].inode);
    free(found);
    free(q);
    return status;
}
