/* rates.h - what a rank, a device and a host give in a second: the rates that plans and --plan expect. Defaults by the
 * kind of device (rates.c has their sources), some replaced by a measurement (measure.h). Pure.
 *
 *   rates.c     the defaults
 *   measure.c   a short measurement of reading and of the exchange
 *   model.c     a machine that is only described: its ranks, devices and rates
 *   work.c      the work of a rank -> seconds of each phase, and what limits it */
#ifndef GM_SRC_RATES_RATES_H
#define GM_SRC_RATES_RATES_H

#include "base/device.h"
#include "base/types/kernel.h"

/* The same on all ranks. Bytes per second, unless a comment says otherwise. */
typedef struct gm_rates {
    int unified;                            /* the processor computes: no copies, and no overlap with I/O */
    int ranks, hosts, sharers;              /* of the run; ranks that share a device */
    int reads_measured, exchanges_measured; /* not the default */
    int modelled;                           /* of a machine that is only described */
    double read_rank, read_host;            /* of one rank alone; the most of a host's ranks together, see work.c */
    double write_rank, write_host;          /* of one rank alone; of all ranks of a host together */
    double ahead_rank, ahead_host;          /* the same of allocating memory of parts before the first write */
    double read_strips, write_strips;       /* of a host, see work.h: what strips take longer than whole rows */
    double reads_rank;                      /* calls per second of one rank, each of which reads a run */
    double writes_rank, writes_host;        /* the same of writing; of all ranks of a host together */
    double storage;                         /* read and written by all hosts together; INFINITY: each has its own */
    double to_device, from_device;          /* of one device; unified: unpacking; from_device not used */
    double exchange_near, exchange_far;     /* between two ranks, in both directions at once, of each: one host; two */
    double flop[GM_PRECISIONS];             /* of the kernels of a product: flop per second of one device */
    double memory;                          /* of a device: read and written by the other kernels */
    double verify;                          /* of a device: read by the check of a product */
    double piece_s;                         /* seconds of the ring's thread for a piece */
    double open_s, rank_s; /* seconds of a run beside its passes, on these ranks; more for each of a host that works */
    double several_s;      /* seconds more where several of a host work */
    double exchange_s;     /* seconds until the first exchange, beside its bytes */
    double exchange_direct, direct_s; /* the same of devices that address each other's memory; 0: they do not */
} gm_rates;

enum { GM_ALLOCATOR_READERS = 4 }; /* I/O threads for each one that allocates memory of parts */

/* The surroundings that the defaults depend on. */
typedef struct gm_rates_setting {
    const gm_device_info *device;
    const gm_device_ops *ops; /* whose products these are; NULL: of a device that does not tell their speed */
    gm_device *handle;        /* of ops; NULL: any */
    gm_kernel kernel;         /* that multiplies */
    const char *path;         /* of exchanges, as --exchange has it; NULL: any */
    int unified, threads;     /* of the kind of device; of a rank */
    int ranks, hosts, sharers;
    int writes, parts;    /* there is an output; as parts */
    int64_t source_files; /* of inputs that are made of several */
} gm_rates_setting;

void gm_rates_default(const gm_rates_setting *setting, gm_rates *rates);

/* Ranks that work side by side, the first `working` of the run, and contend for their hosts and devices. */
typedef struct gm_contention {
    int on_host, on_device; /* the most of a host, of a device */
    int working;
} gm_contention;

gm_contention gm_rates_contention(const gm_rates *rates, int working);

/* Ranks of a host, at most: those of the first host are the first ranks. */
int gm_rates_host_ranks(const gm_rates *rates);

#endif
