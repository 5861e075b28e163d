/* allowance.h - the processors that a process was given. Internal to mpi/. */
#ifndef GM_MPI_ALLOWANCE_H
#define GM_MPI_ALLOWANCE_H

#include <hwloc.h>

/* Where the binding of a process comes from. */
typedef enum gm_bound_by {
    GM_BOUND_BY_USER,    /* what it was started with: all, or those of taskset, a cpuset, a batch system, srun */
    GM_BOUND_BY_OPTION,  /* an option of mpirun */
    GM_BOUND_BY_LAUNCHER /* mpirun's own choice, which nobody asked for: one core, even if the rank has many threads */
} gm_bound_by;

/* Tells where the binding `own` of this process, rank number `local_rank` of its host, comes from. By the environment
 * that the launcher sets; and mpirun's own choice for that rank is a certain core, package or NUMA node: another set is
 * the user's. It cannot tell a script between mpirun and the program that binds a rank to just that set, unless mpirun
 * was told not to bind. */
gm_bound_by gm_allowance_source(hwloc_topology_t topology, hwloc_const_cpuset_t own, int local_rank);

/* The processors of the launcher (mpirun, or its daemon on this host), which it was given by the user, to set; all of
 * the topology if it is not found. */
void gm_allowance_of_launcher(hwloc_topology_t topology, hwloc_cpuset_t set);

#endif
