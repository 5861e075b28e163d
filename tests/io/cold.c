/* cold.c - large reads with and without the page cache: the same bytes for every offset, address and result of a system
 * call. */
#define _GNU_SOURCE 1 /* O_DIRECT */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/size.h"
#include "io/bytes.h"
#include "io/cold.h"
#include "io/parallel_for.h"
#include "tests/io/each.h"

enum { SIZE = (40 << 20) + 1234, GUARD = 64, MOST = 3 << 20 };

static int few; /* under valgrind: fewer reads, and some of their bytes */

/* The results of direct reads. */
static enum { FINE, INTERRUPTED, SHORT, ODD, REFUSED, FAILING } mood;
static atomic_int direct_reads;

/* Stands before the C library's own: all reads of the program pass through it. */
ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_DIRECT)) {
        int count = atomic_fetch_add(&direct_reads, 1);
        if (mood == REFUSED || mood == FAILING || (mood == INTERRUPTED && count % 2 == 0)) {
            errno = mood == REFUSED ? EINVAL : mood == FAILING ? EIO : EINTR;
            return -1;
        }
        if (mood == SHORT && bytes > 8192)
            bytes = bytes / 2 / 4096 * 4096;
        if (mood == ODD && bytes > 8192) { /* as at the end of a file */
            ssize_t got = syscall(SYS_pread64, fd, buffer, bytes, offset);

            return got > 1000 ? got - 777 : got;
        }
    } else if (mood == INTERRUPTED && bytes > 100) {
        bytes /= 3;
    }
    return syscall(SYS_pread64, fd, buffer, bytes, offset);
}

static unsigned char expected(int64_t offset)
{
    return (unsigned char)((uint64_t)(offset + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

static int make(const char *name)
{
    unsigned char *data = malloc(SIZE);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0666);
    for (int64_t i = 0; i < SIZE; i++)
        data[i] = expected(i);
    if (fd < 0 || pwrite(fd, data, SIZE, 0) != SIZE)
        printf("Bail out! %s cannot be written\n", name);
    free(data);
    return fd;
}

static void forget(int fd)
{
    fdatasync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Wrong bytes of one read to an address of this distance from a page's, and around it. */
static int64_t read_once(const gm_bytes *file, int64_t offset, size_t bytes, size_t from_page)
{
    unsigned char *room = aligned_alloc(4096, MOST + 4 * 4096), *dst = room + 4096 + from_page;
    int64_t wrong = 0;
    memset(room, 0x5a, MOST + 4 * 4096);
    wrong += gm_bytes_read(file, offset, dst, bytes) != GM_OK;
    for (size_t i = 0; i < bytes; i += few ? 61 : 1)
        wrong += dst[i] != expected(offset + (int64_t)i);
    for (int i = 1; i <= GUARD; i++)
        wrong += (dst[-i] != 0x5a) + (dst[bytes + (size_t)i - 1] != 0x5a);
    free(room);
    return wrong;
}

static void check(const char *name, int fd, gm_cold_strategy strategy)
{
    static const size_t shifts[] = {0, 512, 2048, 1, 4, 4095, 1023};
    gm_bytes file = {.fd = fd, .code = GM_EINPUT, .title = name, .cold = gm_cold_open(fd, strategy)};
    int64_t wrong = 0;
    for (int i = 0; i < (few ? 28 : 60); i++) { /* each with every shift and many offsets */
        size_t bytes = i % 4 ? GM_COLD_MIN_BYTES + (size_t)rand() % (MOST - GM_COLD_MIN_BYTES) : (size_t)rand() % MOST;
        int64_t offset = rand() % (SIZE - (int64_t)bytes + 1);
        if (i % 3 == 0)
            offset = offset / 4096 * 4096;
        else if (i % 3 == 1)
            offset = gm_min(offset / 512 * 512 + 2048, SIZE - (int64_t)bytes);
        if (i == 5)
            offset = SIZE - (int64_t)bytes;
        if (i % 2 == 0)
            forget(fd);
        wrong += read_once(&file, offset, bytes, shifts[i % 7]);
    }
    tap_ok(wrong == 0, "%s: every byte", name);
    if (wrong)
        tap_diag("%lld wrong", (long long)wrong);
    gm_error_clear();
    gm_cold_close(file.cold);
}

static void check_cut(int fd)
{
    gm_bytes file = {.fd = fd, .code = GM_EINPUT, .title = "cut", .cold = gm_cold_open(fd, GM_COLD_DIRECT)};
    void *room = malloc(MOST);
    forget(fd);
    fails(gm_bytes_read(&file, SIZE - MOST + 1, room, MOST), GM_EINPUT, "the file ends before byte", "a cut file");
    fails(gm_bytes_read(&file, 2 * SIZE, room, MOST), GM_EINPUT, "the file ends before byte", "past the end");
    fails(gm_bytes_read(&file, -1, room, MOST), GM_EINPUT, "exceed the largest file offset", "a negative offset");
    gm_cold_close(file.cold);
    free(room);
}

enum { PIECE = GM_COLD_MIN_BYTES + 4096 };

static int read_piece(void *context, int thread, int64_t index)
{
    (void)thread;
    return read_once(context, index * PIECE, PIECE, 0) ? GM_EINTERNAL : GM_OK;
}

static void check_contest(int fd, int threads)
{
    gm_bytes file = {.fd = fd, .code = GM_EINPUT, .title = "contest", .cold = gm_cold_open(fd, GM_COLD_PROBE)};
    double rate[GM_COLD_DIRECT + 1];
    gm_cold_strategy strategy = GM_COLD_PROBE;
    int status = file.cold ? GM_OK : GM_EINTERNAL;
    for (int pass = 0; pass < 4 && !status && strategy == GM_COLD_PROBE; pass++) {
        forget(fd);
        status = gm_parallel_for(threads, SIZE / PIECE, read_piece, &file);
        strategy = gm_cold_result(file.cold, rate);
    }
    tap_ok(status == GM_OK, "contest of %d threads: every byte", threads);
    tap_ok(strategy != GM_COLD_PROBE && rate[GM_COLD_CACHED] > 0 && rate[GM_COLD_DIRECT] > 0,
           "contest of %d threads: decided", threads);
    gm_cold_close(file.cold);
}

int main(void)
{
    static const char *const moods[] = {"direct", "interrupted", "short", "odd", "refused", "failing"};
    int fd = make(own("cold.bin")), shm, is_direct;
    few = getenv("GPUMEM_TEST_MEMCHECK") != NULL;
    check("contest", fd, GM_COLD_PROBE);
    for (mood = FINE; mood <= FAILING; mood++)
        check(moods[mood], fd, GM_COLD_DIRECT);
    mood = FINE;
    is_direct = atomic_load(&direct_reads) > 0;
    tap_diag("direct reads: %d", atomic_load(&direct_reads));
    check_cut(fd);
    for (int threads = 1; threads <= 5; threads += 2)
        if (is_direct)
            check_contest(fd, threads);
        else
            tap_skip("no direct reads, or no query of the page cache, on this file system", "contest of %d threads",
                     threads);
    close(fd);
    shm = access("/dev/shm", W_OK) ? -1 : 0;
    if (shm == 0) {
        char name[64];
        snprintf(name, sizeof name, "/dev/shm/gpumem-io_cold.%ld", (long)getpid());
        shm = make(name);
        unlink(name);
        check("tmpfs", shm, GM_COLD_PROBE);
        check("tmpfs, direct", shm, GM_COLD_DIRECT);
        close(shm);
    } else {
        tap_skip("no /dev/shm", "tmpfs");
    }
    return tap_done();
}
