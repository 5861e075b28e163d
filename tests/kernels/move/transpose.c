/* Swap of two axes: elements of every size, whole and cut tiles, rows of several elements, axes of one, at addresses
 * aligned to 16 bytes or not, against a plain loop. */
#include "kernels/move/calls.h"
#include "tests/kernels/each.h"

enum { GUARD = 48 /* bytes before and after dst that stay as they are */, FILL = 0xa5, SHIFTS = 4 };

/* Elements that src and dst begin off an address that is aligned to 16 bytes. */
static const int64_t shifts[SHIFTS][2] = {{0, 0}, {1, 1}, {1, 0}, {0, 3}};

/* outer, first, middle, second, inner */
typedef int64_t shape[5];

static void swap_plainly(const int64_t *s, size_t size, unsigned char *to, const unsigned char *from)
{
    size_t row = (size_t)s[4] * size;
    for (int64_t o = 0; o < s[0]; o++)
        for (int64_t b = 0; b < s[3]; b++)
            for (int64_t m = 0; m < s[2]; m++)
                for (int64_t a = 0; a < s[1]; a++, to += row)
                    memcpy(to, from + (size_t)(((o * s[1] + a) * s[2] + m) * s[3] + b) * row, row);
}

/* Number of wrong bytes of one call, guards included. */
static int64_t wrong(bench *b, const int64_t *s, int64_t bytes, const int64_t *shift)
{
    size_t size = (size_t)bytes, count = (size_t)(s[0] * s[1] * s[2] * s[3] * s[4]);
    size_t before = GUARD + (size_t)shift[1] * size;
    size_t src_bytes = ((size_t)shift[0] + count) * size, dst_bytes = before + count * size + GUARD;
    unsigned char *in = host_memory(src_bytes), *out = host_memory(dst_bytes), *expected = host_memory(dst_bytes);
    uint64_t state = count * size;
    int64_t bad = 0;
    for (size_t i = 0; i < src_bytes; i++)
        in[i] = (unsigned char)random_bits(&state);
    memset(out, FILL, dst_bytes);
    memset(expected, FILL, dst_bytes);
    swap_plainly(s, size, expected + before, in + (size_t)shift[0] * size);
    char *src = lend(b, in, src_bytes), *dst = lend(b, out, dst_bytes);
    gm_transpose_call call = {.outer = s[0], .first = s[1], .middle = s[2], .second = s[3], .inner = s[4]};
    call.bytes = bytes;
    call.src = src + (size_t)shift[0] * size;
    call.dst = dst + before;
    must(b->ops->transpose(b->queue, &call));
    reclaim(b, dst, out, dst_bytes);
    reclaim(b, src, NULL, 0);
    for (size_t i = 0; i < dst_bytes; i++)
        bad += out[i] != expected[i];
    free(in);
    free(out);
    free(expected);
    return bad;
}

static void test_transpose(bench *b)
{
    static const shape shapes[] = {
        {1, 64, 1, 64, 1},   {1, 128, 1, 256, 1},  {1, 256, 1, 512, 1}, {3, 144, 1, 272, 1}, /* whole words */
        {2, 80, 3, 96, 1},   {1, 2112, 1, 64, 1},  {1, 64, 1, 4500, 1}, {1, 16, 2, 1000, 1}, {1, 130, 1, 258, 1},
        {1, 127, 1, 255, 1}, {1, 129, 1, 257, 1},  {1, 65, 1, 67, 1}, /* cut words */
        {2, 81, 3, 97, 1},   {1, 131, 1, 4611, 1}, {1, 77, 5, 130, 1},  {1, 128, 1, 333, 1}, {1, 1, 1, 1, 1},
        {1, 511, 3, 769, 1}, {1, 1021, 1, 517, 1}, {2, 252, 1, 260, 1}, /* several tiles of cut words */
        {1, 5, 1, 300, 1},   {1, 300, 1, 3, 1},    {2, 3, 4, 5, 1},     /* short axes */
        {1, 66, 1, 70, 2},   {1, 70, 2, 66, 4},    {1, 130, 1, 70, 8},  {2, 5, 3, 7, 16}, /* rows of elements */
        {1, 7, 1, 9, 3},     {2, 3, 1, 4, 5000},   {1, 2, 2, 2, 40012}, {37, 11, 2, 3, 5},   {2, 1, 70, 90, 1},
        {2, 90, 70, 1, 1},   {4, 1, 1, 500, 3},    {3, 1, 9, 1, 7}, /* axes of extent 1 */
        {0, 3, 1, 4, 1},     {2, 0, 1, 4, 1},      {2, 3, 0, 4, 1},     {2, 3, 1, 0, 1},     {2, 3, 1, 4, 0},
    };
    for (int64_t bytes = 1; bytes <= 8; bytes *= 2)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const int64_t *s = shapes[i];
            int64_t bad = 0;
            for (int k = 0; k < SHIFTS; k++)
                bad += wrong(b, s, bytes, shifts[k]);
            tap_ok(bad == 0, "%s: %lld x %lld x %lld x %lld x %lld elements of %lld bytes: %lld bytes wrong",
                   b->ops->kind, (long long)s[0], (long long)s[1], (long long)s[2], (long long)s[3], (long long)s[4],
                   (long long)bytes, (long long)bad);
        }
}

int main(void)
{
    each_device(test_transpose);
    return tap_done();
}
