/* input_vfd.h - the virtual file driver of libhdf5 by which the worker reads all files. Internal to io/; the caller
 * holds the lock of h5.h.
 *
 * libhdf5 takes a read that failed for a chunk or a part that is not there, here and there, and gives fill values. The
 * driver remembers the failure, and worker_process.c makes it that of the call. It also finds chunks: while it seeks,
 * it notes where raw data would be read instead of reading them. */
#ifndef GM_IO_INPUT_VFD_H
#define GM_IO_INPUT_VFD_H

#define H5_USE_110_API /* as h5.h */
#include <hdf5.h>

/* Access by the driver; made at its first use, negative on failure. Not to be closed. */
hid_t gm_input_access(void);

/* Is the file of an open object read by the driver? (An external link may have brought another one.) */
int gm_input_reads(hid_t object);

/* A read that failed since the last clearing, or more data than the file has. */
void gm_input_error_clear(void);
int gm_input_has_error(void);
int gm_input_fail(void); /* GM_EINPUT, with a message that names the file */

/* With on, raw data that are read are elements; otherwise they count as metadata, as the mappings of virtual datasets
 * are stored as raw data. */
void gm_input_reads_elements(int on);

/* Where raw data would have been read last. */
typedef struct gm_input_place {
    haddr_t address; /* in the file itself, a user block included; HADDR_UNDEF: there was no read of them */
    hsize_t bytes;
} gm_input_place;

/* From now on raw reads are noted in *place and read nothing; NULL: they read again. */
void gm_input_seek(gm_input_place *place);

/* From now on raw reads are noted in *place, too; NULL: no more. */
void gm_input_watch(gm_input_place *place);

#endif
