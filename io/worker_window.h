/* worker_window.h - the memory that a rank shares with its worker (worker.h), and what the worker does. Internal to
 * worker*.c.
 *
 * The socket carries single bytes: 'c', to the worker: the window has a call; 'd', from it: the window has data of the
 * reply, which the rank takes and answers by 'd'; 'e', from it: the call has ended. */
#ifndef GM_IO_WORKER_WINDOW_H
#define GM_IO_WORKER_WINDOW_H

#include <sys/types.h>

#include "base/status.h"
#include "io/worker.h"

enum { GM_TURN_CALL = 'c', GM_TURN_DATA = 'd', GM_TURN_END = 'e' };

/* After a crash anything may be in it: the rank checks what it takes. */
typedef struct gm_worker_window {
    gm_worker_call *call;
    size_t bytes; /* of the argument, or of the data, that are in data */
    int status;   /* of the call, and its message */
    gm_error error;
    _Atomic uint64_t progress; /* goes up whenever the worker's time begins anew */
    _Atomic int64_t allowed;   /* bytes of metadata that this call has read */
    _Atomic int waits;         /* for the storage */
    int is_swollen;            /* after a call: the worker holds much memory */
    _Alignas(4096) char data[GM_REPLY_PLACE];
} gm_worker_window;

/* Is this process a worker? */
int gm_worker_is_inside(void);

/* From now on it is, and its memory is limited. */
void gm_worker_enter(gm_worker_window *shared);

/* Does it hold a quarter of the memory that it may take? */
int gm_worker_is_swollen(void);

/* Runs a call in this process, with a reply in memory. *result and *bytes as gm_worker_run(). */
int gm_worker_run_here(gm_worker_call *call, const void *argument, size_t bytes, void **result, size_t *result_bytes);

/* The life of a worker, after fork(): serves calls until the socket closes. tied: to the thread of parent that forked,
 * and ends with it. */
_Noreturn void gm_worker_serve(int fd, gm_worker_window *window, int tied, pid_t parent);

/* For tests: another number of seconds without progress before a call is taken for one that never ends. */
void gm_worker_patience(double seconds);

#endif
