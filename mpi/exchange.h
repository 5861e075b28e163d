/* exchange.h - bytes from rank to rank, through host memory. Exchange between devices will stand here too.
 *
 * A rank that has failed still keeps its appointments: it sends the word that it has failed instead of the bytes, and receives what it was
 * promised without looking at it. So no rank waits for a message that never comes. Main thread only. */
#ifndef GM_MPI_EXCHANGE_H
#define GM_MPI_EXCHANGE_H

#include <stddef.h>

/* Sends bytes of data to a rank; data NULL: the word that this rank has failed. Blocks until data may be reused. */
int gm_send(int to, const void *data, size_t bytes);

/* Receives what gm_send() of that rank sends, exactly bytes of it; data NULL: takes and forgets it (this rank has failed).
 * GM_EPEER when the sender has failed: then data is undefined. */
int gm_receive(int from, void *data, size_t bytes);

#endif
