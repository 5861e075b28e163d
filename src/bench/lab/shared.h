/* shared.h - the test of shared memory.
 *
 *   shared.c        the test; loads
 *   shared_moves.c  elements that change places through shared memory; the carve-out */
#ifndef GM_SRC_BENCH_LAB_SHARED_H
#define GM_SRC_BENCH_LAB_SHARED_H

#include "src/bench/lab/lab.h"

#include <stdio.h>

enum { GM_SHARED_CALLS = 256 };

typedef union gm_shared_call {
    gm_shared_read_call read;
    gm_shared_move_call move;
    gm_carveout_call carveout;
} gm_shared_call;

typedef struct gm_shared_test {
    gm_bench_pair pair;
    gm_shared_call calls[GM_SHARED_CALLS]; /* of the cases */
    gm_lab_case cases[GM_SHARED_CALLS];
    int count;
} gm_shared_test;

/* A case of warm data whose call is the next one of the test. */
static inline gm_lab_case *gm_shared_add(gm_shared_test *t, const char *panel, const char *kernel, const char *variant)
{
    gm_lab_case *c = &t->cases[t->count];
    *c = (gm_lab_case){.kernel = kernel,
                       .test = t,
                       .call = &t->calls[t->count++],
                       .unit = &gm_bench_unit_bytes,
                       .cache = GM_CACHE_WARM,
                       .panel = panel};
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    return c;
}

/* The call of a case, while it is made. */
static inline gm_shared_call *gm_shared_call_of(gm_shared_test *t, const gm_lab_case *c)
{
    return &t->calls[c - t->cases];
}

/* The cases of reversals and the carve-out. */
void gm_shared_add_moves(gm_shared_test *t);

#endif
