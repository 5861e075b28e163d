/* readers.h - how many of the I/O threads read a piece together (share.h says what each of them reads). */
#ifndef GM_SRC_READERS_H
#define GM_SRC_READERS_H

#include "io/dataset.h"

/* Readers for so many bytes of the dataset, of at most so many threads. The bytes lie in so many units, each of which is one thread's: chunks, or
 * elements where there are none. 1 at least; 1 where reads of the dataset wait for each other (gm_reader_is_parallel). */
int gm_readers_count(const gm_dataset *dataset, int64_t bytes, int64_t units, int threads);

#endif
