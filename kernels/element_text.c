#include <stdio.h>

#include "kernels/element.h"
#include "kernels/host.h"

#define FORMAT_UNSIGNED(ctype, bytes, digits, real) \
    snprintf(text, GM_ELEMENT_TEXT, "%llu", (unsigned long long)gm_order##bytes(raw, swap))
#define FORMAT_SIGNED(ctype, bytes, digits, real) \
    snprintf(text, GM_ELEMENT_TEXT, "%lld", (long long)(ctype)gm_order##bytes(raw, swap))
#define FORMAT_FLOAT(ctype, bytes, digits, real) \
    snprintf(text, GM_ELEMENT_TEXT, "%.*g", 2 + (digits)*30103 / 100000, real) /* log10 2 = 0.30103 */

char *gm_element_format(gm_dtype type, int swap, const void *element, char *text)
{
    switch (type) {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits)               \
    case GM_DTYPE_##id: {                                            \
        gm_raw##bytes raw;                                           \
        memcpy(&raw, element, bytes);                                \
        FORMAT_##kind(ctype, bytes, digits, gm_f64_##id(raw, swap)); \
        break;                                                       \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE
    default:
        *text = '\0';
    }
    return text;
}
