/* record.h - properties of an output record. Internal to io/. */
#ifndef GM_IO_WRITE_RECORD_H
#define GM_IO_WRITE_RECORD_H

#include "io/h5.h"
#include "io/write/output.h"

/* Is there a scratch file? */
int gm_record_has_scratch(const gm_output_record *record);

/* Opens the temporary file once more, for reading and writing. Returns a descriptor; -1 after a message. */
int gm_record_reopen(const gm_output_record *record);

/* Bytes of a dataset of the output; INT64_MAX when they are too many. */
int64_t gm_record_bytes(const gm_output_dataset *dataset);

/* Elements of a row: of all dimensions but the first. */
int64_t gm_record_columns(const gm_output_dataset *dataset);

/* The type of a dataset in the file; the caller closes it. */
hid_t gm_record_type(const gm_output_dataset *dataset);

#endif
