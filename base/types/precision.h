/* precision.h - the precisions of a product, by table (precisions.def). */
#ifndef GM_BASE_TYPES_PRECISION_H
#define GM_BASE_TYPES_PRECISION_H

#include "base/types/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gm_precision {
#define GM_PRECISION(id, name, operand, accumulator, result, bits) GM_PRECISION_##id,
#include "base/types/precisions.def"
#undef GM_PRECISION
    GM_PRECISIONS /* number of precisions */
} gm_precision;

typedef struct gm_precision_info {
    const char *name;
    gm_dtype operand;     /* the data are converted to this type */
    gm_dtype accumulator; /* leaves are folded in this type */
    gm_dtype result;      /* default type of C */
    int bits;             /* significant ones of the data, as they are multiplied */
} gm_precision_info;

const gm_precision_info *gm_precision_get(gm_precision precision);

/* The precision called name; GM_PRECISIONS when there is none. */
gm_precision gm_precision_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
