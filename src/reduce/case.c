/* The command line of `reduce`. Rank 0. */
#include "base/log.h"
#include "base/size.h"
#include "base/text/escape.h"
#include "base/text/words.h"
#include "src/reduce/reduce.h"
#include "src/run.h"

#include <string.h>

/* --axis: the shape of the reduction and of its results. */
static int read_axis(const char *axis, gm_reduce_case *r)
{
    enum { FRAME, PIXEL, VECTOR, WORDS };
    static const char *const words[WORDS] = {[FRAME] = "frame", [PIXEL] = "pixel", [VECTOR] = "vector"};
    const gm_dataset *d = &r->dataset;
    char title[GM_PATH_MAX];
    int64_t number;
    int place = 0, last = d->view_rank - 1;
    r->rank = 0;
    r->outer = r->inner = 1;
    r->n = gm_dataset_elements(d);
    if (strcmp(axis, "all") == 0)
        return GM_OK;
    int word = gm_word_index(words, WORDS, axis), is_word = word >= 0;
    if (!is_word && gm_integer_parse(axis, INT64_MIN, INT64_MAX, &number))
        return gm_fail(GM_EUSAGE, "--axis '%s': expected all, frame, pixel, vector or the number of a dimension", axis);
    if (d->view_rank == 0)
        return gm_fail(GM_EUSAGE, "--axis %s: %s is a scalar, expected --axis all", axis, gm_dataset_title(d, title));
    if (!is_word && gm_run_axis(d, axis, &place))
        return GM_EUSAGE;
    if (word == VECTOR)
        place = last;
    r->n = 1;
    for (int k = 0; k <= last; k++) {
        int reduced = word == FRAME ? k > 0 : k == place;
        int64_t *factor = reduced ? &r->n : k < place || word == FRAME ? &r->outer : &r->inner;
        *factor = gm_mul_sat(*factor, d->view[k]);
        if (!reduced)
            r->dims[r->rank++] = d->view[k];
    }
    return GM_OK;
}

/* "min,max": in the order given. */
static int read_statistics(gm_reduce_case *c, const char *text)
{
    unsigned seen = 0;
    for (int i = 0; !text && i < GM_STAT_ARGMIN; i++)
        c->statistic[c->statistics++] = (gm_statistic)i;
    for (const char *list = text; list;) {
        const char *at = list;
        char word[64];
        int is_whole = gm_word_next(&list, ',', word, sizeof word);
        gm_statistic statistic = is_whole ? gm_statistic_find(word) : GM_STATISTICS;
        if (statistic == GM_STATISTICS)
            return gm_fail(
                GM_EUSAGE,
                "--stat '%.*s': expected some of count,nan,min,max,sum,sumsq,mean,var,std,norm,argmin,argmax",
                (int)gm_escape_fit(at, strlen(word)), at);
        if (seen >> statistic & 1)
            return gm_fail(GM_EUSAGE, "--stat %s: %s is listed twice", text, gm_statistic_name(statistic));
        seen |= 1u << statistic;
        c->statistic[c->statistics++] = statistic;
    }
    for (int i = 0; i < c->statistics; i++)
        c->want |= gm_statistic_want(c->statistic[i], c->dataset.type);
    return GM_OK;
}

/* Options of an output or of datasets that there are none of. */
static int check_layout(const gm_options *o, const gm_reduce_case *c)
{
    static const char *const names[] = {"output-layout", "chunk", "deflate", "shuffle", "no-sync", "force"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !c->writes; i++) {
        int is_of_report = strcmp(names[i], "force") == 0;
        if (gm_options_given(o, names[i]) && !(is_of_report && o->report))
            return gm_fail(GM_EUSAGE,
                           "--%s: the statistics of all elements are printed, expected --output%s as well, or --axis "
                           "frame, pixel, vector or a number",
                           names[i], is_of_report ? " or --report" : "");
    }
    return GM_OK;
}

/* An integer sum that may need more than 64 bits is stored as float64; the extreme of no integers is not stored. */
static int set_types(gm_reduce_case *c, const char *title)
{
    gm_dtype type = c->dataset.type;
    int is_float = gm_dtype_get_kind(type) == GM_FLOAT;
    for (int i = 0; i < c->statistics; i++) {
        gm_statistic statistic = c->statistic[i];
        c->type[i] = gm_statistic_type(statistic, type, c->n);
        if (c->n == 0 && (statistic == GM_STAT_MIN || statistic == GM_STAT_MAX) && !is_float)
            return gm_fail(GM_EINPUT, "%s: the %s of an empty integer dataset is undefined; leave it out of --stat",
                           title, gm_statistic_name(statistic));
        if ((statistic == GM_STAT_SUM || statistic == GM_STAT_SUMSQ) && c->type[i] == GM_DTYPE_F64 && !is_float)
            gm_note("%s of %lld %s elements may need more than 64 bits: stored as f64, rounded once",
                    gm_statistic_name(statistic), (long long)c->n, gm_dtype_name(type));
    }
    return GM_OK;
}

int gm_reduce_describe(const gm_options *o, gm_reduce_case *c)
{
    char title[GM_PATH_MAX], shape[GM_SHAPE_TEXT];
    const gm_dataset *d = &c->dataset;
    int64_t bytes;
    int status = read_axis(o->axis, c);
    if (!status)
        status = read_statistics(c, o->stat);
    c->all = strcmp(o->axis, "all") == 0;
    c->writes = !c->all || o->output;
    c->propagate = strcmp(o->nan, "propagate") == 0;
    if (!status)
        status = check_layout(o, c);
    if (status)
        return status;
    gm_dataset_title(d, title);
    gm_shape_format(d->view_rank, d->view, shape);
    if (gm_mul(gm_dataset_elements(d), (int64_t)gm_dtype_size(d->type), &bytes) ||
        gm_mul(gm_mul_sat(c->outer, c->inner), (int64_t)sizeof(gm_total), &bytes))
        return gm_fail(GM_EINPUT, "%s: %s %s elements do not fit 64-bit sizes", title, shape, gm_dtype_name(d->type));
    return c->writes ? set_types(c, title) : GM_OK;
}
