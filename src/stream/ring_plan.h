/* ring_plan.h - the size of the ring: how large its slots are, how many there are, and whether they fit what a rank may
 * allocate. Pure arithmetic: no job, no device, no file. */
#ifndef GM_SRC_STREAM_RING_PLAN_H
#define GM_SRC_STREAM_RING_PLAN_H

#include <stdint.h>

enum {
    /* Bytes of a piece below which no search goes: a slot takes as much again (GM_ALLOC_OVERHEAD), and each piece costs
     * a wakeup of a thread, often the decoding of a chunk. */
    GM_RING_LEAST_PIECE = 4096,
    GM_RING_BUFFERS = 2,             /* of each I/O thread: one is copied while it fills the other */
    GM_RING_LEAST_BUFFER = 64 << 10, /* bytes: a copy of less costs more than it moves */
};

/* Memory that a rank may still allocate. */
typedef struct gm_ring_budget {
    int64_t host, device; /* bytes */
    int unified;    /* the device addresses host memory: slots have no copy there, and its bytes are host bytes too */
    int threads;    /* I/O threads of a rank */
    int64_t buffer; /* bytes of an I/O thread's buffer; 0: none */
    int buffer_is_given; /* by an option */
} gm_ring_budget;

/* The cost of a job that is cut into pieces of a given size. */
typedef struct gm_ring_cost {
    int64_t slot;         /* bytes of a slot, on the host and on the device */
    int64_t out;          /* of them, those that a slot has on the host where I/O threads have buffers: not what these
                             copy from the device themselves */
    int64_t host, device; /* bytes in addition to the ring and the readers; device: of its memory, unified or not */
    int64_t pieces;       /* of the rank: more slots than pieces are of no use */
    int64_t slots;        /* that keep threads and device busy */
} gm_ring_cost;

/* Cuts the job into pieces of at most `bytes` bytes, or the smallest possible ones, and sets their cost. */
typedef void gm_ring_cut(void *context, const gm_ring_budget *budget, int64_t bytes, gm_ring_cost *cost);

typedef struct gm_ring_request {
    int64_t piece, depth; /* bytes of a piece and number of slots that are given; 0: chosen */
    int buffers; /* all that is read is copied to the device as it is, and from any byte on: threads may have buffers */
    int64_t usual, least;           /* bytes of a piece: the search begins at usual and halves it down to least */
    int64_t readers, readers_least; /* host bytes of the readers with all threads; with one */
    gm_ring_cut *cut;
    void *context;
} gm_ring_request;

typedef struct gm_ring_plan {
    int64_t slot, depth;              /* bytes of a slot; number of slots */
    int64_t buffer;                   /* bytes of a buffer; 0: slots have host memory */
    int64_t out;                      /* of the cost: for gm_stream_setup.out */
    int64_t host_bytes, device_bytes; /* of a rank: ring, readers and all other memory */
    int64_t host_left, device_left;   /* of the budget; unified: equal to each other */
    int64_t reader_bytes;             /* of host_bytes: the readers' */
} gm_ring_plan;

/* Chooses pieces, slots and buffers, which take a quarter of the host's budget at most. The last call of cut is that
 * for the pieces chosen. GM_EDEVICE, without a message, when not even the least ring fits: then *need is the budget
 * with the memory that it needs, on the host and on the device. */
int gm_ring_plan_make(const gm_ring_request *request, const gm_ring_budget *budget, gm_ring_plan *plan,
                      gm_ring_budget *need);

/* Sets the bytes of a plan for a job of another cost, with as many slots. Returns whether it fits. */
int gm_ring_plan_recost(gm_ring_plan *plan, const gm_ring_budget *budget, const gm_ring_cost *cost);

/* Adds bytes of other memory to a plan, on the host and on the device. Returns 0, and adds nothing, when they do not
 * fit. */
int gm_ring_plan_add(gm_ring_plan *plan, const gm_ring_budget *budget, int64_t host, int64_t device);

/* Host bytes of a plan that allocations which can do without some of them share: the readers', and what is left. */
int64_t gm_ring_plan_spare(const gm_ring_plan *plan);

/* Threads that read a piece of the given bytes together: at most `threads`, one for each of its units (chunks, or
 * elements; 1: the piece is one thread's), and each reads enough to be worth waking it. At least 1. */
int gm_ring_readers(int64_t bytes, int64_t units, int threads);

#endif
