/* nccl.h - NCCL, the library of NVIDIA for messages between GPUs. It is opened at run time, so that the program builds
 * and runs without it, and nothing here needs CUDA but the queue and the device that callers name.
 *
 * Calls that may take long, or hang, are steps: each runs on a thread of its own while the main thread waits for it
 * under a limit. Communicators do not block: what gm_nccl_put() starts is under way until gm_nccl_poll() says that it
 * is not. Main thread only. */
#ifndef GM_KERNELS_EXCHANGE_NCCL_H
#define GM_KERNELS_EXCHANGE_NCCL_H

#include "base/device.h"

enum { GM_NCCL_ID = 128, GM_NCCL_VERSION_TEXT = 16 };

typedef struct gm_nccl gm_nccl; /* the library, and a communicator of this process */

typedef enum gm_nccl_step {
    GM_NCCL_LOAD,     /* opens the library */
    GM_NCCL_IDENTIFY, /* makes the identity of a communicator, which one rank sends to the others */
    GM_NCCL_CONNECT,  /* makes the communicator; all ranks at the same time */
    GM_NCCL_ABORT,    /* ends it, with all that is under way in queues; nothing without one */
    GM_NCCL_DESTROY   /* ends it, when nothing is under way on any rank; nothing without one */
} gm_nccl_step;

/* Prepares what the steps need: the device (gm_device_ops.attach), this rank of how many. GM_EDEVICE. close takes
 * NULL, ends no communicator, and keeps what a step that has not ended still uses. */
int gm_nccl_open(const gm_device_ops *ops, gm_device *device, int rank, int size, gm_nccl **nccl);
void gm_nccl_close(gm_nccl *nccl);

/* Does a step, in `seconds` at most. GM_EDEVICE: there is no library that can be used; GM_EMPI: it failed, or has not
 * ended, and then no further step does anything but fail. All steps but the last two hear signals and failures of other
 * ranks (gm_stop_status()). */
int gm_nccl_do(gm_nccl *nccl, gm_nccl_step step, double seconds);

/* After GM_NCCL_LOAD: the version as a number that orders them, and as text. Returns text. */
int gm_nccl_version(const gm_nccl *nccl);
char *gm_nccl_version_format(int version, char text[GM_NCCL_VERSION_TEXT]);

/* The identity: [GM_NCCL_ID], written by GM_NCCL_IDENTIFY, read by GM_NCCL_CONNECT. */
char *gm_nccl_id(gm_nccl *nccl);

/* A message: device memory to a rank, or from it. */
typedef struct gm_nccl_message {
    int peer, is_receive;
    void *memory;
    size_t bytes;
} gm_nccl_message;

/* Puts messages into a queue (gm_device_ops.stream) as one piece of work. A message to a rank meets one from this rank
 * there, of as many bytes, in the order of both. Nothing else is put into the queue until gm_nccl_poll() says that the
 * work is there. GM_EMPI. */
int gm_nccl_put(gm_nccl *nccl, void *stream, const gm_nccl_message *messages, int count);

/* *ready: has gm_nccl_put() put its work into the queue? GM_EMPI: the communicator has failed, this rank's part or
 * another's. */
int gm_nccl_poll(gm_nccl *nccl, int *ready);

#endif
