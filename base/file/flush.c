#define _GNU_SOURCE 1 /* sync_file_range */
#include "base/file/flush.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/stop.h"

enum { ATTEMPTS = 100 };
/* Bytes of a step, by its time: no fewer than a slow disk writes in less than a second, as storage that takes long to
 * answer would write them no faster. */
static const int64_t least_step = 16 << 20, most_step = 256 << 20;
static const double short_step = 0.1, long_step = 0.4; /* seconds */

int gm_file_flush(int fd)
{
    int why = EINTR;
    for (int attempt = 0; attempt < ATTEMPTS && why == EINTR; attempt++)
        why = fsync(fd) ? errno : 0;
    return why;
}

/* Does an error say that a file cannot be flushed by ranges? Any other one is of its data, and is told only once. */
static int is_refusal(int why)
{
    return why == EINVAL || why == ENOSYS || why == ESPIPE || why == EOPNOTSUPP || why == EPERM;
}

/* The pages of the first `size` bytes. The next step begins while the disk has the one before. The rest at
 * the end is for fsync(). Returns 0 or an errno. */
static int flush_steps(int fd, int64_t size, int *stopped)
{
    int64_t step = least_step, begin = 0, end = 0;
    int why = 0;
    while (end < size && !why && !(*stopped = gm_stop_status())) {
        int64_t next = gm_min(step, size - end);
        double from = gm_clock(), seconds;
        why = sync_file_range(fd, end, next, SYNC_FILE_RANGE_WRITE) ? errno : 0;
        if (!why && end > begin)
            why = sync_file_range(fd, begin, end - begin,
                                  SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER)
                      ? errno
                      : 0;
        seconds = gm_clock() - from;
        begin = end;
        end += next;
        step = seconds < short_step  ? gm_min(2 * step, most_step)
               : seconds > long_step ? gm_max(step / 2, least_step)
                                     : step;
    }
    return is_refusal(why) ? 0 : why;
}

int gm_file_flush_stoppable(int fd, int *stopped)
{
    struct stat st;
    int why = 0;
    *stopped = gm_stop_status();
    if (!*stopped && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > least_step)
        why = flush_steps(fd, st.st_size, stopped);
    if (!*stopped && !why)
        *stopped = gm_stop_status();
    return *stopped || why ? why : gm_file_flush(fd);
}
