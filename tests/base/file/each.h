/* each.h - common to the tests of files: a folder of their own to work in, messages, what lies in a folder. */
#ifndef GM_TESTS_BASE_FILE_EACH_H
#define GM_TESTS_BASE_FILE_EACH_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "tests/tap.h"

/* Entries of a folder that begin with this. */
static inline int count(const char *folder, const char *begin)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    int found = 0;
    while (entries && (entry = readdir(entries)))
        found += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
                 strncmp(entry->d_name, begin, strlen(begin)) == 0;
    if (entries)
        closedir(entries);
    return found;
}

static inline void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

/* Does a file hold this text, and no more? */
static inline int holds(const char *name, const char *text)
{
    char found[256] = "";
    FILE *file = fopen(name, "r");
    size_t bytes = file ? fread(found, 1, sizeof found - 1, file) : 0;
    if (file)
        fclose(file);
    return file && bytes == strlen(text) && memcmp(found, text, bytes) == 0;
}

/* One test: a status and a part of its message. */
static inline void says(int status, int code, const char *part, const char *what)
{
    gm_error error;
    gm_error_get(&error);
    gm_error_clear();
    int ok = status == code && (code == GM_OK ? error.code == GM_OK : strstr(error.text, part) != NULL);
    tap_ok(ok, "%s", what);
    if (!ok)
        tap_diag("status %d, message \"%s\"", status, error.text);
}

static inline void enter(void)
{
    if (getenv("TMPDIR") && chdir(getenv("TMPDIR")))
        tap_diag("no folder to work in");
}

#endif
