/* failing_device.h - for tests: a device on which something goes wrong, on one rank, at the call of some number. */
#ifndef GM_TESTS_SRC_FAILING_DEVICE_H
#define GM_TESTS_SRC_FAILING_DEVICE_H

#include "kernels/matmul/calls.h"

enum {
    FAILING_FOLD,
    FAILING_COPY_IN,
    FAILING_COPY_OUT,
    FAILING_PRODUCT,
    FAILING_RECORD,
    FAILING_FINISH,
    FAILING_CALLS
};

extern const char *const failing_names[FAILING_CALLS];

/* The fault: on rank `victim`, at the call after `left` calls of its kind, which makes left negative. */
typedef struct failing_plan {
    int rank, victim;
    int call; /* FAILING_CALLS: none */
    int left;
    int stops; /* the call succeeds, and the rank is sent SIGTERM */
} failing_plan;

extern failing_plan failing;

/* The table of such a device, which works by the table `real`. One at a time. */
const gm_device_ops *failing_device_ops(const gm_device_ops *real);

#endif
