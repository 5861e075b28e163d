/* ratios.h - rows of one product, copy or the like over several shapes: the ratios to the rival, and the errors. */
#ifndef GM_SRC_BENCH_RATIOS_H
#define GM_SRC_BENCH_RATIOS_H

#include "src/bench/bench.h"

#include <jansson.h>

/* Rows of the same test, panel, variant, kernel and cache, of which two or more have a rival or errors of each kind. */
typedef struct gm_bench_ratio {
    const gm_bench_row *first;
    int shapes;                               /* rows that have a rival */
    double mean;                              /* geometric, of the rates over the rival's */
    double worst, best;                       /* of these ratios */
    const gm_bench_row *worst_row, *best_row; /* NULL: no row has a rival */
    gm_bench_errors errors[GM_BENCH_KINDS];   /* the largest, and the mean over rows; -1: no row has errors */
} gm_bench_ratio;

/* ratios: room for one for each row. Returns their number, in the order of their first rows. */
int gm_ratios_make(const gm_bench_row *rows, int count, gm_bench_ratio *ratios);

/* Prints those of the test that runs, on rank 0. GM_EDEVICE, GM_EOUTPUT. */
int gm_ratios_print(const gm_bench *bench);

/* Those of all tests; NULL without memory. */
json_t *gm_ratios_json(const gm_bench *bench);

/* {"uniform": {"max", "mean"}, ...}: the kinds that apply; null: infinite. */
json_t *gm_errors_json(const gm_bench_errors errors[GM_BENCH_KINDS]);

#endif
