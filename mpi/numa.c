#include "mpi/numa.h"

#include <hwloc.h>

#include <stdlib.h>

struct gm_numa {
    hwloc_topology_t topology;
};

gm_numa *gm_numa_open(void)
{
    gm_numa *numa = calloc(1, sizeof *numa);
    if (!numa || hwloc_topology_init(&numa->topology)) {
        free(numa);
        return NULL;
    }
    if (hwloc_topology_load(numa->topology)) {
        gm_numa_close(numa);
        return NULL;
    }
    return numa;
}

void gm_numa_close(gm_numa *numa)
{
    if (!numa)
        return;
    hwloc_topology_destroy(numa->topology);
    free(numa);
}

int gm_numa_count(const gm_numa *numa)
{
    return hwloc_get_nbobjs_by_type(numa->topology, HWLOC_OBJ_NUMANODE);
}

int gm_numa_node(const gm_numa *numa, int index)
{
    hwloc_obj_t node = hwloc_get_obj_by_type(numa->topology, HWLOC_OBJ_NUMANODE, (unsigned)index);
    return node ? (int)node->os_index : -1;
}

int gm_numa_place(const gm_numa *numa, void *memory, size_t bytes, int node)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set)
        return 0;
    hwloc_bitmap_only(set, (unsigned)node);
    int failed = hwloc_set_area_membind(numa->topology, memory, bytes, set, HWLOC_MEMBIND_BIND,
                                        HWLOC_MEMBIND_BYNODESET);
    hwloc_bitmap_free(set);
    return !failed;
}

int gm_numa_find(const gm_numa *numa, const void *memory, size_t bytes)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    int node = -1;
    if (set && !hwloc_get_area_memlocation(numa->topology, memory, bytes, set, HWLOC_MEMBIND_BYNODESET) &&
        hwloc_bitmap_weight(set) == 1)
        node = hwloc_bitmap_first(set);
    hwloc_bitmap_free(set);
    return node;
}
