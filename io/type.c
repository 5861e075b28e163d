/* type.c - types of a file: to the types of dtypes.def, and to words. */
#include "io/type.h"

#include <stdio.h>
#include <string.h>

static int is_swapped(hid_t file_type, gm_dtype type)
{
    hid_t swapped = gm_h5_type_swapped(type);
    int same = swapped >= 0 && H5Tequal(file_type, swapped) > 0;
    gm_h5_close(swapped);
    return same;
}

/* The smallest type of a kind with at least the given bits; GM_DTYPES when there is none. */
static gm_dtype find_wider(gm_dtype_kind kind, size_t bits)
{
    gm_dtype found = GM_DTYPES;
    for (gm_dtype t = 0; t < GM_DTYPES; t++)
        if (gm_dtype_get_kind(t) == kind && 8 * gm_dtype_size(t) >= bits &&
            (found == GM_DTYPES || gm_dtype_size(t) < gm_dtype_size(found)))
            found = t;
    return found;
}

typedef struct float_fields {
    size_t exponent, mantissa, bias; /* bits, bits, what is added to the exponent */
} float_fields;

static int get_fields(hid_t file_type, float_fields *f)
{
    size_t sign, exponent_at, mantissa_at;
    f->bias = H5Tget_ebias(file_type);
    return H5Tget_fields(file_type, &sign, &exponent_at, &f->exponent, &mantissa_at, &f->mantissa);
}

/* The float type that holds all numbers of another: its digits, the largest exponent, the last digit of the smallest.
 */
static gm_dtype find_float(hid_t file_type)
{
    static const struct {
        gm_dtype type;
        size_t mantissa;
        int64_t largest, last; /* powers of 2 */
    } wider[] = {{GM_DTYPE_F32, 23, 127, -149}, {GM_DTYPE_F64, 52, 1023, -1074}};
    float_fields f;
    if (get_fields(file_type, &f) < 0 || f.exponent > 11)
        return GM_DTYPES;
    int64_t bias = (int64_t)f.bias, largest = (1 << f.exponent) - 2 - bias, last = 1 - bias - (int64_t)f.mantissa;
    for (size_t i = 0; i < sizeof wider / sizeof wider[0]; i++)
        if (f.mantissa <= wider[i].mantissa && largest <= wider[i].largest && last >= wider[i].last)
            return wider[i].type;
    return GM_DTYPES;
}

int gm_type_is_swapped(hid_t file_type)
{
    H5T_order_t order = H5Tget_order(file_type);
    return (order == H5T_ORDER_LE || order == H5T_ORDER_BE) && order != H5Tget_order(H5T_NATIVE_INT);
}

/* libhdf5 converts an integer to one of the other byte order and the same size by turning its bytes, whatever their
 * precision: a negative number loses its sign. In the order of the file it converts right. */
static int keeps_order(hid_t file_type, gm_dtype type)
{
    return gm_type_is_swapped(file_type) && H5Tget_size(file_type) == gm_dtype_size(type) && gm_dtype_size(type) > 1;
}

int gm_type_find(hid_t file_type, gm_dtype *type, int *exact, int *swap)
{
    H5T_class_t kind = H5Tget_class(file_type);
    *exact = 1;
    for (*type = 0; *type < GM_DTYPES; (*type)++) {
        *swap = 0;
        if (H5Tequal(file_type, gm_h5_type(*type)) > 0)
            return 1;
        if (is_swapped(file_type, *type)) {
            *swap = gm_dtype_size(*type) > 1;
            return 1;
        }
    }
    *exact = *swap = 0;
    if (kind == H5T_INTEGER) {
        *type = find_wider(H5Tget_sign(file_type) == H5T_SGN_NONE ? GM_UNSIGNED : GM_SIGNED,
                           H5Tget_precision(file_type));
        *swap = *type < GM_DTYPES && keeps_order(file_type, *type);
    } else if (kind == H5T_FLOAT)
        *type = find_float(file_type);
    return *type < GM_DTYPES;
}

/* libhdf5 looks at the order of a single byte as well. */
hid_t gm_type_in_memory(hid_t file_type, gm_dtype type, int swap)
{
    if (gm_dtype_size(type) == 1)
        swap = gm_type_is_swapped(file_type);
    return swap ? gm_h5_type_swapped(type) : H5Tcopy(gm_h5_type(type));
}

