/* parts.h - outputs in several files, the parts, under a virtual dataset. Internal to io/. */
#ifndef GM_IO_WRITE_PARTS_H
#define GM_IO_WRITE_PARTS_H

#include "io/h5.h"
#include "io/write/output.h"

/* Decides whether there are parts, how many, and how rows are distributed, and makes their folder (folder.h). The
 * record's layout is GM_OUTPUT_SINGLE or GM_OUTPUT_PARTS. GM_EOUTPUT. */
int gm_parts_plan(gm_output_record *record);

/* The file of a part; path has room for GM_PATH_MAX bytes. Returns path. */
char *gm_parts_path(const gm_output_record *record, int part, char *path);

/* Rows of a dataset that a part has; 0 where the dataset lies in the file itself. */
int64_t gm_parts_rows(const gm_output_record *record, int index, int part);

/* Makes a part as a copy of the preceding one without its data, which is faster than libhdf5. Returns whether it is
 * made; it is not where the two differ. */
int gm_parts_copy(gm_output_record *record, int part);

/* Makes dataset index virtual, mapped to the parts. plist: the creation property list. Returns whether it succeeded.
 * The caller holds the lock of h5.h, as for gm_parts_mark(). */
int gm_parts_map(hid_t plist, const gm_output_record *record, int index);

/* Notes the folder of the parts in the file, so that both can be removed together. Returns whether it succeeded. */
int gm_parts_mark(hid_t file, const gm_output_record *record);

/* Whose the parts of a file are: OTHER: of the output that it is a copy of; UNKNOWN: it cannot be read. */
typedef enum gm_parts_owner { GM_PARTS_NONE, GM_PARTS_OWN, GM_PARTS_OTHER, GM_PARTS_UNKNOWN } gm_parts_owner;

/* Finds the folder of the parts of the output at path, whose name is or was `file`; "" unless it has parts of its own.
 * folder has room for GM_PATH_MAX bytes. */
gm_parts_owner gm_parts_find(const char *path, const char *file, char *folder);

/* Removes a file that was replaced, and its parts unless another name of it is left. When the file cannot be read it
 * stays, with a warning. */
void gm_parts_release(const char *path, const char *file);

/* The same with what gm_parts_find() has found before. */
void gm_parts_drop(const char *path, const char *file, gm_parts_owner owner, const char *folder);

#endif
