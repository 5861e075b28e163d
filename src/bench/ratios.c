/* Ratios to the rival over several shapes: geometric means, as ratios have them, and extremes. */
#include "src/bench/ratios.h"

#include "base/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int are_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int are_alike(const gm_bench_row *a, const gm_bench_row *b)
{
    return a->cache == b->cache && are_same(a->test, b->test) && are_same(a->panel, b->panel) &&
           strcmp(a->variant, b->variant) == 0 && strcmp(a->kernel, b->kernel) == 0;
}

static int begins(const gm_bench_row *rows, int at)
{
    for (int i = 0; i < at; i++)
        if (are_alike(&rows[i], &rows[at]))
            return 0;
    return 1;
}

static void add_ratio(gm_bench_ratio *r, const gm_bench_row *row)
{
    double ratio = row->rival > 0 ? gm_bench_rate(row) / row->rival : 0;
    if (!(ratio > 0))
        return;
    r->mean += log(ratio);
    if (r->shapes++ == 0 || ratio < r->worst) {
        r->worst = ratio;
        r->worst_row = row;
    }
    if (r->shapes == 1 || ratio > r->best) {
        r->best = ratio;
        r->best_row = row;
    }
}

/* The sums of the means become means in make_ratio(). */
static void add_errors(gm_bench_ratio *r, const gm_bench_row *row, int counts[GM_BENCH_KINDS])
{
    for (int kind = 0; kind < GM_BENCH_KINDS && row->has_errors; kind++) {
        if (row->errors[kind].max < 0)
            continue;
        gm_bench_errors *e = &r->errors[kind];
        e->max = fmax(e->max, row->errors[kind].max);
        e->mean = counts[kind]++ > 0 ? e->mean + row->errors[kind].mean : row->errors[kind].mean;
    }
}

/* Of the rows like that at the start. Returns the number of rows with ratios, or with errors. */
static int make_ratio(const gm_bench_row *rows, int count, gm_bench_ratio *r)
{
    int counts[GM_BENCH_KINDS] = {0}, most = 0;
    *r = (gm_bench_ratio){.first = rows};
    for (int kind = 0; kind < GM_BENCH_KINDS; kind++)
        r->errors[kind] = (gm_bench_errors){-1, -1};
    for (int i = 0; i < count; i++)
        if (are_alike(&rows[i], rows)) {
            add_ratio(r, &rows[i]);
            add_errors(r, &rows[i], counts);
        }
    r->mean = r->shapes > 0 ? exp(r->mean / r->shapes) : 0;
    for (int kind = 0; kind < GM_BENCH_KINDS; kind++) {
        if (counts[kind] > 0)
            r->errors[kind].mean /= counts[kind];
        most = counts[kind] > most ? counts[kind] : most;
    }
    return r->shapes > most ? r->shapes : most;
}

int gm_ratios_make(const gm_bench_row *rows, int count, gm_bench_ratio *ratios)
{
    int made = 0;
    for (int i = 0; i < count; i++)
        if (begins(rows, i) && make_ratio(rows + i, count - i, &ratios[made]) > 1)
            made++;
    return made;
}

/* Products of a library may be the rival of several precisions, on the same data. */
static int is_printed(const gm_bench_ratio *ratios, int at)
{
    for (int i = 0; i < at; i++)
        if (ratios[at].shapes == 0 && ratios[i].shapes == 0 &&
            are_same(ratios[i].first->test, ratios[at].first->test) &&
            strcmp(ratios[i].first->variant, ratios[at].first->variant) == 0 &&
            ratios[i].first->cache == ratios[at].first->cache)
            return 1;
    return 0;
}

static void print_errors(const gm_bench_ratio *r)
{
    for (int kind = 0; kind < GM_BENCH_KINDS; kind++)
        if (r->errors[kind].max >= 0)
            printf("  %-32s %-5s  %-8s %9.2e %9.2e\n", kind == 0 ? r->first->variant : "",
                   kind == 0 ? gm_bench_cache_name(r->first->cache) : "", gm_bench_kind_name((gm_bench_kind)kind),
                   r->errors[kind].max, r->errors[kind].mean);
}

