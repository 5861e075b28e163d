/* Memory on a NUMA node: the nodes of this host, and pages that are where they were asked for. */
#include "mpi/numa.h"
#include "tests/tap.h"

#include <string.h>
#include <sys/mman.h>

enum { BYTES = 1 << 20 };

int main(void)
{
    gm_numa *numa = gm_numa_open();
    int count = numa ? gm_numa_count(numa) : 0;
    tap_ok(count >= 1, "there is a node (%d)", count);
    tap_ok(!numa || gm_numa_node(numa, count) == -1, "and no more than there are");
    for (int i = 0; i < count; i++) {
        int node = gm_numa_node(numa, i);
        void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || !gm_numa_place(numa, memory, BYTES, node)) {
            tap_skip("the system places no memory", "memory on node %d", node);
            continue;
        }
        memset(memory, 1, BYTES);
        int found = gm_numa_find(numa, memory, BYTES);
        if (found < 0)
            tap_skip("the system does not tell where memory is", "memory on node %d", node);
        else
            tap_ok(found == node, "memory on node %d is on node %d", node, found);
        munmap(memory, BYTES);
    }
    gm_numa_close(numa);
    gm_numa_close(NULL);
    return tap_done();
}
