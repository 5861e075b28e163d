/* tap.h - results of tests in TAP, the Test Anything Protocol: "ok 1 - what was tested" on stdout.
 *
 * Under mpirun every rank may call these functions, in the same order or not: only rank 0 speaks TAP. A failure on
 * another rank goes to stderr and into that rank's exit status, which mpirun hands on, so that the test as a whole
 * fails. */
#ifndef GM_TESTS_TAP_H
#define GM_TESTS_TAP_H

#include "base/status.h"

/* One test: did it hold? */
void tap_ok(int ok, const char *format, ...) GM_PRINTF(2, 3);

/* One test that cannot run here, and why. */
void tap_skip(const char *why, const char *format, ...) GM_PRINTF(2, 3);

/* One test that is expected to fail for the time being, and why. */
void tap_todo(const char *why, int ok, const char *format, ...) GM_PRINTF(3, 4);

/* A remark, on a line of its own. */
void tap_diag(const char *format, ...) GM_PRINTF(1, 2);

/* Prints the plan. Returns what main() should: 0, or 1 if a test failed on this rank. */
int tap_done(void);

#endif
