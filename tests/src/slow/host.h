/* host.h - for tests: the host memory of the slow device, pinned or not. New memory holds nothing to rely on; none is
 * freed under work that uses it. */
#ifndef GM_TESTS_SRC_SLOW_HOST_H
#define GM_TESTS_SRC_SLOW_HOST_H

#include "base/device.h"

/* Puts the host memory of `real`, made strict, into the table. */
void slow_host_fill(gm_device_ops *ops, const gm_device_ops *real);

/* Ends the test if these bytes begin in memory of the device that is not pinned, or leave it. */
void slow_host_check(const void *memory, size_t bytes);

#endif
