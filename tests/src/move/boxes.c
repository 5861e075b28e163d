/* Boxes of a dataset of which two axes are swapped: every element is in one box of one rank, boxes keep to their size
 * and to chunks, and runs are long. */
#include "base/random.h"
#include "base/size.h"
#include "src/move/boxes.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { CASES = 600, RANKS_MOST = 5 };

static uint64_t state = 7;

static int64_t below(int64_t n)
{
    return (int64_t)(gm_random_mix(state += GM_RANDOM_STEP) % (uint64_t)n);
}

static gm_boxes boxes_of(int rank, int first, int second, const int64_t *dims, const int64_t *chunk)
{
    gm_dataset d = {.rank = rank, .view_rank = rank, .layout = chunk ? GM_CHUNKED : GM_CONTIGUOUS};
    for (int k = 0; k < rank; k++) {
        d.dims[k] = d.view[k] = d.selection.count[k] = dims[k];
        d.selection.step[k] = 1;
        d.chunk[k] = chunk ? chunk[k] : 0;
    }
    return gm_boxes_of(&d, first, second);
}

/* Counts how often each element is in a box of a rank. Returns the faults of boxes. */
static int count_elements(const gm_boxes *b, int64_t elements, unsigned char *seen)
{
    int faults = gm_boxes_piece(b) > gm_max(elements, 1);
    for (int64_t i = 0; i < gm_boxes_count(b); i++) {
        int64_t start[GM_RANK_MAX], count[GM_RANK_MAX], at[GM_RANK_MAX] = {0};
        int d;
        gm_boxes_get(b, i, start, count);
        for (d = 0; d < b->rank; d++)
            faults += count[d] < 1 || count[d] > b->extent[d] || start[d] < b->begin[d] ||
                      start[d] + count[d] > b->end[d];
        if (faults)
            return faults;
        do {
            int64_t place = 0;
            for (d = 0; d < b->rank; d++)
                place = place * b->dims[d] + start[d] + at[d];
            seen[place]++;
            for (d = b->rank - 1; d >= 0 && ++at[d] == count[d]; d--)
                at[d] = 0;
        } while (d >= 0);
    }
    return faults;
}

/* Runs of all boxes, element by element. */
static int64_t count_runs(const gm_boxes *b, int of_output)
{
    int64_t runs = 0;
    for (int64_t i = 0; i < gm_boxes_count(b); i++) {
        int64_t start[GM_RANK_MAX], count[GM_RANK_MAX], at[GM_RANK_MAX] = {0}, last = -2;
        int k;
        gm_boxes_get(b, i, start, count);
        do {
            int64_t place = 0;
            for (k = 0; k < b->rank; k++) {
                int d = of_output ? gm_boxes_swapped(b, k) : k;
                place = place * b->dims[d] + start[d] + at[k];
            }
            runs += place != last + 1;
            last = place;
            for (k = b->rank - 1; k >= 0 && ++at[k] == count[of_output ? gm_boxes_swapped(b, k) : k]; k--)
                at[k] = 0;
        } while (k >= 0);
    }
    return runs;
}

/* Where a chunk fits a box, boxes end where chunks do. */
static int cuts_chunks(const gm_boxes *b, int64_t elements)
{
    int64_t chunk = 1;
    int cuts = 0;
    for (int d = 0; d < b->rank; d++) {
        chunk *= gm_min(b->unit[d], b->end[d] - b->begin[d]);
        cuts += b->extent[d] % b->unit[d] != 0 && b->extent[d] < b->end[d] - b->begin[d];
    }
    return gm_boxes_elements(b) > 0 && chunk <= elements && cuts > 0;
}

static void test_random(void)
{
    int faults = 0, uneven = 0, cut = 0, wrong = 0, miscounted = 0;
    for (int i = 0; i < CASES; i++) {
        int rank = 2 + (int)below(3), first = (int)below(rank), second = (int)below(rank - 1);
        int ranks = 1 + (int)below(RANKS_MOST);
        int64_t dims[GM_RANK_MAX], chunk[GM_RANK_MAX], total = 1, elements = 1 + below(i % 2 ? 4000 : 60);
        second += second >= first;
        for (int d = 0; d < rank; d++) {
            dims[d] = i % 19 == 0 && d == 0 ? 0 : 1 + below(rank == 2 ? 150 : 17);
            chunk[d] = 1 + below(gm_max(dims[d], 1));
            total *= dims[d];
        }
        unsigned char *seen = calloc(1, (size_t)total + 1);
        for (int r = 0; r < ranks && seen; r++) {
            gm_boxes b = boxes_of(rank, (int)gm_min(first, second), (int)gm_max(first, second), dims,
                                  i % 3 ? NULL : chunk);
            gm_boxes_share(&b, ranks, r);
            gm_boxes_cut(&b, elements);
            faults += count_elements(&b, elements, seen);
            cut += cuts_chunks(&b, elements);
            for (int of_output = 0; of_output <= 1; of_output++)
                miscounted += gm_boxes_runs(&b, of_output) != count_runs(&b, of_output);
            uneven += gm_boxes_run(&b) < 1 || gm_boxes_run(&b) > gm_boxes_piece(&b);
        }
        for (int64_t e = 0; e < total && seen; e++)
            wrong += seen[e] != 1;
        free(seen);
    }
    tap_ok(faults == 0, "boxes lie in the share of their rank and keep to their size: %d faults", faults);
    tap_ok(wrong == 0, "every element is in one box of one rank: %d are not", wrong);
    tap_ok(cut == 0, "boxes that hold a chunk do not cut one: %d do", cut);
    tap_ok(miscounted == 0, "runs are counted: %d faults", miscounted);
    tap_ok(uneven == 0, "runs are parts of a box: %d are not", uneven);
}

