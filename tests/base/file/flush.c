/* A file to the disk: small ones, large ones in steps, what cannot be flushed, and after a signal. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/flush.h"
#include "base/status.h"
#include "base/stop.h"
#include "tests/tap.h"

/* A file without a name in the working folder, of so many bytes; every MiB has other ones. */
static int make(int64_t bytes)
{
    static char block[1 << 20];
    char name[] = "flush-XXXXXX";
    int fd = mkstemp(name);
    if (fd >= 0)
        unlink(name);
    for (int64_t at = 0; fd >= 0 && at < bytes; at += (int64_t)sizeof block) {
        size_t next = (size_t)(bytes - at) < sizeof block ? (size_t)(bytes - at) : sizeof block;
        memset(block, (int)(at >> 20) + 1, next);
        if (pwrite(fd, block, next, at) != (ssize_t)next) {
            close(fd);
            return -1;
        }
    }
    return fd;
}

static void test_size(int64_t bytes)
{
    int stopped = 1, good = 1, fd = make(bytes), why = gm_file_flush_stoppable(fd, &stopped);
    for (int64_t at = 0; at < bytes; at += 1 << 20) {
        unsigned char byte = 0;
        good &= pread(fd, &byte, 1, at) == 1 && byte == (unsigned char)((at >> 20) + 1);
    }
    tap_ok(fd >= 0 && why == 0 && stopped == GM_OK && good, "a file of %lld bytes", (long long)bytes);
    close(fd);
}

static void test_signal(void)
{
    gm_error error;
    int stopped = GM_OK, fd = make(40 << 20);
    raise(SIGTERM);
    int why = gm_file_flush_stoppable(fd, &stopped);
    gm_error_get(&error);
    tap_ok(why == 0 && stopped == GM_ESTOPPED && error.code == GM_ESTOPPED, "after a signal: %s", error.text);
    tap_ok(gm_file_flush(fd) == 0, "the flush that nothing ends");
    gm_error_clear();
    close(fd);
}

int main(void)
{
    int stopped = 1, pair[2], folder = open(".", O_RDONLY | O_DIRECTORY);
    gm_stop_install();
    test_size(0);
    test_size(1000);
    test_size((16 << 20) + 1);
    test_size((100 << 20) + 12345);
    int why = gm_file_flush_stoppable(folder, &stopped);
    tap_ok((why == 0 || why == EINVAL) && stopped == GM_OK, "a folder (%s)", strerror(why));
    tap_ok(gm_file_flush_stoppable(-1, &stopped) == EBADF && stopped == GM_OK, "no descriptor");
    if (pipe(pair) == 0) {
        tap_ok(gm_file_flush_stoppable(pair[1], &stopped) == EINVAL && stopped == GM_OK, "a pipe");
        close(pair[0]);
        close(pair[1]);
    }
    test_signal();
    close(folder);
    return tap_done();
}
