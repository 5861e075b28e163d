/* A grid of shapes: few enough to be measured, and every side beside every other. */
#include "src/bench/operations/product.h"

#include "base/size.h"

#include <string.h>

static const char name[] = "grid";

int gm_grid_is_named(const char *text)
{
    size_t length = sizeof name - 1;
    return text && strncmp(text, name, length) == 0 && (text[length] == 0 || text[length] == ':');
}

static int parse_sides(const char *text, int64_t sides[GM_GRID_SIDES], int *count)
{
    *count = 0;
    for (const char *at = text; *at == ':'; at += 1 + strcspn(at + 1, ":")) {
        char word[24];
        int length = (int)strcspn(at + 1, ":");
        if (length >= (int)sizeof word || *count == GM_GRID_SIDES)
            return 0;
        snprintf(word, sizeof word, "%.*s", length, at + 1);
        if (gm_integer_parse(word, 1, INT32_MAX, &sides[(*count)++]))
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
    if (*list && !parse_sides(list, named, &side_count))
        return gm_fail(GM_EUSAGE, "--shapes '%s': expected grid:N:N:..., an odd number of up to %d sides", text,
                       GM_GRID_SIDES);
    if (*list)
        sides = named;
    *count = 0;
    for (int i = 0; i < side_count; i++)
        for (int j = 0; j < side_count; j++)
            shapes[(*count)++] = (gm_product_shape){sides[i], sides[j],
                                                    sides[(i + j) * ((side_count + 1) / 2) % side_count]};
    return GM_OK;
}