static void print_all(const gm_bench *bench, const gm_bench_ratio *ratios, int count)
{
    int rows = 0, errors = 0;
    for (int i = 0; i < count; i++) {
        const gm_bench_ratio *r = &ratios[i];
        if (strcmp(r->first->test, bench->test) != 0 || r->shapes == 0)
            continue;
        if (rows++ == 0)
            printf("\n  %-32s %-5s %6s %8s %8s %-20s %8s %s\n", "rate over that of the rival", "cache", "shapes",
                   "geo mean", "worst", "shape", "best", "shape");
        printf("  %-32s %-5s %6d %8.3f %8.3f %-20s %8.3f %s\n", r->first->variant, gm_bench_cache_name(r->first->cache),
               r->shapes, r->mean, r->worst, r->worst_row->shape, r->best, r->best_row->shape);
    }
    for (int i = 0; i < count; i++) {
        const gm_bench_ratio *r = &ratios[i];
        if (strcmp(r->first->test, bench->test) != 0 || r->errors[GM_BENCH_UNIFORM].max < 0 ||
            r->first->cache != GM_CACHE_WARM /* the results of cold data are the same */ || is_printed(ratios, i))
            continue;
        if (errors++ == 0)
            printf("\n  %-32s %-5s  %-8s %9s %9s\n", "error over |A| |B|", "cache", "data", "max", "mean");
        print_errors(r);
    }
    if (rows + errors > 0)
        printf("\n");
}

int gm_ratios_print(const gm_bench *bench)
{
    if (bench->job->ranks->rank != 0 || bench->row_count == 0)
        return GM_OK;
    gm_bench_ratio *ratios = malloc((size_t)bench->row_count * sizeof *ratios);
    if (!ratios)
        return gm_fail(GM_EDEVICE, "no memory for the results");
    print_all(bench, ratios, gm_ratios_make(bench->rows, bench->row_count, ratios));
    free(ratios);
    return gm_stdout_flush();
}

/* --- JSON --- */

json_t *gm_errors_json(const gm_bench_errors errors[GM_BENCH_KINDS])
{
    json_t *all = json_object();
    for (int kind = 0; kind < GM_BENCH_KINDS; kind++) {
        const gm_bench_errors *e = &errors[kind];
        if (e->max >= 0)
            json_object_set_new(all, gm_bench_kind_name((gm_bench_kind)kind),
                                json_pack("{s:o, s:o}", "max", isfinite(e->max) ? json_real(e->max) : json_null(),
                                          "mean", isfinite(e->mean) ? json_real(e->mean) : json_null()));
    }
    return all;
}

static json_t *ratio_object(const gm_bench_ratio *r)
{
    const gm_bench_row *row = r->first;
    json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:s, s:i}", "test", row->test, "panel",
                               row->panel ? json_string(row->panel) : json_null(), "variant",
                               gm_json_text(row->variant), "kernel", gm_json_text(row->kernel), "cache",
                               gm_bench_cache_name(row->cache), "shapes", r->shapes);
    if (object && r->shapes > 0)
        json_object_update_new(object, json_pack("{s:f, s:f, s:s, s:f, s:s}", "geometric_mean", r->mean, "worst",
                                                 r->worst, "worst_shape", r->worst_row->shape, "best", r->best,
                                                 "best_shape", r->best_row->shape));
    if (object && r->errors[GM_BENCH_UNIFORM].max >= 0)
        json_object_set_new(object, "errors", gm_errors_json(r->errors));
    return object;
}

json_t *gm_ratios_json(const gm_bench *bench)
{
    json_t *all = json_array();
    gm_bench_ratio *ratios = calloc((size_t)bench->row_count + 1, sizeof *ratios);
    int count = ratios ? gm_ratios_make(bench->rows, bench->row_count, ratios) : 0;
    for (int i = 0; i < count; i++)
        json_array_append_new(all, ratio_object(&ratios[i]));
    if (!ratios) {
        json_decref(all);
        all = NULL;
    }
    free(ratios);
    return all;
}
