#include "base/types/dtype.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    gm_dtype_kind kind;
    int digits;
} table[GM_DTYPES] = {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) {name, bytes, GM_##kind, digits},
#include "base/types/dtypes.def"
#undef GM_DTYPE
};

#define DIGITS_UNSIGNED(bytes, digits) ((digits) == 8 * (bytes))
#define DIGITS_SIGNED(bytes, digits) ((digits) == 8 * (bytes)-1)
#define DIGITS_FLOAT(bytes, digits) ((digits) >= 2 && (digits) <= 8 * (bytes)-2)
#define GM_DTYPE(id, name, ctype, kind, bytes, digits)     \
    _Static_assert(sizeof(ctype) == bytes, name ": size"); \
    _Static_assert(DIGITS_##kind(bytes, digits), name ": digits");
#include "base/types/dtypes.def"
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

int gm_dtype_digits(gm_dtype type)
{
    return table[type].digits;
}

static int is_float(gm_dtype type)
{
    return table[type].kind == GM_FLOAT;
}

static int bias(gm_dtype type)
{
    return gm_format_bias((int)table[type].size, table[type].digits);
}

double gm_dtype_roundoff(gm_dtype type)
{
    return is_float(type) ? ldexp(1, -table[type].digits) : 0;
}

double gm_dtype_smallest(gm_dtype type)
{
    return is_float(type) ? ldexp(1, 2 - bias(type) - table[type].digits) : 1;
}

double gm_dtype_largest(gm_dtype type)
{
    if (!is_float(type))
        return ldexp(1, table[type].digits) - 1;
    return ldexp(2 - ldexp(1, 1 - table[type].digits), bias(type));
}

double gm_dtype_overflow(gm_dtype type)
{
    return is_float(type) ? gm_format_overflow((int)table[type].size, table[type].digits) : (double)INFINITY;
}

void gm_dtype_ends(gm_dtype type, double *low, double *high)
{
    *high = is_float(type) ? gm_dtype_overflow(type) : gm_dtype_largest(type) + 1;
    *low = is_float(type) ? -*high : table[type].kind == GM_SIGNED ? -*high - 1 : -1;
}

/* Is it the name that NumPy has for a type: "uint8" of "u8", "bfloat16" of "bf16"? */
static int is_long_name(const char *name, int type)
{
    static const char *const words[][2] = {{"u", "uint"}, {"i", "int"}, {"f", "float"}, {"bf", "bfloat"}};
    const char *bits = strpbrk(table[type].name, "0123456789");
    size_t letters = (size_t)(bits - table[type].name);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i][1]);
        if (letters == strlen(words[i][0]) && strncmp(table[type].name, words[i][0], letters) == 0)
            return strncmp(name, words[i][1], length) == 0 && strcmp(name + length, bits) == 0;
    }
    return 0;
}

gm_dtype gm_dtype_find(const char *name)
{
    int type = 0;
    while (type < GM_DTYPES && strcmp(name, table[type].name) != 0 && !is_long_name(name, type))
        type++;
    return (gm_dtype)type;
}

static int is_listed(int kind, int type)
{
    return kind < 0 || (int)table[type].kind == kind;
}

char *gm_dtype_list(int kind, char *text)
{
    int last = GM_DTYPES - 1, used = 0, count = 0;
    while (last > 0 && !is_listed(kind, last))
        last--;
    *text = '\0';
    for (int type = 0; type <= last && used < GM_DTYPE_LIST_TEXT; type++)
        if (is_listed(kind, type)) {
            const char *before = count++ == 0 ? "" : type == last ? " or " : ", ";
            used += snprintf(text + used, (size_t)(GM_DTYPE_LIST_TEXT - used), "%s%s", before, table[type].name);
        }
    return text;
}
