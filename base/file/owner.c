#include "base/file/owner.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/hash.h"

/* Which host, and which boot of it. */
typedef struct place {
    uint32_t host, boot;
    time_t booted; /* 0: unknown */
} place;

/* The first line of a file; "" when there is none. */
static const char *read_line(const char *path, char *line, int room)
{
    FILE *file = fopen(path, "re");
    if (!file || !fgets(line, room, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    return line;
}

static time_t boot_time(void)
{
    char line[256];
    FILE *file = fopen("/proc/stat", "re");
    long long seconds = 0;
    while (file && seconds == 0 && fgets(line, sizeof line, file))
        sscanf(line, "btime %lld", &seconds);
    if (file)
        fclose(file);
    return (time_t)seconds;
}

/* Processes have other numbers in each PID namespace: one is a host of its own. */
static place find_place(void)
{
    char text[256] = "";
    gethostname(text, sizeof text - 1);
    uint64_t host = gm_hash_text(GM_HASH_START, text), boot;
    host = gm_hash_text(host, read_line("/etc/machine-id", text, sizeof text));
    ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    host = gm_hash_text(host, text);
    boot = gm_hash_text(GM_HASH_START, read_line("/proc/sys/kernel/random/boot_id", text, sizeof text));
    return (place){(uint32_t)host, (uint32_t)boot, boot_time()};
}

/* When a process was started, in ticks since the boot; 0: unknown. *ended: only its exit code is left of it. */
static unsigned long long start_of(long process, int *ended)
{
    char path[64], text[1024], state = '?';
    unsigned long long start = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    const char *after = strrchr(read_line(path, text, sizeof text), ')'); /* the name before may hold anything */
    if (!after || sscanf(after + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                         &state, &start) != 2)
        start = 0;
    *ended = state == 'Z' || state == 'X';
    return start;
}

/* A start of a batch job. Slurm queues a job again after the loss of a node, perhaps for other hosts: it then has the
 * same number, and a higher count. */
typedef struct attempt {
    uint32_t job; /* a hash of 24 bits, for short names */
    unsigned count;
} attempt;

/* Returns whether this process is in such a job. */
static int find_attempt(attempt *a)
{
    const char *cluster = getenv("SLURM_CLUSTER_NAME"), *job = getenv("SLURM_JOB_ID");
    const char *count = getenv("SLURM_RESTART_COUNT");
    if (!job)
        return 0;
    uint64_t hash = gm_hash_text(gm_hash_text(GM_HASH_START, cluster ? cluster : ""), job);
    *a = (attempt){(uint32_t)(hash & 0xffffff), count ? (unsigned)strtoul(count, NULL, 10) : 0};
    return 1;
}

char *gm_owner_word(char *word)
{
    place here = find_place();
    attempt now;
    int ended, length = snprintf(word, GM_OWNER_TEXT, "%08" PRIx32 "-%08" PRIx32 "-%ld-%llx", here.host, here.boot,
                                 (long)getpid(), start_of((long)getpid(), &ended));
    if (find_attempt(&now))
        snprintf(word + length, (size_t)(GM_OWNER_TEXT - length), "-%06" PRIx32 "-%x", now.job, now.count);
    return word;
}

/* Is this process in a later start of the same batch job? Slurm has ended the earlier one, or is about to: should that
 * still run on a host that is cut off, it fails when it wants to name its file. */
static int is_later_start(const attempt *then)
{
    attempt now;
    return find_attempt(&now) && now.job == then->job && now.count > then->count;
}

gm_owner gm_owner_find(const char *word, time_t changed, long *process)
{
    place here = find_place();
    uint32_t host, boot;
    unsigned long long start;
    attempt then;
    int length = 0, more = 0, ended = 0;
    *process = 0;
    int found = sscanf(word, "%8" SCNx32 "-%8" SCNx32 "-%ld-%llx%n-%6" SCNx32 "-%x%n", &host, &boot, process, &start,
                       &length, &then.job, &then.count, &more);
    length = more ? more : length;
    if (found < 4 || (word[length] != '\0' && word[length] != '.') || *process <= 0) {
        *process = 0;
        return GM_OWNER_ELSEWHERE;
    }
    if (more && is_later_start(&then))
        return GM_OWNER_DEAD;
    if (host != here.host)
        return GM_OWNER_ELSEWHERE;
    if (boot != here.boot) /* a copy of a virtual machine has the same name, and writes at this moment perhaps */
        return here.booted && changed < here.booted ? GM_OWNER_DEAD : GM_OWNER_ELSEWHERE;
    /* /proc may hide the processes of other users; kill() does not. */
    if (kill((pid_t)*process, 0) && errno == ESRCH)
        return GM_OWNER_DEAD;
    unsigned long long now = start_of(*process, &ended);
    return ended || (now && start && now != start) ? GM_OWNER_DEAD : GM_OWNER_ALIVE;
}
