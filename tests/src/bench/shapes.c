/* --shapes of products: lists and grids. */
#include "base/log.h"
#include "src/bench/operations/product.h"
#include "tests/tap.h"

#include <string.h>

static int parse(const char *text, int batches, gm_product_shape shapes[GM_PRODUCT_SHAPES], int *count)
{
    const gm_options options = {.shapes = text};
    gm_job job = {.options = &options};
    const gm_bench bench = {.job = &job, .test = "made"};
    return gm_product_parse(&bench, batches, shapes, count);
}

static void test_list(void)
{
    static const char *const bad[] = {"0x4x4x4",   "65536x4x4x4", "9999999999x4x4x4", "1x2x3x4x5", "4x4",
                                      "4x4x4x0",   "4x4x4x",      "x4x4x4",           "4x4x4x-4",  "",
                                      "4x4x4x4,,", "4x4x4x4,0"};
    enum { BAD = sizeof bad / sizeof bad[0] };
    gm_product_shape s[GM_PRODUCT_SHAPES];
    char text[GM_BENCH_TEXT];
    int count = 0, refused = 0;
    tap_ok(parse("7,2x3x4,65535x5x6x2147483647", 1, s, &count) == GM_OK && count == 3 && s[0].k == 7 &&
               s[0].batch == 1 && s[1].m == 2 && s[1].k == 4 && s[1].batch == 1 && s[2].batch == 65535 && s[2].m == 5 &&
               s[2].n == 6 && s[2].k == INT32_MAX,
           "a cube, a product and a batch");
    tap_ok(strcmp(gm_product_format(&s[1], text), "2x3x4") == 0 &&
               strcmp(gm_product_format(&s[2], text), "65535x5x6x2147483647") == 0,
           "shapes are written as they were: %s", text);
    for (int i = 0; i < BAD; i++)
        refused += parse(bad[i], 1, s, &count) == GM_EUSAGE;
    tap_ok(refused == BAD && parse("4x4x4x4", 0, s, &count) == GM_EUSAGE,
           "other lists are refused, and batches where there are none: %d", refused);
    tap_ok(parse("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", 1, s, &count) == GM_OK && count == 16 &&
               parse("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", 1, s, &count) == GM_EUSAGE,
           "sixteen shapes, and no more");
    gm_error_clear();
}

static void test_grid(void)
{
    static const int64_t sides[] = {64, 127, 512, 1000, 4096, 8191, 16384};
    static const char *const bad[] = {"grid:", "grid:64:127", "grid:0", "grid:1:2:x", "grid:1:2:3:", "grid:9999999999"};
    gm_product_shape shapes[GM_GRID_SHAPES];
    int count, cubes = 0, again = 0, refused = 0;
    tap_ok(gm_grid_parse("grid", sides, 7, shapes, &count) == GM_OK && count == 49, "a grid of seven sides: 49 shapes");
    for (int i = 0; i < count; i++) {
        const gm_product_shape *a = &shapes[i];
        cubes += a->m == a->n && a->n == a->k;
        for (int j = 0; j < i; j++) {
            const gm_product_shape *b = &shapes[j];
            again += (a->m == b->m && a->n == b->n) || (a->m == b->m && a->k == b->k) || (a->n == b->n && a->k == b->k);
        }
    }
    tap_ok(cubes == 7 && again == 0, "all cubes, and each pair of sides once: %d, %d", cubes, again);
    tap_ok(gm_grid_parse("grid:8:16:24", sides, 7, shapes, &count) == GM_OK && count == 9 && shapes[0].k == 8 &&
               shapes[1].n == 16 && shapes[1].k == 24,
           "sides of the user's");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused += gm_grid_parse(bad[i], sides, 7, shapes, &count) == GM_EUSAGE;
    tap_ok(refused == 6 && !gm_grid_is_named("gridded") && !gm_grid_is_named(NULL) && gm_grid_is_named("grid:"),
           "lists that are none are refused");
    gm_error_clear();
}

int main(void)
{
    gm_log_setup(1, GM_QUIET);
    test_list();
    test_grid();
    return tap_done();
}
