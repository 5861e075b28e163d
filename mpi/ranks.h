/* ranks.h - the ranks of a run: start and end, who is where, agreement. The program speaks MPI through this room alone.
 * MPI runs at MPI_THREAD_FUNNELED: every function here is called by the main thread. */
#ifndef GM_MPI_RANKS_H
#define GM_MPI_RANKS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { GM_HOST_MAX = 256 };

typedef struct gm_ranks {
    int rank, size;
    int local_rank, local_size; /* among the ranks of this host */
    int hosts, host_index;      /* hosts of the run; which one this is, in the order of their first ranks */
    char host[GM_HOST_MAX];
} gm_ranks;

/* The rank that the launcher's environment names, before MPI is started; 0 without a launcher. For --help and --version. */
int gm_ranks_peek(void);

/* Starts MPI and fills *ranks. Collective. GM_EMPI on failure. */
int gm_ranks_start_all(gm_ranks *ranks);

/* Ends MPI. Collective. */
void gm_ranks_end_all(void);

/* Ends every rank at once with this exit code: only when MPI itself or a device context is broken. */
void gm_ranks_abort(int code);

/* Agreement: every rank brings its status; all return the worst one (a rank's own failure before GM_EPEER, then the higher code, then the
 * lower rank), and the error record of every rank becomes the owner's message with "(rank R on HOST)" behind it. Collective. */
int gm_agree_all(const gm_ranks *ranks, int status);

/* Tells the other ranks, without waiting for them, that this one has failed and that going on is vain; gm_agree_all() settles it. */
void gm_cancel(const gm_ranks *ranks);
/* Has another rank called gm_cancel()? Asks, does not wait; asks MPI no more than every two milliseconds, so that a loop may call it. */
int gm_cancelled(void);

/* data of rank 0 to all. Collective; any size. */
int gm_broadcast_all(void *data, size_t bytes);

/* bytes of every rank, in the order of ranks, to all of rank 0 (size x bytes); elsewhere all may be NULL. Collective. */
int gm_gather_all(const gm_ranks *ranks, const void *data, size_t bytes, void *all);

/* *value becomes the least of all ranks. Collective. */
int gm_least_all(int64_t *value);

/* *value becomes the sum over all ranks, which fits. Collective. */
int gm_sum_all(int64_t *value);

/* How many ranks of this host bring the same key, and which of them, in the order of ranks, this one is. key: at most GM_KEY_MAX - 1 bytes. Collective. */
enum { GM_KEY_MAX = 64 };
int gm_peers_all(const gm_ranks *ranks, const char *key, int *count, int *index);

/* "Open MPI v4.1.4": the library at run time; text has room for 256 bytes. Before or after MPI is started. */
char *gm_mpi_version(char *text);

#endif
