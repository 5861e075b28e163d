/* Flip of rows: elements of every size, rows of one element and of more, at addresses aligned to 16 bytes or not,
 * against a plain loop. */
#include "kernels/move/calls.h"
#include "tests/kernels/each.h"

enum { GUARD = 48 /* bytes before and after dst that stay as they are */, FILL = 0xa5, SHIFTS = 4 };

/* Elements that src and dst begin off an address that is aligned to 16 bytes. */
static const int64_t shifts[SHIFTS][2] = {{0, 0}, {1, 1}, {1, 0}, {0, 3}};

/* Number of wrong bytes of one flip, guards included. */
static int64_t wrong(bench *b, int64_t outer, int64_t rows, int64_t inner, int64_t bytes, const int64_t *shift)
{
    size_t size = (size_t)bytes, count = (size_t)(outer * rows * inner), before = GUARD + (size_t)shift[1] * size;
    size_t src_bytes = ((size_t)shift[0] + count) * size, dst_bytes = before + count * size + GUARD;
    unsigned char *in = host_memory(src_bytes), *out = host_memory(dst_bytes), *expected = host_memory(dst_bytes);
    uint64_t state = count * size;
    int64_t bad = 0;
    for (size_t i = 0; i < src_bytes; i++)
        in[i] = (unsigned char)random_bits(&state);
    memset(out, FILL, dst_bytes);
    memset(expected, FILL, dst_bytes);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < inner; i++)
                memcpy(expected + before + (size_t)((o * rows + r) * inner + i) * size,
                       in + (size_t)(shift[0] + (o * rows + rows - 1 - r) * inner + i) * size, size);
    char *src = lend(b, in, src_bytes), *dst = lend(b, out, dst_bytes);
    gm_flip_call call = {.outer = outer, .rows = rows, .inner = inner, .bytes = bytes};
    call.src = src + (size_t)shift[0] * size;
    call.dst = dst + before;
    must(b->ops->flip(b->queue, &call));
    reclaim(b, dst, out, dst_bytes);
    reclaim(b, src, NULL, 0);
    for (size_t i = 0; i < dst_bytes; i++)
        bad += out[i] != expected[i];
    free(in);
    free(out);
    free(expected);
    return bad;
}

static void test_flip(bench *b)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1},     {1, 2, 1},    {3, 7, 1},    {5, 16, 1},   {3, 32, 1},    {2, 1008, 1}, /* reversed elements */
        {1, 70001, 1}, {2, 1, 9},    {1, 5, 3},    {4, 3, 7},    {37, 11, 2},   {3, 5, 16},   /* rows of elements */
        {2, 9, 48},    {1, 3, 1001}, {2, 3, 8192}, {1, 4, 6},    {2, 3, 40012}, {300, 2, 5},
        {9, 4093, 1},  {700, 3, 1},  {99, 15, 1},  {300, 17, 1}, {40, 9, 17}, /* words with parts of two rows or more */
        {0, 3, 4},     {3, 0, 1},    {3, 0, 5},    {2, 3, 0},
    };
    for (int64_t bytes = 1; bytes <= 8; bytes *= 2)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            const int64_t *shape = shapes[s];
            int64_t bad = 0;
            for (int i = 0; i < SHIFTS; i++)
                bad += wrong(b, shape[0], shape[1], shape[2], bytes, shifts[i]);
            tap_ok(bad == 0, "%s: %lld x %lld x %lld elements of %lld bytes: %lld bytes wrong", b->ops->kind,
                   (long long)shape[0], (long long)shape[1], (long long)shape[2], (long long)bytes, (long long)bad);
        }
}

int main(void)
{
    each_device(test_flip);
    return tap_done();
}
