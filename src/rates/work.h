/* work.h - the work of a rank in bytes and flop, the seconds that it takes by the rates, and the part of the machine
 * that limits it. Pure.
 *
 * In a pass through the ring, storage, copying and computing overlap on a device of its own: the pass takes as long as
 * the longest of them, a tenth of the others, and the way of the first piece to the device and of the last one to the
 * file. The same I/O threads read and write: what storage takes is the sum of both, of bytes and of calls. Where the
 * processor computes they share its cores: the pass takes their sum. An exchange with other ranks comes after all of
 * them, or goes on meanwhile. */
#ifndef GM_SRC_RATES_WORK_H
#define GM_SRC_RATES_WORK_H

#include "src/rates/rates.h"
#include "src/stream/stream.h"

/* One pass of one rank; bytes, unless a comment says otherwise. Doubles, as they are divided by rates. */
typedef struct gm_work {
    double read, to_device, from_device, write;
    double ahead;                /* of write, whose memory is there when the pass begins: gm_work_expect() knows it */
    double read_strips;          /* of read: strips of rows, times the part of each row that other ranks read */
    double write_strips;         /* of write: strips of rows, times the ranks that write the others */
    double reads, writes;        /* calls that read or write a run each; 0: of runs too long for calls to matter */
    double memory;               /* of the device, read and written by kernels */
    double flop_s;               /* seconds of products on a device that is not shared */
    double verify;               /* of the device, read by the check */
    double received, sent;       /* from other ranks, to them */
    double exchange;             /* bytes/s of each, as both are under way at once */
    int overlaps;                /* the exchange goes on while the pass does; otherwise after it */
    double wait_s;               /* seconds in which it waits for other ranks, in addition to the exchange */
    double first_read, last_out; /* of the first piece; that are left to copy and write after the last computation */
    double pieces;               /* a number */
    double times;                /* that the pass is made; 0: not at all */
} gm_work;

enum { GM_WORK_PASSES = 4 }; /* different ones of an operation, at most */

/* The resources of a machine, one of which limits a run. */
typedef enum gm_resource {
    GM_RESOURCE_STORAGE, /* what reads and writes files: of the rank, of its host, of all hosts */
    GM_RESOURCE_LINK,    /* between host and device */
    GM_RESOURCE_KERNELS, /* the device; unified: unpacking too */
    GM_RESOURCE_NETWORK, /* between ranks, with the waits for them */
    GM_RESOURCE_RING,    /* the thread that drives the ring */
    GM_RESOURCE_START,   /* files and ranks, before the work begins */
    GM_RESOURCES
} gm_resource;

const char *gm_resource_name(gm_resource resource);

/* Busy seconds of a rank. Phases are those of the report; in a resource, what goes on at the same time counts once. */
typedef struct gm_work_times {
    gm_phase_times phases;
    double resource[GM_RESOURCES];
} gm_work_times;

/* Seconds of a pass made once. Adds the busy seconds to *times (may be NULL), as often as the pass is made. */
double gm_work_seconds(const gm_work *work, const gm_rates *rates, gm_contention contention, gm_work_times *times);

/* read_host of ranks with devices of their own, that makes this number of ranks of a host read at the rate `together`,
 * if one alone reads at the rate `alone`, which is not higher. */
double gm_work_read_host(double alone, double together, int ranks);

/* Seconds that a run takes beside its passes, with this number of ranks at work. */
double gm_work_start_seconds(const gm_rates *rates, int working);

/* The time that is expected of a run, and its parts. */
typedef struct gm_expectation {
    int working;         /* ranks with something to do */
    int busiest;         /* the one that takes longest */
    gm_work_times times; /* of the busiest rank */
    gm_resource limit;   /* the resource with the most of its seconds */
    double seconds;
    gm_work rank, all; /* sums of the passes: of the busiest rank, of all ranks */
} gm_expectation;

/* The passes of a rank; returns their number, at most GM_WORK_PASSES. */
typedef int gm_work_of(const void *context, int rank, gm_work *passes);

/* Has a rank something to read, or to write? */
int gm_work_is_there(gm_work_of *of, const void *context, int rank);

void gm_work_expect(const gm_rates *rates, gm_work_of *of, const void *context, gm_expectation *expectation);

#endif
