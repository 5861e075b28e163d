/* talk.h - cases of bench mpi: messages between ranks, and the check that they have arrived. All ranks make each
 * repetition; one that has failed, as `status` says, sends and receives all the same, without data.
 *
 *   talk.c   the repetitions and their checks
 *   mpi.c    the test: its cases */
#ifndef GM_SRC_BENCH_MACHINE_TALK_H
#define GM_SRC_BENCH_MACHINE_TALK_H

#include "src/bench/bench.h"

typedef struct gm_net {
    gm_bench *bench;
    const gm_ranks *ranks;
    int64_t most;                  /* bytes of the largest message, the same on all ranks */
    char *src, *dst;               /* [most], pinned: what is sent, the same on all ranks; what arrives */
    char *device_src, *device_dst; /* [most]; NULL on a device that addresses host memory */
    int near, far;                 /* a rank of rank 0's host, of another host; 0: none */
} gm_net;

typedef struct gm_talk {
    char variant[GM_BENCH_TEXT], shape[GM_BENCH_TEXT];
    int (*run)(const struct gm_talk *t, int status); /* one repetition; returns the status with what has failed here */
    int (*check)(const struct gm_talk *t);           /* compares what this rank has received; NULL: run does it */
    gm_net *net;
    int is_staged;
    int peer;      /* of rank 0 */
    int64_t bytes; /* of a message */
    int count;     /* in a repetition */
    double work;
    const gm_bench_unit *unit;
    const char *panel;
    double x;
    double limit; /* rate of the same messages from host memory; 0: none */
} gm_talk;

/* Repetitions: round trips to the peer; messages to it and a word back; collectives of all ranks. */
int gm_talk_ping_pong(const gm_talk *t, int status);
int gm_talk_send(const gm_talk *t, int status);
int gm_talk_broadcast(const gm_talk *t, int status);
int gm_talk_sum(const gm_talk *t, int status); /* of one integer: checked at once */
int gm_talk_sums(const gm_talk *t, int status);

/* Checks the data that this rank has received by one of them. GM_ECHECK. */
int gm_talk_check_ping_pong(const gm_talk *t);
int gm_talk_check_send(const gm_talk *t);
int gm_talk_check_broadcast(const gm_talk *t);
int gm_talk_check_sums(const gm_talk *t);

/* Replaces the random bits by the numbers that gm_talk_sums() adds. */
void gm_net_fill_weights(const gm_net *n);

#endif
