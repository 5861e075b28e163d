#include "mpi/bind.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Open MPI binds ranks to one core each when there are two of them or fewer, whatever they do with threads. Such a binding nobody has asked
 * for; one that somebody has asked for (an option of mpirun's, which reaches us in the environment, or srun's own) is kept. */
static int binding_was_asked_for(void)
{
    const char *policy = getenv("OMPI_MCA_hwloc_base_binding_policy");
    if (!policy)
        policy = getenv("PRTE_MCA_hwloc_default_binding_policy");
    if (policy)
        return strncmp(policy, "none", 4) != 0; /* --bind-to none: every rank sees all, and shares them as without an option */
    return getenv("SLURM_STEP_ID") && !getenv("OMPI_COMM_WORLD_RANK");
}

/* The share of a rank: pieces of `all` in the order of cores. */
static void take_share(hwloc_topology_t topology, hwloc_const_cpuset_t all, int index, int of, hwloc_cpuset_t share)
{
    int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, all, HWLOC_OBJ_CORE);
    hwloc_obj_type_t unit = cores >= of ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    int units = hwloc_get_nbobjs_inside_cpuset_by_type(topology, all, unit);
    int from = (int)((long)units * index / of), to = (int)((long)units * (index + 1) / of);
    hwloc_bitmap_zero(share);
    for (int i = from; i < to; i++) {
        hwloc_obj_t object = hwloc_get_obj_inside_cpuset_by_type(topology, all, unit, (unsigned)i);
        hwloc_bitmap_or(share, share, object->cpuset);
    }
    hwloc_bitmap_and(share, share, all);
}

/* The processors of the node that the device is near to, when there is one for each rank that wants them. */
static void prefer(hwloc_topology_t topology, int numa, int least, hwloc_cpuset_t all)
{
    hwloc_obj_t node = numa < 0 ? NULL : hwloc_get_numanode_obj_by_os_index(topology, (unsigned)numa);
    if (!node)
        return;
    hwloc_cpuset_t near = hwloc_bitmap_dup(all);
    hwloc_bitmap_and(near, near, node->cpuset);
    if (hwloc_bitmap_weight(near) >= least)
        hwloc_bitmap_copy(all, near);
    hwloc_bitmap_free(near);
}

static void describe(hwloc_topology_t topology, hwloc_const_cpuset_t share, gm_binding *binding)
{
    hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
    hwloc_cpuset_to_nodeset(topology, share, nodes);
    binding->processors = hwloc_bitmap_weight(share);
    binding->numa_nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    binding->numa_node = hwloc_bitmap_weight(nodes) == 1 ? hwloc_bitmap_first(nodes) : -1;
    hwloc_bitmap_list_snprintf(binding->list, sizeof binding->list, share);
    if (binding->bound && binding->numa_nodes > 1 && binding->numa_node >= 0)
        hwloc_set_membind(topology, nodes, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_PROCESS | HWLOC_MEMBIND_BYNODESET);
    hwloc_bitmap_free(nodes);
}

void gm_bind(int index, int of, int prefer_numa, gm_binding *binding)
{
    *binding = (gm_binding){.processors = 1, .numa_node = -1};
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology))
        return;
    if (hwloc_topology_load(topology)) {
        hwloc_topology_destroy(topology);
        return;
    }
    hwloc_cpuset_t share = hwloc_bitmap_alloc();
    hwloc_cpuset_t all = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology));
    hwloc_bitmap_and(all, all, hwloc_topology_get_topology_cpuset(topology));

    if (binding_was_asked_for()) {
        hwloc_get_cpubind(topology, share, HWLOC_CPUBIND_PROCESS);
        binding->bound = 1;
    } else if (hwloc_bitmap_weight(all) >= of) {
        prefer(topology, prefer_numa, of, all);
        take_share(topology, all, index, of, share);
        binding->bound = hwloc_set_cpubind(topology, share, HWLOC_CPUBIND_PROCESS) == 0;
    } else {
        hwloc_set_cpubind(topology, all, HWLOC_CPUBIND_PROCESS);
        take_share(topology, all, 0, 1, share);
    }
    describe(topology, share, binding);
    if (!binding->bound) /* more ranks than processors: one each, wherever the system puts it */
        binding->processors = 1;
    hwloc_bitmap_free(share);
    hwloc_bitmap_free(all);
    hwloc_topology_destroy(topology);
}

char *gm_hwloc_version(char *text)
{
    unsigned version = hwloc_get_api_version();
    snprintf(text, 32, "%u.%u.%u", version >> 16, version >> 8 & 255, version & 255);
    return text;
}
