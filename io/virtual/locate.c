/* locate.c - finds the files of a virtual dataset's sources. */
#include "io/virtual/locate.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/dataset.h"

static int try_path(char *path, const char *folder, size_t length, const char *name)
{
    const char *slash = length && folder[length - 1] != '/' ? "/" : "";
    int used = snprintf(path, GM_PATH_MAX, "%.*s%s%s", (int)length, folder, slash, name);
    return used < GM_PATH_MAX && access(path, F_OK) == 0;
}

static int try_beside(char *path, const char *master, const char *name)
{
    char *copy = strdup(master), *folder = copy ? dirname(copy) : NULL;
    int found = folder && try_path(path, folder, strlen(folder), name);
    free(copy);
    return found;
}

/* "${ORIGIN}/parts" is a folder beside master. */
static int try_origin(char *path, const char *master, const char *prefix, const char *name)
{
    static const char origin[] = "${ORIGIN}";
    char beside[GM_PATH_MAX];
    if (strncmp(prefix, origin, sizeof origin - 1) != 0)
        return try_path(path, prefix, strlen(prefix), name);
    return snprintf(beside, sizeof beside, "./%s/%s", prefix + sizeof origin - 1, name) < GM_PATH_MAX &&
           try_beside(path, master, beside);
}

/* HDF5_VDS_PREFIX is a list of folders with colons between them, and as a whole it is one folder. */
static int try_prefix(char *path, const char *master, const char *name)
{
    const char *prefix = getenv("HDF5_VDS_PREFIX");
    if (!prefix || !prefix[0])
        return 0;
    for (const char *at = prefix; *at; at += *at == ':') {
        size_t length = strcspn(at, ":");
        if (length && try_path(path, at, length, name))
            return 1;
        at += length;
    }
    return strcmp(prefix, ".") != 0 && try_origin(path, master, prefix, name);
}

int gm_locate(const char *master, const char *name, char *path)
{
    const char *slash = strrchr(name, '/');
    const char *beside = name[0] == '/' ? slash + 1 : name;
    if (strcmp(name, ".") == 0)
        return snprintf(path, GM_PATH_MAX, "%s", master) < GM_PATH_MAX;
    if ((name[0] == '/' && try_path(path, "", 0, name)) || try_prefix(path, master, beside) ||
        try_beside(path, master, beside) || try_path(path, "", 0, beside))
        return 1;
    char *real = realpath(master, NULL);
    int found = real && try_beside(path, real, beside);
    free(real);
    if (!found)
        path[0] = '\0';
    return found;
}
