/* check.c - checks the name of an output, and removes what earlier runs have left of it. */
#include "io/write/output.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/file/folder.h"
#include "base/file/leftover.h"
#include "base/file/new_file.h"
#include "base/log.h"
#include "base/size.h"
#include "base/status.h"
#include "io/describe/reads.h"
#include "io/write/parts.h"

/* Refuses an output in whose place there is a file that is read, or one with such a part. */
static int check_not_read(const char *file, const gm_file_list *sources)
{
    char folder[GM_PATH_MAX], path[GM_PATH_MAX];
    struct dirent *entry;
    int status = gm_file_list_refuse(sources, file, file);
    gm_parts_find(file, file, folder);
    DIR *parts = !status && folder[0] ? opendir(folder) : NULL;
    while (parts && !status && (entry = readdir(parts)))
        if (entry->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < GM_PATH_MAX)
            status = gm_file_list_refuse(sources, path, file);
    if (parts)
        closedir(parts);
    return status;
}

int gm_output_sources(const gm_dataset *inputs, int count, gm_file_list *list)
{
    int status = GM_OK;
    for (int i = 0; i < count && !status; i++)
        status = gm_reads_add(inputs[i].file, inputs[i].name, list);
    return status;
}

/* Only a file that exists can be an input: mostly there is no need to look. */
static int check_not_input(const char *file, const gm_dataset *inputs, int count)
{
    gm_file_list sources = {0};
    struct stat st;
    if (count == 0 || stat(file, &st) || !S_ISREG(st.st_mode))
        return GM_OK;
    int status = gm_output_sources(inputs, count, &sources);
    if (!status)
        status = check_not_read(file, &sources);
    gm_file_list_free(&sources);
    return status;
}

static int check_room(const char *file, int64_t bytes)
{
    char folder[GM_PATH_MAX], needed[GM_SIZE_TEXT], there[GM_SIZE_TEXT];
    struct statvfs fs;
    if (statvfs(gm_path_folder(file, folder), &fs) || fs.f_blocks == 0) /* unknown on some network file systems */
        return GM_OK;
    int64_t room = gm_mul_sat((int64_t)fs.f_bavail, (int64_t)fs.f_frsize);
    if (room < bytes)
        return gm_fail(GM_EOUTPUT, "%s: needs %s, but %s has room for %s only", file, gm_size_format(bytes, needed),
                       folder, gm_size_format(room, there));
    return GM_OK;
}

/* --- Leftovers --- */

int gm_output_remove_leftover(const gm_leftover *found)
{
    char file[GM_PATH_MAX], folder[GM_PATH_MAX];
    struct stat st;
    int length = (int)(gm_path_base(found->path) - found->path);
    if (snprintf(file, sizeof file, "%.*s%s", length, found->path, found->stem) >= GM_PATH_MAX)
        return 0;
    if (!found->is_folder) { /* perhaps a file that was being replaced */
        gm_parts_release(found->path, file);
    } else {
        gm_parts_find(file, file, folder);
        if (strcmp(folder, found->path) == 0) { /* the run ended after its output had its name */
            gm_folder_keep(found->path);
            return 0;
        }
        gm_folder_remove(found->path);
    }
    return lstat(found->path, &st) != 0;
}

typedef struct sum {
    int count;
    int64_t bytes;
} sum;

/* Leftovers beside an output: those removed; those of hosts of which this one knows nothing. */
typedef struct beside {
    sum removed, elsewhere;
} beside;

static int remove_dead(void *context, const gm_leftover *found)
{
    beside *b = context;
    sum *which = found->owner == GM_OWNER_ELSEWHERE                                  ? &b->elsewhere
                 : found->owner == GM_OWNER_DEAD && gm_output_remove_leftover(found) ? &b->removed
                                                                                     : NULL;
    if (which) {
        which->count++;
        which->bytes += found->bytes;
    }
    return GM_OK;
}

/* Removes what ended runs of this host have left of an output, and says so. */
static void clean(const char *file)
{
    char folder[GM_PATH_MAX], size[GM_SIZE_TEXT];
    beside b = {0};
    int quiet = gm_error_hush(1); /* a folder that cannot be listed hides what is left in it */
    gm_leftovers_each(gm_path_folder(file, folder), file, remove_dead, &b);
    gm_error_hush(quiet);
    if (b.removed.count > 0)
        gm_note("%s: removed the leftovers of a run that has ended: %d temporary file%s or folder%s, %s", file,
                b.removed.count, b.removed.count > 1 ? "s" : "", b.removed.count > 1 ? "s" : "",
                gm_size_format(b.removed.bytes, size));
    if (b.elsewhere.count > 0)
        gm_note("%s: found %d temporary file%s or folder%s, %s, of a run on another host, which is running or was "
                "killed: see "
                "gpumem-run info --leftovers %s",
                file, b.elsewhere.count, b.elsewhere.count > 1 ? "s" : "", b.elsewhere.count > 1 ? "s" : "",
                gm_size_format(b.elsewhere.bytes, size), folder);
}

/* --- The check --- */

int gm_output_check(const char *file, int force, int64_t bytes, const gm_dataset *inputs, int count)
{
    int status = check_not_input(file, inputs, count);
    if (!status)
        status = gm_new_file_check(file, force, NULL);
    if (!status)
        clean(file);
    return status ? status : check_room(file, bytes);
}
