/* numa.h - host memory on a NUMA node of choice. */
#ifndef GM_MPI_NUMA_H
#define GM_MPI_NUMA_H

#include <stddef.h>

/* The NUMA nodes of this host with memory that this process may use. */
typedef struct gm_numa gm_numa;

/* Looks at them. NULL: hwloc cannot tell. */
gm_numa *gm_numa_open(void);
void gm_numa_close(gm_numa *numa); /* takes NULL */

/* The number of nodes; node number `index` of them, as the system numbers it. */
int gm_numa_count(const gm_numa *numa);
int gm_numa_node(const gm_numa *numa, int index);

/* The pages of memory that nothing has touched yet will be on this node. Returns 1 if the system takes the wish. */
int gm_numa_place(const gm_numa *numa, void *memory, size_t bytes, int node);

/* The node that all pages of memory are on; -1: unknown, or several. */
int gm_numa_find(const gm_numa *numa, const void *memory, size_t bytes);

#endif
