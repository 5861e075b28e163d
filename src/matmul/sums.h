/* sums.h - the sums that the check of a product keeps of a block of C: vectors of float64 in one allocation, one after
 * the other. */
#ifndef GM_SRC_MATMUL_SUMS_H
#define GM_SRC_MATMUL_SUMS_H

#include <stdint.h>

/* The sums that all layers of the grid add to come first: they travel from rank to rank as one array. */
typedef enum gm_sum {
    GM_SUM_AY,                 /* rows: A (B x) */
    GM_SUM_AA,                 /* rows: squares of A */
    GM_SUM_VB,                 /* columns: (u'A) B */
    GM_SUM_BB,                 /* columns: squares of B */
    GM_SUM_YY,                 /* one number: |(|B| |x|)|^2 */
    GM_SUM_VV,                 /* one number: |(|u|'|A|)|^2 */
    GM_SUM_SCHEMES,            /* [GM_SCHEMES]: units times k that were multiplied by each scheme */
    GM_SUM_LAYERS,             /* the sums above are partial sums over k */
    GM_SUM_CX = GM_SUM_LAYERS, /* rows: C x */
    GM_SUM_CC_ROW,             /* rows: squares of C */
    GM_SUM_UC,                 /* columns: u'C */
    GM_SUM_CC_COL,             /* columns: squares of C */
    GM_SUM_DX,                 /* rows: C0 x */
    GM_SUM_DD_ROW,             /* rows: squares of C0 */
    GM_SUM_UD,                 /* columns: u'C0 */
    GM_SUM_DD_COL,             /* columns: squares of C0 */
    GM_SUM_NONFINITE,          /* gm_nonfinite */
    GM_SUMS
} gm_sum;

/* Doubles before a sum in a block of this shape; before GM_SUMS: of all of them. INT64_MAX: more than 64 bits hold. */
int64_t gm_sum_offset(gm_sum sum, int64_t rows, int64_t cols);

#endif