/* Shape, axes, chunks, elements of a box; the extents expected. */
static const struct {
    const char *name;
    int rank, first, second;
    int64_t dims[4], chunk[4], elements, extent[4];
} examples[] = {
    {"a large matrix: as much of a row as of a column", 2, 0, 1, {32768, 32768}, {0}, 1 << 24, {4096, 4096}},
    {"what remains of a piece", 2, 0, 1, {30000, 30000}, {0}, 3 << 20, {2048, 1536}},
    {"many small frames", 3, 1, 2, {1000, 64, 48}, {0}, 1 << 16, {21, 64, 48}},
    {"a frame and a bit of one", 3, 1, 2, {10, 300, 200}, {0}, 100000, {1, 300, 200}},
    {"few rows", 2, 0, 1, {3, 1000000}, {0}, 1 << 18, {3, 87360}},
    {"few columns", 2, 0, 1, {1000000, 3}, {0}, 1 << 18, {87360, 3}},
    {"rows of a pixel stay whole", 3, 0, 1, {4096, 4096, 3}, {0}, 3 << 20, {1024, 1024, 3}},
    {"frames as chunks, to lines of time", 3, 0, 2, {512, 256, 256}, {1, 256, 256}, 1 << 21, {32, 256, 256}},
    {"frames as chunks that do not fit", 3, 0, 2, {512, 256, 256}, {1, 256, 256}, 1 << 14, {128, 1, 128}},
    {"bricks", 3, 0, 2, {512, 512, 512}, {64, 64, 64}, 1 << 20, {128, 64, 128}},
};

static void test_examples(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        gm_boxes b = boxes_of(examples[i].rank, examples[i].first, examples[i].second, examples[i].dims,
                              examples[i].chunk[0] ? examples[i].chunk : NULL);
        char text[GM_SHAPE_TEXT];
        gm_boxes_cut(&b, examples[i].elements);
        tap_ok(memcmp(b.extent, examples[i].extent, (size_t)b.rank * sizeof *b.extent) == 0, "%s: boxes of %s",
               examples[i].name, gm_shape_format(b.rank, b.extent, text));
    }
}

/* Shape, axes, ranks; the dimension that is shared. */
static void test_shares(void)
{
    static const struct {
        int rank, first, second, ranks;
        int64_t dims[4];
        int shared;
    } cases[] = {
        {2, 0, 1, 4, {1000, 1000}, 1},  {2, 0, 1, 4, {1000, 2}, 0},    {3, 1, 2, 4, {100, 50, 50}, 0},
        {3, 1, 2, 4, {3, 500, 500}, 2}, {4, 0, 3, 2, {1, 3, 2, 1}, 2}, {2, 0, 1, 1, {5, 7}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm_boxes b = boxes_of(cases[i].rank, cases[i].first, cases[i].second, cases[i].dims, NULL);
        int shared = gm_boxes_share(&b, cases[i].ranks, 0);
        tap_ok(shared == cases[i].shared, "case %zu: %d ranks share dimension %d", i, cases[i].ranks, shared);
    }
}

/* Every range of a box, in boxes that are as large as they can be: at most two for each dimension, but one. */
static void test_ranges(void)
{
    static const int64_t shapes[][4] = {{3, 4, 2, 5}, {7, 1, 3, 1}, {1, 1, 1, 9}, {2, 2, 2, 2}, {40, 1, 1, 1}};
    int wrong = 0, most = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int rank = 1; rank <= 4; rank++) {
            const int64_t *count = shapes[i] + 4 - rank;
            int64_t elements = 1;
            for (int d = 0; d < rank; d++)
                elements *= count[d];
            for (int64_t begin = 0; begin < elements; begin++)
                for (int64_t end = begin + 1, boxes = 0; end <= elements; end++, boxes = 0) {
                    for (int64_t at = begin, next; at < end; at = next, boxes++) {
                        int64_t first[4], n[4], index[4] = {0}, found = 0;
                        next = at + gm_boxes_next(rank, count, at, end, first, n);
                        for (int d = 0; d >= 0 && !wrong; found++) {
                            int64_t place = 0;
                            for (d = 0; d < rank; d++)
                                place = place * count[d] + first[d] + index[d];
                            wrong += place != at + found;
                            for (d = rank - 1; d >= 0 && ++index[d] == n[d]; d--)
                                index[d] = 0;
                        }
                        wrong += next <= at || next > end || found != next - at;
                        if (wrong)
                            next = end;
                    }
                    most = (int)gm_max(most, boxes);
                    wrong += boxes > 2 * rank - 1;
                }
        }
    tap_ok(wrong == 0 && most == 7, "any range of a box in few boxes: %d at most, %d faults", most, wrong);
}

int main(void)
{
    test_random();
    test_ranges();
    test_examples();
    test_shares();
    return tap_done();
}
