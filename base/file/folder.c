#include "base/file/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/leftover.h"
#include "base/file/new_file.h"
#include "base/file/owner.h"
#include "base/log.h"
#include "base/status.h"

enum { NAME_ROOM = 32 };

static int join(char *path, const char *folder, const char *name)
{
    return snprintf(path, GM_PATH_MAX, "%s/%s", folder, name) < GM_PATH_MAX;
}

/* The empty file that says whose the folder is. */
static int mark_path(char *path, const char *folder)
{
    char word[GM_OWNER_TEXT];
    return snprintf(path, GM_PATH_MAX, "%s/%s%s", folder, GM_FOLDER_MARK, gm_owner_word(word)) < GM_PATH_MAX;
}

/* Returns 0 or an errno. Under its own name the folder is never without a mark. */
static int make(const char *hidden, const char *path)
{
    char mark[GM_PATH_MAX];
    int fd = -1, why = 0;
    if (mkdir(hidden, 0777))
        return errno;
    if (!mark_path(mark, hidden))
        why = ENAMETOOLONG;
    else if ((fd = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)) < 0)
        why = errno;
    if (fd >= 0)
        close(fd);
    if (!why && rename(hidden, path))
        why = errno;
    if (why) {
        unlink(mark);
        rmdir(hidden);
    }
    return why;
}

int gm_folder_make(const char *file, char *path)
{
    char hidden[GM_PATH_MAX], stem[GM_STEM_MAX];
    int fits = gm_leftover_name(file, "parts", hidden) &&
               snprintf(path, GM_PATH_MAX, "%.*s%s%s%012" PRIx64, (int)(gm_path_base(file) - file), file,
                        gm_path_stem(file, stem), GM_FOLDER_INFIX, gm_path_id()) < GM_PATH_MAX;
    int why = fits ? make(hidden, path) : ENAMETOOLONG;
    if (!why)
        return GM_OK;
    path[0] = '\0';
    return gm_fail(GM_EOUTPUT, "%s: cannot create the folder of its parts: %s", file, strerror(why));
}

int gm_folder_is_of(const char *base, const char *file)
{
    char stem[GM_STEM_MAX];
    int length = gm_leftover_folder_stem(base);
    gm_path_stem(file, stem);
    return length > 0 && (size_t)length == strlen(stem) && memcmp(base, stem, (size_t)length) == 0;
}

void gm_folder_commit(const char *folder, int fd, const char *temporary)
{
    char path[GM_PATH_MAX];
    if (join(path, folder, GM_FOLDER_MASTER)) /* not every file system has links: then the mark alone tells */
        gm_new_file_link(fd, temporary, path);
}

void gm_folder_keep(const char *folder)
{
    char path[GM_PATH_MAX];
    if (mark_path(path, folder))
        unlink(path);
    if (join(path, folder, GM_FOLDER_MASTER))
        unlink(path);
}

int gm_folder_has_other_master(const char *folder, const char *path)
{
    char inside[GM_PATH_MAX];
    struct stat st, linked;
    if (stat(path, &st))
        return 0;
    int known = join(inside, folder, GM_FOLDER_MASTER) && lstat(inside, &linked) == 0 && linked.st_dev == st.st_dev &&
                linked.st_ino == st.st_ino;
    return st.st_nlink > (known ? 2 : 1);
}

/* Is it one of the files that this program makes in the folder? */
static int is_ours(const char *name)
{
    char expected[NAME_ROOM];
    int part;
    if (strncmp(name, GM_FOLDER_MARK, strlen(GM_FOLDER_MARK)) == 0 || strcmp(name, GM_FOLDER_MASTER) == 0)
        return 1;
    if (sscanf(name, "part-%d", &part) != 1)
        return 0;
    snprintf(expected, sizeof expected, GM_FOLDER_PART, part);
    return strcmp(name, expected) == 0;
}

/* Removes what is ours in a folder, or only counts the rest (`remove` 0). Returns the number of other entries. */
static int sweep(const char *folder, int remove)
{
    char path[GM_PATH_MAX];
    DIR *entries = opendir(folder);
    struct dirent *entry;
    int others = 0;
    while (entries && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!is_ours(entry->d_name))
            others++;
        else if (remove && join(path, folder, entry->d_name))
            unlink(path);
    }
    if (entries)
        closedir(entries);
    return others;
}

/* The name under which a folder is removed: a run that ends meanwhile leaves it to the next one. */
static int hide(const char *folder, char *hidden)
{
    char file[GM_PATH_MAX];
    const char *base = gm_path_base(folder);
    int stem = gm_leftover_folder_stem(base);
    return stem > 0 && sweep(folder, 0) == 0 &&
           snprintf(file, sizeof file, "%.*s", (int)(base - folder) + stem, folder) < GM_PATH_MAX &&
           gm_leftover_name(file, "parts", hidden) && rename(folder, hidden) == 0;
}

void gm_folder_remove(const char *folder)
{
    char hidden[GM_PATH_MAX];
    struct stat st;
    if (!folder[0] || lstat(folder, &st) || !S_ISDIR(st.st_mode))
        return;
    const char *path = hide(folder, hidden) ? hidden : folder;
    sweep(path, 1);
    if (rmdir(path) && errno != ENOENT)
        gm_warn("%s: the folder of parts cannot be removed: %s", path, strerror(errno));
}
