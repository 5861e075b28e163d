/* speed.h - a short measurement of reading. */
#ifndef GM_IO_BENCH_SPEED_H
#define GM_IO_BENCH_SPEED_H

#include "io/read/reader.h"

/* Bytes per second at which `threads` threads together read elements [begin, end) of the selection, each a part of them
 * from its start on, 1 MiB at a time, for about `seconds`; as any read, with its checks. 0: a read failed, or there is
 * too little to read or no memory for the buffers. Records no error: the reads of the run report what is wrong. Not
 * collective.
 */
double gm_reader_speed(const gm_dataset *dataset, int threads, int64_t begin, int64_t end, double seconds);

#endif
