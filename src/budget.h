/* budget.h - how much memory this host has to give. */
#ifndef GM_SRC_BUDGET_H
#define GM_SRC_BUDGET_H

#include <stdint.h>

/* Bytes of host memory that could be allocated now: what the system calls available, within the limits of the control
 * groups that this process is in. */
int64_t gm_budget_available(void);

/* The memory that the control groups of a list, as /proc/self/cgroup is one, and those above them leave; root: of their
 * trees. A batch system limits a job by a group of its own, far below the root. INT64_MAX: no limit. */
int64_t gm_budget_of_groups(const char *list, const char *root);

#endif
