#include "base/precision.h"

#include <string.h>

static const gm_precision_info table[GM_PRECISIONS] = {
#define GM_PRECISION(id, name, operand, accumulator, result, roundoff, leaf, help) \
    {name, GM_##operand, GM_##accumulator, GM_##result, roundoff, leaf, help},
#include "base/precisions.def"
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
