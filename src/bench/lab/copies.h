/* copies.h - copies between host and device, and the check that they have arrived: what the tests `transfer` and `link`
 * share. */
#ifndef GM_SRC_BENCH_LAB_COPIES_H
#define GM_SRC_BENCH_LAB_COPIES_H

#include "kernels/lab/calls.h"
#include "src/bench/bench.h"

typedef struct gm_copies {
    gm_bench *bench;
    int64_t size;        /* bytes of each buffer */
    char *random, *back; /* pinned: random bits; what is copied from the device */
    char *src, *dst;     /* device memory: the same random bits; what is copied to the device */
    gm_queue *other;     /* of the second direction */
    gm_event *other_is_done;
} gm_copies;

/* Gives host memory that nothing has touched yet its place, before it is pinned. */
typedef void gm_copies_place(const void *where, void *memory, size_t bytes);

/* Allocates the buffers; place (may be NULL): for the pinned ones, with `where`. The caller closes them, also after a
 * failure. */
int gm_copies_open(gm_bench *bench, int64_t size, gm_copies_place *place, const void *where, gm_copies *copies);
void gm_copies_close(gm_copies *copies);

/* `count` pieces of random bits to the device, from random (or src, the same bits elsewhere); from it, to dst. */
gm_copy_loop_call gm_copies_in(const gm_copies *copies, const char *src, int64_t bytes, int64_t count);
gm_copy_loop_call gm_copies_out(const gm_copies *copies, char *dst, int64_t bytes, int64_t count);

/* Puts the copies of a call into a queue: by the program's table of device functions, or by a bare loop. */
typedef int gm_copies_put(const gm_copies *copies, gm_queue *queue, const gm_copy_loop_call *call);
gm_copies_put gm_copies_put_program, gm_copies_put_bare;

/* Both calls, of as many pieces each, at once: their pieces are enqueued in turn. The queue ends with both. */
int gm_copies_put_both(const gm_copies *copies, gm_queue *queue, const gm_copy_loop_call calls[2], gm_copies_put *put);

/* Clears what the calls write, has them run once more, and compares what has arrived. what: of the message. GM_ECHECK.
 */
int gm_copies_check(const gm_copies *copies, const gm_copy_loop_call *calls, int count,
                    int (*run)(const void *context, gm_queue *queue), const void *context, const char *what);

#endif
