/* results.h - results of bench, as its option --json writes them. */
#ifndef GM_SRC_BENCH_RESULTS_H
#define GM_SRC_BENCH_RESULTS_H

#include "src/bench/bench.h"

#include <jansson.h>

/* *root: results, or NULL after a failure; the caller releases it. GM_EINPUT. */
int gm_results_load(const char *file, json_t **root);

/* A member of a row, or "". */
const char *gm_results_text(const json_t *row, const char *key);

/* A member of a row, or 0 if it is no number. */
double gm_results_number(const json_t *row, const char *key);

#endif
