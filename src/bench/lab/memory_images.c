/* Steps of an image by texture objects and by loads, beside a copy of the image: sums of 3 x 3 texels, by warps along a
 * row and along a column; values between texels, by the filter of the hardware and by four loads; four bytes as floats.
 * The image lies row by row, as a program has it, not in the tiles of a CUDA array. Bytes count as read and as written
 * once. */
#include "base/size.h"
#include "kernels/host.h"
#include "src/bench/lab/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 128, OF_PAIR = 32 /* bytes of a buffer for each pixel */, MOST = 1 << 26, CASES = 9 };
static const float part_right = 0.3f, part_below = 0.7f;

typedef struct images {
    const gm_bench_pair *pair;
    int64_t width, height;
    void *floats; /* [height][width] */
    uint64_t key; /* of them */
    uint64_t textures[GM_TEXELS];
    gm_image_call calls[CASES];
    gm_lab_case cases[CASES];
    int count;
} images;

static int run_copy(const gm_lab_case *self, gm_queue *queue)
{
    const images *m = self->test;
    size_t bytes = (size_t)(m->width * m->height) * sizeof(uint32_t);
    return m->pair->bench->measure->copy(queue, m->pair->dst, m->pair->src, bytes);
}

static int run_step(const gm_lab_case *self, gm_queue *queue)
{
    const images *m = self->test;
    return m->pair->bench->measure->image(queue, self->call);
}

/* The number of a pixel; one outside is the nearest inside. */
static int64_t pixel(const images *m, int64_t x, int64_t y)
{
    return gm_max(0, gm_min(y, m->height - 1)) * m->width + gm_max(0, gm_min(x, m->width - 1));
}

static double float_at(const images *m, int64_t x, int64_t y)
{
    float value;
    gm_cpu_random(&value, GM_DTYPE_F32, 0, GM_DISTRIBUTION_UNIFORM, m->key, pixel(m, x, y), 1);
    return (double)value;
}

static uint32_t word_at(const images *m, int64_t x, int64_t y)
{
    uint32_t word;
    gm_bench_pair_source(m->pair, pixel(m, x, y) * (int64_t)sizeof word, sizeof word, &word);
    return word;
}

static int is_right_sum(const images *m, int64_t x, int64_t y, const void *got)
{
    uint32_t sum = 0;
    for (int64_t dy = -1; dy <= 1; dy++)
        for (int64_t dx = -1; dx <= 1; dx++)
            sum += word_at(m, x + dx, y + dy);
    return memcmp(got, &sum, sizeof sum) == 0;
}

/* The filter has 8 bits for each of the two parts, and may cut off what is below. */
static double bilinear_error(const images *m, int64_t x, int64_t y, const void *got)
{
    double right = (double)part_right, below = (double)part_below;
    double above = (1 - right) * float_at(m, x, y) + right * float_at(m, x + 1, y);
    double under = (1 - right) * float_at(m, x, y + 1) + right * float_at(m, x + 1, y + 1);
    return fabs((double)*(const float *)got - ((1 - below) * above + below * under));
}

static double unpack_error(const images *m, int64_t x, int64_t y, const void *got)
{
    uint32_t word = word_at(m, x, y);
    double most = 0;
    for (int i = 0; i < 4; i++) {
        double right = (word >> 8 * i & 255) / 255.0;
        most = fmax(most, fabs((double)((const float *)got)[i] - right) / (right > 0 ? right : 0x1p-126));
    }
    return most;
}

static int is_right(const images *m, const gm_image_call *c, int64_t x, int64_t y, const void *got, double *error)
{
    double bound = c->step == GM_IMAGE_UNPACK ? 0x1p-23 : c->by_texture ? 2 * 0x1p-8 : 1e-6;
    if (c->step == GM_IMAGE_SUM)
        return is_right_sum(m, x, y, got);
    *error = c->step == GM_IMAGE_UNPACK ? unpack_error(m, x, y, got) : bilinear_error(m, x, y, got);
    return *error <= bound;
}

/* Pixels from all over; the first and the last one are corners. */
static int check_step(const gm_lab_case *self, double *max_error, double *mean_error)
{
    const images *m = self->test;
    const gm_image_call *c = self->call;
    gm_bench *bench = m->pair->bench;
    int64_t pixels = m->width * m->height, bytes = c->step == GM_IMAGE_UNPACK ? 4 * (int64_t)sizeof(float) : 4;
    int status = bench->ops->zero(bench->queue, c->dst, (size_t)(pixels * bytes));
    double most = 0, sum = 0;
    if (!status)
        status = run_step(self, bench->queue);
    for (int i = 0; i < SAMPLES && !status; i++) {
        int64_t at = i + 1 == SAMPLES ? pixels - 1 : (pixels - 1) / (SAMPLES - 1) * i;
        float got[4];
        double error = 0;
        status = gm_bench_download(bench, got, (const char *)c->dst + at * bytes, (size_t)bytes);
        if (!status && !is_right(m, c, at % m->width, at / m->width, got, &error))
            status = gm_fail(GM_ECHECK, "bench %s: %s: pixel (%lld, %lld) is wrong, by %.3g", bench->test,
                             self->variant, (long long)(at % m->width), (long long)(at / m->width), error);
        most = fmax(most, error);
        sum += error;
    }
    if (c->step != GM_IMAGE_SUM) {
        *max_error = most;
        *mean_error = sum / SAMPLES;
    }
    return status;
}

