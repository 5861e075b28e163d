/* shared.h - host memory of each rank that the other ranks of its host address as well: no bytes need to go from one to
 * the other. */
#ifndef GM_SRC_EXCHANGE_SHARED_H
#define GM_SRC_EXCHANGE_SHARED_H

#include "mpi/ranks.h"

typedef struct gm_shared gm_shared;

/* Makes memory of `bytes` for each rank, charged to GM_HOST there, and maps that of the others of its host. *shared:
 * NULL on all ranks where one of them cannot, without an error. GM_EMPI, GM_ESTOPPED: agreed. Collective. */
int gm_shared_open_all(const gm_ranks *ranks, size_t bytes, gm_shared **shared);

/* Unmaps it; the memory goes when the last rank has done so. Takes NULL. */
void gm_shared_close(gm_shared *shared);

/* The memory of a rank, this one or another; NULL: the rank is on another host, or `shared` is NULL. */
void *gm_shared_of(const gm_shared *shared, int rank);

#endif
