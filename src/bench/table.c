/* The results of bench: each row is printed when it is added; all are written as JSON and CSV at the end. */
#include "config.h"

#include "base/log.h"
#include "kernels/kernels.h"
#include "src/bench/ratios.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A rate in the unit of the row: "4263.125", "0.00930", or "-" if there is none. */
static char *format_rate(char text[16], const gm_bench_row *row, double rate)
{
    double value = gm_bench_in_unit(&row->unit, rate);
    snprintf(text, 16, rate > 0 ? "%.*f" : "-", value < 0.1 ? 5 : 3, value);
    return text;
}

/* "0.973", or "-" if there is nothing to compare with. */
static char *format_ratio(char text[16], double value, double to)
{
    snprintf(text, 16, to > 0 ? "%.3f" : "-", to > 0 ? value / to : 0);
    return text;
}

static char *format_error(char text[16], double error)
{
    snprintf(text, 16, error >= 0 ? "%.2e" : "-", error);
    return text;
}

static void print_row(const gm_bench_row *r, int first)
{
    char rate[16], limit[16], of_limit[16], rival[16], most[16], mean[16];
    if (first)
        printf("%-9s %-24s %-20s %-5s %12s %7s %5s %18s %10s %-24s %8s %8s %9s %9s\n", "test", "variant", "shape",
               "cache", "median", "spread", "count", "rate", "limit", "by", "of limit", "of rival", "max error",
               "mean");
    printf("%-9s %-24s %-20s %-5s %9.3f ms %5.2f %% %5d %10s %-7s %10s %-24s %8s %8s %9s %9s\n", r->test, r->variant,
           r->shape, gm_bench_cache_name(r->cache), 1e3 * r->timing.median, 100 * r->timing.spread,
           r->timing.repetitions, format_rate(rate, r, gm_bench_rate(r)), r->unit.name,
           format_rate(limit, r, gm_bench_limit(r)), gm_bench_limit_name(r),
           format_ratio(of_limit, gm_bench_rate(r), gm_bench_limit(r)), format_ratio(rival, gm_bench_rate(r), r->rival),
           format_error(most, r->max_error), format_error(mean, r->mean_error));
    if (r->ranks > 1)
        printf("%-9s   %d ranks, %s to %s %s, the slowest is rank %d on %s\n", "", r->ranks,
               format_rate(rate, r, r->rate_min), format_rate(limit, r, r->rate_max), r->unit.name, r->slow_rank,
               r->slow_host);
    if (r->published.rate > 0)
        printf("%-9s %-24s %-20s %-5s %12s %7s %5s %10s %-7s %10s %-24s %8s %8s %9s %9s\n", "", "  published", "", "",
               "", "", "", format_rate(rate, r, r->published.rate), r->unit.name, "", "", "", "",
               format_error(most, r->published.max_error), format_error(mean, r->published.mean_error));
}

/* *text = the same text, which lives as long as the results: tests free theirs. */
static int keep(gm_bench *bench, const char **text)
{
    for (int i = 0; *text && i < bench->name_count; i++)
        if (strcmp(bench->names[i], *text) == 0) {
            *text = bench->names[i];
            return GM_OK;
        }
    if (!*text)
        return GM_OK;
    char **names = realloc(bench->names, (size_t)(bench->name_count + 1) * sizeof *names);
    if (names)
        bench->names = names;
    if (!names || !(names[bench->name_count] = strdup(*text)))
        return gm_fail(GM_EDEVICE, "no memory for the results");
    *text = names[bench->name_count++];
    return GM_OK;
}

int gm_bench_keep(gm_bench *bench, const gm_bench_row *row)
{
    if (bench->row_count == bench->row_room) {
        int room = 2 * bench->row_room + 16;
        gm_bench_row *rows = realloc(bench->rows, (size_t)room * sizeof *rows);
        if (!rows)
            return gm_fail(GM_EDEVICE, "no memory for the results");
        bench->rows = rows;
        bench->row_room = room;
    }
    gm_bench_row *kept = &bench->rows[bench->row_count];
    const char **texts[] = {&kept->test,   &kept->unit.name, &kept->measured_of, &kept->panel,
                            &kept->x_name, &kept->y_name,    &kept->z_name,      &kept->rival_name};
    *kept = *row;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (keep(bench, texts[i]))
            return GM_EDEVICE;
    bench->row_count++;
    return GM_OK;
}

