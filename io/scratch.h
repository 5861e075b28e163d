/* scratch.h - what creating, writing and finishing an output share. Internal to io/. */
#ifndef GM_IO_SCRATCH_H
#define GM_IO_SCRATCH_H

#include "io/h5.h"
#include "io/output.h"

/* Do the writers' bytes lie in a file of their own? */
int gm_output_has_scratch(const gm_output_record *record);

/* Bytes of a dataset of the output; INT64_MAX when they are too many. */
int64_t gm_output_bytes(const gm_output_dataset *dataset);

/* The type of a dataset in the file; the caller closes it. */
hid_t gm_output_type(const gm_output_dataset *dataset);

/* The folder of a path, "." for a bare name. folder has room for GM_PATH_MAX bytes. Returns folder. */
char *gm_output_folder(const char *path, char *folder);

#endif
