#include "base/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
    gm_dtype_kind kind;
} table[GM_DTYPES] = {
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) {name, bytes, GM_##kind},
#include "base/dtypes.def"
#undef GM_DTYPE
};

#define GM_DTYPE(id, name, ctype, kind, bytes, h5) _Static_assert(sizeof(ctype) == bytes, name ": size");
#include "base/dtypes.def"
#undef GM_DTYPE

const char *gm_dtype_name(gm_dtype type)
{
    return table[type].name;
}

size_t gm_dtype_size(gm_dtype type)
{
    return table[type].size;
}

gm_dtype_kind gm_dtype_get_kind(gm_dtype type)
{
    return table[type].kind;
}

gm_dtype gm_dtype_find(const char *name)
{
    int type = 0;
    while (type < GM_DTYPES && strcmp(name, table[type].name) != 0)
        type++;
    return (gm_dtype)type;
}
