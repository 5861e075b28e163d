/* space.c - allocates the space of an output slice by slice while others compute: the size of the file is the end of
 * its space, and writers wait until it reaches their range. When the allocation fails, the file is marked by a bit of
 * its permissions, which those writers detect: the file may have no name, and late writers change its size. */
#define _GNU_SOURCE 1 /* fallocate */
#include "io/write/space.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/size.h"
#include "base/status.h"
#include "base/stop.h"
#include "io/write/record.h"

static const int64_t slice = INT64_C(64) << 20;

int gm_space_allocate(int fd, int64_t from, int64_t to)
{
    int why;
    do {
        why = to > from && fallocate(fd, 0, from, to - from) ? errno : 0;
    } while (why == EINTR);
    return why;
}

static int fail(const gm_output_record *record, const char *why)
{
    char needed[GM_SIZE_TEXT];
    int64_t bytes = 0;
    for (int i = 0; i < record->datasets; i++)
        bytes = gm_add_sat(bytes, gm_record_bytes(&record->dataset[i]));
    return gm_fail(GM_EOUTPUT, "%s: no space for %s: %s", record->file, gm_size_format(bytes, needed), why);
}

/* In slices, until one fails (*why) or a signal comes. */
static int allocate(int fd, int64_t from, int64_t to, int *why)
{
    int status = GM_OK;
    *why = 0;
    for (int64_t at = from; at < to && !*why && !status; at += slice) {
        *why = gm_space_allocate(fd, at, gm_min(at + slice, to));
        status = gm_stop_status();
    }
    return status;
}

/* Is the dataset the last thing in the file? Then truncation at its begin removes nothing else. */
static int ends_with_data(const gm_output_record *record, int64_t size)
{
    return record->datasets == 1 && !record->dataset[0].chunked && record->stripe[0] == 0 && record->offset[0] > 0 &&
           record->offset[0] + gm_record_bytes(&record->dataset[0]) == size && size - record->offset[0] > slice;
}

int gm_space_prepare(gm_output_record *record, int fd)
{
    struct stat st;
    int status = GM_OK;
    record->space = 0;
    if (record->strategy == GM_WRITE_PLAIN)
        return GM_OK;
    int why = fstat(fd, &st) ? errno : 0;
    if (!why && record->overlap && record->hosts <= 1 && ends_with_data(record, st.st_size)) {
        /* The first slice shows whether the file system can allocate. */
        why = ftruncate(fd, record->offset[0]) ? errno : gm_space_allocate(fd, 0, record->offset[0] + slice);
        if (!why)
            record->space = st.st_size;
        else if (why == EOPNOTSUPP && ftruncate(fd, st.st_size))
            why = errno;
    } else if (!why) {
        status = allocate(fd, 0, st.st_size, &why);
    }
    if (why == EOPNOTSUPP) {
        record->strategy = GM_WRITE_PLAIN;
        why = 0;
    }
    return why ? fail(record, strerror(why)) : status;
}

/* Without such a bit: an empty file. */
static void mark_failed(int fd)
{
    struct stat st;
    if ((fstat(fd, &st) || fchmod(fd, (st.st_mode & 07777) | S_ISVTX)) && ftruncate(fd, 0))
        gm_detail("the failed output cannot be marked: %s", strerror(errno));
}

int gm_output_allocate(const gm_output_record *record)
{
    int why;
    if (record->space == 0)
        return GM_OK;
    int status = allocate(record->descriptor, record->offset[0] + slice, record->space, &why);
    if (why)
        status = fail(record, strerror(why));
    if (status)
        mark_failed(record->descriptor);
    return status;
}

/* Checks the size of the file. Many threads that do so would delay the one that allocates. */
static int look(const gm_output_record *record, int fd, int64_t end, gm_space_seen *seen)
{
    const struct timespec poll_interval = {0, 500 * 1000};
    struct stat st;
    if (fstat(fd, &st))
        return gm_fail(GM_EOUTPUT, "%s: its size cannot be determined: %s", record->file, strerror(errno));
    if ((st.st_mode & S_ISVTX) || st.st_size == 0)
        return fail(record, "the allocation of its space failed");
    seen->end = st.st_size;
    if (st.st_size < end)
        nanosleep(&poll_interval, NULL);
    return GM_OK;
}

int gm_space_wait(const gm_output_record *record, int fd, int64_t end, gm_space_seen *seen)
{
    int status = GM_OK;
    /* On tmpfs each page fault of a mapping takes the inode's lock while space is allocated: writers and the allocation
     * would be several times slower. So they begin after it. */
    if (record->strategy == GM_WRITE_MAPPED || end > record->space)
        end = record->space;
    while (!status && seen->end < end) {
        pthread_mutex_lock(&seen->checking);
        if (seen->end < end)
            status = gm_stop_status();
        if (seen->end < end && !status)
            status = look(record, fd, end, seen);
        pthread_mutex_unlock(&seen->checking);
    }
    return status;
}
