/* late_device.h - for tests: a device whose queues are threads of their own, so that work is done later than it is asked for, as on a GPU. Its
 * memory is apart from the host's. Of the table it fills what the ring needs. */
#ifndef GM_TESTS_LATE_DEVICE_H
#define GM_TESTS_LATE_DEVICE_H

#include "base/device.h"

extern const gm_device_ops gm_device_late;

/* Puts work into a queue: call(argument) on the queue's thread. argument: so many bytes, which are copied. */
int gm_late_put(gm_queue *queue, void (*call)(void *argument), const void *argument, size_t bytes);

/* The calls of the table from now on until one fails with GM_EDEVICE; 0: none does. */
void gm_late_fail_at(int calls);

/* Events say that they are done before they are: whoever believes it must be seen to. */
void gm_late_lie(int lies);

/* A moment of chance, mostly none, 0.2 ms at most. Any thread. */
void gm_late_pause(void);

#endif
