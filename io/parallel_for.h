/* parallel_for.h - a parallel loop. Internal to io/. */
#ifndef GM_IO_PARALLEL_FOR_H
#define GM_IO_PARALLEL_FOR_H

#include <stdint.h>

/* Calls work(context, thread, index) for every index in [0, count), on up to `threads` threads, the caller among them
 * as thread 0; thread < threads. Runs on fewer threads if the system cannot create more. After a failure no new index
 * is begun. Returns the first failure. */
int gm_parallel_for(int threads, int64_t count, int (*work)(void *context, int thread, int64_t index), void *context);

#endif
