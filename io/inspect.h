/* inspect.h - what is found in an open HDF5 file. Internal to io/; the caller holds the lock of h5.h. */
#ifndef GM_IO_INSPECT_H
#define GM_IO_INSPECT_H

#include "io/dataset.h"
#include "io/decode.h"
#include "io/h5.h"

enum { GM_WORDS = 512 };

/* How elements of a file's type are read: *type in memory; *exact: the file holds that type as it is, in the other order of bytes
 * if *swap. Returns 1, or 0 when there is no numeric type that holds every value. */
int gm_inspect_type(hid_t file_type, gm_dtype *type, int *exact, int *swap);

/* "float32 big-endian", "string", ...: a file's type in words. text has room for GM_WORDS bytes. Returns text. */
char *gm_inspect_type_words(hid_t file_type, char *text);

/* "chunked 1x22x26, deflate 4, shuffle": how a dataset is stored, in words. text has room for GM_WORDS bytes. Returns text. */
char *gm_inspect_storage_words(hid_t set, char *text);

/* Fills layout, filters, chunk, and whether elements (exact: of the type in the file) can, or may, be read without libhdf5, from where. GM_EINPUT for a
 * filter that is not installed and for missing parts of a virtual dataset. title names the dataset. */
int gm_inspect_storage(hid_t set, int exact, const char *title, gm_dataset *record);

/* The filters of a chunked dataset (plist: its own) whose rank, chunk and type are known. Returns whether decode.h knows them all. */
int gm_inspect_pipeline(hid_t plist, const gm_dataset *record, gm_pipeline *pipeline);

/* The number of filters of a dataset (plist: its own). GM_EINPUT for one that is not installed. */
int gm_inspect_filters(hid_t plist, const char *title, int *count);

/* Checks that every part of a virtual dataset is there, as far as gm_inspect_filters and gm_inspect_external tell: libhdf5 would read a missing one
 * as fill values, with success. visit (may be NULL) is
 * called with the file of each, those of virtual parts included; a status other than GM_OK ends the walk and is returned. */
typedef int gm_inspect_visit(void *context, const char *path);
int gm_inspect_parts(hid_t set, const char *title, gm_inspect_visit *visit, void *context);

/* The same for the files of external storage (plist: the dataset's): where they end, libhdf5 reads zeros. */
int gm_inspect_external(hid_t set, hid_t plist, const char *title);

/* The names of a file's datasets, hidden behind links or not, in the order of names. */
typedef struct gm_names {
    char **name;
    int count, room;
} gm_names;
int gm_inspect_names(hid_t file, const char *title, gm_names *names);
void gm_names_free(gm_names *names);

/* "; it holds /A, /B and 3 more": the first names that begin with under, for a message. text has room for GM_WORDS bytes. Returns text. */
char *gm_names_words(const gm_names *names, const char *under, char *text);

#endif