/* Rank 0. */
static int append(gm_bench *bench, const gm_bench_row *row)
{
    int status = gm_bench_keep(bench, row);
    if (status)
        return status;
    print_row(&bench->rows[bench->row_count - 1], bench->row_count == 1);
    return gm_stdout_flush();
}

int gm_bench_add(gm_bench *bench, const gm_bench_row *row)
{
    gm_bench_row all = *row;
    int status = gm_bench_gather_all(bench, &all);
    return status || bench->job->ranks->rank != 0 ? status : append(bench, &all);
}

static json_t *known(double value, int is_known)
{
    return is_known ? json_real(value) : json_null();
}

static json_t *name(const char *text)
{
    return text ? json_string(text) : json_null();
}

/* Its members are the columns of the CSV too. */
static json_t *row_object(const gm_bench_row *r)
{
    const gm_bench_unit *unit = &r->unit;
    double now = gm_bench_rate(r), limit = gm_bench_limit(r);
    const gm_bench_timing *t = &r->timing;
    return json_pack(
        "{s:s, s:o, s:o, s:s, s:s, s:f, s:f, s:i, s:i, s:b, s:f, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "test", r->test, "variant", gm_json_text(r->variant), "kernel", gm_json_text(r->kernel), "shape", r->shape,
        "cache", gm_bench_cache_name(r->cache), "median_s", t->median, "spread", t->spread, "repetitions",
        t->repetitions, "calls", t->calls, "held", t->held, "rate", gm_bench_in_unit(unit, now), "unit", unit->name,
        "limit", known(gm_bench_in_unit(unit, limit), limit > 0), "limit_by",
        limit > 0 ? json_string(gm_bench_limit_name(r)) : json_null(), "ratio_limit", known(now / limit, limit > 0),
        "computed_limit", known(gm_bench_in_unit(unit, r->computed), r->computed > 0), "ratio_rival",
        known(now / r->rival, r->rival > 0), "max_error", known(r->max_error, r->max_error >= 0), "mean_error",
        known(r->mean_error, r->mean_error >= 0), "leaf", (json_int_t)r->leaf, "tile", (json_int_t)r->tile, "threads",
        r->threads > 0 ? json_integer(r->threads) : json_null(), "panel", name(r->panel), "x", known(r->x, r->x > 0),
        "y", known(r->y, r->y > 0), "x_name", name(r->x_name), "y_name", name(r->y_name), "z", known(r->z, r->z > 0),
        "z_name", name(r->z_name), "rival", name(r->rival_name));
}

/* The extremes of several ranks. */
static json_t *ranks_object(const gm_bench_row *r)
{
    return json_pack("{s:i, s:f, s:f, s:i, s:s}", "count", r->ranks, "rate_min",
                     gm_bench_in_unit(&r->unit, r->rate_min), "rate_max", gm_bench_in_unit(&r->unit, r->rate_max),
                     "slowest", r->slow_rank, "slowest_host", r->slow_host);
}

static json_t *device_object(const gm_device_info *d)
{
    return json_pack("{s:s, s:o, s:s, s:s, s:I, s:i, s:i, s:I, s:I, s:i, s:I, s:f, s:f, s:f}", "kind", d->kind, "name",
                     gm_json_text(d->name), "uuid", d->uuid, "pci", d->pci, "memory_total", (json_int_t)d->memory_total,
                     "capability", d->capability, "multiprocessors", d->multiprocessors, "clock_hz",
                     (json_int_t)d->clock_hz, "memory_clock_hz", (json_int_t)d->memory_clock_hz, "memory_bus_bits",
                     d->memory_bus_bits, "l2_bytes", (json_int_t)d->l2_bytes, "memory_limit", d->memory_limit,
                     "fp32_limit", d->fp32_limit, "fp64_limit", d->fp64_limit);
}

