/* The command line of normalize, and the shapes of its datasets. Rank 0. */
#include "src/normalize/normalize.h"

#include "base/log.h"
#include "base/size.h"
#include "base/text/words.h"
#include "io/describe/describe.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const methods[GM_METHODS] = {"minmax", "zscore", "scale", "percentile", "flatfield"};
static const char *const pers[GM_PERS] = {"stack", "frame", "pixel"};
static const char *const roundings[] = {
    [GM_ROUND_NEAREST_EVEN] = "nearest-even", [GM_ROUND_HALF_UP] = "half-up", [GM_ROUND_TRUNCATE] = "truncate"};

const char *gm_method_name(gm_method method)
{
    return methods[method];
}

const char *gm_per_name(gm_per per)
{
    return pers[per];
}

/* Options that some methods do not take. */
static int check_options(const gm_options *o, gm_method method)
{
    static const struct {
        const char *name;
        unsigned methods;
    } fits[] = {
        {"per", 1u << GM_MINMAX | 1u << GM_ZSCORE | 1u << GM_PERCENTILE},
        {"sub", 1u << GM_SCALE},
        {"factor", 1u << GM_SCALE},
        {"low", 1u << GM_PERCENTILE},
        {"high", 1u << GM_PERCENTILE},
        {"flat", 1u << GM_FLATFIELD},
        {"dark", 1u << GM_FLATFIELD},
        {"log", 1u << GM_FLATFIELD},
    };
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++)
        if (gm_options_given(o, fits[i].name) && !(fits[i].methods >> method & 1))
            return gm_fail(GM_EUSAGE, "--%s is not an option of --method %s", fits[i].name, methods[method]);
    return GM_OK;
}

static int read_words(const gm_options *o, gm_normalize_case *c)
{
    c->method = (gm_method)gm_word_index(methods, GM_METHODS, o->method);
    c->per = (gm_per)gm_word_index(pers, GM_PERS, o->per);
    c->rounding = (gm_rounding)gm_word_index(roundings, GM_ROUND_TRUNCATE + 1, o->round);
    c->log = o->log;
    c->sub = o->sub;
    c->factor = o->factor;
    c->percent[0] = o->low;
    c->percent[1] = o->high;
    int status = check_options(o, c->method);
    if (status)
        return status;
    if (c->method == GM_FLATFIELD && !o->flat)
        return gm_fail(GM_EUSAGE, "--method flatfield needs --flat DATASET, and --dark DATASET if there is one");
    if (c->method == GM_PERCENTILE && c->per == GM_PER_PIXEL)
        return gm_fail(GM_EUSAGE, "--method percentile takes --per stack or frame, not pixel");
    if (!(c->percent[0] >= 0 && c->percent[0] < c->percent[1] && c->percent[1] <= 100))
        return gm_fail(GM_EUSAGE, "--low %.15g --high %.15g: expected 0 <= low < high <= 100", c->percent[0],
                       c->percent[1]);
    return GM_OK;
}

static void limits_of(gm_dtype type, double *lo, double *hi)
{
    int bits = 8 * (int)gm_dtype_size(type), is_signed = gm_dtype_get_kind(type) == GM_SIGNED;
    *lo = is_signed ? -ldexp(1, bits - 1) : 0;
    *hi = ldexp(1, bits - is_signed) -
          (bits < 64); /* 2^63 and 2^64 - 1 do not fit float64: values from 2^64 on are too large */
}

/* "LO,HI" */
static int read_range(const char *text, gm_dtype type, double *lo, double *hi)
{
    char copy[128], *comma;
    double least, most;
    snprintf(copy, sizeof copy, "%s", text);
    comma = strchr(copy, ',');
    if (comma)
        *comma = '\0';
    if (!comma || strlen(text) >= sizeof copy || gm_real_parse(copy, lo) || gm_real_parse(comma + 1, hi) ||
        !(*lo < *hi))
        return gm_fail(GM_EUSAGE, "--range '%s': expected LO,HI, two numbers, the smaller one first", text);
    if (gm_dtype_get_kind(type) == GM_FLOAT) {
        if (fmax(-*lo, *hi) < gm_dtype_overflow(type))
            return GM_OK;
        return gm_fail(GM_EUSAGE, "--range '%s': expected numbers that %s holds, up to %.17g in magnitude", text,
                       gm_dtype_name(type), gm_dtype_largest(type));
    }
    limits_of(type, &least, &most);
    if (*lo < least || *hi > most || floor(*lo) != *lo || floor(*hi) != *hi)
        return gm_fail(GM_EUSAGE, "--range '%s': expected integers that %s holds, from %.17g to %.17g", text,
                       gm_dtype_name(type), least, most);
    return GM_OK;
}

static int has_target(gm_method method)
{
    return method == GM_MINMAX || method == GM_PERCENTILE;
}

/* float32 does not hold every value of the type. */
static int wants_wide(gm_dtype type)
{
    return gm_dtype_digits(type) > gm_dtype_digits(GM_DTYPE_F32);
}

static int fits_float(double x)
{
    return !isfinite(x) || x == 0 || (fabs(x) >= FLT_MIN && fabs(x) <= FLT_MAX);
}

/* Are the factors from spans of up to 24 bits to this range normal numbers of float32? */
static int fits_factors(double range)
{
    return range <= FLT_MAX && (range == 0 || range >= FLT_MIN * 0x1p24);
}

