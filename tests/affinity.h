/* affinity.h - for tests: the processors of a process, as the launcher has given them. */
#ifndef GM_TESTS_AFFINITY_H
#define GM_TESTS_AFFINITY_H

#include <sched.h>

/* Gives all threads of this process these processors: a run binds all of them, MPI's own too. */
void affinity_set(const cpu_set_t *given);

#endif
