/* new_file.h - the one way to make a file: it is complete under its final name, or absent.
 *
 * Check the name before the work, create a temporary file, write it, publish it under its final name, or discard it. On
 * Linux the temporary file has no name where the file system has such files: nothing is left of it when the process
 * ends. Elsewhere it has a name of its own beside the final one (leftover.h). All errors are GM_EOUTPUT with the file's
 * name. */
#ifndef GM_BASE_FILE_NEW_FILE_H
#define GM_BASE_FILE_NEW_FILE_H

#include "base/file/path.h"

/* Refuses a name under which no file can be made: a folder, a link, anything but a regular file, a folder that is
 * missing or cannot be written. A file that exists is refused without force, unless is_ours (may be NULL) says that it
 * may be replaced. Opens nothing but regular files. GM_EUSAGE: an empty name. */
int gm_new_file_check(const char *file, int force, int (*is_ours)(const char *file));

/* Creates the empty temporary file of `file`, with the permissions of any new file. temporary [GM_PATH_MAX] gets the
 * name that opens it: of this process's descriptor if it has no name of its own, which is allowed by `nameless`, else
 * one that ends with kind. Returns the descriptor, which must stay open until the file is published or discarded; -1
 * after a message. */
int gm_new_file_create(const char *file, const char *kind, int nameless, char *temporary);

/* Has a temporary file a name of its own? */
int gm_new_file_has_name(const char *temporary);

/* Opens a temporary file once more, by the name that gm_new_file_create() returned, perhaps in another process. flags:
 * of open(). Returns a descriptor, or -1 and errno. */
int gm_new_file_open(const char *temporary, int flags);

/* Gives the temporary file its final name. Without force it never replaces a file. replaced [GM_PATH_MAX] gets a name
 * that the file which was replaced has now, to be removed by the caller; "" when there is none. The descriptor stays
 * open. On failure the temporary file is as before. */
int gm_new_file_publish(const char *file, int fd, const char *temporary, int force, char *replaced);

/* Another link to the temporary file, at path. Returns 0 or an errno. */
int gm_new_file_link(int fd, const char *temporary, const char *path);

/* Flushes the folder of a published file to the disk. A folder that cannot be flushed is a warning; after a failure of
 * the disk GM_EOUTPUT, with a message that says that the file is complete. */
int gm_new_file_flush_folder(const char *file);

/* Removes the temporary file, if it has a name, and closes the descriptor, if it is one. */
void gm_new_file_discard(int fd, const char *temporary);

/* --- Other processes of this host --- */

/* A file in memory of this process, by which others learn whether they can open its descriptors. A flat record. */
typedef struct gm_file_probe {
    char path[64];
    uint64_t id;
} gm_file_probe;

/* Returns a descriptor, which the caller closes after the others have tried; -1 when there is no such file. */
int gm_file_probe_make(gm_file_probe *probe);

/* Can this process open it? */
int gm_file_probe_try(const gm_file_probe *probe);

#endif
