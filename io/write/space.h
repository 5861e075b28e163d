/* space.h - the space of an output: allocated before it is written, or while others write. Internal to io/. */
#ifndef GM_IO_WRITE_SPACE_H
#define GM_IO_WRITE_SPACE_H

#include <pthread.h>

#include "io/write/output.h"

/* Allocates [from, to) of a file. Returns 0 or an errno. */
int gm_space_allocate(int fd, int64_t from, int64_t to);

/* Allocates the space of the created file for the strategies that need it: all of it, or its beginning where
 * gm_output_allocate() does the rest. Where the file system cannot allocate, the strategy becomes GM_WRITE_PLAIN.
 * GM_EOUTPUT: there is no space. */
int gm_space_prepare(gm_output_record *record, int fd);

/* The end of a file's space when this process last checked it; one thread at a time does. */
typedef struct gm_space_seen {
    _Atomic int64_t end;
    pthread_mutex_t checking;
} gm_space_seen;

/* Waits until the file has its space up to end. GM_EOUTPUT when the allocation has failed. */
int gm_space_wait(const gm_output_record *record, int fd, int64_t end, gm_space_seen *seen);

#endif
