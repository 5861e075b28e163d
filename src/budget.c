#include "src/budget.h"

#include "base/size.h"

#include <stdio.h>
#include <string.h>

/* The number after key in a file of "key: number kB" lines, in bytes; -1 if it is not there. */
static int64_t read_key(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    char line[256];
    long long value;
    int64_t found = -1;
    while (file && found < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), ": %lld", &value) == 1)
            found = value * 1024;
    if (file)
        fclose(file);
    return found;
}

/* A file that holds one number; -1 if there is none ("max"). */
static int64_t read_number(const char *path)
{
    FILE *file = fopen(path, "r");
    long long value = -1;
    if (file && fscanf(file, "%lld", &value) != 1)
        value = -1;
    if (file)
        fclose(file);
    return value;
}

int64_t gm_budget_available(void)
{
    int64_t available = read_key("/proc/meminfo", "MemAvailable");
    if (available < 0)
        available = INT64_C(1) << 30;
    int64_t limit = read_number("/sys/fs/cgroup/memory.max"), used = read_number("/sys/fs/cgroup/memory.current");
    if (limit >= 0 && used >= 0)
        available = gm_min(available, gm_max(limit - used, 0));
    return available;
}
