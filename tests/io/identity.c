/* identity.c - files that change after they were described, and their copies on other hosts. */
#include "io/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/io/each.h"

enum { BYTES = 600 * 1000 };

static void write_file(const char *name, int at, char other)
{
    static char data[BYTES];
    for (int i = 0; i < BYTES; i++)
        data[i] = (char)(i * 7 + i / 256);
    if (at >= 0)
        data[at] = other;
    int fd = open(own(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (write(fd, data, sizeof data) != BYTES || close(fd))
        tap_diag("%s was not written", name);
}

static void write_byte(const char *name, int at, char byte)
{
    int fd = open(own(name), O_WRONLY);
    if (pwrite(fd, &byte, 1, at) != 1 || close(fd))
        tap_diag("%s was not changed", name);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int check(const gm_identity *identity, const char *name)
{
    return gm_identity_check(identity, own(name), name);
}

static void check_here(void)
{
    gm_identity identity;
    char byte;
    write_file("x", -1, 0);
    tap_ok(gm_identity_take(own("x"), &identity) == 0 && identity.size == BYTES && identity.host != 0, "a file");
    tap_ok(seconds() - 1e-9 * (double)identity.modified > 0.0099, "that was written just now is waited for");
    succeeds(check(&identity, "x"), "the same file");
    int fd = open(own("x"), O_RDONLY);
    tap_ok(read(fd, &byte, 1) == 1, "reading it");
    succeeds(gm_identity_check_open(&identity, fd, own("x"), "x"), "changes nothing");
    succeeds(chmod(own("x"), 0640), "nor does another mode");
    succeeds(check(&identity, "x"), "of it");
    write_byte("x", 300000, 1);
    fails(check(&identity, "x"), GM_EINPUT, "x: has changed during the run (modification time)", "a byte");
    fails(gm_identity_check_open(&identity, fd, own("x"), "x"), GM_EINPUT, "(modification time)", "of the open file");
    tap_ok(truncate(own("x"), BYTES - 1) == 0, "it is cut");
    fails(check(&identity, "x"), GM_EINPUT, "(size)", "a file that was cut");
    write_file("y", -1, 0);
    rename(own("y"), own("x"));
    fails(check(&identity, "x"), GM_EINPUT, "(another file)", "a file in its place");
    fails(gm_identity_check_open(&identity, fd, own("x"), "x"), GM_EINPUT, "(size)", "the open one is the old one");
    remove(own("x"));
    fails(check(&identity, "x"), GM_EINPUT, "(it was removed)", "a file that was removed");
    succeeds(check(&(gm_identity){.host = 0}, "x"), "what was not described is not compared");
    close(fd);
}

/* As rank 0 on another host would have described it. */
static gm_identity describe_there(const char *name)
{
    gm_identity identity = {.host = 0};
    gm_identity_want_stamps(1);
    gm_identity_take(own(name), &identity);
    gm_identity_want_stamps(0);
    identity.host ^= 2;
    return identity;
}

static void check_copies(void)
{
    static const int changed[] = {0, 65535, BYTES - 1, BYTES - 65536};
    write_file("there", -1, 0);
    gm_identity identity = describe_there("there");
    succeeds(check(&identity, "there"), "a shared file system, where a device has other numbers");
    identity = describe_there("there");
    identity.modified++;
    write_file("copy", -1, 0);
    succeeds(check(&identity, "copy"), "a copy");
    write_byte("copy", 300000, 1);
    fails(check(&identity, "copy"), GM_EINPUT, "(modification time)", "that changes");
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
        identity.modified++;
        write_file("other", changed[i], 'x');
        fails(check(&identity, "other"), GM_EINPUT, "(another file)", "another content");
    }
    identity.modified++;
    write_file("other", -1, 0);
    tap_ok(truncate(own("other"), BYTES - 1) == 0, "a copy is cut");
    fails(check(&identity, "other"), GM_EINPUT, "(size)", "another size");
}

int main(void)
{
    check_here();
    check_copies();
    return tap_done();
}
