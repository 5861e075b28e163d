/* output_vfd.h - HDF5 files that are written: a file driver whose write, truncation and close never fail towards
 * libhdf5. Internal to io/; the caller holds the lock of h5.h.
 *
 * When libhdf5 cannot write a file, H5Fclose fails and leaves the file open with memory that it has released: a later
 * call, also one at the end of the program, crashes. This driver writes at once as long as that succeeds. From the
 * first error on the file is lost: what libhdf5 writes stays in memory, where it reads it again, so that H5Fclose
 * succeeds; the error, whose message was set when it occurred, comes from gm_output_vfd_close(). */
#ifndef GM_IO_WRITE_OUTPUT_VFD_H
#define GM_IO_WRITE_OUTPUT_VFD_H

#include "io/h5.h"

typedef struct gm_output_vfd gm_output_vfd;

/* Creates an HDF5 file in an ordinary file, which is truncated; or opens the HDF5 file that is there. fd is open for
 * reading and writing, stays the caller's, and may be closed after gm_output_vfd_close(). title is the file's name in
 * messages and is lent. GM_EOUTPUT, GM_EDEVICE; then *file is NULL. */
int gm_output_vfd_create(int fd, const char *title, gm_output_vfd **file);
int gm_output_vfd_open(int fd, const char *title, gm_output_vfd **file);

/* The identifier of the file for calls of libhdf5; not to be closed. */
hid_t gm_output_vfd_id(const gm_output_vfd *file);

/* GM_OK as long as all that libhdf5 has written, and read, was written and read; else the status of the first error. */
int gm_output_vfd_status(const gm_output_vfd *file);

/* Closes the file, with all objects in it that are still open, after what has led to status. Takes NULL. Returns
 * status, or without an error there, that of the first error of the file. */
int gm_output_vfd_close(gm_output_vfd *file, int status);

#endif
