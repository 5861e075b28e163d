/* names.c - the names of a file's datasets. */
#include "io/describe/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* A dangling link is listed as well, so that the user sees it. */
static int is_listed(hid_t group, const char *name, const H5L_info_t *link)
{
    H5O_info_t info;
    if (link->type != H5L_TYPE_HARD && H5Oexists_by_name(group, name, H5P_DEFAULT) <= 0)
        return 1;
    return H5Oget_info_by_name(group, name, &info, H5P_DEFAULT) < 0 || info.type == H5O_TYPE_DATASET;
}

static int no_memory(void)
{
    return gm_fail(GM_EDEVICE, "no memory for the names of a file's datasets");
}

/* Not 0 ends the visit. */
static herr_t add_name(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    gm_names *names = context;
    size_t bytes = strlen(name) + 2;
    if (!is_listed(group, name, link))
        return 0;
    if (names->count == names->room) {
        int room = names->room ? 2 * names->room : 64;
        char **more = realloc(names->name, (size_t)room * sizeof *more);
        if (!more)
            return no_memory();
        names->name = more;
        names->room = room;
    }
    names->name[names->count] = malloc(bytes);
    if (!names->name[names->count])
        return no_memory();
    snprintf(names->name[names->count++], bytes, "/%s", name);
    return 0;
}

int gm_names_find(hid_t file, const char *title, gm_names *names)
{
    char reason[GM_H5_TEXT];
    int status = H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, add_name, names);
    return status >= 0 ? status
                       : gm_fail(GM_EINPUT, "%s: its objects cannot be listed, the file is damaged: %s", title,
                                 gm_h5_error(reason));
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
