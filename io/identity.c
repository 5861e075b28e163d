/* identity.c - takes and compares the identities of files. */
#include "io/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "base/text/hash.h"

static const int64_t second = 1000000000, tick = 10000000; /* ns; ticks are of 1 to 10 ms */

/* --- This host --- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t this_host;

/* Hosts may share a name; each start of a kernel has a number. */
static void find_host(void)
{
    char name[256] = "", boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file && !fgets(boot, sizeof boot, file))
        boot[0] = '\0';
    if (file)
        fclose(file);
    gethostname(name, sizeof name - 1);
    this_host = gm_hash_text(gm_hash_text(GM_HASH_START, name), boot) | 1;
}

/* --- Stamps --- */

static int wants_stamps;

void gm_identity_want_stamps(int on)
{
    wants_stamps = on;
}

enum { END = 64 * 1024, BLOCK = 4096, BLOCKS = 16 };

static int add_range(int fd, int64_t offset, size_t bytes, uint64_t *sum)
{
    char room[BLOCK];
    while (bytes) {
        ssize_t got = pread(fd, room, bytes < sizeof room ? bytes : sizeof room, offset);
        if (got <= 0)
            return got < 0 ? errno : EIO;
        *sum = gm_hash_bytes(*sum, room, (size_t)got);
        offset += got;
        bytes -= (size_t)got;
    }
    return 0;
}

static int take_stamp(int fd, int64_t size, uint64_t *stamp)
{
    int64_t end = gm_min(size, END);
    uint64_t sum = gm_hash_bytes(GM_HASH_START, &size, sizeof size);
    int failed = add_range(fd, 0, (size_t)end, &sum);
    if (!failed)
        failed = add_range(fd, size - end, (size_t)end, &sum);
    for (int i = 1; i <= BLOCKS && !failed && size > 4 * END; i++)
        failed = add_range(fd, size / (BLOCKS + 1) * i, BLOCK, &sum);
    *stamp = sum | 1;
    return failed;
}

/* --- Identities --- */

static void set(const struct stat *st, gm_identity *identity)
{
    pthread_once(&once, find_host);
    *identity = (gm_identity){.host = this_host,
                              .device = (uint64_t)st->st_dev,
                              .inode = (uint64_t)st->st_ino,
                              .size = (int64_t)st->st_size,
                              .modified = (int64_t)st->st_mtim.tv_sec * second + st->st_mtim.tv_nsec};
}

/* Returns whether it had to wait for the end of the tick. */
static int wait_for_tick(const gm_identity *identity)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = (int64_t)now.tv_sec * second + now.tv_nsec - identity->modified;
    if (age < 0 || age >= tick) /* or the clock of a server */
        return 0;
    nanosleep(&(struct timespec){0, tick - age}, NULL);
    return 1;
}

static int stamp_path(const char *path, int64_t size, uint64_t *stamp)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int failed = fd < 0 ? errno : take_stamp(fd, size, stamp);
    if (fd >= 0)
        close(fd);
    return failed;
}

int gm_identity_take(const char *path, gm_identity *identity)
{
    struct stat st;
    for (int waits = 1; waits >= 0; waits--) {
        if (stat(path, &st))
            return errno;
        set(&st, identity);
        if (!waits || !wait_for_tick(identity))
            break;
    }
    return wants_stamps && S_ISREG(st.st_mode) ? stamp_path(path, identity->size, &identity->stamp) : 0;
}

/* --- Copies of described files on this host --- */

typedef struct copy {
    gm_identity described, own;
    struct copy *next;
} copy;

enum { COPIES = 4096 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static copy *copies[COPIES]; /* by inode; for the life of the process */

/* The copy that was found before; if there was none, `now` becomes it. NULL: none, and no memory. */
static const copy *find_copy(const gm_identity *described, const gm_identity *now, int adds)
{
    copy **list = &copies[described->inode % COPIES], *found;
    pthread_mutex_lock(&mutex);
    for (found = *list; found && memcmp(&found->described, described, sizeof *described) != 0;)
        found = found->next;
    if (!found && adds && (found = malloc(sizeof *found))) {
        *found = (copy){*described, *now, *list};
        *list = found;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

static const char *compare_here(const gm_identity *a, const gm_identity *b)
{
    return a->device != b->device || a->inode != b->inode ? "another file"
           : a->size != b->size                           ? "size"
           : a->modified != b->modified                   ? "modification time"
                                                          : NULL;
}

/* The difference; NULL: none. */
static const char *compare(const gm_identity *described, const gm_identity *now, int fd, const char *path)
{
    uint64_t stamp = 0;
    if (described->host == now->host)
        return compare_here(described, now);
    const copy *known = find_copy(described, now, 0);
    if (known)
        return compare_here(&known->own, now);
    if (described->size != now->size)
        return "size";
    if (described->inode != now->inode || described->modified != now->modified) {
        if (fd >= 0 ? take_stamp(fd, now->size, &stamp) : stamp_path(path, now->size, &stamp))
            return "cannot be read";
        if (stamp != described->stamp)
            return "another file";
    }
    find_copy(described, now, 1);
    return NULL;
}

static int check(const gm_identity *described, const struct stat *st, int fd, const char *path, const char *title)
{
    gm_identity now;
    set(st, &now);
    const char *what = compare(described, &now, fd, path);
    return what ? gm_fail(GM_EINPUT, "%s: has changed during the run (%s)", title, what) : GM_OK;
}

int gm_identity_check_open(const gm_identity *described, int fd, const char *path, const char *title)
{
    struct stat st;
    if (!described->host)
        return GM_OK;
    if (fstat(fd, &st))
        return gm_fail(GM_EINPUT, "%s: %s", title, strerror(errno));
    return check(described, &st, fd, path, title);
}

int gm_identity_check(const gm_identity *described, const char *path, const char *title)
{
    struct stat st;
    if (!described->host)
        return GM_OK;
    if (stat(path, &st))
        return gm_fail(GM_EINPUT, "%s: has changed during the run (%s)", title,
                       errno == ENOENT ? "it was removed" : strerror(errno));
    return check(described, &st, -1, path, title);
}
