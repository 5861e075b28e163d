/* scratch.h - what creating, writing, packing and finishing an output share. Internal to io/. */
#ifndef GM_IO_SCRATCH_H
#define GM_IO_SCRATCH_H

#include "io/h5.h"
#include "io/output.h"

#include <pthread.h>

/* Is there a scratch file? */
int gm_output_has_scratch(const gm_output_record *record);

/* Bytes of a dataset of the output; INT64_MAX when they are too many. */
int64_t gm_output_bytes(const gm_output_dataset *dataset);

/* Elements of a row: of all dimensions but the first. */
int64_t gm_output_columns(const gm_output_dataset *dataset);

/* The type of a dataset in the file; the caller closes it. */
hid_t gm_output_type(const gm_output_dataset *dataset);

/* The folder of a path, "." for a bare name. folder has room for GM_PATH_MAX bytes. Returns folder. */
char *gm_output_folder(const char *path, char *folder);

/* 48 random bits, for names that nobody else has. */
uint64_t gm_output_id(void);

/* A new empty file beside the final one, with the permissions that any new file gets; its name to path. Returns a descriptor, -1 after a message. */
int gm_output_claim(const char *file, const char *suffix, char *path);

/* --- parted.c --- */

/* Parts or not, how many, and how rows are dealt to them; makes their folder. The record's layout is SINGLE or PARTED. */
int gm_parted_plan(gm_output_record *record);

/* The file of a part; path has room for GM_PATH_MAX bytes. Returns path. */
char *gm_parted_path(const gm_output_record *record, int part, char *path);

/* Rows of a dataset that part has; 0 where the dataset lies in the file itself. */
int64_t gm_parted_rows(const gm_output_record *record, int index, int part);

/* Makes a part by copying the one before, of which only the data may be missing: libhdf5 takes longer. Returns whether it is made; it is not
 * where the two are not alike. */
int gm_parted_copy(gm_output_record *record, int part);

/* Makes dataset index virtual: where its rows are. plist: of its creation. Returns whether that went well. */
int gm_parted_map(hid_t plist, const gm_output_record *record, int index);

/* Writes into the file whose folder of parts it is, so that this can be removed with it. Returns whether that went well. */
int gm_parted_mark(hid_t file, const gm_output_record *record);

/* The folder of the parts of an existing output of ours; "" for any other file. folder has room for GM_PATH_MAX bytes. Takes the lock. */
void gm_parted_find(const char *file, char *folder);

/* Removes a folder of parts, and nothing but parts; harmless when there is none. */
void gm_parted_remove(const char *folder);

/* --- ways.c --- */

/* Turns GM_WAY_PROBED and GM_OUTPUT_AUTO into what is to be done, by a probe for outputs of so many bytes if that is worth it. */
void gm_ways_choose(gm_output_record *record, int64_t bytes);

/* --- space.c --- */

/* Gives a file the space of [from, to). Returns 0 or an errno. */
int gm_space_allocate(int fd, int64_t from, int64_t to);

/* Space of the created file for the ways that want it beforehand: all of it, or the beginning, when gm_output_fill() is to do the rest; where there is
 * none of that kind, the plain way does. */
int gm_space_prepare(gm_output_record *record, int fd);

/* How far a file's space was when this process last looked at it; one thread does so for all. */
typedef struct gm_space_seen {
    _Atomic int64_t end;
    pthread_mutex_t looking;
} gm_space_seen;

/* Waits until the file has its space up to end. */
int gm_space_wait(const gm_output_record *record, int fd, int64_t end, gm_space_seen *seen);

/* The message that there is no space. Returns GM_EOUTPUT. */
int gm_space_fail(const gm_output_record *record, const char *why);

#endif
