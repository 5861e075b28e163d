/* slow_device.h - a device for tests: that of the processor, behind queues of threads that take their time, and not addressing host memory. */
#ifndef GM_TESTS_SLOW_DEVICE_H
#define GM_TESTS_SLOW_DEVICE_H

#include "base/device.h"

/* The table of such a device; devices are opened and closed by the table `real`. One at a time. */
const gm_device_ops *slow_device_ops(const gm_device_ops *real);

#endif