static gm_lab_case *add(images *m, const char *variant, gm_image_step step, int by_texture, int is_turned)
{
    static const gm_texel texels[GM_IMAGE_STEPS] = {
        [GM_IMAGE_SUM] = GM_TEXEL_U32, [GM_IMAGE_BILINEAR] = GM_TEXEL_F32, [GM_IMAGE_UNPACK] = GM_TEXEL_RGBA8};
    static const double bytes[GM_IMAGE_STEPS] = {
        [GM_IMAGE_SUM] = 8, [GM_IMAGE_BILINEAR] = 8, [GM_IMAGE_UNPACK] = 20}; /* read and written, of a pixel */
    const gm_bench *bench = m->pair->bench;
    double work = bytes[step] * (double)m->width * (double)m->height;
    gm_cache_state cache = gm_lab_cache(bench, (int64_t)work);
    gm_image_call *call = &m->calls[m->count];
    gm_lab_case *c = &m->cases[m->count++];
    *call = (gm_image_call){.step = step,
                            .by_texture = by_texture,
                            .is_turned = is_turned,
                            .width = m->width,
                            .height = m->height,
                            .right = part_right,
                            .below = part_below,
                            .texture = m->textures[texels[step]],
                            .src = step == GM_IMAGE_BILINEAR ? m->floats : m->pair->src,
                            .dst = m->pair->dst};
    *c = (gm_lab_case){.kernel = "image",
                       .run = run_step,
                       .check = check_step,
                       .test = m,
                       .call = call,
                       .work = work,
                       .unit = &gm_bench_unit_bytes,
                       .cache = cache,
                       .computed = gm_lab_memory_limit(bench, (int64_t)work),
                       .limit = 1,
                       .panel = "images"};
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    snprintf(c->shape, sizeof c->shape, "%lldx%lld", (long long)m->height, (long long)m->width);
    return c;
}

static void add_all(images *m)
{
    gm_lab_case *copy = add(m, "copy", GM_IMAGE_SUM, 0, 0);
    copy->kernel = "copy";
    copy->run = run_copy;
    copy->check = NULL;
    copy->limit = 0;
    add(m, "3x3, loads", GM_IMAGE_SUM, 0, 0);
    add(m, "3x3, texture", GM_IMAGE_SUM, 1, 0);
    add(m, "3x3 by columns, loads", GM_IMAGE_SUM, 0, 1);
    add(m, "3x3 by columns, texture", GM_IMAGE_SUM, 1, 1);
    add(m, "bilinear, loads", GM_IMAGE_BILINEAR, 0, 0);
    add(m, "bilinear, texture", GM_IMAGE_BILINEAR, 1, 0);
    add(m, "rgba8 to f32, loads", GM_IMAGE_UNPACK, 0, 0);
    add(m, "rgba8 to f32, texture", GM_IMAGE_UNPACK, 1, 0);
}

/* The image and its textures. */
static int open_images(images *m)
{
    static const gm_texel texels[] = {GM_TEXEL_U32, GM_TEXEL_F32, GM_TEXEL_RGBA8};
    gm_bench *bench = m->pair->bench;
    int status = bench->ops->alloc(bench->device, (size_t)(m->width * m->height) * sizeof(float), &m->floats);
    if (!status)
        status = gm_bench_fill(bench, m->floats, GM_DTYPE_F32, m->height, m->width, m->width, m->key);
    for (size_t i = 0; i < sizeof texels / sizeof texels[0] && !status; i++) {
        gm_texture_open_call call = {.texel = texels[i],
                                     .width = m->width,
                                     .height = m->height,
                                     .src = texels[i] == GM_TEXEL_F32 ? m->floats : m->pair->src,
                                     .texture = &m->textures[texels[i]]};
        status = bench->measure->texture_open(bench->queue, &call);
    }
    return status;
}

int gm_lab_measure_images(const gm_bench_pair *pair)
{
    gm_bench *bench = pair->bench;
    int64_t pixels = gm_min(pair->size / OF_PAIR, MOST), width = 32;
    images *m = calloc(1, sizeof *m);
    if (!m)
        return gm_fail(GM_EDEVICE, "no memory for the cases");
    while (4 * width * width <= pixels)
        width *= 2;
    m->pair = pair;
    m->width = width;
    m->height = pixels / width / 32 * 32;
    m->key = gm_random_key(1, 3);
    int status = open_images(m);
    add_all(m);
    if (!status)
        status = gm_lab_measure(bench, m->cases, m->count);
    for (int i = 0; i < GM_TEXELS; i++) {
        gm_texture_close_call call = {m->textures[i]};
        int closed = bench->measure->texture_close(bench->queue, &call);
        status = status ? status : closed;
    }
    bench->ops->free(bench->device, m->floats);
    free(m);
    return status;
}
