/* ranks.h - the ranks of a run: start and end, placement on hosts, agreement, collectives. The program calls MPI only
 * in this folder. MPI runs at MPI_THREAD_FUNNELED: only the main thread calls these functions. A failure of MPI in a
 * collective call ends all ranks with GM_EMPI, as the others would wait for this one. */
#ifndef GM_MPI_RANKS_H
#define GM_MPI_RANKS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { GM_HOST_MAX = 256 };

typedef struct gm_ranks {
    int rank, size;
    int local_rank, local_size; /* among the ranks of this host */
    int hosts, host_index;      /* hosts of the run; index of this one, in the order of their first ranks */
    char host[GM_HOST_MAX];     /* escaped: fit for messages, tables and JSON */
} gm_ranks;

/* Starts MPI and fills *ranks. Collective. GM_EMPI on failure. */
int gm_ranks_start_all(gm_ranks *ranks);

/* Ends MPI. Collective. */
void gm_ranks_end_all(void);

/* Ends all ranks at once with this exit code. Only when MPI itself or a device context is broken. */
void gm_ranks_abort(int code);

/* Agreement on a status: all ranks return the worst one. A rank's own failure is worse than GM_EPEER, and a higher code
 * is worse than a lower one; of equal codes the lowest rank's counts. The error record of every rank becomes that
 * rank's message, followed by "(rank R on HOST)". Collective. */
int gm_agree_all(const gm_ranks *ranks, int status);

/* The same after what cannot be undone: a signal that comes too late is not a failure. gm_agree_all() counts a signal
 * that this rank has caught as its failure. Collective. */
int gm_agree_late_all(const gm_ranks *ranks, int status);

/* Broadcasts data from rank 0 to all ranks; any number of bytes. Collective. */
int gm_broadcast_all(void *data, size_t bytes);

/* Gathers data of all ranks, the same number of bytes from each (1 GiB at most, otherwise GM_EINTERNAL), in `all` of
 * rank 0: [ranks->size][bytes], in the order of ranks; elsewhere all may be NULL. Collective. */
int gm_gather_all(const gm_ranks *ranks, const void *data, size_t bytes, void *all);

/* The same, in `all` of every rank; it does not overlap data. Collective. */
int gm_allgather_all(const gm_ranks *ranks, const void *data, size_t bytes, void *all);

/* *value becomes the minimum over all ranks. Collective. */
int gm_min_all(int64_t *value);

/* *value becomes the sum over all ranks, which must fit. Collective. */
int gm_sum_all(int64_t *value);

/* sums: [count] = the sums over all ranks of values: [count], apart from sums; any count. For benchmarks: the order of
 * the additions, and so the last bits, are the MPI library's. Collective. */
int gm_sum_floats_all(const double *values, double *sums, size_t count);

/* Replaces each of the counts by the sum over all ranks. Collective. */
int gm_sum_counts_all(uint64_t *counts, size_t count);

/* *count: the number of ranks on this host with the same key; *index: this rank's index among them, in the order of
 * ranks. key: at most GM_KEY_MAX - 1 bytes. GM_EDEVICE, which is agreed. Collective. */
enum { GM_KEY_MAX = 64 };
int gm_peers_all(const gm_ranks *ranks, const char *key, int *count, int *index);

/* "Open MPI v4.1.4": the MPI library at run time. text has room for 256 bytes. Works before MPI is started. Returns
 * text. */
char *gm_mpi_version(char *text);

#endif
