/* order.h - for tests: what the work in the queues of the slow device is ordered after. Two calls that use the
 * same bytes, one of which writes them, end the test if neither an event nor a wait of the host is between them: also
 * where by chance they do not meet. A wait of any thread counts as one of all threads. */
#ifndef GM_TESTS_SRC_SLOW_ORDER_H
#define GM_TESTS_SRC_SLOW_ORDER_H

#include "tests/src/slow/uses.h"

enum { SLOW_QUEUES = 128 };

/* The work that is done: of each queue all up to a number. */
typedef struct slow_clock {
    int64_t done[SLOW_QUEUES];
} slow_clock;

/* Of one queue: its number, and what its next work comes after. */
typedef struct slow_line {
    int number;
    slow_clock after;
} slow_line;

/* A queue is opened, and closed, which waits for nothing. */
void slow_order_open(slow_line *line);
void slow_order_close(slow_line *line);

/* Adds work that uses memory. */
void slow_order_add(slow_line *line, const slow_uses *uses);

/* The queue waits for an event; the host knows that work is done, NULL: all work. */
void slow_order_wait(slow_line *line, const slow_clock *event);
void slow_order_know(const slow_clock *done);

/* Does work that may be under way use some bytes? */
int slow_order_uses(const slow_use *use);

#endif
