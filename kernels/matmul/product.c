#include "kernels/matmul/calls.h"

#include "base/size.h"

/* The instructions of Hopper are in no other generation. */
static int has_instructions(const gm_product *product, const gm_product_query *query)
{
    switch (query->capability ? product->family : GM_KERNEL_AUTO) {
    case GM_KERNEL_HOPPER:
        return query->capability == 90;
    case GM_KERNEL_MMA:
        return query->capability >= 80;
    default:
        return 1;
    }
}

/* Is float64 as fast as the product needs? Capabilities 8.0, 9.0 and 10.0 have tensor cores for it, at half the rate of
 * float32 or more; later ones of a generation have it at 1/32 or 1/64. */
static int has_doubles(const gm_product *product, const gm_product_query *query)
{
    int c = query->capability;
    return !product->doubles || c == 0 || c == 80 || c == 90 || c == 100;
}

/* Is the problem of a size for which the product is the fastest? Unknown sizes are large. */
static int is_worth(const gm_product *product, const gm_product_query *query)
{
    int64_t c = gm_mul_sat(query->m, query->n), work = gm_mul_sat(c, query->k);
    if (work == 0)
        return product->most_work == 0;
    return work >= product->least_work && query->k >= product->least_k && c >= product->least_c &&
           (product->most_work == 0 || work < product->most_work);
}

const gm_product *gm_product_find(const gm_device_ops *ops, gm_device *device, const gm_product_query *query)
{
    const gm_product *product, *last = NULL;
    for (int i = 0; (product = ops->product(device, i)) != NULL; i++) {
        if (product->precision != query->precision || !has_instructions(product, query) || !has_doubles(product, query))
            continue;
        if (query->kernel != GM_KERNEL_AUTO && product->family != query->kernel)
            continue;
        last = product;
        if (query->kernel != GM_KERNEL_AUTO || is_worth(product, query))
            break;
    }
    return last;
}

int64_t gm_product_parts(int64_t m, int64_t n, int64_t leaves, int64_t multiprocessors)
{
    enum { SIDE = 64, EACH = 8 }; /* rows and columns of C that a warp makes, or two; those of a multiprocessor */
    int64_t blocks = gm_max(gm_mul_sat(gm_ceil_div(m, SIDE), gm_ceil_div(n, SIDE)), 1);
    int64_t parts = gm_min(gm_min(leaves, EACH * multiprocessors / blocks), GM_BATCH_MOST);
    return parts > 1 ? parts : 0;
}

gm_dtype gm_product_acc_type(const gm_product *product, gm_dtype result, int64_t leaves, int64_t parts)
{
    int rounds = product->rounds && result == GM_DTYPE_F32 && leaves <= gm_max(parts, 1);
    return rounds ? result : product->accumulator;
}

gm_dtype gm_panel_type(gm_dtype operand, gm_dtype data)
{
    return operand == GM_DTYPE_I8 ? data : operand;
}

double gm_product_error(const gm_product *product, int64_t k, int64_t leaf, int64_t leaves, int is_plain)
{
    const gm_sum_error *e = &product->error;
    double accumulator = gm_dtype_roundoff(product->accumulator);
    double length = (double)gm_min(k, leaf), inner = e->length ? (double)gm_min(gm_min(k, leaf), e->length) : length;
    double sum = inner * e->addition + (e->length ? length / (double)e->length * accumulator : 0);
    if (is_plain)
        sum = sum > length * accumulator ? sum : length * accumulator;
    return 2 * e->operand + sum + (double)(leaves + 1) * accumulator;
}
