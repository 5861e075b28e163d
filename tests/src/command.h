/* command.h - for tests: an operation of gpumem-run run inside the test, on the ranks of the test. */
#ifndef GM_TESTS_SRC_COMMAND_H
#define GM_TESTS_SRC_COMMAND_H

#include "src/operation.h"

/* Gives the job another table of the device than the one that was opened. */
typedef void command_setup(gm_job *job);

/* Runs the operation of a command line: words between spaces, without the name of the program. The error record is
 * cleared first, standard output dropped. setup: NULL for the device as it is. Returns the agreed status. Collective.
 */
int command_run_all(const gm_ranks *ranks, command_setup *setup, const char *format, ...) GM_PRINTF(3, 4);

/* Do two outputs, each of one dataset of this size, have the same elements? Large data begin at byte 4096. */
int command_same_data(const char *a, const char *b, size_t bytes);

#endif
