/* Sizes that do not fit 64 bits. */
#include "base/size.h"
#include "tests/tap.h"

int main(void)
{
    const int64_t large[] = {INT64_MAX, 3, 0}, shape[] = {2, 3, 5};
    tap_ok(gm_mul_sat(INT64_MAX, 2) == INT64_MAX && gm_add_sat(INT64_MAX, 1) == INT64_MAX &&
               gm_mul_sat(INT64_MAX, 0) == 0,
           "a product and a sum that do not fit are the largest number");
    tap_ok(gm_product_sat(shape, 3) == 30 && gm_product_sat(shape, 0) == 1 && gm_product_sat(shape, -1) == 1,
           "the product of factors; of none it is 1");
    tap_ok(gm_product_sat(large, 2) == INT64_MAX && gm_product_sat(large, 3) == 0, "a factor of 0 makes it 0");
    return tap_done();
}
