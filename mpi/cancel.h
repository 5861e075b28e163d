/* cancel.h - news of a failure that travels between agreements, and waiting that hears signals. Main thread only. */
#ifndef GM_MPI_CANCEL_H
#define GM_MPI_CANCEL_H

/* Notifies the other ranks, without waiting for them, that this rank has failed or was stopped, unless another rank has
 * notified all of them before: a signal to all ranks is no message of each to each. gm_agree_all() completes the
 * notification. */
void gm_cancel(void);

/* Has another rank called gm_cancel()? Does not wait, and probes at most every two milliseconds, so that a loop may
 * call it. */
int gm_cancelled(void);

#endif
