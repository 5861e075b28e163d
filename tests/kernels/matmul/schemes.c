/* Products in float32 of data that are hard to split: every kernel against long double and against IEEE arithmetic. */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "kernels/matmul/calls.h"
#include "tests/kernels/each.h"

enum { M = 200, N = 136, K = 640, LEAF = 256, LD_A = 640, LD_B = 144 };
static const double tolerance = 1e-6; /* relative to |A| |B| */

typedef struct data {
    float a[M * LD_A]; /* [M][K] */
    float b[K * LD_B]; /* [K][N] */
} data;

/* Uniform in +-[1, 2). */
static float one_to_two(uint64_t *seed)
{
    double x = random_real(seed);
    return (float)(x < 0 ? x - 1 : x + 1);
}

static void fill(data *d)
{
    uint64_t seed = 5;
    memset(d, 0, sizeof *d);
    for (int i = 0; i < M; i++)
        for (int l = 0; l < K; l++)
            d->a[i * LD_A + l] = one_to_two(&seed);
    for (int l = 0; l < K; l++)
        for (int j = 0; j < N; j++)
            d->b[l * LD_B + j] = one_to_two(&seed);
}

/* Powers of 10 from row to row and from column to column of both, whose products stay finite. */
static void scale(data *d)
{
    fill(d);
    for (int i = 0; i < M; i++)
        for (int l = 0; l < K; l++)
            d->a[i * LD_A + l] *= (float)pow(10, i % 7 - 3 + (l % 31 - 15));
    for (int l = 0; l < K; l++)
        for (int j = 0; j < N; j++)
            d->b[l * LD_B + j] *= (float)pow(10, j % 7 - 3 - (l % 29 - 14));
}

static void put_huge(data *d)
{
    fill(d);
    for (int i = 0; i < M; i++)
        d->a[i * LD_A + i * 3 % K] *= 1e20f;
}

static void make_tiny(data *d)
{
    fill(d);
    for (int i = 0; i < M * LD_A; i++)
        d->a[i] *= i / LD_A % 3 ? 1e-40f : 1e-20f;
    for (int i = 0; i < K * LD_B; i++)
        d->b[i] *= 1e20f;
}

/* From the least to the largest number in one row. */
static void span(data *d)
{
    fill(d);
    for (int l = 0; l < K; l++)
        d->a[77 * LD_A + l] = l % 2 ? 1e-44f : l % 3 ? 1e30f : 1;
    for (int l = 0; l < K; l++)
        for (int j = 0; j < N; j++)
            d->b[l * LD_B + j] *= l % 2 ? 1 : 1e-25f;
}

static void put_special(data *d)
{
    fill(d);
    d->a[3 * LD_A + 600] = NAN;
    d->a[70 * LD_A + 5] = INFINITY;
    d->a[71 * LD_A + 5] = INFINITY;
    d->a[71 * LD_A + 300] = -INFINITY;
    d->b[9 * LD_B + 130] = -INFINITY;
    d->a[90 * LD_A + 9] = 0;
}

static const struct {
    const char *name;
    void (*make)(data *d);
    int schemes; /* bits of those that kernels with schemes use */
} kinds[] = {{"elements of one size", fill, 1 << GM_SCHEME_F16},
             {"rows and columns scaled", scale, 1 << GM_SCHEME_BF16},
             {"a huge element in each row", put_huge, 1 << GM_SCHEME_BF16 | 1 << GM_SCHEME_F16},
             {"numbers below the normal ones", make_tiny, 1 << GM_SCHEME_F16},
             {"the whole range in a row", span, 1 << GM_SCHEME_F32 | 1 << GM_SCHEME_BF16},
             {"infinite and NaN", put_special, 1 << GM_SCHEME_F32 | 1 << GM_SCHEME_F16}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int same_kind(float x, float y)
{
    return isnan(y) ? isnan(x) : x == y;
}

/* The largest error of finite elements; INFINITY where one that is not finite is not that of IEEE arithmetic. */
static double worst_error(const data *d, const float *acc)
{
    double worst = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            long double sum = 0, magnitude = 0;
            float ieee = 0;
            for (int l = 0; l < K; l++) {
                long double term = (long double)d->a[i * LD_A + l] * d->b[l * LD_B + j];
                sum += term;
                magnitude += fabsl(term);
                ieee = fmaf(d->a[i * LD_A + l], d->b[l * LD_B + j], ieee);
            }
            float value = acc[i * N + j];
            if (isfinite(ieee) && isfinite(value))
                worst = worse(worst, (double)(fabsl(value - sum) / (magnitude + 0x1p-126L)));
            else if (!same_kind(value, ieee))
                worst = INFINITY;
        }
    return worst;
}

