/* exchange.h - point-to-point messages between ranks, through host memory: blocking, or as pieces of which several are
 * under way at once.
 *
 * Every send has a matching receive, also after a failure: a rank that has failed sends a notice of its failure in
 * place of the data, and receives and discards messages. So no rank waits for a message that never comes. Main thread
 * only. */
#ifndef GM_MPI_EXCHANGE_H
#define GM_MPI_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

/* Sends data to a rank; data NULL: notifies it that this rank has failed. Blocks until data may be reused. GM_EMPI. */
int gm_send(int to, const void *data, size_t bytes);

/* Receives the message of the matching gm_send(), which has the same number of bytes; data NULL: discards it (this rank
 * has failed). Blocks. GM_EPEER when the sender has failed: the contents of data are undefined then. GM_EMPI. */
int gm_receive(int from, void *data, size_t bytes);

/* --- Pieces ---
 *
 * A piece is one message, its bytes alone; an empty message is the notice. Both ranks cut their data into the same
 * pieces, and start each of them in the same order, also after a failure. A piece is rows x width bytes with `pitch`
 * bytes from one row to the next: GM_PIECE_MOST bytes at most, and one byte at least. The functions do not wait: their
 * caller asks for signals (gm_stop_status()). A failure of MPI ends all ranks. */

enum { GM_PIECE_MOST = 1 << 30 };

typedef struct gm_requests gm_requests; /* sends and receives under way, by index */

/* Pieces of one channel never match those of the other, and have an order of their own. */
typedef enum gm_channel { GM_CHANNEL_PIECES, GM_CHANNEL_RELEASES, GM_CHANNELS } gm_channel;

/* Room for `count` of them, of a channel. GM_EDEVICE. Freed when none is under way; free takes NULL. */
int gm_requests_open(int count, gm_channel channel, gm_requests **requests);
void gm_requests_close(gm_requests *requests);

/* Starts to send a piece, which stays as it is until gm_request_test() says that it is done; data NULL: starts the
 * notice that this rank has failed. Request `at` is free. GM_EINTERNAL, nothing started: the size is out of range. */
int gm_send_start(gm_requests *requests, int at, int to, const void *data, size_t pitch, size_t width, int64_t rows);

/* Starts to receive a piece; data NULL: to discard it (this rank has failed). While a piece is being discarded, no
 * other receive from that rank is started in its channel. GM_EINTERNAL likewise. */
int gm_receive_start(gm_requests *requests, int at, int from, void *data, size_t pitch, size_t width, int64_t rows);

/* *done: is the request done, and free again? GM_EPEER, when done: the notice came in place of the data. */
int gm_request_test(gm_requests *requests, int at, int *done);

#endif
