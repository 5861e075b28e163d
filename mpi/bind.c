#include "mpi/bind.h"

#include "base/range.h"
#include "base/text/hash.h"
#include "mpi/allowance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gm_bind_view {
    hwloc_topology_t topology;
    gm_bound_by by;
    hwloc_cpuset_t own, launcher; /* processors of this process, and of the launcher */
};

gm_bind_view *gm_bind_open(int local_rank)
{
    gm_bind_view *v = calloc(1, sizeof *v);
    if (!v || hwloc_topology_init(&v->topology)) {
        free(v);
        return NULL;
    }
    v->own = hwloc_bitmap_alloc();
    v->launcher = hwloc_bitmap_alloc();
    if (!v->own || !v->launcher || hwloc_topology_load(v->topology)) {
        gm_bind_close(v);
        return NULL;
    }
    hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(v->topology);
    if (hwloc_get_cpubind(v->topology, v->own, HWLOC_CPUBIND_PROCESS) ||
        (hwloc_bitmap_and(v->own, v->own, all), hwloc_bitmap_iszero(v->own)))
        hwloc_bitmap_copy(v->own, all);
    v->by = gm_allowance_source(v->topology, v->own, local_rank);
    gm_allowance_of_launcher(v->topology, v->launcher);
    return v;
}

void gm_bind_close(gm_bind_view *v)
{
    if (!v)
        return;
    hwloc_bitmap_free(v->own);
    hwloc_bitmap_free(v->launcher);
    hwloc_topology_destroy(v->topology);
    free(v);
}

int gm_bind_is_default(const gm_bind_view *v)
{
    return v && v->by == GM_BOUND_BY_LAUNCHER;
}

static hwloc_const_cpuset_t given(const gm_bind_view *v, int replace)
{
    return replace && v->by == GM_BOUND_BY_LAUNCHER ? v->launcher : v->own;
}

char *gm_bind_key(const gm_bind_view *v, int replace, int prefer_numa, char *key)
{
    uint64_t hash = GM_HASH_START; /* of the numbers of the processors */
    int at = -1;
    while (v && (at = hwloc_bitmap_next(given(v, replace), at)) >= 0)
        hash = gm_hash_step(hash, (uint64_t)at);
    snprintf(key, GM_KEY_MAX, "node %d, %016" PRIx64, prefer_numa, hash);
    return key;
}

/* Share number `index` of `of` shares of `all`, cut in the order of cores; in that of hardware threads if there are
 * fewer cores than shares. */
static void find_share(hwloc_topology_t topology, hwloc_const_cpuset_t all, int index, int of, hwloc_cpuset_t share)
{
    int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, all, HWLOC_OBJ_CORE);
    hwloc_obj_type_t unit = cores >= of ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    int units = hwloc_get_nbobjs_inside_cpuset_by_type(topology, all, unit);
    gm_range range = gm_range_split(units, 1, of, index);
    hwloc_bitmap_zero(share);
    for (int64_t i = range.begin; i < range.end; i++) {
        hwloc_obj_t object = hwloc_get_obj_inside_cpuset_by_type(topology, all, unit, (unsigned)i);
        hwloc_bitmap_or(share, share, object->cpuset);
    }
    hwloc_bitmap_and(share, share, all);
}

/* Restricts `all` to the processors of a NUMA node if it has at least `least` of them. */
static void restrict_to_node(hwloc_topology_t topology, int numa, int least, hwloc_cpuset_t all)
{
    hwloc_obj_t node = numa < 0 ? NULL : hwloc_get_numanode_obj_by_os_index(topology, (unsigned)numa);
    if (!node)
        return;
    hwloc_cpuset_t near = hwloc_bitmap_dup(all);
    if (!near)
        return;
    hwloc_bitmap_and(near, near, node->cpuset);
    if (hwloc_bitmap_weight(near) >= least)
        hwloc_bitmap_copy(all, near);
    hwloc_bitmap_free(near);
}

