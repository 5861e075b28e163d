/* each.h - for the tests of kernels: the same test on each kind of device there is, and memory to and fro.
 *
 * GPUMEM_TEST_REQUIRE=cuda (or cpu) in the environment makes a missing device of that kind a failure; otherwise it is
 * skipped. GPUMEM_TEST_DEVICE=cuda (or cpu): that kind only. GPUMEM_TEST_EVERY=N: of the thousands of cases of a test
 * only each N-th, under tools that make all of them last for many minutes. */
#ifndef GM_TESTS_KERNELS_EACH_H
#define GM_TESTS_KERNELS_EACH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "kernels/element.h"
#include "kernels/kernels.h"
#include "tests/tap.h"

typedef struct bench {
    const gm_device_ops *ops;
    gm_device *device;
    gm_queue *queue;
} bench;

/* A call that only sets the stage: when it fails there is no test. */
static inline void must(int status)
{
    if (status != GM_OK) {
        gm_error error;
        gm_error_get(&error);
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
}

static inline bench bench_open(const gm_device_ops *ops, int threads)
{
    bench b = {ops, NULL, NULL};
    must(ops->open(0, threads, &b.device));
    must(ops->queue_open(b.device, &b.queue));
    return b;
}

static inline void bench_close(bench *b)
{
    b->ops->queue_close(b->queue);
    b->ops->close(b->device);
}

/* Is the next case to be run? */
static inline int is_due(void)
{
    static long asked;
    const char *text = getenv("GPUMEM_TEST_EVERY");
    long every = text != NULL ? strtol(text, NULL, 10) : 1;
    return every <= 1 || asked++ % every == 0;
}

/* Device memory with a copy of bytes from host; NULL: cleared. */
static inline void *lend(bench *b, const void *host, size_t bytes)
{
    void *memory;
    must(b->ops->alloc(b->device, bytes, &memory));
    must(host != NULL ? b->ops->copy_in(b->queue, memory, bytes, host, bytes, bytes, 1)
                      : b->ops->zero(b->queue, memory, bytes));
    must(b->ops->queue_sync(b->queue));
    return memory;
}

/* Copies the bytes back to host, unless that is NULL, and frees the device memory. */
static inline void reclaim(bench *b, void *memory, void *host, size_t bytes)
{
    if (host != NULL)
        must(b->ops->copy_out(b->queue, host, bytes, memory, bytes, bytes, 1));
    must(b->ops->queue_sync(b->queue));
    b->ops->free(b->device, memory);
}

static inline void *host_memory(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        printf("Bail out! no host memory\n");
        exit(1);
    }
    return memory;
}

/* The larger of two errors; NaN is the largest, and stays. */
static inline double worse(double a, double b)
{
    return a != a || a > b ? a : b;
}

/* Pseudo-random bits (SplitMix64), and a number in [-1, 1). */
static inline uint64_t random_bits(uint64_t *state)
{
    return gm_random_mix(*state += GM_RANDOM_STEP);
}

static inline double random_real(uint64_t *state)
{
    return (double)(int64_t)random_bits(state) * 0x1p-63;
}

/* Of a float of some bytes and digits (base/types/dtypes.def), by arithmetic of its own: bits of infinity, and the
 * value of its bits. */
static inline uint64_t infinity_bits(gm_dtype type)
{
    int bits = 8 * (int)gm_dtype_size(type), fraction = gm_dtype_digits(type) - 1;
    return (UINT64_C(1) << (bits - 1)) - (UINT64_C(1) << fraction);
}

static inline double bits_value(gm_dtype type, uint64_t bits)
{
    int width = 8 * (int)gm_dtype_size(type), fraction = gm_dtype_digits(type) - 1;
    int top = (int)(infinity_bits(type) >> fraction), exponent = (int)(bits >> fraction) & top;
    double part = (double)(bits & ((UINT64_C(1) << fraction) - 1)), value;
    if (exponent == top)
        value = part > 0 ? (double)NAN : (double)INFINITY;
    else
        value = ldexp(exponent ? part + ldexp(1, fraction) : part, (exponent ? exponent : 1) - top / 2 - fraction);
    return bits >> (width - 1) & 1 ? -value : value;
}

/* Writes an element as it stands in a file: integers of random bits, floats in [-1, 1). Returns its value. */
static inline double random_element(uint64_t *state, gm_dtype type, int swap, unsigned char *out)
{
    uint64_t bits = random_bits(state);
    double real = random_real(state), value = 0;
    size_t size = gm_dtype_size(type);
    unsigned char raw[8];
    switch (type) {
#define GM_VALUE_OF_UNSIGNED(ctype) (ctype) bits
#define GM_VALUE_OF_SIGNED(ctype) (ctype) bits
#define GM_VALUE_OF_FLOAT(ctype) gm_round_##ctype(real)
#define GM_DTYPE(id, name, ctype, kind, bytes, digits) \
    case GM_DTYPE_##id: {                              \
        ctype element = GM_VALUE_OF_##kind(ctype);     \
        gm_raw##bytes plain;                           \
        memcpy(raw, &element, bytes);                  \
        memcpy(&plain, raw, bytes);                    \
        value = gm_f64_##id(plain, 0);                 \
        break;                                         \
    }
#include "base/types/dtypes.def"
#undef GM_DTYPE
    default:
        break;
    }
    for (size_t i = 0; i < size; i++)
        out[i] = raw[swap ? size - 1 - i : i];
    return value;
}

/* Runs test on the first device of every kind that is to be tested. */
static inline void each_device(void (*test)(bench *b))
{
    const char *required = getenv("GPUMEM_TEST_REQUIRE"), *only = getenv("GPUMEM_TEST_DEVICE");
    for (int i = 0; gm_device_kinds[i] != NULL; i++) {
        const gm_device_ops *ops = gm_device_kinds[i];
        int count;
        if (only != NULL && *only != '\0' && strcmp(only, ops->kind) != 0)
            continue;
        must(ops->count(&count));
        if (count > 0) {
            bench b = bench_open(ops, 2);
            test(&b);
            bench_close(&b);
        } else if (required != NULL && strstr(required, ops->kind) != NULL) {
            tap_ok(0, "%s: %s", ops->kind, ops->absence());
        } else {
            tap_skip(ops->absence(), "%s", ops->kind);
        }
    }
}

#endif
