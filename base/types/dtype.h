/* dtype.h - the numeric element types, by table (dtypes.def). */
#ifndef GM_BASE_TYPES_DTYPE_H
#define GM_BASE_TYPES_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/types/float.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gm_dtype {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) GM_DTYPE_##id,
#include "base/types/dtypes.def"
#undef GM_DTYPE
    GM_DTYPES /* number of types */
} gm_dtype;

typedef enum gm_dtype_kind { GM_UNSIGNED, GM_SIGNED, GM_FLOAT } gm_dtype_kind;

const char *gm_dtype_name(gm_dtype type);
size_t gm_dtype_size(gm_dtype type); /* bytes */
gm_dtype_kind gm_dtype_get_kind(gm_dtype type);
/* Bits of significand; integers: bits without the sign. Integers up to 2^digits in magnitude are values of the type. */
int gm_dtype_digits(gm_dtype type);

/* Unit roundoff (integers: 0), the smallest number above 0, the largest number (64-bit integers: rounded up), and the
 * smallest magnitude that rounds to infinity (INFINITY for f64 and integers). */
double gm_dtype_roundoff(gm_dtype type);
double gm_dtype_smallest(gm_dtype type);
double gm_dtype_largest(gm_dtype type);
double gm_dtype_overflow(gm_dtype type);
/* The ends of a type: float64 values, rounded first where the type is one of integers, that are `low` or below or
 * `high` or above are none of it. Not of 64-bit integers, whose ends float64 does not hold. */
void gm_dtype_ends(gm_dtype type, double *low, double *high);

/* The order of bytes of this machine. */
static inline int gm_is_little_endian(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one;
}

/* The type called name, as "f32", or as NumPy has it, "float32"; GM_DTYPES when there is none. */
gm_dtype gm_dtype_find(const char *name);

/* "u8, u16, ... f32 or f64", for messages: the types of a kind, or of all kinds for -1. text has room for
 * GM_DTYPE_LIST_TEXT bytes. Returns text. */
enum { GM_DTYPE_LIST_TEXT = 256 };
char *gm_dtype_list(int kind, char *text);

#ifdef __cplusplus
}
#endif
#endif
