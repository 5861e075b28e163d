/* Binding: the shares of the processors that a process was given are disjoint and complete, a requested binding is
 * kept, mpirun's own choice is replaced by what mpirun was given and a set of the user's is not, and a process that
 * cannot have a processor of its own is not bound. Each gm_bind() runs in a child process. */
#define _GNU_SOURCE /* sched_getaffinity() */
#include "mpi/bind.h"
#include "tests/tap.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct outcome {
    gm_binding binding;
    int is_default;
    char key[GM_KEY_MAX];
    cpu_set_t processors; /* of the process after gm_bind() */
} outcome;

/* Restricts this process to these processors, as taskset does. */
static void restrict_to(const cpu_set_t *processors)
{
    if (processors && sched_setaffinity(0, sizeof *processors, processors))
        exit(99);
}

/* Rank number `rank` of its host, which was started with these processors (NULL: all): is its binding mpirun's? It is
 * bound to its share of them, or of mpirun's if that is so. */
static outcome start_in_child(const cpu_set_t *processors, int rank, int index, int of, int numa)
{
    outcome o;
    int ends[2];
    memset(&o, 0, sizeof o);
    if (pipe(ends))
        exit(99);
    pid_t child = fork();
    if (child < 0)
        exit(99);
    if (child == 0) {
        restrict_to(processors);
        gm_bind_view *view = gm_bind_open(rank);
        o.is_default = gm_bind_is_default(view);
        gm_bind_key(view, o.is_default, numa, o.key);
        gm_bind(view, o.is_default, index, of, numa, &o.binding);
        gm_bind_close(view);
        sched_getaffinity(0, sizeof o.processors, &o.processors);
        _exit(write(ends[1], &o, sizeof o) != sizeof o);
    }
    close(ends[1]);
    if (read(ends[0], &o, sizeof o) != sizeof o)
        o.binding.processors = -1;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return o;
}

static outcome bind_in_child(int index, int of, int numa)
{
    return start_in_child(NULL, index, index, of, numa);
}

/* Are the shares disjoint, not empty, and together `all`? */
static int cuts(int of, const cpu_set_t *all)
{
    cpu_set_t seen, both;
    int ok = 1;
    CPU_ZERO(&seen);
    for (int i = 0; i < of; i++) {
        outcome o = bind_in_child(i, of, -1);
        CPU_AND(&both, &seen, &o.processors);
        CPU_OR(&seen, &seen, &o.processors);
        ok = ok && o.binding.bound && o.binding.processors == CPU_COUNT(&o.processors) && CPU_COUNT(&both) == 0 &&
             *o.binding.list;
    }
    return ok && CPU_EQUAL(&seen, all);
}

static void test_numa(const cpu_set_t *all)
{
    outcome near = bind_in_child(0, 1, 0), absent = bind_in_child(0, 1, 12345);
    cpu_set_t both;
    CPU_AND(&both, &near.processors, all);
    tap_ok(near.binding.bound && near.binding.processors > 0 && CPU_EQUAL(&both, &near.processors),
           "a preferred NUMA node: some of all processors");
    tap_ok(near.binding.numa_nodes == 0 || near.binding.numa_node >= -1, "its node is reported");
    tap_ok(CPU_EQUAL(&absent.processors, all), "a preferred NUMA node that does not exist: all processors");
}

static void test_requested(const cpu_set_t *before, const cpu_set_t *all)
{
    static const char *const policies[] = {"OMPI_MCA_hwloc_base_binding_policy",
                                           "PRTE_MCA_hwloc_default_binding_policy"};
    for (int i = 0; i < 2; i++) {
        setenv(policies[i], "core", 1);
        outcome o = bind_in_child(0, CPU_COUNT(all), -1);
        tap_ok(o.binding.bound && o.binding.processors == CPU_COUNT(before) && CPU_EQUAL(&o.processors, before),
               "%s=core: the binding is kept", policies[i]);
        setenv(policies[i], "none", 1);
        tap_ok(cuts(1, all), "%s=none: as without it", policies[i]);
        unsetenv(policies[i]);
    }
    setenv("SLURM_STEP_ID", "0", 1);
    tap_ok(cuts(1, all), "under srun: shares of what it gave, as Open MPI is told not to bind there");
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    tap_ok(cuts(1, all), "under mpirun in a Slurm job: shares");
    unsetenv("SLURM_STEP_ID");
    unsetenv("OMPI_COMM_WORLD_RANK");
}