/* The product, of up to `parts` leaves side by side; the caller frees it. Adds to the shares of the schemes. */
static float *multiply(bench *b, const gm_product *product, const data *d, int64_t parts, double schemes[GM_SCHEMES])
{
    float *host = host_memory(sizeof *host * M * N);
    int64_t tile_count = 2 * product->wants_tiles;
    size_t tiles = (size_t)(tile_count * product->tile * product->tile) * sizeof(float);
    void *tiles_host = host_memory(tiles);
    for (int i = 0; i < M * N; i++)
        host[i] = NAN;
    gm_product_call call = {.m = M,
                            .n = N,
                            .k = K,
                            .a = lend(b, (void *)d->a, sizeof d->a),
                            .lda = LD_A,
                            .b = lend(b, (void *)d->b, sizeof d->b),
                            .ldb = LD_B,
                            .acc = lend(b, host, sizeof *host * M * N),
                            .ldacc = N,
                            .leaf = LEAF,
                            .tile = product->tile,
                            .tiles = lend(b, tiles_host, tiles),
                            .tile_count = tile_count,
                            .parts = parts ? lend(b, NULL, (size_t)parts * sizeof *host * M * N) : NULL,
                            .part_count = parts,
                            .schemes = lend(b, schemes, sizeof *schemes * GM_SCHEMES)};
    for (int i = 0; i < 2 && product->work.planes; i++)
        must(b->ops->alloc(b->device, gm_split_lay(&product->work, i ? N : M, K, LEAF, parts).bytes, &call.work[i]));
    must(product->run(b->queue, &call));
    reclaim(b, call.schemes, schemes, sizeof *schemes * GM_SCHEMES);
    if (parts)
        reclaim(b, call.parts, NULL, 0);
    reclaim(b, call.tiles, tiles_host, tiles);
    reclaim(b, call.acc, host, sizeof *host * M * N);
    reclaim(b, (void *)call.a, NULL, 0);
    reclaim(b, (void *)call.b, NULL, 0);
    for (int i = 0; i < 2; i++)
        b->ops->free(b->device, call.work[i]);
    free(tiles_host);
    return host;
}

static void test_kind(bench *b, const gm_product *product, int kind, const data *d)
{
    double schemes[GM_SCHEMES] = {0}, beside[GM_SCHEMES] = {0};
    int used = 0, same = 1;
    float *host = multiply(b, product, d, 0, schemes);
    double worst = worst_error(d, host);
    tap_ok(worst <= tolerance, "%s %s, %s: error %.2g", b->ops->kind, product->kernel, kinds[kind].name, worst);
    for (int s = 0; s < GM_SCHEMES; s++)
        used |= (schemes[s] > 0) << s;
    tap_ok(used == (product->work.schemes ? kinds[kind].schemes : 0), "%s %s, %s: schemes %d", b->ops->kind,
           product->kernel, kinds[kind].name, used);
    for (int64_t parts = 2; parts <= 3 && product->leaf.few; parts++) {
        float *other = multiply(b, product, d, parts, beside);
        same = same && memcmp(host, other, sizeof *host * M * N) == 0;
        free(other);
    }
    for (int s = 0; s < GM_SCHEMES && product->leaf.few; s++)
        same = same && beside[s] == 2 * schemes[s];
    tap_ok(same, "%s %s, %s: leaves side by side give the same bits and shares", b->ops->kind, product->kernel,
           kinds[kind].name);
    free(host);
}

static void test_schemes(bench *b)
{
    data *d = host_memory(sizeof *d);
    const gm_product *product;
    for (int i = 0; (product = b->ops->product(b->device, i)) != NULL; i++)
        for (int kind = 0;
             kind < KINDS && product->precision == GM_PRECISION_FP32 && product->accumulator == GM_DTYPE_F32; kind++) {
            kinds[kind].make(d);
            test_kind(b, product, kind, d);
        }
    free(d);
}

int main(void)
{
    each_device(test_schemes);
    return tap_done();
}
