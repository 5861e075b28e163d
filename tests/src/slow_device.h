/* slow_device.h - for tests: the CPU device made asynchronous. Queues are threads with random delays, and device memory
 * does not count as host memory. */
#ifndef GM_TESTS_SRC_SLOW_DEVICE_H
#define GM_TESTS_SRC_SLOW_DEVICE_H

#include "kernels/matmul/calls.h"

/* The table of such a device, whose devices are opened and closed by the table `real`. One at a time. */
const gm_device_ops *slow_device_ops(const gm_device_ops *real);

/* Puts a call into a queue of such a device, of which it may take any time: other queues go on meanwhile. */
void slow_queue_call(void *queue, void (*function)(void *), void *argument);

#endif