/* The processors of a core. Returns 0 where there is no such core. */
static int core(int index, cpu_set_t *processors)
{
    hwloc_topology_t topology;
    hwloc_topology_init(&topology);
    hwloc_topology_load(topology);
    hwloc_obj_t object = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)index);
    if (object)
        hwloc_cpuset_to_glibc_sched_affinity(topology, object->cpuset, processors, sizeof *processors);
    hwloc_topology_destroy(topology);
    return object != NULL;
}

static int came_from(const outcome *o, const char *word)
{
    return strcmp(o->binding.from, word) == 0;
}

/* A process that was started with fewer processors than there are keeps to them. */
static void test_restricted(const cpu_set_t *all)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = CPU_SETSIZE - 1; CPU_COUNT(&one) == 0; i--)
        if (CPU_ISSET(i, all))
            CPU_SET(i, &one);
    outcome alone = start_in_child(&one, 0, 0, 1, -1), crowd = start_in_child(&one, 1, 1, 2, -1),
            other = start_in_child(all, 1, 1, 2, -1);
    tap_ok(alone.binding.bound && alone.binding.processors == 1 && CPU_EQUAL(&alone.processors, &one) &&
               came_from(&alone, CPU_COUNT(all) > 1 ? "affinity" : "host"),
           "started with one processor: that one, given by %s", alone.binding.from);
    tap_ok(!crowd.binding.bound && crowd.binding.processors == 1 && CPU_EQUAL(&crowd.processors, &one),
           "and where two share it");
    tap_ok(strcmp(alone.key, crowd.key) == 0 && (CPU_COUNT(all) == 1 || strcmp(alone.key, other.key) != 0),
           "those who were given the same have the same key");
}

/* Under mpirun: its own choice is one core. */
static void test_launcher(const cpu_set_t *all)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "OMPI_MCA_orte_launch",
                                        "OMPI_MCA_orte_bound_at_launch"};
    cpu_set_t first, second;
    for (int i = 0; i < 3; i++)
        setenv(names[i], i ? "1" : "0", 1); /* of the ranks only number 0 speaks TAP */
    if (!core(0, &first) || !core(1, &second)) {
        tap_skip("one core", "mpirun's choice");
        return;
    }
    outcome o = start_in_child(&first, 0, 0, 1, -1);
    tap_ok(o.is_default && CPU_EQUAL(&o.processors, all) && came_from(&o, "host"), "rank 0 on core 0: mpirun's choice");
    o = start_in_child(&second, 1, 0, 1, -1);
    tap_ok(o.is_default && CPU_EQUAL(&o.processors, all), "rank 1 on core 1: mpirun's choice");
    o = start_in_child(&second, 0, 0, 1, -1);
    tap_ok(!o.is_default && CPU_EQUAL(&o.processors, &second) && came_from(&o, "affinity"),
           "rank 0 on core 1: the user's, kept");
    setenv("OMPI_COMMAND", "/usr/bin/taskset", 1);
    o = start_in_child(&first, 0, 0, 1, -1);
    tap_ok(!o.is_default && CPU_EQUAL(&o.processors, &first), "mpirun started taskset: the user's");
    static const struct {
        const char *command, *words;
        int is_default;
    } starts[] = {{"env", "A=1 /usr/bin/taskset -c 0 x", 0},
                  {"sh", "-c exec\tnumactl --all x", 0},
                  {"sh", "-c 'hwloc-bind' x", 0},
                  {"sh", "-c taskset0 x", 1},
                  {"script", "x taskset.h5", 1},
                  {"bind", "x taskset", 1},
                  {"env", "a-word-that-is-longer-than-any", 1}};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        setenv("OMPI_COMMAND", starts[i].command, 1);
        setenv("OMPI_ARGV", starts[i].words, 1);
        o = start_in_child(&first, 0, 0, 1, -1);
        tap_ok(o.is_default == starts[i].is_default, "mpirun started %s %s: %s", starts[i].command, starts[i].words,
               o.is_default ? "mpirun's choice" : "the user's");
    }
    unsetenv("OMPI_ARGV");
    unsetenv("OMPI_COMMAND");
    setenv("OMPI_MCA_hwloc_base_cpu_set", "0", 1);
    o = start_in_child(&second, 1, 0, 1, -1);
    tap_ok(!o.is_default && CPU_EQUAL(&o.processors, &second) && came_from(&o, "option"), "mpirun --cpu-set: kept");
    unsetenv("OMPI_MCA_hwloc_base_cpu_set");
    prctl(PR_SET_NAME, "mpirun");
    restrict_to(&second);
    o = start_in_child(&first, 0, 0, 1, -1);
    tap_ok(o.is_default && CPU_EQUAL(&o.processors, &second) && came_from(&o, "launcher"),
           "a launcher that was started with fewer: those");
    restrict_to(all);
    unsetenv("OMPI_MCA_orte_bound_at_launch");
    o = start_in_child(&first, 0, 0, 1, -1);
    tap_ok(!o.is_default && CPU_EQUAL(&o.processors, &first), "mpirun did not bind: the user's");
    for (int i = 0; i < 3; i++)
        unsetenv(names[i]);
}

