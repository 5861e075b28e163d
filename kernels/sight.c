#include "kernels/sight.h"

#include <ctype.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* --- Facts of the system --- */

/* Files that match a pattern below root; *usable: how many of them this process may read and write. */
static int count_files(const char *root, const char *pattern, int *usable)
{
    char path[512];
    glob_t found;
    int count = 0;
    *usable = 0;
    if (snprintf(path, sizeof path, "%s%s", root, pattern) >= (int)sizeof path)
        return 0;
    if (glob(path, GLOB_NOSORT, NULL, &found) == 0) {
        count = found.gl_pathc < INT_MAX ? (int)found.gl_pathc : 0;
        for (int i = 0; i < count; i++)
            *usable += access(found.gl_pathv[i], R_OK | W_OK) == 0;
    }
    globfree(&found);
    return count;
}

int gm_sight_count(const char *root)
{
    static const char *const others[] = {"/proc/driver/nvidia/capabilities/gpu*/mig/gi*", "/tmp/nvidia-mps/control"};
    int usable, files;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (count_files(root, others[i], &usable) > 0)
            return GM_SIGHT_LEAVE;
    if (getenv("CUDA_MPS_PIPE_DIRECTORY") != NULL)
        return GM_SIGHT_LEAVE;
    int gpus = count_files(root, "/proc/driver/nvidia/gpus/*", &usable);
    if (gpus == 0)
        return 0;
    files = count_files(root, "/dev/nvidia[0-9]*", &usable);
    return files == gpus && usable == gpus ? gpus : GM_SIGHT_LEAVE;
}

int gm_sight_is_job(void)
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]) != NULL)
            return 1;
    return 0;
}

/* --- Lists --- */

typedef struct list {
    const char *text;
    int count, has_numbers;
} list;

/* Copies the entry that begins there. Returns whether it is short enough. */
static int copy_entry(const char *at, gm_sight_entry entry)
{
    size_t length = strcspn(at, ",");
    if (length >= GM_SIGHT_MAX)
        return 0;
    memcpy(entry, at, length);
    entry[length] = '\0';
    return 1;
}

/* The beginning of the entry after this one, or NULL. */
static const char *next_entry(const char *at)
{
    at = strchr(at, ',');
    return at ? at + 1 : NULL;
}

/* "0", "12": as a person writes a number. */
static int is_number(const char *entry)
{
    size_t digits = strspn(entry, "0123456789");
    return digits > 0 && digits < 5 && entry[digits] == '\0' && (entry[0] != '0' || digits == 1);
}

/* "GPU-01234567-89ab-cdef-0123-456789abcdef": a whole one, as CUDA takes what begins several for none. */
static int is_uuid(const char *entry)
{
    static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if (strlen(entry) != sizeof form - 1)
        return 0;
    for (size_t i = 0; i < sizeof form - 1; i++)
        if (form[i] == 'x' ? !isxdigit((unsigned char)entry[i]) : entry[i] != form[i])
            return 0;
    return 1;
}

/* Is the entry one of those of text before `end`? They are short enough. */
static int is_repeated(const char *text, const char *end, const char *entry)
{
    gm_sight_entry before;
    for (const char *at = text; at < end; at = next_entry(at))
        if (copy_entry(at, before) && strcasecmp(before, entry) == 0)
            return 1;
    return 0;
}

/* Returns whether text is a list of numbers, or one of UUIDs, without repetitions. */
static int read_list(const char *text, list *l)
{
    gm_sight_entry entry;
    *l = (list){.text = text};
    for (const char *at = text; at; at = next_entry(at)) {
        if (!copy_entry(at, entry))
            return 0;
        int has_number = is_number(entry);
        if (l->count++ == 0)
            l->has_numbers = has_number;
        if (has_number != l->has_numbers || (!has_number && !is_uuid(entry)) || is_repeated(text, at, entry))
            return 0;
    }
    return 1;
}

/* Entry i of a list that was read. */
static char *entry_of(const list *l, int i, gm_sight_entry entry)
{
    const char *at = l->text;
    while (i-- > 0)
        at = next_entry(at);
    copy_entry(at, entry);
    return entry;
}

int gm_sight_choose(const char *visible, int gpus, int local_rank, gm_sight_entry entry, int *position)
{
    list l;
    if (local_rank < 0 || gpus == GM_SIGHT_LEAVE)
        return 0;
    if (visible == NULL) {
        *position = gpus > 0 ? local_rank % gpus : 0;
        snprintf(entry, GM_SIGHT_MAX, "%d", *position);
        return gpus > 1;
    }
    if (!read_list(visible, &l) || l.count < 2)
        return 0;
    for (int i = 0; i < l.count && l.has_numbers && gpus > 0; i++)
        if (atoi(entry_of(&l, i, entry)) >= gpus) /* where CUDA ends the list */
            return 0;
    *position = local_rank % l.count;
    entry_of(&l, *position, entry);
    return 1;
}

int gm_sight_number(const char *visible, int index)
{
    list l;
    gm_sight_entry entry;
    int has_number = visible != NULL && read_list(visible, &l) && l.has_numbers && index >= 0 && index < l.count;
    return has_number ? atoi(entry_of(&l, index, entry)) : index;
}
