/* mappings.c - reads the mappings of a virtual dataset. */
#include "io/virtual/mappings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "io/type.h"
#include "io/virtual/locate.h"

/* --- In the worker --- */

typedef struct ask {
    gm_dtype type;
    char file[GM_PATH_MAX], name[GM_NAME_MAX], title[GM_PATH_MAX];
} ask;

/* A walk over the mappings of an open dataset. */
typedef struct walk {
    const char *title;
    hid_t plist;
    char master[GM_PATH_MAX];
    char file[GM_PATH_MAX], path[GM_PATH_MAX]; /* of the last one */
    gm_mapping_visit *visit;
    void *context;
} walk;

/* Replaces "%%" by "%", and "%b" by a number, as libhdf5 does. Returns how many numbers there are; -1: not a pattern of
 * libhdf5's, or longer than room. */
static int expand(const char *pattern, int64_t number, char *name, size_t room)
{
    size_t used = 0;
    int numbers = 0;
    for (const char *from = pattern; *from; from++) {
        if (*from == '%' && *++from != '%') {
            if (*from != 'b')
                return -1;
            used += (size_t)snprintf(used < room ? name + used : NULL, used < room ? room - used : 0, "%" PRId64,
                                     number);
            numbers++;
        } else {
            if (used < room)
                name[used] = *from;
            used++;
        }
    }
    if (used >= room)
        return -1;
    name[used] = '\0';
    return numbers;
}

/* A mapping whose names are complete. */
static int visit_found(walk *w, const char *file, const char *name, hid_t to, int64_t block, hid_t from)
{
    if (strcmp(file, w->file) != 0) {
        gm_locate(w->master, file, w->path);
        strcpy(w->file, file);
    }
    return w->visit(w->context, &(gm_mapping_found){file, w->path, name, to, from, block});
}

/* *found: is there such a source? GM_EINPUT for a file that is there and cannot be opened. */
static int find_source(const walk *w, const char *file, const char *name, int *found)
{
    char path[GM_PATH_MAX];
    hid_t id, set;
    *found = 0;
    if (!gm_locate(w->master, file, path))
        return GM_OK;
    int status = gm_h5_open(path, &id);
    if (status)
        return status;
    set = H5Dopen2(id, name, H5P_DEFAULT);
    *found = set >= 0;
    gm_h5_close(set);
    gm_h5_close(id);
    return GM_OK;
}

/* A mapping for each source that there is, up to the first one that is missing. */
static int visit_pattern(walk *w, const char *file, const char *name, hid_t to, hid_t from)
{
    char one_file[GM_PATH_MAX], one_name[GM_NAME_MAX];
    int status = GM_OK, found = 1;
    if (!gm_selection_is_unlimited(to) || gm_selection_is_unlimited(from))
        return gm_fail(GM_EINPUT, "%s: its parts are named by a pattern (%s:%s), expected an unlimited number of them",
                       w->title, file, name);
    for (int64_t block = 0; found && !status; block++) {
        if (expand(file, block, one_file, sizeof one_file) < 0 || expand(name, block, one_name, sizeof one_name) < 0)
            return gm_fail(GM_EINPUT, "%s: the names of its parts are too long (%s:%s)", w->title, file, name);
        status = find_source(w, one_file, one_name, &found);
        if (found && !status)
            status = visit_found(w, one_file, one_name, to, block, from);
        gm_worker_progress();
    }
    return status;
}

static int visit_one(walk *w, size_t i)
{
    char pattern[GM_PATH_MAX], name_pattern[GM_NAME_MAX], file[GM_PATH_MAX], name[GM_NAME_MAX];
    ssize_t file_length = H5Pget_virtual_filename(w->plist, i, pattern, sizeof pattern);
    ssize_t name_length = H5Pget_virtual_dsetname(w->plist, i, name_pattern, sizeof name_pattern);
    hid_t from = H5Pget_virtual_srcspace(w->plist, i), to = H5Pget_virtual_vspace(w->plist, i);
    int status = GM_OK;
    if (file_length < 0 || file_length >= GM_PATH_MAX || name_length < 0 || name_length >= GM_NAME_MAX || from < 0 ||
        to < 0)
        status = gm_fail(GM_EINPUT, "%s: part %zu cannot be read, or its name is too long", w->title, i);
    if (!status) {
        int in_file = expand(pattern, 0, file, sizeof file), in_name = expand(name_pattern, 0, name, sizeof name);
        if (in_file < 0 || in_name < 0)
            status = gm_fail(GM_EINPUT, "%s: its parts are named by a pattern (%s:%s) that is not one of HDF5",
                             w->title, pattern, name_pattern);
        else if (in_file || in_name)
            status = visit_pattern(w, pattern, name_pattern, to, from);
        else
            status = visit_found(w, file, name, to, -1, from);
    }
    gm_h5_close(to);
    gm_h5_close(from);
    return status;
}

