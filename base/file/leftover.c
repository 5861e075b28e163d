#include "base/file/leftover.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/size.h"
#include "base/status.h"

static const char infix[] = ".gpumem-";
enum { ID_DIGITS = 12 };

int gm_leftover_name(const char *file, const char *kind, char *path)
{
    char stem[GM_STEM_MAX], word[GM_OWNER_TEXT];
    const char *base = gm_path_base(file);
    return snprintf(path, GM_PATH_MAX, "%.*s.%s%s%s-%012" PRIx64 ".%s", (int)(base - file), file,
                    gm_path_stem(file, stem), infix, gm_owner_word(word), gm_path_id(), kind) < GM_PATH_MAX;
}

int gm_leftover_folder_stem(const char *name)
{
    size_t length = strlen(name), tail = strlen(GM_FOLDER_INFIX) + ID_DIGITS;
    const char *at = length > tail ? name + length - tail : NULL;
    if (!at || strncmp(at, GM_FOLDER_INFIX, strlen(GM_FOLDER_INFIX)) != 0 ||
        strspn(at + strlen(GM_FOLDER_INFIX), "0123456789abcdef") != ID_DIGITS)
        return 0;
    return (int)(at - name);
}

/* Bytes on the disk of a file. */
static int64_t bytes_of(const struct stat *st)
{
    return (int64_t)st->st_blocks * 512;
}

/* The contents of a folder of parts: its bytes, the newest change, the word of its owner ("": none), and whether its
 * output has a final name. */
static void look_into(gm_leftover *found, char *word, int *is_published)
{
    char path[GM_PATH_MAX];
    DIR *folder = opendir(found->path);
    struct dirent *entry;
    struct stat st;
    word[0] = '\0';
    *is_published = 0;
    while (folder && (entry = readdir(folder))) {
        if (snprintf(path, sizeof path, "%s/%s", found->path, entry->d_name) >= GM_PATH_MAX || lstat(path, &st) ||
            !S_ISREG(st.st_mode))
            continue;
        found->bytes += bytes_of(&st);
        found->changed = gm_max(found->changed, st.st_mtime);
        if (strncmp(entry->d_name, GM_FOLDER_MARK, strlen(GM_FOLDER_MARK)) == 0)
            snprintf(word, GM_OWNER_TEXT, "%.*s", GM_OWNER_TEXT - 1, entry->d_name + strlen(GM_FOLDER_MARK));
        if (strcmp(entry->d_name, GM_FOLDER_MASTER) == 0)
            *is_published = st.st_nlink > 1;
    }
    if (folder)
        closedir(folder);
}

/* ".STEM.gpumem-OWNER-ID.KIND": the owner's word ends before the last dash. Returns whether it is such a name. */
static int split_hidden(const char *name, char *stem, char *word)
{
    const char *at = NULL, *dot, *dash = NULL;
    for (const char *next = name[0] == '.' ? strstr(name + 1, infix) : NULL; next; next = strstr(next + 1, infix))
        at = next;
    if (!at || at - name - 1 >= GM_STEM_MAX || !(dot = strchr(at + 1, '.')))
        return 0;
    for (const char *c = at; c < dot; c++)
        if (*c == '-')
            dash = c;
    const char *begin = at + strlen(infix);
    if (dash <= begin || dash - begin >= GM_OWNER_TEXT || dot - dash != ID_DIGITS + 1)
        return 0;
    snprintf(stem, GM_STEM_MAX, "%.*s", (int)(at - name - 1), name + 1);
    snprintf(word, GM_OWNER_TEXT, "%.*s", (int)(dash - begin), begin);
    return 1;
}

/* Fills in what an entry of a folder is. Returns 0 for one that is not left over and not being made. */
static int examine(const char *folder, const char *name, int wants_folders, gm_leftover *found)
{
    char word[GM_OWNER_TEXT];
    struct stat st;
    int is_published = 0, stem = gm_leftover_folder_stem(name), is_hidden = split_hidden(name, found->stem, word);
    if ((!is_hidden && !stem) || snprintf(found->path, GM_PATH_MAX, "%s/%s", folder, name) >= GM_PATH_MAX ||
        lstat(found->path, &st))
        return 0;
    found->is_folder = S_ISDIR(st.st_mode);
    if (found->is_folder != wants_folders || (!found->is_folder && (!is_hidden || !S_ISREG(st.st_mode))))
        return 0;
    found->bytes = bytes_of(&st);
    found->changed = st.st_mtime;
    if (found->is_folder) {
        char inner[GM_OWNER_TEXT];
        look_into(found, inner, &is_published);
        if (!is_hidden) {
            snprintf(found->stem, GM_STEM_MAX, "%.*s", gm_min(stem, GM_STEM_MAX - 1) == stem ? stem : 0, name);
            strcpy(word, inner);
        }
    }
    if (!word[0] || !found->stem[0] || (is_published && !is_hidden))
        return 0;
    found->owner = gm_owner_find(word, found->changed, &found->process);
    return found->process > 0;
}

static int visit_kind(const char *folder, const char *stem, int wants_folders, gm_leftover_visit *visit, void *context)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    int status = GM_OK;
    if (!entries)
        return gm_fail(GM_EOUTPUT, "%s: cannot be listed: %s", folder, strerror(errno));
    while (!status && (entry = readdir(entries))) {
        gm_leftover found = {.owner = GM_OWNER_ELSEWHERE};
        if (stem && !strstr(entry->d_name, stem)) /* most names, at little cost */
            continue;
        if (examine(folder, entry->d_name, wants_folders, &found) && (!stem || strcmp(stem, found.stem) == 0))
            status = visit(context, &found);
    }
    closedir(entries);
    return status;
}

int gm_leftovers_each(const char *folder, const char *file, gm_leftover_visit *visit, void *context)
{
    char stem[GM_STEM_MAX];
    const char *wanted = file ? gm_path_stem(file, stem) : NULL;
    int status = visit_kind(folder, wanted, 0, visit, context);
    return status ? status : visit_kind(folder, wanted, 1, visit, context);
}

static int remove_file(void *context, const gm_leftover *found)
{
    char size[GM_SIZE_TEXT];
    if (!found->is_folder && found->owner == GM_OWNER_DEAD && unlink(found->path) == 0)
        gm_note("%s: removed %s (%s), left by process %ld, which has ended", (const char *)context, found->path,
                gm_size_format(found->bytes, size), found->process);
    return GM_OK;
}

void gm_leftovers_clean(const char *file)
{
    char folder[GM_PATH_MAX];
    int quiet = gm_error_hush(1); /* a folder that cannot be listed hides what is left in it */
    gm_leftovers_each(gm_path_folder(file, folder), file, remove_file, (void *)(uintptr_t)file);
    gm_error_hush(quiet);
}
