/* dtype.h - the numeric element types, by table (dtypes.def). */
#ifndef GM_BASE_DTYPE_H
#define GM_BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gm_f16 {
    uint16_t bits; /* IEEE 754 binary16 */
} gm_f16;

typedef enum gm_dtype {
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) GM_##id,
#include "base/dtypes.def"
#undef GM_DTYPE
    GM_DTYPES /* their number */
} gm_dtype;

typedef enum gm_dtype_kind { GM_UNSIGNED, GM_SIGNED, GM_FLOAT } gm_dtype_kind;

const char *gm_dtype_name(gm_dtype type);
size_t gm_dtype_size(gm_dtype type); /* bytes */
gm_dtype_kind gm_dtype_get_kind(gm_dtype type);

/* The type called name; GM_DTYPES when there is none. */
gm_dtype gm_dtype_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
