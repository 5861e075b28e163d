/* half.h - the pieces of an exchange in one direction. Internal to staged.c and half.c. */
#ifndef GM_SRC_EXCHANGE_HALF_H
#define GM_SRC_EXCHANGE_HALF_H

#include "mpi/exchange.h"
#include "src/exchange/cut.h"
#include "src/exchange/shared.h"
#include "src/exchange/staged.h"
#include "src/exchange/window.h"
#include "src/stream/pool.h"

enum { GM_HALF_SLOTS = 4, GM_HALF_SLOT = 2 << 20 }; /* in each direction; bytes */

typedef enum gm_half_way { GM_HALF_SEND, GM_HALF_RECEIVE, GM_HALF_WAYS } gm_half_way;

/* How the bytes of a piece come to the receiver's device: in the message; from a slot that it addresses; from the
 * sender's device memory, by a copy of the receiver; to the receiver's, by a copy of the sender. Of two ranks the lower
 * one copies both ways: it alone opens memory of the other. */
typedef enum gm_carrier { GM_BY_MESSAGE, GM_FROM_SLOT, GM_FROM_DEVICE, GM_TO_DEVICE, GM_CARRIERS } gm_carrier;

/* The stages of a piece: a copy; a message along the data; a release, which is a message against them. Their order:
 *
 *                      sender                    receiver
 *   GM_TO_DEVICE       release, copy, message    copy, release, message
 *   other carriers     copy, message, release    message, copy, release
 *
 * The message has the bytes (then there is no release), or says that they may be copied, and the release says that they
 * have been copied. With GM_TO_DEVICE the release says that they may be copied, and the message that they have been.
 * Between devices one rank copies. The other one says where its memory is, with its first message; its GM_HALF_COPY
 * only waits until that memory may be used (`after`). */
typedef enum gm_half_stage { GM_HALF_COPY, GM_HALF_MESSAGE, GM_HALF_RELEASE, GM_HALF_STAGES } gm_half_stage;

/* A message or a release that does not have the bytes of a piece: memory of a device, or nothing. */
typedef struct gm_token {
    gm_shared_memory memory;
    uint64_t pitch;
} gm_token;

/* The pieces of one direction, which pass its stages in order. Pieces [0, begun[k]) have begun stage k of the order,
 * and [0, begun[GM_HALF_STAGES]) are done, which is GM_HALF_SLOTS less than begun[0] at most. */
typedef struct gm_half {
    gm_half_way way;
    gm_exchange_region region;
    gm_cut cut;
    int64_t begun[GM_HALF_STAGES + 1];
    gm_queue *queue;
    char *own;   /* slots of this rank, [GM_HALF_SLOTS][GM_HALF_SLOT], pinned; NULL: it has none */
    char *slots; /* of this exchange: those, or to receive from a rank of this host its slots to send */
    gm_carrier by;
    gm_event *copied[GM_HALF_SLOTS];
    gm_token tokens[GM_HALF_SLOTS];
} gm_half;

/* The state of the path staged or ipc (is_direct). */
struct gm_staged {
    const gm_device_ops *ops;
    const gm_ranks *ranks;
    int is_direct, status;
    gm_pool pool;
    gm_requests *requests[GM_CHANNELS]; /* each [GM_HALF_WAYS][GM_HALF_SLOTS] */
    gm_windows *windows;                /* GM_FROM_DEVICE, GM_TO_DEVICE; NULL: neither */
    gm_shared *shared;                  /* the slots to send of each rank; NULL: messages have all bytes */
    char *is_pinned;                    /* [ranks]: the slots of that rank */
    gm_half halves[GM_HALF_WAYS];
};

/* Of h->way, whose slots and queue it opens. The pool and what ranks share is open. GM_EDEVICE. */
int gm_half_open(gm_staged *s, gm_half *h);

/* Bytes of the slots of a rank. */
static inline size_t gm_half_bytes(void)
{
    return (size_t)GM_HALF_SLOTS * GM_HALF_SLOT;
}

/* The region as pieces, none of which has begun; NULL: none. */
void gm_half_begin(gm_staged *s, gm_half *h, const gm_exchange_region *region, gm_event *after);

/* Moves on all pieces that can be, and does not wait. Returns whether all are done. */
int gm_half_advance(gm_staged *s, gm_half *h);

/* Notes the first failure of this rank, of which all ranks hear. */
void gm_half_note(gm_staged *s, int status);

#endif
