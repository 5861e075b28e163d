/* Numbers of rows from indices of each type of integers, in both orders of bytes, with bad ones at each end of a type.
 */
#include "kernels/move/calls.h"
#include "tests/kernels/each.h"

/* An index of a type: its value, and its bytes as a file holds them. */
typedef struct element {
    int64_t value; /* -1: below 0, or above the largest int64 */
    unsigned char bytes[8];
} element;

static element element_of(gm_dtype type, int swap, uint64_t bits)
{
    size_t size = gm_dtype_size(type);
    int unused = 64 - 8 * (int)size;
    element e = {(int64_t)(bits << unused >> unused), {0}};
    if (gm_dtype_get_kind(type) == GM_SIGNED)
        e.value = (int64_t)(bits << unused) >> unused;
    if (e.value < 0)
        e.value = -1;
    for (size_t i = 0; i < size; i++)
        e.bytes[swap ? size - 1 - i : i] = (unsigned char)(bits >> (8 * i));
    return e;
}

/* Number of wrong results of `count` indices below extent, one in `bad` of which is any bits. */
static int64_t wrong(bench *b, gm_dtype type, int swap, int64_t count, int64_t extent, int64_t bad, int adds)
{
    uint64_t state = (uint64_t)(count + extent);
    size_t size = gm_dtype_size(type), words = (size_t)count * sizeof(int64_t);
    unsigned char *index = host_memory((size_t)count * size);
    int64_t *rows = host_memory(words), *expected = host_memory(words), lowest = INT64_MAX, faults = 0;
    const int64_t first = INT64_C(1) << 40;
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = random_bits(&state);
        int64_t most = type == GM_DTYPE_I8 ? (extent > 100 ? 100 : extent) : extent > 200 ? 200 : extent;
        element e = element_of(type, swap,
                               bits % (uint64_t)bad ? random_bits(&state) % (uint64_t)most : random_bits(&state));
        int fits = e.value >= 0 && e.value < extent;
        memcpy(index + (size_t)i * size, e.bytes, size);
        rows[i] = adds && bits % 5 == 0 ? -1 : (int64_t)(bits % 1000);
        int64_t before = adds ? rows[i] : 0;
        expected[i] = fits && before >= 0 ? before * extent + e.value : -1;
        if (!fits && lowest == INT64_MAX)
            lowest = first + i;
    }
    int64_t found = INT64_MAX;
    gm_index_rows_call call = {.count = count, .extent = extent, .first = first, .adds = adds};
    call.type = type;
    call.swap = swap;
    void *lent = lend(b, index, (size_t)count * size);
    call.index = lent;
    call.rows = lend(b, rows, words);
    call.bad = lend(b, &found, sizeof found);
    must(b->ops->index_rows(b->queue, &call));
    reclaim(b, call.rows, rows, words);
    reclaim(b, call.bad, &found, sizeof found);
    reclaim(b, lent, NULL, 0);
    for (int64_t i = 0; i < count; i++)
        faults += rows[i] != expected[i];
    free(index);
    free(rows);
    free(expected);
    return faults + (found != lowest);
}

static void test_rows(bench *b)
{
    static const int64_t counts[] = {1, 33, 1000, 50001}, extents[] = {1, 7, 128, 256, 70000, INT64_C(1) << 50};
    for (gm_dtype type = 0; type < GM_DTYPES; type++) {
        int64_t faults = 0;
        if (gm_dtype_get_kind(type) == GM_FLOAT)
            continue;
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (size_t k = 0; k < sizeof extents / sizeof *extents; k++)
                for (int kind = 0; kind < 8; kind++)
                    faults += wrong(b, type, kind & 1, counts[i], extents[k], kind & 2 ? 3 : 20000, kind >> 2);
        tap_ok(faults == 0, "%s: indices of type %s: %lld wrong", b->ops->kind, gm_dtype_name(type), (long long)faults);
    }
    int64_t least = 5, *bad = lend(b, &least, sizeof least);
    static const int8_t index[3] = {0, -1, 9};
    int8_t *lent = lend(b, index, sizeof index);
    int64_t *rows = lend(b, NULL, sizeof(int64_t[3]));
    gm_index_rows_call call = {.count = 3, .extent = 9, .first = 10, .type = GM_DTYPE_I8, .index = lent};
    call.rows = rows;
    call.bad = bad;
    must(b->ops->index_rows(b->queue, &call));
    reclaim(b, bad, &least, sizeof least);
    reclaim(b, lent, NULL, 0);
    reclaim(b, rows, NULL, 0);
    tap_ok(least == 5, "%s: a position that is lower stays", b->ops->kind);
}

int main(void)
{
    each_device(test_rows);
    return tap_done();
}