/* "0,2,4,...": the end of a list that does not fit is left out, and that is seen. */
static void write_list(hwloc_const_cpuset_t share, char *list, int room)
{
    static const char more[] = ",...";
    if (hwloc_bitmap_list_snprintf(list, (size_t)room, share) < room)
        return;
    list[room - (int)sizeof more] = '\0';
    char *last = strrchr(list, ',');
    strcpy(last ? last : list, more);
}

static void describe(const gm_bind_view *v, hwloc_const_cpuset_t share, gm_binding *binding)
{
    hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
    if (!nodes)
        return;
    hwloc_cpuset_to_nodeset(v->topology, share, nodes);
    binding->processors = hwloc_bitmap_weight(share);
    binding->numa_nodes = hwloc_get_nbobjs_by_type(v->topology, HWLOC_OBJ_NUMANODE);
    binding->numa_node = hwloc_bitmap_weight(nodes) == 1 ? hwloc_bitmap_first(nodes) : -1;
    write_list(share, binding->list, sizeof binding->list);
    hwloc_bitmap_free(nodes);
}

static const char *source(const gm_bind_view *v, int replace)
{
    static const char *const names[] = {
        [GM_BOUND_BY_USER] = "affinity", [GM_BOUND_BY_OPTION] = "option", [GM_BOUND_BY_LAUNCHER] = "launcher"};
    int all = hwloc_bitmap_weight(given(v, replace)) >= sysconf(_SC_NPROCESSORS_ONLN);
    return all ? "host" : v->by == GM_BOUND_BY_LAUNCHER && !replace ? names[GM_BOUND_BY_USER] : names[v->by];
}

void gm_bind(const gm_bind_view *v, int replace, int index, int of, int prefer_numa, gm_binding *binding)
{
    *binding = (gm_binding){.processors = 1, .numa_node = -1};
    hwloc_cpuset_t all = v ? hwloc_bitmap_dup(given(v, replace)) : NULL, share = all ? hwloc_bitmap_alloc() : NULL;
    if (!share) {
        hwloc_bitmap_free(all);
        return;
    }
    if (v->by == GM_BOUND_BY_OPTION) {
        hwloc_bitmap_copy(share, all);
        binding->bound = 1;
    } else if (hwloc_bitmap_weight(all) >= of) {
        restrict_to_node(v->topology, prefer_numa, of, all);
        find_share(v->topology, all, index, of, share);
        binding->bound = hwloc_set_cpubind(v->topology, share, HWLOC_CPUBIND_PROCESS) == 0;
    } else {
        hwloc_set_cpubind(v->topology, all, HWLOC_CPUBIND_PROCESS);
        find_share(v->topology, all, 0, 1, share);
    }
    snprintf(binding->from, sizeof binding->from, "%s", source(v, replace));
    describe(v, share, binding);
    if (!binding->bound) /* more ranks than processors: each counts on one, and the system places it */
        binding->processors = 1;
    hwloc_bitmap_free(share);
    hwloc_bitmap_free(all);
}

int gm_bind_all(const gm_ranks *ranks, const gm_bind_view *view, int prefer_numa, int takes_share, gm_binding *binding)
{
    char key[GM_KEY_MAX] = "no share";
    int count = 1, index = 0;
    int64_t replace = !view || view->by != GM_BOUND_BY_USER;
    int status = gm_agree_all(ranks, gm_min_all(&replace));
    if (takes_share)
        gm_bind_key(view, (int)replace, prefer_numa, key);
    if (!status)
        status = gm_peers_all(ranks, key, &count, &index);
    if (!status && takes_share)
        gm_bind(view, (int)replace, index, count, prefer_numa, binding);
    return status;
}

char *gm_hwloc_version(char *text)
{
    unsigned version = hwloc_get_api_version();
    snprintf(text, 32, "%u.%u.%u", version >> 16, version >> 8 & 255, version & 255);
    return text;
}
