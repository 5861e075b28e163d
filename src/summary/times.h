/* times.h - what the ranks' times say of a run: each phase over the ranks, the slowest rank, the phase that limits the
 * run; as a line, as a table, and in the report. Pure, but for what is printed.
 *
 * The work of a rank is the sum of its phases but open and exchange, in which ranks mostly wait for each other. Phases
 * overlap: the work may take longer than the run. The slowest rank is the one with the most work, the lowest of equal
 * ones. The limit of the run is the start if that took longer than the rest, otherwise the longest phase of the
 * slowest rank, sync and all phases counted. */
#ifndef GM_SRC_SUMMARY_TIMES_H
#define GM_SRC_SUMMARY_TIMES_H

#include "src/summary/rank.h"

/* The rows of the table: the phases of a rank have their own places. */
enum {
    GM_ROW_START = GM_PHASES, /* start of MPI, and wait for the device: before the time of the run */
    GM_ROW_SYNC,              /* flushing the output to the disk: not in the time of the run */
    GM_ROW_WORK,
    GM_ROWS
};

/* Seconds over the ranks. */
typedef struct gm_spread {
    double least, average, most;
    int rank; /* of the most; the lowest of equal ones */
} gm_spread;

typedef struct gm_run_times {
    int ranks;
    double wall; /* seconds of the run, without start and sync */
    gm_spread row[GM_ROWS];
    int slowest;           /* rank */
    double imbalance;      /* of the work: most over average; 1: nothing to compare */
    int limit, limit_rank; /* the row that limits the run; the rank that its seconds are of */
    double limit_s;
    double flop, bytes_read, bytes_written; /* of all ranks */
} gm_run_times;

void gm_times_find(const gm_rank_record *all, int ranks, double wall, gm_run_times *times);

/* The entries "phases", "work" and, of a run that has ended well, "limit" of the report root. all: [times->ranks] */
void gm_times_report(const gm_run_times *times, const gm_rank_record *all, int has_ended_well, json_t *root);

/* With --verbose the table, and then, as a note, the line on bytes, time, rate and limit. */
void gm_times_say(const gm_run_times *times, const gm_rank_record *all);

#endif
