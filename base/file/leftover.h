/* leftover.h - temporary files and folders of runs: their names, and what a run that ended has left of them.
 *
 * A temporary file is called .STEM.gpumem-OWNER-ID.KIND beside the final name (path.h, owner.h). A folder of parts is
 * called STEM.parts-ID; until its output is complete, an empty file .gpumem-OWNER lies in it. Just before the output
 * gets its final name, a link to it, .master, is added: with another link somewhere, the output has its name. */
#ifndef GM_BASE_FILE_LEFTOVER_H
#define GM_BASE_FILE_LEFTOVER_H

#include <stdint.h>

#include "base/file/owner.h"
#include "base/file/path.h"

#define GM_FOLDER_MARK ".gpumem-" /* of the file in a folder of parts, before the word of its owner */
#define GM_FOLDER_MASTER ".master"
#define GM_FOLDER_INFIX ".parts-"

/* A new name beside `file` for a temporary file or folder of this process. path has room for GM_PATH_MAX bytes. Returns
 * whether it fits. */
int gm_leftover_name(const char *file, const char *kind, char *path);

/* The length of the stem in the name of a folder of parts; 0: it is no such name. */
int gm_leftover_folder_stem(const char *name);

/* Files and folders that a run has made and not given their final name yet, whether the run goes on or not. */
typedef struct gm_leftover {
    char path[GM_PATH_MAX];
    char stem[GM_STEM_MAX];
    int is_folder; /* of parts */
    int64_t bytes; /* with all that is in the folder */
    time_t changed;
    gm_owner owner;
    long process;
} gm_leftover;

/* Calls visit for all of them in a folder, files first, or for those of the final name `file` only (may be NULL). A
 * status other than GM_OK ends the walk and is returned. GM_EOUTPUT: the folder cannot be read. */
typedef int gm_leftover_visit(void *context, const gm_leftover *found);
int gm_leftovers_each(const char *folder, const char *file, gm_leftover_visit *visit, void *context);

/* Removes the files that ended runs of this host have left beside `file`, and says so. For files without parts. */
void gm_leftovers_clean(const char *file);

#endif
