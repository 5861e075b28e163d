#include "base/types/precision.h"

#include <string.h>

static const gm_precision_info table[GM_PRECISIONS] = {
#define GM_PRECISION(id, name, operand, accumulator, result, bits) \
    {name, GM_DTYPE_##operand, GM_DTYPE_##accumulator, GM_DTYPE_##result, bits},
#include "base/types/precisions.def"
#undef GM_PRECISION
};

const gm_precision_info *gm_precision_get(gm_precision precision)
{
    return &table[precision];
}

gm_precision gm_precision_find(const char *name)
{
    int precision = 0;
    while (precision < GM_PRECISIONS && strcmp(name, table[precision].name) != 0)
        precision++;
    return (gm_precision)precision;
}
