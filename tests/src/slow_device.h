/* slow_device.h - for tests: the CPU device made asynchronous and strict. Queues are threads with random delays. Device
 * memory is none of the host's (slow/memory.h), each call is held to the memory that it may use (slow/uses.h), and
 * calls that use the same memory must be ordered (slow/order.h). The test ends where the program breaks a rule. */
#ifndef GM_TESTS_SRC_SLOW_DEVICE_H
#define GM_TESTS_SRC_SLOW_DEVICE_H

#include "kernels/matmul/calls.h"

/* The table of such a device, whose devices are opened and closed by the table `real`. One at a time. */
const gm_device_ops *slow_device_ops(const gm_device_ops *real);

/* Gives the table the products of a GPU (slow/products.h) in the place of those of the processor. */
void slow_device_imitate(gm_device_ops *ops);

/* The bytes at an address of device memory: for a test that looks at them when no work uses them. Other memory: as it
 * is. */
void *slow_device_bytes(void *memory);

#endif
