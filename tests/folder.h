/* folder.h - for tests: one folder for the files of all ranks, the current one of each. */
#ifndef GM_TESTS_FOLDER_H
#define GM_TESTS_FOLDER_H

#include "mpi/ranks.h"

/* Makes a folder below TMPDIR and changes to it. Returns the agreed status. Collective. */
int folder_enter_all(const gm_ranks *ranks);

/* Waits for all ranks, as one may still read a file that the others are done with; then rank 0 removes the folder.
 * files: the names that may be in it, between spaces; NULL for any. Returns 1 when the folder is gone, 0 when it holds
 * other files; 1 on the other ranks. Collective. */
int folder_leave_all(const gm_ranks *ranks, const char *files);

#endif
