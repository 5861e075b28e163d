/* worker.h - libhdf5 in a process of its own: calls of it that read a user's files run in a child of the rank, the
 * worker, so that a file on which libhdf5 crashes, hangs or takes too much memory is an error of that file. Internal to
 * io/, but for the first two functions.
 *
 * The worker is a fork of the rank, so a call is a pointer to a function. It serves one call after the other, and keeps
 * what a call leaves in static variables and in libhdf5 for the calls after it. */
#ifndef GM_IO_WORKER_H
#define GM_IO_WORKER_H

#include <stddef.h>
#include <stdint.h>

/* Starts the worker: first thing in main(), as a process forks best before it has threads, MPI or a GPU. Without it,
 * or after it failed, the first call starts one. A worker that was started here and ends is not replaced. */
void gm_worker_start(void);

/* Ends the worker, if there is one; what it had open is closed. The next call starts another one. */
void gm_worker_stop(void);

/* The bytes that a call returns. */
typedef struct gm_reply gm_reply;

/* Appends to a reply. GM_EDEVICE: no memory. */
int gm_reply_add(gm_reply *reply, const void *data, size_t bytes);

/* Appends room for the caller to fill: *data, good until the next call for this reply or the call's return. bytes:
 * GM_REPLY_PLACE at most. GM_EDEVICE. */
enum { GM_REPLY_PLACE = 8 << 20 };
int gm_reply_place(gm_reply *reply, size_t bytes, void **data);

/* A call: reads its argument, a flat record without pointers, of GM_REPLY_PLACE bytes at most, and appends its result
 * to the reply. It runs in the worker, under the lock of h5.h. Returns a status, with a message by gm_fail(); a reply
 * that was begun is dropped then. */
typedef int gm_worker_call(const void *argument, size_t bytes, gm_reply *reply);

/* Runs a call in the worker. *result gets the reply, to be freed by the caller (NULL when it is empty or on failure),
 * and *result_bytes its length; both may be NULL for a call that replies nothing. title: file or dataset, for messages.
 * Thread-safe: one call at a time. The caller does not hold the lock of h5.h; in the worker itself, a call may run
 * another one. Returns the call's status; GM_EINPUT when libhdf5 crashed, did not answer in time or took too much
 * memory, or a read failed in the operating system, whatever the call says; GM_ESTOPPED after a signal. */
int gm_worker_run(const char *title, gm_worker_call *call, const void *argument, size_t bytes, void **result,
                  size_t *result_bytes);

/* Runs a call whose reply goes to a sink as it comes: pieces of any size, in order, good until the sink returns. A
 * status other than GM_OK from the sink drops the rest and is returned. Bytes also come of a call that fails later. */
typedef int gm_worker_sink(void *context, const void *data, size_t bytes);
int gm_worker_stream(const char *title, gm_worker_call *call, const void *argument, size_t bytes, gm_worker_sink *sink,
                     void *context);

/* For calls, and for the driver by which they read. The worker is at work: its time begins anew. For steps that a
 * damaged file cannot repeat for ever. */
void gm_worker_progress(void);

/* Time that is spent between 1 and 0 is the storage's, not libhdf5's. */
void gm_worker_waits(int waits);

/* This number of bytes of metadata was read: more time and memory are right. */
void gm_worker_allow(size_t bytes);

/* Chunks of this size are read, of a file of file_bytes: more memory is right, for each of them as stored, decoded and
 * in a cache, unless such a file can hardly have such chunks. */
void gm_worker_need_chunk(int64_t bytes, int64_t file_bytes);

/* One of them is decoded now: more time is right. */
void gm_worker_allow_chunk(int64_t bytes);

#endif
