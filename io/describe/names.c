/* names.c - the names of a file's datasets. */
#include "io/describe/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static int no_memory(void)
{
    return gm_fail(GM_EDEVICE, "no memory for the names of a file's datasets");
}

static int add_name(gm_names *names, const char *name)
{
    if (names->count == names->room) {
        int room = names->room ? 2 * names->room : 64;
        char **more = realloc(names->name, (size_t)room * sizeof *more);
        if (!more)
            return no_memory();
        names->name = more;
        names->room = room;
    }
    if (!(names->name[names->count] = strdup(name)))
        return no_memory();
    names->count++;
    return GM_OK;
}

/* --- The walk --- */

/* H5Lvisit ends at the first object with a damaged header; this walk lists it, and goes on. */
typedef struct walk {
    gm_names *names;
    const char *path; /* of the group at work; "" for the root */
    H5O_info_t *seen; /* groups with several links */
    int seen_count, seen_room;
} walk;

static int is_seen(const walk *w, const H5O_info_t *group)
{
    for (int i = 0; i < w->seen_count; i++)
        if (w->seen[i].fileno == group->fileno && w->seen[i].addr == group->addr)
            return 1;
    return 0;
}

static int note_seen(walk *w, const H5O_info_t *group)
{
    if (w->seen_count == w->seen_room) {
        int room = w->seen_room ? 2 * w->seen_room : 16;
        H5O_info_t *more = realloc(w->seen, (size_t)room * sizeof *more);
        if (!more)
            return no_memory();
        w->seen = more;
        w->seen_room = room;
    }
    w->seen[w->seen_count++] = *group;
    return GM_OK;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *context);

/* Not 0 ends the walk; negative: libhdf5 failed. */
static herr_t visit_group(walk *w, hid_t parent, const char *name, const H5O_info_t *info)
{
    if (is_seen(w, info))
        return 0;
    herr_t status = info->rc > 1 ? note_seen(w, info) : GM_OK;
    return status ? status
                  : H5Literate_by_name(parent, name, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_link, w, H5P_DEFAULT);
}

/* A dangling link is listed as well, so that the user sees it. */
static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    H5O_info_t info;
    walk *w = context;
    const char *above = w->path;
    size_t bytes = strlen(above) + strlen(name) + 2;
    char *path = malloc(bytes);
    herr_t status = GM_OK;
    if (!path)
        return no_memory();
    snprintf(path, bytes, "%s/%s", above, name);
    w->path = path;
    if (H5Oget_info_by_name2(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0 || info.type == H5O_TYPE_DATASET)
        status = add_name(w->names, path);
    else if (info.type == H5O_TYPE_GROUP && link->type == H5L_TYPE_HARD)
        status = visit_group(w, group, name, &info);
    free(path);
    w->path = above;
    return status;
}

int gm_names_find(hid_t file, const char *title, gm_names *names)
{
    char reason[GM_H5_TEXT];
    H5O_info_t info;
    walk w = {.names = names, .path = ""};
    herr_t status = H5Oget_info_by_name2(file, "/", &info, H5O_INFO_BASIC, H5P_DEFAULT);
    if (status >= 0)
        status = visit_group(&w, file, "/", &info);
    if (status < 0)
        status = gm_fail(GM_EINPUT, "%s: its objects cannot be listed, the file is damaged: %s", title,
                         gm_h5_error(reason));
    free(w.seen);
    return status;
}

void gm_names_free(gm_names *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    memset(names, 0, sizeof *names);
}

char *gm_names_format(const gm_names *names, const char *under, char *text)
{
    enum { SHOWN = 10 };
    int matches = 0, shown = 0, used = 0;

    text[0] = '\0';
    for (int i = 0; i < names->count; i++) {
        int length = (int)strlen(names->name[i]);
        if (strncmp(names->name[i], under, strlen(under)) != 0)
            continue;
        if (matches++ >= SHOWN || used + length + 48 > GM_H5_TEXT)
            continue;
        used += snprintf(text + used, (size_t)(GM_H5_TEXT - used), "%s%s", shown++ ? ", " : "; it holds ",
                         names->name[i]);
    }
    if (matches == 0)
        strcpy(text, "; it holds no dataset");
    else if (matches > shown)
        snprintf(text + used, (size_t)(GM_H5_TEXT - used), "%s%d more", shown ? " and " : "; it holds ",
                 matches - shown);
    return text;
}
