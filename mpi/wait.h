/* wait.h - waiting for MPI and notifications between ranks. Internal to mpi/. */
#ifndef GM_MPI_WAIT_H
#define GM_MPI_WAIT_H

#include <mpi.h>

#include "mpi/cancel.h"

/* Waits for a request of a non-blocking call, whose return code and name are passed as well. A signal meanwhile cancels
 * the other ranks: the one that this rank waits for may be at work for long. A failure of MPI ends all ranks. */
int gm_mpi_wait(int code, MPI_Request *request, const char *call);

/* The same for a few numbers: after a millisecond the rank sleeps between looks, so that its processor is free for
 * ranks that are at work for longer. */
int gm_mpi_wait_idle(int code, MPI_Request *request, const char *call);

/* Prepares notifications among `size` ranks. GM_EDEVICE. */
int gm_cancel_start(int rank, int size);

/* Has this rank called gm_cancel() since the last gm_cancel_complete()? */
int gm_cancel_is_sent(void);

/* Receives every notification sent, so that none is left for a later run or for MPI_Finalize. Collective. */
void gm_cancel_complete(void);

#endif