/* plist: the creation property list of set. */
static int visit_all(hid_t set, hid_t plist, const char *title, gm_mapping_visit *visit, void *context)
{
    enum { AT_ONCE = 64 };
    walk w = {.title = title, .plist = plist, .visit = visit, .context = context};
    size_t count = 0;
    ssize_t length = H5Fget_name(set, w.master, sizeof w.master);
    int status = GM_OK;
    if (length < 0 || length >= GM_PATH_MAX || H5Pget_virtual_count(plist, &count) < 0)
        return gm_fail(GM_EINPUT, "%s: its parts cannot be read, the file is damaged", title);
    for (size_t i = 0; i < count && !status; i++) {
        status = visit_one(&w, i);
        if (i % AT_ONCE == 0)
            gm_worker_progress();
    }
    return status;
}

int gm_mappings_visit(hid_t set, const char *title, gm_mapping_visit *visit, void *context)
{
    hid_t plist = H5Dget_create_plist(set);
    int status = GM_OK;
    if (plist < 0)
        status = gm_fail(GM_EINPUT, "%s: cannot be read, the file is damaged", title);
    else if (H5Pget_layout(plist) == H5D_VIRTUAL)
        status = visit_all(set, plist, title, visit, context);
    gm_h5_close(plist);
    return status;
}

/* The call at work: the names of the last mapping are not repeated. */
typedef struct work {
    const char *title;
    gm_dtype type;
    gm_reply *reply;
    hid_t set, plist;
    char file[GM_PATH_MAX], path[GM_PATH_MAX], name[GM_NAME_MAX]; /* of the last one; "": none */
} work;

enum { SAME = -1 }; /* in the place of a string's length: as in the mapping before */

/* The number of bytes, then the bytes up to a multiple of 8. */
static int put_text(gm_reply *reply, const char *text, char *last)
{
    char padded[GM_PATH_MAX + 8];
    int64_t length = strcmp(text, last) == 0 ? SAME : (int64_t)strlen(text);
    int status = gm_reply_add(reply, &length, sizeof length);
    if (status || length == SAME)
        return status;
    size_t bytes = (size_t)gm_round_up(length + 1, 8);
    memset(padded + bytes - 8, 0, 8);
    memcpy(padded, text, (size_t)length);
    strcpy(last, text);
    return gm_reply_add(reply, padded, bytes);
}

static int put_mapping(void *context, const gm_mapping_found *m)
{
    work *w = context;
    int status = put_text(w->reply, m->file, w->file);
    if (!status)
        status = put_text(w->reply, m->path, w->path);
    if (!status)
        status = put_text(w->reply, m->name, w->name);
    if (!status)
        status = m->block < 0 ? gm_selection_put(m->to, w->title, w->reply)
                              : gm_selection_put_block(m->to, m->block, w->title, w->reply);
    return status ? status : gm_selection_put(m->from, w->title, w->reply);
}

/* The value of elements in no mapping; zeros where the file does not define one. It is read in the order of the file,
 * as elements are (gm_type_find()). */
static int read_fill(const work *w, int64_t *fill)
{
    H5D_fill_value_t defined;
    *fill = 0;
    if (H5Pfill_value_defined(w->plist, &defined) < 0)
        return 1;
    if (defined == H5D_FILL_VALUE_UNDEFINED)
        return 0;
    hid_t type = H5Dget_type(w->set), native = gm_h5_type(w->type), other = gm_h5_type_swapped(w->type);
    int swap = type >= 0 && gm_type_is_swapped(type);
    int failed = type < 0 || H5Pget_fill_value(w->plist, swap ? other : native, fill) < 0 ||
                 (swap && H5Tconvert(other, native, 1, fill, NULL, H5P_DEFAULT) < 0);
    gm_h5_close(type);
    gm_h5_close(other);
    return failed;
}

