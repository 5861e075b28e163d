/* size.h - checked arithmetic of 64-bit sizes, and sizes as text. */
#ifndef GM_BASE_SIZE_H
#define GM_BASE_SIZE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* *out = a * b. Returns 0, or 1 when the result does not fit (then *out is INT64_MAX). Operands are not negative. */
int gm_mul(int64_t a, int64_t b, int64_t *out);

/* a * b, or a + b, INT64_MAX standing for "does not fit": for sums of bytes that are compared with a cap. */
int64_t gm_mul_sat(int64_t a, int64_t b);
int64_t gm_add_sat(int64_t a, int64_t b);

/* The product of factors [count], as gm_mul_sat() makes it: 0 where one of them is 0, 1 where there are none. */
int64_t gm_product_sat(const int64_t *factors, int count);

static inline int64_t gm_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t gm_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t gm_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}
static inline int64_t gm_round_up(int64_t a, int64_t b)
{
    return gm_ceil_div(a, b) * b;
}

/* "512M", "1.5G", "4GiB", "100000": bytes (K, M, G, T are powers of 1024, with or without "iB" or "B").
 * Return 0, or 1 when text is not a size or exceeds the largest one. */
#define GM_SIZE_MOST 0x1p62
#define GM_SIZE_MOST_TEXT "4194304T"
int gm_size_parse(const char *text, int64_t *bytes);

enum { GM_SIZE_TEXT = 32 };
/* Writes "1.50 GiB" into text [GM_SIZE_TEXT] and returns it. Rounded up, so that a requirement is never understated. */
char *gm_size_format(int64_t bytes, char *text);

/* Writes "34.4 G", three digits and the prefix of an SI unit, which the caller writes after it, into text
 * [GM_SIZE_TEXT] and returns it. value is not negative. */
char *gm_si_format(double value, char *text);

/* "1024" -> value, the whole text, in [low, high]. Return 0, or 1 when it is no such integer. */
int gm_integer_parse(const char *text, int64_t low, int64_t high, int64_t *value);

/* "4x6x2" -> values, the whole text: count integers in [1, INT64_MAX], with a separator between them. Return 0, or 1
 * when it is no such list. */
int gm_integers_parse(const char *text, char separator, int count, int64_t *values);

/* A finite number, the whole text; not one that is 0 in float64 alone. Return 0, or 1 when it is no such number. */
int gm_real_parse(const char *text, double *value);

#ifdef __cplusplus
}
#endif
#endif
