/* The memory that control groups leave, on trees of files that stand for the kernel's: of version 1 and 2; limits far
 * below the root, above the group, absent; pages of files. */
#include "src/budget.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes a text to a file below this folder; folders on the way are made. */
static void put(const char *path, const char *text)
{
    char folder[256];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        mkdir(folder, 0777);
    }
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) == EOF || fclose(file))
        exit(99);
}

static void check(const char *groups, const char *root, int64_t want, const char *name)
{
    put("groups", groups);
    int64_t found = gm_budget_of_groups("groups", root);
    tap_ok(found == want, "%s: %lld", name, (long long)found);
}

int main(void)
{
    char folder[4096];
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/gpumem-budget.XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder) || chdir(folder))
        return 99;
    put("v2/memory.max", "max\n");
    put("v2/memory.current", "900000\n");
    put("v2/slurm/job_7/memory.max", "500000\n");
    put("v2/slurm/job_7/memory.current", "200000\n");
    put("v2/slurm/job_7/memory.stat", "anon 100000\nfile 100000\ninactive_file 60000\nactive_file 30000\n");
    put("v2/slurm/job_7/step_0/memory.max", "max\n");
    put("v2/slurm/job_7/step_0/memory.current", "100000\n");
    put("v2/full/memory.max", "1000\n");
    put("v2/full/memory.current", "2000\n");
    check("0::/slurm/job_7/step_0\n", "v2", 500000 - 200000 + 60000 + 30000, "a limit above the group, without files");
    check("0::/\n", "v2", INT64_MAX, "the root: no limit");
    check("0::/seen/from/outside\n", "v2", INT64_MAX, "a group that is not there: the root's");
    check("0::/full\n", "v2", 0, "more in use than allowed");
    check("0::/slurm/job_7\n", "absent", INT64_MAX, "no tree");
    check("", "v2", INT64_MAX, "no groups");
    check("nonsense\n0:\n", "v2", INT64_MAX, "no list");

    put("v1/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("v1/memory/memory.usage_in_bytes", "5000\n");
    put("v1/memory/slurm/job_7/memory.limit_in_bytes", "70000\n");
    put("v1/memory/slurm/job_7/memory.usage_in_bytes", "20000\n");
    put("v1/memory/slurm/job_7/memory.stat", "inactive_file 1\nactive_file 1\ntotal_inactive_file 900\n");
    put("v1/memory/slurm/job_7/step/memory.limit_in_bytes", "60000\n");
    put("v1/memory/slurm/job_7/step/memory.usage_in_bytes", "5000\n");
    const char *const both = "5:memory:/slurm/job_7\n2:cpu:/elsewhere\n0::/\n";
    check(both, "v1", 70000 - 20000 + 900, "version 1: the total of pages of files");
    check("5:memory:/slurm/job_7/step\n", "v1", 70000 - 20000 + 900, "the least of the groups on the way");
    int64_t here = gm_budget_available();
    tap_ok(here > 0 && here < INT64_MAX, "this machine: %lld", (long long)here);
    return chdir("/") || tap_done();
}