static json_t *compose(const gm_bench *bench)
{
    char date[32], blas[GM_VERSION_TEXT], cuda[GM_VERSION_TEXT];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_t *rows = json_array();
    for (int i = 0; i < bench->row_count; i++) {
        const gm_bench_published *published = &bench->rows[i].published;
        json_t *row = row_object(&bench->rows[i]);
        if (published->rate > 0)
            json_object_set_new(row, "old",
                                json_pack("{s:f, s:o, s:o}", "rate",
                                          gm_bench_in_unit(&bench->rows[i].unit, published->rate), "max_error",
                                          known(published->max_error, published->max_error >= 0), "mean_error",
                                          known(published->mean_error, published->mean_error >= 0)));
        if (bench->rows[i].has_errors)
            json_object_set_new(row, "errors", gm_errors_json(bench->rows[i].errors));
        if (bench->rows[i].ranks > 1)
            json_object_set_new(row, "ranks", ranks_object(&bench->rows[i]));
        json_array_append_new(rows, row);
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:i, s:s, s:o, s:o, s:o, s:o}", "schema", "gpumem.bench/1", "date",
                     date, "version", PACKAGE_VERSION, "command", gm_report_words(bench->job), "host",
                     bench->job->ranks->host, "threads", bench->job->threads, "cuda", gm_cuda_version(cuda), "blas",
                     gm_json_text(gm_blas_version(blas)), "device", device_object(&bench->job->info), "rows", rows,
                     "ratios", gm_ratios_json(bench));
}

static int write_json(const gm_bench *bench, FILE *file)
{
    json_t *root = compose(bench);
    int failed = !root || json_dumpf(root, file, JSON_INDENT(2)) || fputc('\n', file) == EOF;
    json_decref(root);
    return failed;
}

/* As RFC 4180 has it: in quotes, a quote inside doubled. */
static void write_quoted(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void write_value(FILE *file, const json_t *value)
{
    char *text = json_is_string(value) || json_is_null(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    if (json_is_string(value))
        write_quoted(file, json_string_value(value));
    fputs(text ? text : "", file);
    free(text);
}

/* The names or the values of the members of a row. */
static void write_line(FILE *file, json_t *row, int names)
{
    const char *key, *comma = "";
    json_t *value;
    json_object_foreach (row, key, value) {
        fputs(comma, file);
        if (names)
            fputs(key, file);
        else
            write_value(file, value);
        comma = ",";
    }
    fputc('\n', file);
}

static int write_csv(const gm_bench *bench, FILE *file)
{
    for (int i = 0; i < bench->row_count; i++) {
        json_t *row = row_object(&bench->rows[i]);
        if (i == 0)
            write_line(file, row, 1);
        write_line(file, row, 0);
        json_decref(row);
    }
    return ferror(file);
}

int gm_bench_files_open(gm_bench *bench)
{
    const gm_options *o = bench->job->options;
    int status = gm_text_open(&bench->json, o->json, o->force, GM_REPORT_KIND);
    if (!status)
        status = gm_text_open(&bench->csv, o->csv, o->force, "test,variant,kernel,shape,cache,");
    if (!status)
        status = gm_text_open(&bench->plot, o->plot, o->force, gm_bench_plot_kind);
    return status || !o->plot ? status : gm_bench_plot_check();
}

int gm_bench_files_check(gm_bench *bench, const gm_file_list *sources)
{
    const gm_options *o = bench->job->options;
    const char *names[] = {o->json, o->csv, o->plot, o->report};
    gm_text_file *files[] = {&bench->json, &bench->csv, &bench->plot, &bench->job->report.file};
    int status = GM_OK, count = sizeof files / sizeof files[0];
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count && !status; j++)
            if (i != j)
                status = gm_text_check(files[i], sources, names[j]);
    return status;
}

static int write_file(const gm_bench *bench, gm_text_file *file, int (*write)(const gm_bench *bench, FILE *file))
{
    return file->stream ? gm_text_publish(file, write(bench, file->stream)) : GM_OK;
}

int gm_bench_files_write(gm_bench *bench)
{
    int status = write_file(bench, &bench->json, write_json);
    if (!status)
        status = write_file(bench, &bench->csv, write_csv);
    return status || !bench->plot.stream ? status : gm_bench_plot_write(bench, &bench->plot);
}

void gm_bench_files_close(gm_bench *bench)
{
    gm_text_discard(&bench->json);
    gm_text_discard(&bench->csv);
    gm_text_discard(&bench->plot);
}