static int set_types(const gm_options *o, gm_normalize_case *c)
{
    int whole = gm_dtype_get_kind(c->src.type) != GM_FLOAT;
    char types[GM_DTYPE_LIST_TEXT];
    c->type = c->src.type;
    if (whole && (c->method == GM_ZSCORE || c->method == GM_FLATFIELD))
        c->type = GM_DTYPE_F32;
    if (o->type)
        c->type = gm_dtype_find(o->type);
    if (c->type == GM_DTYPES)
        return gm_fail(GM_EUSAGE, "--type '%s': expected %s", o->type, gm_dtype_list(-1, types));
    if (gm_dtype_get_kind(c->type) != GM_FLOAT) {
        limits_of(c->type, &c->lo, &c->hi);
    } else {
        c->lo = has_target(c->method) ? 0 : -INFINITY;
        c->hi = has_target(c->method) ? 1 : INFINITY;
    }
    if (whole && gm_dtype_digits(c->src.type) > gm_dtype_digits(GM_DTYPE_F64))
        gm_note("%s is taken as float64: integers beyond 2^53 are rounded", gm_dtype_name(c->src.type));
    int status = o->range ? read_range(o->range, c->type, &c->lo, &c->hi) : GM_OK;
    c->wide = wants_wide(c->src.type) || wants_wide(c->type) || !fits_float(c->lo) || !fits_float(c->hi) ||
              !fits_float(c->sub) || !fits_float(c->factor) || (has_target(c->method) && !fits_factors(c->hi - c->lo));
    c->widens = !c->wide && has_target(c->method) && !whole && gm_dtype_overflow(c->src.type) > FLT_MAX / 2;
    if (!status && has_target(c->method) && isinf(c->hi - c->lo))
        status = gm_fail(GM_EUSAGE, "--range '%s': expected ends whose difference float64 holds", o->range);
    return status;
}

/* Do the dimensions of d from number skip on equal those of frame from number first on? */
static int has_shape(const gm_dataset *d, int skip, const gm_dataset *frame, int first)
{
    if (d->view_rank - skip != frame->view_rank - first)
        return 0;
    for (int i = first; i < frame->view_rank; i++)
        if (d->view[i - first + skip] != frame->view[i])
            return 0;
    return 1;
}

/* Is d a frame of the shape that frame has from number first on, or a stack of such frames? */
static int is_field(const gm_dataset *d, const gm_dataset *frame, int first)
{
    return has_shape(d, 0, frame, first) || has_shape(d, 1, frame, first);
}

/* A flat or dark: one frame or a stack of them. The first of them decides the shape of a frame. */
static int describe_field(const char *text, gm_normalize_case *c, gm_dataset *d, int first)
{
    char title[GM_PATH_MAX], data_title[GM_PATH_MAX], shape[GM_SHAPE_TEXT], data_shape[GM_SHAPE_TEXT];
    int status = gm_describe(text, NULL, d);
    if (status)
        return status;
    /* A stack of two dimensions is one frame if the field is such a frame or a stack of them, else frames of one line.
     */
    if (first && c->src.view_rank == 2 && is_field(d, &c->src, 0)) {
        c->cols = gm_mul_sat(c->rows, c->cols);
        c->rows = 1;
    }
    int single = c->src.view_rank == 2 && c->rows == 1, lines = c->src.view_rank > 0 && c->src.view[0] == c->rows;
    int fits = (single && is_field(d, &c->src, 0)) || (lines && is_field(d, &c->src, 1));
    if (!fits || (gm_dataset_elements(d) == 0 && gm_dataset_elements(&c->src) > 0))
        return gm_fail(GM_EINPUT, "%s is %s, expected one frame, or a stack of frames, of %s, which is %s",
                       gm_dataset_title(d, title), gm_shape_format(d->view_rank, d->view, shape),
                       gm_dataset_title(&c->src, data_title),
                       gm_shape_format(c->src.view_rank, c->src.view, data_shape));
    return GM_OK;
}

int gm_normalize_check_device(const gm_job *job, const gm_normalize_case *c)
{
    const gm_device_ops *ops = job->ops;
    int moments = c->method == GM_MINMAX || c->method == GM_ZSCORE,
        columns = c->method == GM_FLATFIELD || (moments && c->per == GM_PER_PIXEL);
    if (ops->normalize && (ops->histogram || c->method != GM_PERCENTILE) && (ops->reduce_columns || !columns) &&
        (ops->reduce_rows || !moments || columns))
        return GM_OK;
    char what[64];
    snprintf(what, sizeof what, "--method %s", gm_method_name(c->method));
    return gm_job_fail_unsupported(job, what);
}

int gm_normalize_describe(const gm_job *job, gm_normalize_case *c)
{
    const gm_options *o = job->options;
    char title[GM_PATH_MAX];
    int64_t bytes;
    int status = read_words(o, c);
    if (!status)
        status = gm_describe(o->operands[0], NULL, &c->src);
    if (!status)
        status = set_types(o, c);
    if (status)
        return status;
    gm_dataset_matrix(&c->src, &c->rows, &c->cols);
    if (gm_mul(gm_dataset_elements(&c->src), 8, &bytes))
        return gm_fail(GM_EINPUT, "%s: its elements do not fit 64-bit sizes", gm_dataset_title(&c->src, title));
    if (c->method == GM_FLATFIELD)
        status = describe_field(o->flat, c, &c->flat, 1);
    c->has_dark = c->method == GM_FLATFIELD && o->dark;
    if (!status && c->has_dark)
        status = describe_field(o->dark, c, &c->dark, 0);
    return status;
}