/* A machine whose cores have every second processor: their list is longer than the text of a binding. */
static void test_long_list(void)
{
    enum { EACH = 60 };
    char machine[1024] = "core:2 pu:60(indexes=";
    for (int i = 0; i < 2 * EACH; i++)
        snprintf(machine + strlen(machine), sizeof machine - strlen(machine), "%d%s",
                 i < EACH ? 2 * i : 2 * (i - EACH) + 1, i < 2 * EACH - 1 ? "," : ")");
    char *components = getenv("HWLOC_COMPONENTS"); /* where it is set, hwloc makes no other machine */
    components = components ? strdup(components) : NULL;
    unsetenv("HWLOC_COMPONENTS");
    setenv("HWLOC_SYNTHETIC", machine, 1);
    outcome o = start_in_child(NULL, 0, 0, 2, -1);
    unsetenv("HWLOC_SYNTHETIC");
    if (components)
        setenv("HWLOC_COMPONENTS", components, 1);
    free(components);
    size_t length = strlen(o.binding.list);
    tap_ok(o.binding.processors == EACH || !o.binding.bound, "a core of %d processors", EACH);
    tap_ok(strncmp(o.binding.list, "0,2,4,6,8,10,12,", 16) == 0 && length > 100 && length < sizeof o.binding.list &&
               strcmp(o.binding.list + length - 4, ",...") == 0 && o.binding.list[length - 5] % 2 == 0,
           "a list that does not fit ends between numbers, and says so: %s", o.binding.list);
}

int main(void)
{
    static const char *const names[] = {"OMPI_MCA_hwloc_base_binding_policy",
                                        "PRTE_MCA_hwloc_default_binding_policy",
                                        "OMPI_MCA_hwloc_base_cpu_set",
                                        "OMPI_MCA_hwloc_base_cpu_list",
                                        "PRTE_MCA_hwloc_default_cpu_list",
                                        "SLURM_STEP_ID",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMMAND",
                                        "OMPI_ARGV"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    outcome whole = bind_in_child(0, 1, -1);
    int processors = CPU_COUNT(&whole.processors);
    tap_ok(whole.binding.bound && whole.binding.processors == processors, "one share: all %d processors", processors);
    for (int of = 2; of <= processors && of <= 6; of++)
        tap_ok(cuts(of, &whole.processors), "%d shares are disjoint and complete", of);
    outcome many = bind_in_child(processors, processors + 1, -1);
    tap_ok(!many.binding.bound && many.binding.processors == 1 && CPU_EQUAL(&many.processors, &whole.processors),
           "more shares than processors: not bound, counts on one");
    test_numa(&whole.processors);
    test_requested(&before, &whole.processors);
    test_restricted(&whole.processors);
    test_launcher(&whole.processors);
    char text[32];
    tap_ok(strchr(gm_hwloc_version(text), '.') != NULL, "hwloc %s", text);
    test_long_list();
    return tap_done();
}