/* The member of a compound or enumeration. */
static int has_member(hid_t type, unsigned index, const char *name)
{
    char *found = H5Tget_member_name(type, index);
    int same = found && strcmp(found, name) == 0;
    if (found)
        H5free_memory(found);
    return same;
}

static void number_words(hid_t type, const char *kind, char *text)
{
    size_t size = H5Tget_size(type), bits = H5Tget_precision(type);
    int used = snprintf(text, GM_H5_TEXT, "%s%zu", kind, bits);
    if (bits != 8 * size)
        used += snprintf(text + used, (size_t)(GM_H5_TEXT - used), " in %zu bytes", size);
    if (size > 1 && H5Tget_order(type) == H5T_ORDER_BE)
        snprintf(text + used, (size_t)(GM_H5_TEXT - used), " big-endian");
}

static void integer_words(hid_t type, char *text)
{
    number_words(type, H5Tget_sign(type) == H5T_SGN_NONE ? "uint" : "int", text);
}

static int is_bfloat16(hid_t type)
{
    return H5Tequal(type, gm_h5_type(GM_DTYPE_BF16)) > 0 || is_swapped(type, GM_DTYPE_BF16);
}

/* "float32", "bfloat16"; with "(e6m9)" after it where the bits of exponent are not those of IEEE 754 for the width, and
 * "(e8m23, bias 300)" where the bias is not the middle of the exponents. */
static void float_words(hid_t type, char *text)
{
    size_t bits = H5Tget_precision(type), used;
    size_t expected = bits == 16 ? 5 : bits == 32 ? 8 : bits == 64 ? 11 : bits == 128 ? 15 : 0;
    float_fields f;
    number_words(type, is_bfloat16(type) ? "bfloat" : "float", text);
    used = strlen(text);
    if (is_bfloat16(type) || get_fields(type, &f) < 0)
        return;
    if (f.exponent == 0 || f.exponent > 63 || f.bias != ((size_t)1 << (f.exponent - 1)) - 1)
        snprintf(text + used, GM_H5_TEXT - used, " (e%zum%zu, bias %zu)", f.exponent, f.mantissa, f.bias);
    else if (f.exponent != expected)
        snprintf(text + used, GM_H5_TEXT - used, " (e%zum%zu)", f.exponent, f.mantissa);
}

static void string_words(hid_t type, char *text)
{
    snprintf(text, GM_H5_TEXT, "%s", H5Tis_variable_str(type) > 0 ? "string" : "fixed-length string");
}

static void compound_words(hid_t type, char *text)
{
    int members = H5Tget_nmembers(type);
    if (members == 2 && has_member(type, 0, "r") && has_member(type, 1, "i"))
        snprintf(text, GM_H5_TEXT, "complex number");
    else
        snprintf(text, GM_H5_TEXT, "compound of %d fields", members);
}

static void enum_words(hid_t type, char *text)
{
    int boolean = H5Tget_nmembers(type) == 2 && has_member(type, 0, "FALSE") && has_member(type, 1, "TRUE");
    snprintf(text, GM_H5_TEXT, "%s", boolean ? "boolean (enumeration)" : "enumeration");
}

static void array_words(hid_t type, char *text)
{
    char inner[GM_H5_TEXT];
    hid_t base = H5Tget_super(type);
    snprintf(text, GM_H5_TEXT, "%s of %.400s", H5Tget_class(type) == H5T_ARRAY ? "array" : "variable-length sequence",
             base >= 0 ? gm_type_format(base, inner) : "something");
    gm_h5_close(base);
}

char *gm_type_format(hid_t file_type, char *text)
{
    static const struct {
        H5T_class_t kind;
        const char *word;
        void (*words)(hid_t type, char *text);
    } kinds[] = {
        {H5T_INTEGER, NULL, integer_words},   {H5T_FLOAT, NULL, float_words},    {H5T_STRING, NULL, string_words},
        {H5T_COMPOUND, NULL, compound_words}, {H5T_ENUM, NULL, enum_words},      {H5T_ARRAY, NULL, array_words},
        {H5T_VLEN, NULL, array_words},        {H5T_BITFIELD, "bit field", NULL}, {H5T_OPAQUE, "opaque", NULL},
        {H5T_REFERENCE, "reference", NULL},   {H5T_TIME, "time", NULL},
    };
    H5T_class_t kind = H5Tget_class(file_type);

    strcpy(text, "unknown type");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].kind != kind)
            continue;
        if (kinds[i].words)
            kinds[i].words(file_type, text);
        else
            strcpy(text, kinds[i].word);
    }
    return text;
}
