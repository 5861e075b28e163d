/* team.h - measurements of several ranks as one: they begin together, and the time ends with the last of them. The rate
 * is that of their work together. All ranks of the run call each function, and those outside of the team wait; so to
 * the harness such a test adds rows that have their ranks. */
#ifndef GM_SRC_BENCH_TEAM_H
#define GM_SRC_BENCH_TEAM_H

#include "src/bench/bench.h"

/* The ranks [first, first + count). */
typedef struct gm_team {
    int first, count;
} gm_team;

/* A rank's share of a repetition. */
typedef struct gm_team_share {
    double work;       /* that was done, in base units */
    double before;     /* seconds of work of `prepare` that count too */
    int is_impossible; /* here: the measurement has no rate */
} gm_team_share;

/* The work of a rank of the team. */
typedef struct gm_team_work {
    int (*prepare)(void *context);                   /* not timed; collective in a team of all ranks. NULL: nothing */
    int (*run)(void *context, gm_team_share *share); /* returns when the work is done */
    void (*finish)(void *context); /* not timed; after `prepare`, also where that failed. NULL: nothing */
    void *context;
    int repetitions; /* their number; 0: until the times are steady, after one that does not count; a repetition of
                        little time is several calls of run */
    double work;     /* of all ranks in a repetition: one that did less counts by its rate; 0: what it did */
} gm_team_work;

int gm_team_has(const gm_team *team, int rank);

/* Times a team. On rank 0 the row gets its work, its timing and its ranks; work 0: there was none, or it is
 * impossible on a rank. Collective. */
int gm_team_time_all(gm_bench *bench, const gm_team *team, const gm_team_work *work, gm_bench_row *row);

#endif
