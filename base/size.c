#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gm_mul(int64_t a, int64_t b, int64_t *out)
{
    int overflow = __builtin_mul_overflow(a, b, out);
    if (overflow)
        *out = INT64_MAX;
    return overflow;
}

int64_t gm_mul_sat(int64_t a, int64_t b)
{
    int64_t out;
    gm_mul(a, b, &out);
    return out;
}

int64_t gm_add_sat(int64_t a, int64_t b)
{
    int64_t out;
    return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}

int64_t gm_product_sat(const int64_t *factors, int count)
{
    int64_t product = 1;
    for (int i = 0; i < count; i++)
        product = gm_mul_sat(product, factors[i]);
    return product;
}

/* The power of two of the unit after a number: "", "B", "M", "MB", "MiB" ...; -1 for anything else. */
static int unit_shift(const char *unit)
{
    static const char letters[] = "KMGT";
    int shift = 0;
    const char *letter = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
    if (letter) {
        shift = 10 * (int)(letter - letters + 1);
        unit++;
        if (*unit == 'i')
            unit++;
    }
    if (*unit == 'B')
        unit++;
    return *unit ? -1 : shift;
}

int gm_size_parse(const char *text, int64_t *bytes)
{
    char *end;
    if (!isdigit((unsigned char)*text) && *text != '.')
        return 1;
    double value = strtod(text, &end);
    int shift = unit_shift(end);
    if (end == text || shift < 0 || !isfinite(value))
        return 1;
    value = floor(ldexp(value, shift));
    if (value > GM_SIZE_MOST)
        return 1;
    *bytes = (int64_t)value;
    return 0;
}

char *gm_size_format(int64_t bytes, char *text)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = -1;
    while (value >= 1024 && unit < 3) {
        value /= 1024;
        unit++;
    }
    if (unit < 0)
        snprintf(text, GM_SIZE_TEXT, "%lld bytes", (long long)bytes);
    else
        snprintf(text, GM_SIZE_TEXT, "%.2f %s", ceil(value * 100) / 100, units[unit]);
    return text;
}

char *gm_si_format(double value, char *text)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    int prefix = 0;
    while (value >= 999.5 && prefix < 6) { /* which three digits would round to 1000 */
        value /= 1000;
        prefix++;
    }
    snprintf(text, GM_SIZE_TEXT, "%.3g %s", value, prefixes[prefix]);
    return text;
}

/* The integer before the character `end`: returns what follows that, and NULL when there is no such integer. */
static const char *take_integer(const char *text, char end, int64_t low, int64_t high, int64_t *value)
{
    char *rest;
    if (!isdigit((unsigned char)*text) && *text != '-' && *text != '+')
        return NULL;
    errno = 0;
    long long v = strtoll(text, &rest, 10);
    if (errno || rest == text || *rest != end || v < low || v > high)
        return NULL;
    *value = v;
    return rest + 1;
}

int gm_integer_parse(const char *text, int64_t low, int64_t high, int64_t *value)
{
    return !take_integer(text, '\0', low, high, value);
}

int gm_integers_parse(const char *text, char separator, int count, int64_t *values)
{
    for (int i = 0; i < count && text; i++)
        text = take_integer(text, i + 1 < count ? separator : '\0', 1, INT64_MAX, &values[i]);
    return !text;
}

int gm_real_parse(const char *text, double *value)
{
    char *end;
    if (*text == '\0' || isspace((unsigned char)*text))
        return 1;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || (v == 0 && errno == ERANGE))
        return 1;
    *value = v;
    return 0;
}
