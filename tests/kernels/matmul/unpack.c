/* Unpacking: every type, both orders of bytes, to float32 and float64; integers of 8 bits as they are. */
#include <math.h>

#include "kernels/matmul/calls.h"
#include "tests/kernels/each.h"

enum { GUARD = 5 }; /* elements past each row, of source and destination */

/* The value of an element by the compiler's own conversions; a float's by its bits. */
#define AS_UNSIGNED(ctype, value) (to == GM_DTYPE_F32 ? (float)(value) : (double)(value))
#define AS_SIGNED(ctype, value) AS_UNSIGNED(ctype, value)
#define AS_FLOAT(ctype, value) AS_UNSIGNED(ctype, bits_value(type, bits))
static double expected(const unsigned char *plain, gm_dtype type, gm_dtype to)
{
    uint64_t bits = 0;
    memcpy(&bits, plain, gm_dtype_size(type));
    switch (type) {
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) \
    case GM_DTYPE_##id: {                              \
        ctype value;                                   \
        memcpy(&value, plain, bytes);                  \
        return AS_##kind(ctype, value);                \
    }
#include "base/types/dtypes.def"
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
    gm_unpack_call call = {
        .rows = rows, .cols = cols, .src_pitch = pitch, .src_type = type, .swap = swap, .ld = ld, .dst_type = to};
    void *src = lend(b, file, (size_t)rows * pitch), *dst = lend(b, NULL, (size_t)(rows * ld) * out_size);
    call.src = src;
    call.dst = dst;
    must(b->ops->unpack(b->queue, &call));
    reclaim(b, dst, out, (size_t)(rows * ld) * out_size);
    reclaim(b, src, NULL, 0);
    for (int64_t e = 0; e < rows * ld; e++) {
        double value = to == GM_DTYPE_F32   ? (double)((float *)out)[e]
                       : to == GM_DTYPE_F64 ? ((double *)out)[e]
                       : to == GM_DTYPE_I8  ? (double)((int8_t *)out)[e]
                                            : (double)((uint8_t *)out)[e];
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
    static const gm_dtype targets[] = {GM_DTYPE_F32, GM_DTYPE_F64};
    for (int i = 0; i < 4; i++) {
        gm_dtype type = i & 1 ? GM_DTYPE_I8 : GM_DTYPE_U8;
        int64_t bad = 0;
        for (int shape = 0; shape < 4; shape++)
            bad += wrong(b, shapes[shape][0], shapes[shape][1], type, i >> 1, type);
        tap_ok(bad == 0, "%s %s%s as it is: %lld elements wrong", b->ops->kind, gm_dtype_name(type),
               i >> 1 ? " swapped" : "", (long long)bad);
    }
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

/* Elements that float32 has no normal number for are found, and only those. */
static void test_underflow(bench *b)
{
    static const struct {
        double value;
        gm_dtype to;
        uint64_t found;
    } cases[] = {{1, GM_DTYPE_F32, 0},          {0, GM_DTYPE_F32, 0},       {-0.0, GM_DTYPE_F32, 0},
                 {0x1p-126, GM_DTYPE_F32, 0},   {NAN, GM_DTYPE_F32, 0},     {-0x1p-127, GM_DTYPE_F32, 0},
                 {1e-39, GM_DTYPE_F32, 1},      {-1e-300, GM_DTYPE_F32, 1}, {5e-324, GM_DTYPE_F32, 1},
                 {0x1.8p-149, GM_DTYPE_F32, 1}, {1e-300, GM_DTYPE_F64, 0}};
    enum { ROWS = 3, COLS = 20000, AT = COLS + 16500 };
    double *data = host_memory(ROWS * COLS * sizeof *data);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        int swap = i & 1;
        for (int64_t e = 0; e < ROWS * COLS; e++) {
            double value = e == AT ? cases[i / 2].value : 1.5;
            unsigned char *bytes = (unsigned char *)&data[e];
            for (size_t at = 0; at < sizeof value; at++)
                bytes[swap ? sizeof value - 1 - at : at] = ((const unsigned char *)&value)[at];
        }
        gm_unpack_call call = {.rows = ROWS,
                               .cols = COLS,
                               .src_pitch = COLS * sizeof *data,
                               .src_type = GM_DTYPE_F64,
                               .swap = swap,
                               .ld = COLS,
                               .dst_type = cases[i / 2].to};
        void *src = lend(b, data, ROWS * COLS * sizeof *data), *dst = lend(b, NULL, ROWS * COLS * sizeof *data);
        call.src = src;
        call.dst = dst;
        uint64_t found = 0;
        call.underflow = lend(b, &found, sizeof found);
        must(b->ops->unpack(b->queue, &call));
        reclaim(b, call.underflow, &found, sizeof found);
        reclaim(b, dst, NULL, 0);
        reclaim(b, src, NULL, 0);
        tap_ok(found == cases[i / 2].found, "%s %g%s to %s: %s", b->ops->kind, cases[i / 2].value,
               swap ? " swapped" : "", gm_dtype_name(cases[i / 2].to), cases[i / 2].found ? "found" : "not found");
    }
    free(data);
}

int main(void)
{
    each_device(test_unpack);
    each_device(test_underflow);
    return tap_done();
}
