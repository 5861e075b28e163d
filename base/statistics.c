#include "base/statistics.h"

int64_t gm_leaf_length(gm_dtype type)
{
    return gm_dtype_get_kind(type) == GM_FLOAT ? GM_LEAF_FLOAT : GM_LEAF_WHOLE;
}
