/* exchange.h - point-to-point messages between ranks, through host memory.
 *
 * Every send has a matching receive, also after a failure: a rank that has failed sends a notice of its failure in
 * place of the data, and receives and discards messages. So no rank waits for a message that never comes. Main thread
 * only. */
#ifndef GM_MPI_EXCHANGE_H
#define GM_MPI_EXCHANGE_H

#include <stddef.h>

/* Sends data to a rank; data NULL: notifies it that this rank has failed. Blocks until data may be reused. GM_EMPI. */
int gm_send(int to, const void *data, size_t bytes);

/* Receives the message of the matching gm_send(), which has the same number of bytes; data NULL: discards it (this rank
 * has failed). Blocks. GM_EPEER when the sender has failed: the contents of data are undefined then. GM_EMPI. */
int gm_receive(int from, void *data, size_t bytes);

#endif
