/* strategy.h - the choice of a write strategy. Internal to io/. */
#ifndef GM_IO_WRITE_STRATEGY_H
#define GM_IO_WRITE_STRATEGY_H

#include "io/write/output.h"

/* Replaces GM_WRITE_PROBED and GM_OUTPUT_AUTO by a strategy and a layout; outputs of many bytes are preceded by a
 * probe, whose rates go to the record. */
void gm_strategy_choose(gm_output_record *record, int64_t bytes);

#endif
