/* The shapes of products in --shapes: a list of them, or a grid. */
#include "src/bench/operations/product.h"

#include "base/size.h"
#include "base/text/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SIDE_MOST = INT32_MAX }; /* most BLAS count in integers of 32 bits */

char *gm_product_format(const gm_product_shape *s, char text[GM_BENCH_TEXT])
{
    int used = s->batch > 1 ? snprintf(text, GM_BENCH_TEXT, "%" PRId64 "x", s->batch) : 0;
    snprintf(text + used, GM_BENCH_TEXT - (size_t)used, "%" PRId64 "x%" PRId64 "x%" PRId64, s->m, s->n, s->k);
    return text;
}

/* --- A list --- */

/* One shape: "1024", "512x256x4096", or, if batches, "100x64x64x64". Returns 0 for other words. */
static int parse_shape(char *word, int batches, gm_product_shape *shape)
{
    int64_t side[4];
    int sides = 0, most = batches ? 4 : 3;
    for (char *one; (one = strsep(&word, "x"));)
        if (sides == most || gm_integer_parse(one, 1, SIDE_MOST, &side[sides++]))
            return 0;
    if (sides == 1)
        *shape = (gm_product_shape){side[0], side[0], side[0], 1};
    else if (sides == 3)
        *shape = (gm_product_shape){side[0], side[1], side[2], 1};
    else if (sides == 4)
        *shape = (gm_product_shape){side[1], side[2], side[3], side[0]};
    return sides != 2 && shape->batch <= GM_BATCH_MOST;
}

int gm_product_parse(const gm_bench *bench, int batches, gm_product_shape shapes[GM_PRODUCT_SHAPES], int *count)
{
    const char *text = bench->job->options->shapes;
    int good = 1;
    *count = 0;
    for (const char *list = text; list && good; ++*count) {
        char word[80];
        good = gm_word_next(&list, ',', word, sizeof word) && *count < GM_PRODUCT_SHAPES &&
               parse_shape(word, batches, &shapes[*count]);
    }
    if (good)
        return GM_OK;
    return batches ? gm_fail(GM_EUSAGE,
                             "--shapes '%s': bench %s expected up to %d shapes N, MxNxK or BATCHxMxNxK, separated by "
                             "commas, with sides from 1 to %d and a BATCH of up to %d",
                             text, bench->test, GM_PRODUCT_SHAPES, SIDE_MOST, GM_BATCH_MOST)
                   : gm_fail(GM_EUSAGE,
                             "--shapes '%s': bench %s expected up to %d shapes N or MxNxK, separated by commas, with "
                             "sides from 1 to %d",
                             text, bench->test, GM_PRODUCT_SHAPES, SIDE_MOST);
}

/* --- A grid: few enough shapes to be measured, and every side beside every other --- */

static const char name[] = "grid";

int gm_grid_is_named(const char *text)
{
    size_t length = sizeof name - 1;
    return text && strncmp(text, name, length) == 0 && (text[length] == 0 || text[length] == ':');
}

/* "64:127:512", an odd number of sides. Returns 0 for other text. */
static int parse_sides(const char *text, int64_t sides[GM_GRID_SIDES], int *count)
{
    *count = 0;
    for (const char *list = text; list;) {
        char word[24];
        if (!gm_word_next(&list, ':', word, sizeof word) || *count == GM_GRID_SIDES ||
            gm_integer_parse(word, 1, SIDE_MOST, &sides[(*count)++]))
            return 0;
    }
    return *count % 2 == 1;
}

/* k is the mean of m and n modulo the number of sides, which is unique if that is odd: a Latin square whose diagonal
 * has the cubes. */
int gm_grid_parse(const char *text, const int64_t *sides, int side_count, gm_product_shape shapes[GM_GRID_SHAPES],
                  int *count)
{
    int64_t named[GM_GRID_SIDES];
    const char *list = text + sizeof name - 1;
    if (*list && !parse_sides(list + 1, named, &side_count))
        return gm_fail(GM_EUSAGE, "--shapes '%s': expected grid:N:N:..., an odd number of up to %d sides from 1 to %d",
                       text, GM_GRID_SIDES, SIDE_MOST);
    if (*list)
        sides = named;
    *count = 0;
    for (int i = 0; i < side_count; i++)
        for (int j = 0; j < side_count; j++)
            shapes[(*count)++] = (gm_product_shape){sides[i], sides[j],
                                                    sides[(i + j) * ((side_count + 1) / 2) % side_count], 1};
    return GM_OK;
}
