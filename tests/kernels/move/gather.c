/* Gather of rows: every size of word, rows at addresses aligned to 16 bytes or not, numbers that are none of the rows,
 * places, against a plain loop. */
#include "kernels/move/calls.h"
#include "tests/kernels/each.h"

enum { GUARD = 48 /* bytes before and after `to` that stay as they are */, FILL = 0xa5, SHIFTS = 5 };

/* Bytes that from and to begin off an address that is aligned to 16 bytes, and that rows lie apart. */
static const int64_t shifts[SHIFTS][4] = {{0, 0, 0, 0}, {8, 8, 8, 8}, {4, 12, 4, 0}, {2, 2, 0, 2}, {0, 1, 16, 3}};

/* Places 0 to count - 1 in another order. */
static void shuffle(int64_t *place, int64_t count, uint64_t *state)
{
    for (int64_t i = 0; i < count; i++)
        place[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t k = (int64_t)(random_bits(state) % (uint64_t)(i + 1)), last = place[i];
        place[i] = place[k];
        place[k] = last;
    }
}

/* A row of which some are before the first one, some after the last. */
static int64_t draw(uint64_t *state, int64_t rows)
{
    static const int64_t others[] = {-1, INT64_MIN, INT64_MAX};
    uint64_t bits = random_bits(state);
    if (rows == 0 || bits % 8 == 0)
        return bits % 16 < 8 ? rows : others[bits % 3];
    return (int64_t)(random_bits(state) % (uint64_t)rows);
}

/* Number of wrong bytes of one gather, guards included. */
static int64_t wrong(bench *b, int64_t count, int64_t rows, int64_t bytes, const int64_t *shift, int has_places)
{
    uint64_t state = (uint64_t)(count * 31 + bytes);
    int64_t from_pitch = bytes + shift[2], to_pitch = bytes + shift[3], bad = 0;
    size_t before = GUARD + (size_t)shift[1], words = (size_t)count * sizeof(int64_t);
    size_t from_bytes = (size_t)(shift[0] + rows * from_pitch), to_bytes = before + (size_t)(count * to_pitch) + GUARD;
    unsigned char *in = host_memory(from_bytes), *out = host_memory(to_bytes), *expected = host_memory(to_bytes);
    int64_t *index = host_memory(words), *place = host_memory(words);
    for (size_t i = 0; i < from_bytes; i++)
        in[i] = (unsigned char)random_bits(&state);
    memset(out, FILL, to_bytes);
    memset(expected, FILL, to_bytes);
    shuffle(place, count, &state);
    for (int64_t k = 0; k < count; k++) {
        index[k] = draw(&state, rows);
        if (index[k] >= 0 && index[k] < rows)
            memcpy(expected + before + (has_places ? place[k] : k) * to_pitch, in + shift[0] + index[k] * from_pitch,
                   (size_t)bytes);
    }
    char *from = lend(b, in, from_bytes), *to = lend(b, out, to_bytes);
    gm_gather_call call = {.count = count, .rows = rows, .bytes = bytes, .from_pitch = from_pitch};
    call.to_pitch = to_pitch;
    call.from = from + shift[0];
    call.to = to + before;
    int64_t *lent_index = lend(b, index, words), *lent_place = lend(b, place, words);
    call.index = lent_index;
    call.place = has_places ? lent_place : NULL;
    must(b->ops->gather(b->queue, &call));
    reclaim(b, to, out, to_bytes);
    reclaim(b, from, NULL, 0);
    reclaim(b, lent_index, NULL, 0);
    reclaim(b, lent_place, NULL, 0);
    for (size_t i = 0; i < to_bytes; i++)
        bad += out[i] != expected[i];
    free(in);
    free(out);
    free(expected);
    free(index);
    free(place);
    return bad;
}

static void test_gather(bench *b)
{
    static const int64_t shapes[][3] = {
        /* positions, rows, bytes of a row */
        {1, 1, 1},     {5, 3, 1},      {70001, 300, 1}, {5000, 1, 2},  {777, 100, 3},  {4099, 50, 4},    {1000, 7, 6},
        {3001, 19, 8}, {257, 100, 12}, {5000, 33, 16},  {900, 20, 24}, {1025, 8, 64},  {300, 300, 80},   {130, 9, 100},
        {77, 5, 255},  {64, 64, 256},  {33, 4, 1000},   {10, 3, 4096}, {7, 6, 65536},  {5, 2, 70000},    {3, 2, 200016},
        {3, 4, 65537}, {0, 3, 4},      {4, 0, 8},       {4, 3, 0},     {2000, 5, 160}, {3, 1000, 16400},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int64_t bad = 0;
        for (int i = 0; i < 2 * SHIFTS; i++)
            bad += wrong(b, shapes[s][0], shapes[s][1], shapes[s][2], shifts[i / 2], i % 2);
        tap_ok(bad == 0, "%s: %lld of %lld rows of %lld bytes: %lld bytes wrong", b->ops->kind, (long long)shapes[s][0],
               (long long)shapes[s][1], (long long)shapes[s][2], (long long)bad);
    }
}

int main(void)
{
    each_device(test_gather);
    return tap_done();
}
