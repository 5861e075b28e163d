/* Unpacking: every type, both orders of bytes, to float32 and float64. */
#include <math.h>

#include "tests/kernels_each.h"

enum { GUARD = 5 }; /* elements past each row, of source and destination */

static double real_gm_f16(gm_f16 half)
{
    int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
    double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31)
        magnitude = fraction != 0 ? NAN : INFINITY;
    return half.bits & 0x8000 ? -magnitude : magnitude;
}

static double real_float(float value)
{
    return value;
}

static double real_double(double value)
{
    return value;
}

/* The value of an element by the compiler's own conversions. */
#define AS_UNSIGNED(ctype, value) (to == GM_F32 ? (float)(value) : (double)(value))
#define AS_SIGNED(ctype, value) AS_UNSIGNED(ctype, value)
#define AS_FLOAT(ctype, value) AS_UNSIGNED(ctype, real_##ctype(value))
static double expected(const unsigned char *plain, gm_dtype type, gm_dtype to)
{
    switch (type) {
#define GM_DTYPE(id, name, ctype, kind, bytes, h5) \
    case GM_##id: { \
        ctype value; \
        memcpy(&value, plain, bytes); \
        return AS_##kind(ctype, value); \
    }
#include "base/dtypes.def"
#undef GM_DTYPE
    default:
        return NAN;
    }
}

static int same(double x, double y)
{
    return x == y ? signbit(x) == signbit(y) : isnan(x) && isnan(y);
}

/* Number of wrong elements of one unpacking, guards included. */
static int64_t wrong(bench *b, int64_t rows, int64_t cols, gm_dtype type, int swap, gm_dtype to)
{
    size_t size = gm_dtype_size(type), out_size = gm_dtype_size(to);
    size_t pitch = (size_t)(cols + GUARD) * size;
    int64_t ld = cols + GUARD, bad = 0;
    uint64_t state = (uint64_t)type;
    unsigned char *plain = host_memory((size_t)rows * pitch), *file = host_memory((size_t)rows * pitch);
    void *out = host_memory((size_t)(rows * ld) * out_size);
    for (int64_t e = 0; e < rows * ld; e++) {
        uint64_t bits = size == 2 ? (uint64_t)e * 40503 : random_bits(&state); /* two bytes: every pattern there is */
        for (size_t i = 0; i < size; i++) {
            plain[(size_t)e * size + i] = (unsigned char)(bits >> 8 * i);
            file[(size_t)e * size + (swap ? size - 1 - i : i)] = (unsigned char)(bits >> 8 * i);
        }
    }
    gm_unpack_call call = {.rows = rows, .cols = cols, .src_pitch = pitch, .src_type = type, .swap = swap, .ld = ld, .dst_type = to};
    void *src = lend(b, file, (size_t)rows * pitch), *dst = lend(b, NULL, (size_t)(rows * ld) * out_size);
    call.src = src;
    call.dst = dst;
    must(b->ops->unpack(b->queue, &call));
    reclaim(b, dst, out, (size_t)(rows * ld) * out_size);
    reclaim(b, src, NULL, 0);
    for (int64_t e = 0; e < rows * ld; e++) {
        double value = to == GM_F32 ? (double)((float *)out)[e] : ((double *)out)[e];
        bad += !same(value, e % ld < cols ? expected(plain + (size_t)e * size, type, to) : 0.0);
    }
    free(plain);
    free(file);
    free(out);
    return bad;
}

static void test_unpack(bench *b)
{
    static const int64_t shapes[][2] = {{1, 1}, {37, 53}, {300, 64}, {2, 40000}};
    static const gm_dtype targets[] = {GM_F32, GM_F64};
    for (int type = 0; type < GM_DTYPES; type++) {
        for (int i = 0; i < 4; i++) {
            int64_t bad = 0;
            for (int shape = 0; shape < 4; shape++)
                bad += wrong(b, shapes[shape][0], shapes[shape][1], (gm_dtype)type, i & 1, targets[i >> 1]);
            tap_ok(bad == 0, "%s %s%s to %s: %lld elements wrong", b->ops->kind, gm_dtype_name((gm_dtype)type),
                   i & 1 ? " swapped" : "", gm_dtype_name(targets[i >> 1]), (long long)bad);
        }
    }
}

int main(void)
{
    each_device(test_unpack);
    return tap_done();
}
