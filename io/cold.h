/* cold.h - large reads of data that are not in the page cache: by O_DIRECT where that is faster. Internal to io/.
 *
 * A read of GM_COLD_MIN_BYTES bytes and more asks the kernel whether some of its pages are cached. If one is, or if the
 * file system cannot tell, it is a plain pread. If none is, it takes part in a probe on the file's own data: some reads
 * go through the page cache, some by O_DIRECT, and later reads use the faster strategy. O_DIRECT takes a tenth of the
 * processor's time, but leaves nothing in the cache for the next reader: where the file fits into a quarter of the
 * memory it has to be faster by a quarter. */
#ifndef GM_IO_COLD_H
#define GM_IO_COLD_H

#include <stddef.h>
#include <stdint.h>

enum { GM_COLD_MIN_BYTES = 1024 * 1024 };

typedef enum gm_cold_strategy {
    GM_COLD_PROBE, /* requested: the faster one; as a result: not decided yet */
    GM_COLD_CACHED,
    GM_COLD_DIRECT
} gm_cold_strategy;

typedef struct gm_cold gm_cold;

/* For a file that is open for reading; the descriptor is not kept. NULL, without a message, where there is nothing to
 * gain: no O_DIRECT, no memory, no /proc, a file of less than 32 MiB. */
gm_cold *gm_cold_open(int fd, gm_cold_strategy strategy);
void gm_cold_close(gm_cold *cold); /* takes NULL */

/* Is a range uncached, as far as a few of its pages tell? 0 where the system cannot tell. bytes: at least 3. */
int gm_cold_look(gm_cold *cold, int64_t offset, size_t bytes);

/* Reads up to bytes at offset: [*from, *to) of them are in dst afterwards, *from = *to for none; the caller reads the
 * rest by pread, and meets any error again there. offset is not negative, bytes at least GM_COLD_MIN_BYTES.
 * Thread-safe. The result goes to gm_cold_done(). */
typedef struct gm_cold_turn {
    gm_cold_strategy strategy; /* of this read; GM_COLD_PROBE: none, as its bytes are cached */
    int epoch;                 /* of the probe; -1: none */
    int rest; /* a descriptor without read-ahead for the rest, mostly a few bytes at both ends; -1: the file's own */
} gm_cold_turn;
gm_cold_turn gm_cold_read(gm_cold *cold, int64_t offset, void *dst, size_t bytes, size_t *from, size_t *to);

/* A read is complete. */
void gm_cold_done(gm_cold *cold, gm_cold_turn turn, size_t bytes);

/* The result of the probe; rate: byte/s by gm_cold_strategy, 0: not measured. */
gm_cold_strategy gm_cold_result(gm_cold *cold, double rate[GM_COLD_DIRECT + 1]);

#endif
