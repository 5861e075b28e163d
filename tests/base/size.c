/* Sizes and lists of integers, and those that do not fit 64 bits. */
#include "base/size.h"
#include "tests/tap.h"

int main(void)
{
    const int64_t large[] = {INT64_MAX, 3, 0}, shape[] = {2, 3, 5};
    static const char *const bad[] = {"",       "4",      "4x6x",   "4x6x2x1", "4,6,2", "4x0x2",
                                      "4x-6x2", "4x 6x2", "4x6x2 ", "x6x2",    "4xx2",  "4x6x9223372036854775808"};
    int64_t list[3], size;
    tap_ok(gm_mul_sat(INT64_MAX, 2) == INT64_MAX && gm_add_sat(INT64_MAX, 1) == INT64_MAX &&
               gm_mul_sat(INT64_MAX, 0) == 0,
           "a product and a sum that do not fit are the largest number");
    tap_ok(gm_product_sat(shape, 3) == 30 && gm_product_sat(shape, 0) == 1 && gm_product_sat(shape, -1) == 1,
           "the product of factors; of none it is 1");
    tap_ok(gm_product_sat(large, 2) == INT64_MAX && gm_product_sat(large, 3) == 0, "a factor of 0 makes it 0");
    tap_ok(gm_integers_parse("4x6x9223372036854775807", 'x', 3, list) == 0 && list[0] == 4 && list[1] == 6 &&
               list[2] == INT64_MAX,
           "a list of integers");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        tap_ok(gm_integers_parse(bad[i], 'x', 3, list), "'%s' is no list of three", bad[i]);
    tap_ok(gm_size_parse(GM_SIZE_MOST_TEXT, &size) == 0 && (double)size == GM_SIZE_MOST, "the largest size");
    tap_ok(gm_size_parse("4194305T", &size) && gm_size_parse("9223372036854775807", &size) &&
               gm_size_parse("1e999", &size),
           "larger ones");
    return tap_done();
}