/* Rank, dims, fill value. */
static int put_head(work *w)
{
    hsize_t dims[H5S_MAX_RANK];
    int64_t words[GM_RANK_MAX + 2];
    hid_t space = H5Dget_space(w->set);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);
    gm_h5_close(space);
    if (rank < 0 || rank > GM_RANK_MAX || read_fill(w, &words[rank + 1]))
        return gm_fail(GM_EINPUT, "%s: its shape or fill value cannot be read, the file is damaged", w->title);
    words[0] = rank;
    for (int d = 0; d < rank; d++)
        words[d + 1] = (int64_t)dims[d];
    return gm_reply_add(w->reply, words, (size_t)(rank + 2) * sizeof *words);
}

int gm_mappings_put(hid_t set, gm_dtype type, const char *title, gm_reply *reply)
{
    work w = {.title = title, .type = type, .reply = reply, .set = set, .plist = H5Dget_create_plist(set)};
    int status = GM_OK;
    if (w.plist < 0 || H5Pget_layout(w.plist) != H5D_VIRTUAL)
        status = gm_fail(GM_EINPUT, "%s: its parts cannot be read, the file is damaged", title);
    if (!status)
        status = put_head(&w);
    if (!status)
        status = visit_all(set, w.plist, title, put_mapping, &w);
    gm_h5_close(w.plist);
    return status;
}

static int call(const void *argument, size_t bytes, gm_reply *reply)
{
    char reason[GM_H5_TEXT];
    const ask a = *(const ask *)argument; /* which is lost when the reply begins */
    hid_t file, set;
    (void)bytes;
    int status = gm_h5_open(a.file, &file);
    if (status)
        return status;
    set = H5Dopen2(file, a.name, H5P_DEFAULT);
    status = set < 0 ? gm_fail(GM_EINPUT, "%s: cannot be opened: %s", a.title, gm_h5_error(reason))
                     : gm_mappings_put(set, a.type, a.title, reply);
    gm_h5_close(set);
    gm_h5_close(file);
    return status;
}

/* --- Its caller --- */

static int fail_reply(const char *title)
{
    return gm_fail(GM_EINPUT, "%s: its parts cannot be read, the file is damaged", title);
}

int gm_mappings_read(const char *file, const char *name, gm_dtype type, const char *title, gm_mappings *m)
{
    ask *a = calloc(1, sizeof *a);
    size_t bytes = 0;
    *m = (gm_mappings){.reply = NULL};
    if (!a)
        return gm_fail(GM_EDEVICE, "%s: no memory to describe it", title);
    a->type = type;
    snprintf(a->file, sizeof a->file, "%s", file);
    snprintf(a->name, sizeof a->name, "%s", name);
    snprintf(a->title, sizeof a->title, "%s", title);
    void *reply;
    int status = gm_worker_run(title, call, a, sizeof *a, &reply, &bytes);
    free(a);
    if (status)
        return status;
    status = gm_mappings_parse(reply, bytes, title, m);
    m->reply = reply;
    return status;
}

int gm_mappings_parse(const void *data, size_t bytes, const char *title, gm_mappings *m)
{
    *m = (gm_mappings){.at = data, .end = (const int64_t *)data + bytes / 8};
    if (m->end - m->at < 2 || m->at[0] < 0 || m->at[0] > GM_RANK_MAX || m->end - m->at < m->at[0] + 2)
        return fail_reply(title);
    m->rank = (int)*m->at++;
    for (int d = 0; d < m->rank; d++)
        m->dims[d] = *m->at++;
    memcpy(m->fill, m->at++, sizeof m->fill);
    m->file = m->path = m->name = "";
    return GM_OK;
}

void gm_mappings_free(gm_mappings *m)
{
    free(m->reply);
    *m = (gm_mappings){.reply = NULL};
}

static int get_text(gm_mappings *m, int64_t room, const char **text)
{
    if (m->end - m->at < 1)
        return 1;
    int64_t length = *m->at++;
    if (length == SAME)
        return 0;
    if (length < 0 || length >= room || m->end - m->at < length / 8 + 1 || ((const char *)m->at)[length])
        return 1;
    *text = (const char *)m->at;
    m->at += length / 8 + 1;
    return 0;
}

int gm_mappings_next(gm_mappings *m, gm_mapping *mapping)
{
    if (m->at == m->end)
        return 0;
    if (get_text(m, GM_PATH_MAX, &m->file) || get_text(m, GM_PATH_MAX, &m->path) ||
        get_text(m, GM_NAME_MAX, &m->name) || gm_selection_get(&m->at, m->end, &mapping->to) ||
        gm_selection_get(&m->at, m->end, &mapping->from))
        return -1;
    mapping->file = m->file;
    mapping->path = m->path;
    mapping->name = m->name;
    return 1;
}
