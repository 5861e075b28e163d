/* bind.h - binding of a rank to processors. Memory follows: Linux takes it near the processor that touches it first,
 * unless the user has another policy (numactl), which stays. */
#ifndef GM_MPI_BIND_H
#define GM_MPI_BIND_H

#include "mpi/ranks.h"

typedef struct gm_binding {
    int processors; /* that this rank may use: its share of those that the ranks were given on this host */
    int numa_nodes; /* of the host; 0: unknown */
    int numa_node;  /* the one that the processors are of; -1: several, or unknown */
    int bound;      /* is this process bound to the processors? */
    char list[128]; /* "0-7": the processors, as the system numbers them; "0,2,...": there are more; "": unknown */
    char from[16];  /* the source of the processors to share: "host": they are all that it has; "affinity": the process
                       was started with fewer; "launcher": mpirun was; "option": of mpirun; "": unknown */
} gm_binding;

/* The processors that this process was given, before it is bound. */
typedef struct gm_bind_view gm_bind_view;

/* Looks at it: own binding, environment, launcher. Not collective. NULL: hwloc cannot tell. */
gm_bind_view *gm_bind_open(int local_rank);
void gm_bind_close(gm_bind_view *view); /* takes NULL */

/* Is the binding mpirun's default, which may be replaced by all processors that mpirun was given? */
int gm_bind_is_default(const gm_bind_view *view);

/* Ranks of a host that were given the same processors, and prefer the same NUMA node, have the same key [GM_KEY_MAX]:
 * they share them. replace: mpirun's choice is replaced. Returns key. */
char *gm_bind_key(const gm_bind_view *view, int replace, int prefer_numa, char *key);

/* Cuts the processors that the process was given into `of` equal, contiguous shares and binds it, with its threads, to
 * share number `index`; threads created later inherit the binding. A binding that an option of mpirun made is kept. If
 * there are fewer processors than shares, the process is not bound to one of them. prefer_numa: the NUMA node (near a
 * device) whose processors are shared by the ranks that prefer it, which index and of count; -1: all nodes. Another
 * call replaces the binding of the one before. Not collective. Never fails: without a binding, *binding says so. view
 * may be NULL. */
void gm_bind(const gm_bind_view *view, int replace, int index, int of, int prefer_numa, gm_binding *binding);

/* All of the above: the ranks of a host that were given the same processors share them. A rank that takes no share
 * keeps the binding that it has. mpirun's choice is replaced if it is that on every rank: where one has a set of the
 * user's, all have. view may be NULL. Collective. */
int gm_bind_all(const gm_ranks *ranks, const gm_bind_view *view, int prefer_numa, int takes_share, gm_binding *binding);

/* "2.9.0": the API version of the hwloc library at run time. text has room for 32 bytes. Returns text. */
char *gm_hwloc_version(char *text);

#endif
