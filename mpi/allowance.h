/* allowance.h - the processors that a process was given. Internal to mpi/. */
#ifndef GM_MPI_ALLOWANCE_H
#define GM_MPI_ALLOWANCE_H

#include <hwloc.h>

/* The source of the binding of a process. */
typedef enum gm_bound_by {
    GM_BOUND_BY_USER,    /* what it was started with: all, or those of taskset, a cpuset, a batch system, srun */
    GM_BOUND_BY_OPTION,  /* an option of mpirun */
    GM_BOUND_BY_LAUNCHER /* mpirun's default: one core, even if the rank has many threads */
} gm_bound_by;

/* Finds the source of the binding `own` of this process, rank number `local_rank` of its host: by the environment that
 * the launcher sets, and by the set itself. mpirun's default for that rank is a certain core, package or NUMA node, so
 * another set is the user's. A script between mpirun and the program that binds a rank to just that set is not noticed,
 * unless mpirun was told not to bind. */
gm_bound_by gm_allowance_source(hwloc_topology_t topology, hwloc_const_cpuset_t own, int local_rank);

/* The processors of the launcher (mpirun, or its daemon on this host), which it was given by the user, to set; all of
 * the topology if it is not found. */
void gm_allowance_of_launcher(hwloc_topology_t topology, hwloc_cpuset_t set);

#endif
