/* folder.h - the folder of the parts of an output, STEM.parts-ID beside it (leftover.h). It belongs to the one file
 * whose name its name begins with, and which holds its name. */
#ifndef GM_BASE_FILE_FOLDER_H
#define GM_BASE_FILE_FOLDER_H

#include "base/file/path.h"

#define GM_FOLDER_PART "part-%02d.h5" /* a file in it */

/* Makes the folder for the parts of `file`; it belongs to this process until gm_folder_keep(). path [GM_PATH_MAX] gets
 * its name, "" on failure. GM_EOUTPUT. */
int gm_folder_make(const char *file, char *path);

/* Does the name of a folder say that it is of `file`? base: without the folders before it. */
int gm_folder_is_of(const char *base, const char *file);

/* Before the output gets its final name: a link to it (new_file.h) in the folder shows whether it did. */
void gm_folder_commit(const char *folder, int fd, const char *temporary);

/* The output has its final name. */
void gm_folder_keep(const char *folder);

/* Has the file at path a link besides this one and that of gm_folder_commit()? */
int gm_folder_has_other_master(const char *folder, const char *path);

/* Removes the parts, and the folder if nothing else is in it; harmless when there is none, or the name is "". */
void gm_folder_remove(const char *folder);

#endif
