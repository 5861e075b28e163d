/* crew.h - threads for one piece of work. Internal to io/. */
#ifndef GM_IO_CREW_H
#define GM_IO_CREW_H

#include <stdint.h>

/* Calls work(context, thread, index) for every index in [0, count), on up to so many threads, this one among them; thread < threads says
 * which. Fewer threads do if the system gives no more. After a failure no new index is begun. Returns the first failure. */
int gm_crew_run(int threads, int64_t count, int (*work)(void *context, int thread, int64_t index), void *context);

#endif
