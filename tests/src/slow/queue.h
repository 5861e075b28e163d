/* queue.h - for tests: the queues and events of the slow device. A queue is a thread that does its work with random
 * delays, one piece of work of all queues at a time. */
#ifndef GM_TESTS_SRC_SLOW_QUEUE_H
#define GM_TESTS_SRC_SLOW_QUEUE_H

#include "tests/src/slow/order.h"

/* An entry of a queue: the function to call and its argument, or an event to record or to wait for. */
typedef enum slow_kind {
    SLOW_COPY_IN,
    SLOW_COPY_OUT,
    SLOW_COPY_WITHIN,
    SLOW_ZERO,
    SLOW_PRODUCT,
    SLOW_CALL,
    SLOW_RECORD,
    SLOW_WAIT,
#define GM_DEVICE_OP(name, cpu, cuda) SLOW_DO_##name,
#include "base/device_ops.def"
#undef GM_DEVICE_OP
} slow_kind;

typedef struct slow_work {
    struct slow_work *next;
    slow_kind kind;
    union {
        struct {
            void *dst;
            const void *src;
            size_t dst_pitch, src_pitch, width;
            int64_t rows;
            uint64_t digest; /* of what is copied in: it stays the same until that is done */
        } copy;
        gm_product_call product;
#define GM_DEVICE_OP(name, cpu, cuda) gm_##name##_call name;
#include "base/device_ops.def"
#undef GM_DEVICE_OP
        struct {
            void (*function)(void *);
            void *argument;
        } call;
        struct {
            struct slow_event *event;
            int64_t number;
        } record;
    } of;
    const gm_product *product;
    slow_uses uses;
} slow_work;

/* Puts the queues and events of `real`, made slow, into the table. */
void slow_queue_fill(gm_device_ops *ops, const gm_device_ops *real);

/* Puts *what into a queue. The addresses in it, which is in a variable of the caller, become those of the bytes.
 * Returns a gm_status. */
int slow_queue_put(gm_queue *queue, slow_work *what);

/* Device memory that a call uses. */
typedef struct slow_region {
    void *memory;
    size_t bytes;
    int writes;
} slow_region;

/* Puts a call of a library into a queue. It may take any time: other queues go on meanwhile. */
void slow_queue_call(void *queue, void (*function)(void *), void *argument, const slow_region *regions, int count);

/* Ends the test where a call of a library is under way: it may be a message that waits for another rank, and that rank
 * may have failed. Then the host does not come back from what waits for the device. */
void slow_queue_check_calm(const char *what);

/* Waits for all work, as a GPU does before it frees memory. */
void slow_queue_settle(void);

#endif
