/* rank.h - what a report says of one rank. */
#ifndef GM_SRC_SUMMARY_RANK_H
#define GM_SRC_SUMMARY_RANK_H

#include "base/device.h"
#include "mpi/bind.h"
#include "src/summary/libraries.h"
#include "src/summary/slurm.h"
#include "src/stream/stream.h"

/* A flat record, which rank 0 gathers. */
typedef struct gm_rank_record {
    char host[GM_HOST_MAX];
    gm_binding binding; /* processors 0: of an operation that binds to none */
    int threads;
    gm_device_info device; /* kind "": none was opened */
    gm_versions versions;
    gm_slurm slurm;
    gm_phase_times times;
    double init_s; /* start of MPI, and wait for the device */
    double sync_s; /* flushing the output to the disk */
    double flop;
    int64_t bytes_read, bytes_written;
    int64_t peak_host, peak_device; /* bytes */
} gm_rank_record;

/* The entry of all[rank], with the libraries only where they are not those of rank 0. New reference. */
json_t *gm_rank_json(const gm_rank_record *all, int rank);

#endif
