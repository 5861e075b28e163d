/* fake_library.h - the library of fake_nccl.c in the place of NCCL, and a device whose queues it works in. The linker
 * replaces dlopen() and dlsym() by those of fake_library.c (-Wl,--wrap). */
#ifndef GM_TESTS_SRC_EXCHANGE_FAKE_LIBRARY_H
#define GM_TESTS_SRC_EXCHANGE_FAKE_LIBRARY_H

#include "base/device.h"
#include "tests/src/exchange/fake_nccl.h"

/* The slow device with attach() and stream(), on which NCCL can be opened, and without share(), so that it is the best
 * path. Plants FAKE_GOOD. */
const gm_device_ops *fake_library_ops(void);

/* The fault of the library in this process, from now on. */
void fake_library_plant(fake_fault what);

#endif
