/* cold.h - large reads of bytes that are not in the page cache: past it, where that is faster. Internal to io/.
 *
 * A read of GM_COLD_LEAST bytes and more asks the kernel whether some pages of it are in memory. If one is, or if the file system cannot say, it is
 * a plain pread. If none is, it is one of a contest: some reads through the page cache, some by O_DIRECT, the file's own data all of them; the
 * faster way does the rest. O_DIRECT takes a tenth of the processor's time, but leaves nothing behind for the next reader: where the file fits
 * into a quarter of the memory it has to be faster by a quarter. */
#ifndef GM_IO_COLD_H
#define GM_IO_COLD_H

#include <stddef.h>
#include <stdint.h>

enum { GM_COLD_LEAST = 1024 * 1024 };

typedef enum gm_cold_way {
    GM_COLD_CONTEST, /* asked for: what is faster; as an answer: not decided yet */
    GM_COLD_CACHED,
    GM_COLD_DIRECT
} gm_cold_way;

typedef struct gm_cold gm_cold;

/* For a file that is open for reading: the descriptor is only looked at now, and stays the caller's. NULL, without a message, where there is nothing
 * to gain: no O_DIRECT, no memory, no /proc, a file of less than 32 MiB. */
gm_cold *gm_cold_open(int fd, gm_cold_way way);
void gm_cold_close(gm_cold *cold); /* takes NULL */

/* Is nothing of a range, as far as a few of its pages tell, in memory? 0 where the system cannot say. bytes: 3 at least. */
int gm_cold_look(gm_cold *cold, int64_t offset, size_t bytes);

/* Reads up to bytes at offset: *from and *to say which of them stand in dst afterwards, *from = *to for none; the rest is for a plain read, which
 * finds again whatever failed here. offset is not negative, bytes at least GM_COLD_LEAST. Thread-safe. *turn goes to gm_cold_done(). */
typedef struct gm_cold_turn {
    gm_cold_way way; /* of this read: GM_COLD_CONTEST for one that needs none, as its bytes are in memory */
    int epoch;       /* of the contest; -1: none */
    int rest;        /* a descriptor for the rest, without read-ahead: it is mostly a few bytes at both ends; -1: the file's own */
} gm_cold_turn;
gm_cold_turn gm_cold_read(gm_cold *cold, int64_t offset, void *dst, size_t bytes, size_t *from, size_t *to);

/* A read is complete. */
void gm_cold_done(gm_cold *cold, gm_cold_turn turn, size_t bytes);

/* What has been found out; rate (byte/s) by gm_cold_way, 0: nothing. */
gm_cold_way gm_cold_result(gm_cold *cold, double rate[GM_COLD_DIRECT + 1]);

#endif
