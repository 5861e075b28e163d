/* budget.h - how much memory this host has to give. */
#ifndef GM_SRC_BUDGET_H
#define GM_SRC_BUDGET_H

#include <stdint.h>

/* Bytes of host memory that could be allocated now: what the system calls available, within the limit of the control
 * group. */
int64_t gm_budget_available(void);

#endif
