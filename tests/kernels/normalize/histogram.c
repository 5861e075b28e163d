/* Counts of digits against counting one element at a time, and the order of keys against the order of values. */
#include <math.h>

#include "kernels/normalize/normalize.h"
#include "kernels/normalize/calls.h"
#include "tests/kernels/each.h"

enum { ROWS = 3, COLS = 70001, FEW_COLS = 17001, SHIFT = 1, PREFIXES = 3 };

static int64_t cols = COLS; /* FEW_COLS under valgrind: enough for several threads as well */

static int64_t elements(void)
{
    return ROWS * cols;
}

/* The key of an element as a file holds it, by arithmetic on values rather than on bits where that is possible. Returns
 * 0 for NaN. */
static int key_of(gm_dtype type, int swap, const unsigned char *element, uint64_t *key)
{
    unsigned bits = 8 * (unsigned)gm_dtype_size(type);
    uint64_t raw = 0, top = (uint64_t)1 << (bits - 1);
    for (unsigned i = 0; i < bits / 8; i++)
        raw |= (uint64_t)element[swap ? bits / 8 - 1 - i : i] << (8 * i);
    if (gm_dtype_get_kind(type) == GM_UNSIGNED)
        *key = raw;
    else if (gm_dtype_get_kind(type) == GM_SIGNED)
        *key = raw < top ? raw + top : raw - top;
    else
        *key = raw < top ? raw + top : 2 * top - 1 - raw;
    return gm_dtype_get_kind(type) != GM_FLOAT || (raw & (top - 1)) <= infinity_bits(type);
}

/* Elements that share high digits: all the same, few values, or any. */
static void make(unsigned char *src, gm_dtype type, int kind, uint64_t *state)
{
    size_t size = gm_dtype_size(type);
    for (int64_t i = 0; i < (elements() + SHIFT) * (int64_t)size; i++) {
        int low = (i % (int64_t)size) < (int64_t)(size + 1) / 2;
        src[i] = (unsigned char)(kind == 0 ? 60 : kind == 1 && !low ? 60 + random_bits(state) % 2 : random_bits(state));
    }
}

static int64_t check(bench *b, const unsigned char *src, gm_dtype type, int swap, int bits, int shift, int row_step,
                     int prefixes)
{
    size_t size = gm_dtype_size(type), bins = (size_t)prefixes << bits;
    int64_t groups = row_step ? ROWS : 1, bad = 0;
    uint64_t prefix[ROWS * PREFIXES], key;
    uint64_t *counts = host_memory((size_t)groups * bins * sizeof *counts),
             *want = host_memory((size_t)groups * bins * sizeof *want);
    for (int64_t g = 0; g < groups; g++) { /* of elements that are there, but for the last */
        int found = 0;
        for (int64_t i = g * cols; i < elements() && found < prefixes; i++) {
            uint64_t above = key_of(type, swap, src + (size_t)(i + SHIFT) * size, &key) ? key >> shift >> bits : 0;
            int is_new = 1;
            for (int p = 0; p < found; p++)
                is_new = is_new && prefix[g * prefixes + p] != above;
            if (is_new || found == prefixes - 1)
                prefix[g * prefixes + found++] = is_new ? above : ~(uint64_t)g;
        }
    }
    for (size_t i = 0; i < (size_t)groups * bins; i++)
        counts[i] = want[i] = i % 5;
    for (int64_t i = 0; i < elements(); i++) {
        int64_t g = row_step ? i / cols : 0;
        for (int p = 0; p < prefixes && key_of(type, swap, src + (size_t)(i + SHIFT) * size, &key); p++)
            if (key >> shift >> bits == prefix[g * prefixes + p])
                want[(uint64_t)(g * prefixes + p) << bits | (key >> shift & ((1ull << bits) - 1))]++;
    }
    void *on_src = lend(b, src, (size_t)(elements() + SHIFT) * size), *on_prefix = lend(b, prefix, sizeof prefix),
         *on_counts = lend(b, counts, (size_t)groups * bins * 8);
    gm_histogram_call call = {.rows = ROWS,
                              .cols = cols,
                              .src = (char *)on_src + SHIFT * size,
                              .type = type,
                              .swap = swap,
                              .shift = shift,
                              .bits = bits,
                              .row_step = row_step,
                              .prefixes = prefixes,
                              .prefix = on_prefix,
                              .counts = on_counts};
    must(b->ops->histogram(b->queue, &call));
    reclaim(b, on_counts, counts, (size_t)groups * bins * 8);
    reclaim(b, on_src, NULL, 0);
    reclaim(b, on_prefix, NULL, 0);
    for (size_t i = 0; i < (size_t)groups * bins; i++)
        bad += counts[i] != want[i];
    free(counts);
    free(want);
    return bad;
}

static void test_type(bench *b, gm_dtype type, unsigned char *src)
{
    int width = 8 * (int)gm_dtype_size(type);
    uint64_t state = 5;
    for (int kind = 0; kind < 3; kind++) {
        int64_t bad = 0;
        make(src, type, kind, &state);
        for (int bits = 8; bits <= (width < 16 ? 8 : 16); bits += 8)
            for (int shift = 0; shift<width; shift += width> 32 ? width - bits : bits)
                for (int row_step = 0; row_step < 2; row_step++)
                    bad += check(b, src, type, (kind + row_step) % 2, bits, shift, row_step,
                                 shift + bits == width ? 1
                                 : kind == 1           ? PREFIXES
                                                       : 2);
        tap_ok(bad == 0, "%s histogram of %s, %s: %lld wrong", b->ops->kind, gm_dtype_name(type),
               kind == 0   ? "all the same"
               : kind == 1 ? "few"
                           : "any",
               (long long)bad);
    }
}

/* Keys order as values do and go back to the element. */
static void test_keys(void)
{
    int good = 1;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t raw = (uint16_t)i;
        good = good && gm_unkey_F16(gm_key_F16(raw, 0)) == raw && gm_unkey_I16(gm_key_I16(raw, 0)) == raw;
        for (uint32_t j = 0; j < 65536; j += 1021) {
            uint16_t other = (uint16_t)j;
            if (gm_nan_F16(raw, 0) || gm_nan_F16(other, 0))
                continue;
            double x = gm_f64_F16(raw, 0), y = gm_f64_F16(other, 0);
            good = good && (x < y) <= (gm_key_F16(raw, 0) < gm_key_F16(other, 0));
        }
    }
    good = good && gm_key_F64(0x8000000000000000, 0) < gm_key_F64(0, 0) &&
           gm_unkey_F64(gm_key_F64(0xc000000000000123, 0)) == 0xc000000000000123;
    tap_ok(good, "keys are in the order of values, and go back");
}

static void test_histogram(bench *b)
{
    unsigned char *src = host_memory((size_t)(elements() + SHIFT) * 8);
    for (int type = 0; type < GM_DTYPES && b->ops->histogram != NULL; type++)
        test_type(b, (gm_dtype)type, src);
    if (b->ops->histogram == NULL)
        tap_skip("not supported", "%s histogram", b->ops->kind);
    free(src);
}

int main(void)
{
    if (getenv("GPUMEM_TEST_MEMCHECK"))
        cols = FEW_COLS;
    test_keys();
    each_device(test_histogram);
    return tap_done();
}
