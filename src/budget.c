#include "src/budget.h"

#include "base/file/path.h"
#include "base/size.h"

#include <stdio.h>
#include <string.h>

/* The number after key in a file of lines "key number" or "key: number"; key "": the first number. -1 if it is not
 * there ("max"). */
static int64_t read_number(const char *path, const char *key)
{
    FILE *file = fopen(path, "re");
    char line[256];
    long long value;
    int64_t found = -1;
    size_t length = strlen(key);
    while (file && found < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && strspn(line + length, ": 0123456789") > 0 &&
            sscanf(line + length + (line[length] == ':'), "%lld", &value) == 1)
            found = value;
    if (file)
        fclose(file);
    return found;
}

/* The two interfaces of the kernel to control groups of memory: where their tree is, and the names of its files. */
typedef struct interface {
    const char *controllers; /* as in /proc/self/cgroup */
    const char *tree, *limit, *used, *dropped_first, *dropped_next;
} interface;

static const interface interfaces[] = {
    {"", "", "memory.max", "memory.current", "inactive_file", "active_file"},
    {"memory", "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"},
};

static int64_t read_of(const char *group, const char *name, const char *key)
{
    char path[GM_PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", group, name) < GM_PATH_MAX ? read_number(path, key) : -1;
}

/* The memory that one group leaves. Pages of files count as used there, but the system drops them when memory is
 * wanted. */
static int64_t left_in(const interface *i, const char *group)
{
    int64_t limit = read_of(group, i->limit, ""), used = read_of(group, i->used, "");
    if (limit < 0 || used < 0)
        return INT64_MAX;
    int64_t first = read_of(group, "memory.stat", i->dropped_first);
    int64_t next = read_of(group, "memory.stat", i->dropped_next);
    used -= gm_min(used, gm_max(first, 0) + gm_max(next, 0));
    return gm_max(limit - used, 0);
}

/* The least that a group and those above it leave. path: of the group in the tree, is cut. Seen from a container the
 * path may not exist: the top of the tree is then the container's group. */
static int64_t left_above(const interface *i, const char *root, char *path)
{
    char group[GM_PATH_MAX];
    int64_t least = INT64_MAX;
    for (;;) {
        if (snprintf(group, sizeof group, "%s%s%s", root, i->tree, path) < GM_PATH_MAX)
            least = gm_min(least, left_in(i, group));
        char *slash = strrchr(path, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

int64_t gm_budget_of_groups(const char *list, const char *root)
{
    FILE *file = fopen(list, "re");
    char line[GM_PATH_MAX];
    int64_t least = INT64_MAX;
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        for (size_t i = 0; i < sizeof interfaces / sizeof interfaces[0]; i++)
            if (strcmp(controllers + 1, interfaces[i].controllers) == 0)
                least = gm_min(least, left_above(&interfaces[i], root, path));
    }
    if (file)
        fclose(file);
    return least;
}

int64_t gm_budget_available(void)
{
    int64_t available = read_number("/proc/meminfo", "MemAvailable");
    available = available < 0 ? INT64_C(1) << 30 : available * 1024;
    return gm_min(available, gm_budget_of_groups("/proc/self/cgroup", "/sys/fs/cgroup"));
}
