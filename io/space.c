/* space.c - the space of an output that has it beforehand, given slice by slice while others compute: it is there as far as the file reaches.
 * Who wants to write beyond that waits. When there is no space, the file goes, which those who wait see. */
#define _GNU_SOURCE 1 /* fallocate */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "io/scratch.h"

static const int64_t slice = INT64_C(64) << 20;

int gm_space_allocate(int fd, int64_t from, int64_t to)
{
    int why;

    do {
        why = to > from && fallocate(fd, 0, from, to - from) ? errno : 0;
    } while (why == EINTR);
    return why;
}

int gm_space_fail(const gm_output_record *record, const char *why)
{
    char needed[GM_SIZE_TEXT];
    int64_t bytes = 0;

    for (int i = 0; i < record->datasets; i++)
        bytes = gm_add_sat(bytes, gm_output_bytes(&record->dataset[i]));
    return gm_fail(GM_EOUTPUT, "%s: no space for %s: %s", record->file, gm_size_format(bytes, needed), why);
}

/* Data that end the file: nothing of it but them would go if it was cut before them. */
static int ends_with_data(const gm_output_record *record, int64_t size)
{
    return record->datasets == 1 && !record->dataset[0].chunked && record->stripe[0] == 0 && record->offset[0] > 0
           && record->offset[0] + gm_output_bytes(&record->dataset[0]) == size && size - record->offset[0] > slice;
}

int gm_space_prepare(gm_output_record *record, int fd)
{
    struct stat st;
    int why;

    record->space = 0;
    if (record->way == GM_WAY_PLAIN)
        return GM_OK;
    why = fstat(fd, &st) ? errno : 0;
    if (!why && record->behind && record->hosts <= 1 && ends_with_data(record, st.st_size)) {
        /* The first slice tells whether this file system gives any. */
        why = ftruncate(fd, record->offset[0]) ? errno : gm_space_allocate(fd, 0, record->offset[0] + slice);
        if (!why)
            record->space = st.st_size;
        else if (why == EOPNOTSUPP && ftruncate(fd, st.st_size))
            why = errno;
    } else if (!why) {
        why = gm_space_allocate(fd, 0, st.st_size);
    }
    if (why == EOPNOTSUPP) {
        record->way = GM_WAY_PLAIN;
        why = 0;
    }
    return why ? gm_space_fail(record, strerror(why)) : GM_OK;
}

int gm_output_fill(const gm_output_record *record)
{
    int fd, why = 0, status = GM_OK;

    if (record->space == 0)
        return GM_OK;
    if ((fd = open(record->temporary, O_RDWR | O_CLOEXEC)) < 0)
        why = errno;
    for (int64_t at = record->offset[0] + slice; at < record->space && !why; at += slice)
        why = gm_space_allocate(fd, at, gm_min(at + slice, record->space));
    if (why) {
        status = gm_space_fail(record, strerror(why));
        unlink(record->temporary);
    }
    if (fd >= 0)
        close(fd);
    return status;
}

/* One look at the file. Many threads that look at it would hold up the one that gives it its space. */
static int look(const gm_output_record *record, int fd, int64_t end, gm_space_seen *seen)
{
    const struct timespec moment = {0, 500 * 1000};
    struct stat st;

    if (fstat(fd, &st))
        return gm_fail(GM_EOUTPUT, "%s: its size cannot be found out: %s", record->file, strerror(errno));
    if (st.st_nlink == 0)
        return gm_space_fail(record, "it was taken back");
    seen->end = st.st_size;
    if (st.st_size < end)
        nanosleep(&moment, NULL);
    return GM_OK;
}

int gm_space_wait(const gm_output_record *record, int fd, int64_t end, gm_space_seen *seen)
{
    int status = GM_OK;

    /* On tmpfs each page that a mapping touches while space is given takes the inode's lock: many threads are several times slower then, and the
     * giving as well. They begin when it is done. */
    if (record->way == GM_WAY_MAPPED || end > record->space)
        end = record->space;
    while (!status && seen->end < end) {
        pthread_mutex_lock(&seen->looking);
        if (seen->end < end)
            status = look(record, fd, end, seen);
        pthread_mutex_unlock(&seen->looking);
    }
    return status;
}
