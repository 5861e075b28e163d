/* late_device.h - for tests: an asynchronous device. Each queue is a thread, so that work runs later than it is
 * enqueued, as on a GPU; device memory is not host memory. It has the part of the device table that the ring calls. */
#ifndef GM_TESTS_SRC_STREAM_LATE_DEVICE_H
#define GM_TESTS_SRC_STREAM_LATE_DEVICE_H

#include "base/device.h"

extern const gm_device_ops gm_device_late;

/* Enqueues call(argument), which runs on the queue's thread. The bytes of argument are copied. */
int gm_late_enqueue(gm_queue *queue, void (*call)(void *argument), const void *argument, size_t bytes);

/* From now on, the given number of calls of the table succeed but for the last of them, which fails with GM_EDEVICE; 0:
 * none fails. */
void gm_late_fail_at(int calls);

/* Makes events report completion too early, which is a race in the code that waits for them. */
void gm_late_complete_early(int on);

/* Sleeps for a random time, 0.2 ms at most, mostly not at all. Any thread. */
void gm_late_pause(void);

#endif
