/* describe.h - finding datasets: names on the command line to records. Called by one rank; nothing here is collective.
 * All errors are GM_EINPUT with file, dataset, what was expected and what was found. */
#ifndef GM_IO_DESCRIBE_DESCRIBE_H
#define GM_IO_DESCRIBE_DESCRIBE_H

#include "io/dataset.h"

/* Splits "file.h5:/group/name[100:200,:,::2]". dataset is "" for a bare file, selection "" for none (with its brackets
 * otherwise): the brackets at the end of text. A text that names an existing file as a whole is a bare file. Each out
 * has the room of the constants in dataset.h. GM_EUSAGE for malformed text. */
int gm_name_split(const char *text, char *file, char *dataset, char *selection);

/* Fills *record from "FILE[:DATASET[SELECTION]]". DATASET[SELECTION] may be the name of a dataset, if there is none
 * called DATASET. A bare file means the dataset called preferred if it is there (NULL: no preference), else the file's
 * only numeric dataset; otherwise the message lists the file's datasets. */
int gm_describe(const char *text, const char *preferred, gm_dataset *record);

/* One line for each dataset of a file, in the order of names: calls visit for each, with words for a person. One that
 * cannot be read, or whose object is missing or damaged, has the type "unreadable", and `storage` says why. A status
 * other than GM_OK from visit ends the walk and is returned. */
typedef struct gm_listing {
    const char *name;
    const char *type;    /* "float32 big-endian", "string", ... */
    const char *shape;   /* "3x4", "scalar"; "null": no elements; "-": unreadable */
    const char *storage; /* "contiguous", "chunked 1x22x26, deflate 4, shuffle", ... */
    int numeric;         /* of a type of dtypes.def */
} gm_listing;
typedef int gm_listing_visit(void *context, const gm_listing *entry);
int gm_list(const char *file, gm_listing_visit *visit, void *context);

/* Starts libhdf5; called before MPI is started. A parallel libhdf5 that starts later ends in MPI_Finalize, where it
 * accesses a file that it could not close on a full disk, and crashes. */
void gm_hdf5_start(void);

/* "1.10.8": the library at run time. text has room for 32 bytes. */
char *gm_hdf5_version(char *text);

#endif
