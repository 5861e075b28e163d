#define _GNU_SOURCE /* sched_setaffinity() */
#include "tests/affinity.h"

#include <dirent.h>
#include <stdlib.h>

void affinity_set(const cpu_set_t *given)
{
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *entry; threads && (entry = readdir(threads));)
        if (entry->d_name[0] != '.')
            sched_setaffinity(atoi(entry->d_name), sizeof *given, given);
    if (threads)
        closedir(threads);
}
