/* Results of bench, read again; and their picture. */
#include "src/bench/results.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int gm_results_load(const char *file, json_t **root)
{
    json_error_t error;
    *root = json_load_file(file, 0, &error);
    if (!*root && error.line <= 0)
        return gm_fail(GM_EINPUT, "%s: cannot be read: %s, expected a file of bench --json", file, strerror(errno));
    if (!*root)
        return gm_fail(GM_EINPUT, "%s: is not JSON: line %d: %s", file, error.line, error.text);
    const char *schema = json_string_value(json_object_get(*root, "schema"));
    if (!schema || strcmp(schema, "gpumem.bench/1") != 0 || !json_is_array(json_object_get(*root, "rows")))
        return gm_fail(GM_EINPUT, "%s: holds no results of bench, expected a file of bench --json", file);
    return GM_OK;
}

const char *gm_results_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

double gm_results_number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key)); /* 0: not a number */
}

/* NULL for "". */
static const char *name_of(const json_t *row, const char *key)
{
    const char *text = gm_results_text(row, key);
    return *text ? text : NULL;
}

static void copy_text(char *to, const json_t *row, const char *key)
{
    const char *text = gm_results_text(row, key);
    size_t length = strnlen(text, GM_BENCH_TEXT - 1);
    while (length > 0 && (text[length] & 0xc0) == 0x80) /* not within a character of UTF-8 */
        length--;
    snprintf(to, GM_BENCH_TEXT, "%.*s", (int)length, text);
}

/* A figure as bench writes them; others are none, and would not fit an axis. */
static double figure_of(const json_t *row, const char *key)
{
    double figure = gm_results_number(row, key);
    return figure >= 1e-30 && figure <= 1e30 ? figure : 0;
}

/* Work per second of a figure in a unit. */
static double rate_of(const gm_bench_unit *unit, double figure)
{
    return unit->is_time && figure > 0 ? 1 / figure : figure;
}

/* The row of this JSON. Its texts belong to the JSON; units have the scale 1. */
static gm_bench_row row_of(const json_t *from)
{
    const json_t *old = json_object_get(from, "old"), *ranks = json_object_get(from, "ranks");
    const char *cold = gm_bench_cache_name(GM_CACHE_COLD);
    const gm_bench_unit unit = {gm_results_text(from, "unit"), 1, gm_bench_unit_is_time(gm_results_text(from, "unit"))};
    double rate = rate_of(&unit, figure_of(from, "rate")), limit = rate_of(&unit, figure_of(from, "limit"));
    double of_rival = figure_of(from, "ratio_rival");
    int is_computed = strcmp(gm_results_text(from, "limit_by"), "computed") == 0;
    gm_bench_row row = {.test = gm_results_text(from, "test"),
                        .cache = strcmp(gm_results_text(from, "cache"), cold) == 0 ? GM_CACHE_COLD : GM_CACHE_WARM,
                        .timing = {.median = rate > 0 ? 1 / rate : 0},
                        .work = 1,
                        .unit = unit,
                        .computed = is_computed ? limit : 0,
                        .measured = is_computed ? 0 : limit,
                        .measured_of = gm_results_text(from, "limit_by"),
                        .panel = name_of(from, "panel"),
                        .x = figure_of(from, "x"),
                        .y = figure_of(from, "y"),
                        .z = figure_of(from, "z"),
                        .x_name = name_of(from, "x_name"),
                        .y_name = name_of(from, "y_name"),
                        .z_name = name_of(from, "z_name"),
                        .rival = of_rival > 0 ? rate / of_rival : 0,
                        .rival_name = name_of(from, "rival"),
                        .ranks = gm_results_number(ranks, "count") > 1 ? 2 : 1, /* or more */
                        .published = {rate_of(&unit, figure_of(old, "rate")), -1, -1}};
    copy_text(row.variant, from, "variant");
    copy_text(row.kernel, from, "kernel");
    copy_text(row.shape, from, "shape");
    if (row.ranks > 1) {
        row.rate_min = rate_of(&unit, figure_of(ranks, "rate_min"));
        row.rate_max = rate_of(&unit, figure_of(ranks, "rate_max"));
    }
    return row;
}

static int is_wanted(const json_t *row, const char *const *tests, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(gm_results_text(row, "test"), tests[i]) == 0)
            return 1;
    return count == 0;
}

int gm_bench_draw(gm_bench *bench, const char *file, const char *const *tests, int count)
{
    json_t *root = NULL, *row;
    size_t i;
    int status = gm_results_load(file, &root);
    if (!status) {
        snprintf(bench->job->info.name, sizeof bench->job->info.name, "%s",
                 gm_results_text(json_object_get(root, "device"), "name"));
        json_array_foreach (json_object_get(root, "rows"), i, row) {
            gm_bench_row one = row_of(row);
            if (!status && is_wanted(row, tests, count))
                status = gm_bench_keep(bench, &one);
        }
    }
    if (!status && bench->row_count == 0)
        status = gm_fail(GM_EINPUT, "%s: has no results%s", file, count > 0 ? " of the tests asked for" : "");
    if (!status)
        status = gm_bench_plot_write(bench, &bench->plot);
    json_decref(root);
    return status;
}
