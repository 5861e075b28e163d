/* identity.h - which file it is, and in which state: so that every rank reads the files that rank 0 described, and no
 * input changes during a run. Internal to io/, but for gm_identity_want_stamps(). */
#ifndef GM_IO_IDENTITY_H
#define GM_IO_IDENTITY_H

#include <stdint.h>

/* A file as one host found it; a flat record. Times of access and of changes to its inode do not count. */
typedef struct gm_identity {
    uint64_t host; /* that found it; 0: no file */
    uint64_t device, inode;
    int64_t size, modified; /* bytes; nanoseconds */
    uint64_t stamp;         /* of its content; 0: none was wanted */
} gm_identity;

/* With on, identities are taken with a stamp: for a run on several hosts, whose files may be copies of each other. The
 * stamp is of the first and last 64 KiB and of 16 blocks of 4 KiB between them. */
void gm_identity_want_stamps(int on);

/* The file at path. A file that was modified in the last hundredth of a second is waited for: two changes in one tick
 * of the clock have the same time. Returns 0, or errno. Thread-safe. */
int gm_identity_take(const char *path, gm_identity *identity);

/* Is the open file, or the file at path, still the one described? On the host that described it: the same device,
 * inode, size and time of modification. On another one: the same size, and the same inode and time, or else (a copy on
 * a file system of its own) the same stamp; from then on that copy may not change. GM_EINPUT, "TITLE: has changed
 * during the run (another file)". Thread-safe. */
int gm_identity_check_open(const gm_identity *described, int fd, const char *path, const char *title);
int gm_identity_check(const gm_identity *described, const char *path, const char *title);

#endif
