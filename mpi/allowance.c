#define _GNU_SOURCE /* program_invocation_short_name */
#include "mpi/allowance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return 1;
    return 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *first_set(const char *const *names)
{
    const char *value = NULL;
    for (; *names && !value; names++)
        value = getenv(*names);
    return value;
}

static int is_requested(void)
{
    static const char *const policies[] = {"OMPI_MCA_hwloc_base_binding_policy",
                                           "PRTE_MCA_hwloc_default_binding_policy", NULL};
    static const char *const sets[] = {"OMPI_MCA_hwloc_base_cpu_set", "OMPI_MCA_hwloc_base_cpu_list",
                                       "PRTE_MCA_hwloc_default_cpu_list", NULL};
    const char *policy = first_set(policies);
    if (policy)
        return strncmp(policy, "none", 4) != 0;
    return first_set(sets) != NULL;
}

/* Is the last part of a word, from `word` to `end`, the name of a program that binds? */
static int is_binder(const char *word, const char *end)
{
    static const char *const binders[] = {"taskset", "numactl", "hwloc-bind", NULL};
    char name[16];
    for (const char *c = word; c < end; c++)
        if (*c == '/')
            word = c + 1;
    return snprintf(name, sizeof name, "%.*s", (int)(end - word), word) < (int)sizeof name && is_one_of(name, binders);
}

/* Did mpirun start a program that binds, and that one this program? It may be a word of a command that starts it, as of
 * env or of sh -c; words of this program itself are no commands. */
static int is_started_by_binder(void)
{
    static const char gaps[] = " \t\n\"';&|()";
    const char *command = getenv("OMPI_COMMAND"), *words = getenv("OMPI_ARGV");
    if (!command || is_binder(command, command + strlen(command)))
        return command != NULL;
    if (!words || strcmp(last_part(command), program_invocation_short_name) == 0)
        return 0;
    for (const char *end; *(words += strspn(words, gaps)); words = end) {
        end = words + strcspn(words, gaps);
        if (is_binder(words, end))
            return 1;
    }
    return 0;
}

static int is_object(hwloc_topology_t topology, hwloc_obj_type_t type, int index, hwloc_const_cpuset_t own)
{
    hwloc_obj_t object = hwloc_get_obj_by_type(topology, type, (unsigned)index);
    return object && hwloc_bitmap_isequal(object->cpuset, own);
}

/* Is `own` what mpirun chooses? Of one or two ranks the core of the rank's number, or the first one of another package
 * or NUMA node; of more ranks a package or NUMA node. */
static int is_default(hwloc_topology_t topology, hwloc_const_cpuset_t own, int local_rank)
{
    static const hwloc_obj_type_t types[] = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_NUMANODE};
    if (is_object(topology, HWLOC_OBJ_CORE, local_rank, own))
        return 1;
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < hwloc_get_nbobjs_by_type(topology, types[t]); i++) {
            hwloc_obj_t place = hwloc_get_obj_by_type(topology, types[t], (unsigned)i);
            hwloc_obj_t core = hwloc_get_obj_inside_cpuset_by_type(topology, place->cpuset, HWLOC_OBJ_CORE, 0);
            if (hwloc_bitmap_isequal(place->cpuset, own) ||
                (i > 0 && local_rank > 0 && core && hwloc_bitmap_isequal(core->cpuset, own)))
                return 1;
        }
    return 0;
}

gm_bound_by gm_allowance_source(hwloc_topology_t topology, hwloc_const_cpuset_t own, int local_rank)
{
    int unbound = getenv("OMPI_MCA_orte_launch") && !getenv("OMPI_MCA_orte_bound_at_launch");
    if (is_requested())
        return GM_BOUND_BY_OPTION;
    if (!getenv("OMPI_COMM_WORLD_RANK") || getenv("OMPI_MCA_hwloc_base_binding_policy") ||
        getenv("PRTE_MCA_hwloc_default_binding_policy") || unbound || is_started_by_binder())
        return GM_BOUND_BY_USER;
    return is_default(topology, own, local_rank) ? GM_BOUND_BY_LAUNCHER : GM_BOUND_BY_USER;
}

/* The name of a process, without what follows a dot ("mpirun.openmpi"), and the number of its parent, from
 * /proc/PID/stat: "PID (NAME) STATE PARENT ...". NAME may hold anything, also brackets. Returns whether they were
 * found.
 */
static int read_process(int process, char *name, size_t room, int *parent)
{
    char path[48], line[512], *end;
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    int found = file && fgets(line, sizeof line, file) && strchr(line, '(') && (end = strrchr(line, ')'));
    if (file)
        fclose(file);
    if (!found || sscanf(end, ") %*c %d", parent) != 1)
        return 0;
    *end = '\0';
    snprintf(name, room, "%s", strchr(line, '(') + 1);
    name[strcspn(name, ".")] = '\0';
    return 1;
}

void gm_allowance_of_launcher(hwloc_topology_t topology, hwloc_cpuset_t set)
{
    static const char *const launchers[] = {
        "mpirun", "mpiexec", "hydra_pmi_proxy", "orterun", "orted", "prterun", "prted", "prte", NULL};
    hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology);
    char name[64] = "";
    int process = (int)getppid(), parent = 0;
    while (process > 1 && read_process(process, name, sizeof name, &parent) && !is_one_of(name, launchers))
        process = parent;
    hwloc_bitmap_zero(set);
    if (process > 1 && is_one_of(name, launchers))
        hwloc_get_proc_cpubind(topology, process, set, 0);
    hwloc_bitmap_and(set, set, all);
    if (hwloc_bitmap_iszero(set))
        hwloc_bitmap_copy(set, all);
}
