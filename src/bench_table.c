/* Results of bench: a row each, printed as they come, written as JSON and CSV at the end. */
#include "config.h"

#include "kernels/kernels.h"
#include "src/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const gm_unit gm_unit_flops = {"Tflop/s", 1e12}, gm_unit_bytes = {"GB/s", 1e9};

static const char *const heats[] = {[GM_WARM] = "warm", [GM_COLD] = "cold"};

static double rate(const gm_bench_row *row)
{
    return row->timing.median > 0 ? row->work / row->timing.median : 0;
}

/* "0.973", or "-" where there is nothing to compare with. */
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
    char limit[16], rival[16], most[16], mean[16];
    if (first)
        printf("%-9s %-20s %-20s %-5s %12s %7s %5s %18s %8s %8s %9s %9s\n", "test", "variant", "shape", "cache", "median", "spread", "count", "rate",
               "of limit", "of rival", "max error", "mean");
    printf("%-9s %-20s %-20s %-5s %9.3f ms %5.2f %% %5d %10.3f %-7s %8s %8s %9s %9s\n", r->test, r->variant, r->shape, heats[r->heat],
           1e3 * r->timing.median, 100 * r->timing.spread, r->timing.repetitions, rate(r) / r->unit.scale, r->unit.name,
           format_ratio(limit, rate(r), r->limit), format_ratio(rival, rate(r), r->rival), format_error(most, r->max_error),
           format_error(mean, r->mean_error));
    if (r->old.rate > 0)
        printf("%-9s %-20s %-20s %-5s %12s %7s %5s %10.5f %-7s %8s %8s %9s %9s\n", "", "  in the texts", "", "", "", "", "",
               r->old.rate / r->unit.scale, r->unit.name, "", "", format_error(most, r->old.max_error), format_error(mean, r->old.mean_error));
}

int gm_bench_add(gm_bench *bench, const gm_bench_row *row)
{
    if (bench->row_count == bench->row_room) {
        int room = 2 * bench->row_room + 16;
        gm_bench_row *rows = realloc(bench->rows, (size_t)room * sizeof *rows);
        if (!rows)
            return gm_fail(GM_EINTERNAL, "no memory for the results");
        bench->rows = rows;
        bench->row_room = room;
    }
    bench->rows[bench->row_count] = *row;
    print_row(row, bench->row_count++ == 0);
    return fflush(stdout) || ferror(stdout) ? gm_fail(GM_EOUTPUT, "standard output: %s", strerror(errno)) : GM_OK;
}

static json_t *known(double value, int is_known)
{
    return is_known ? json_real(value) : json_null();
}

/* What the columns of the CSV are, too. */
static json_t *row_object(const gm_bench_row *r)
{
    double scale = r->unit.scale, now = rate(r);
    const gm_timing *t = &r->timing;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:b, s:f, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o}", "test", r->test,
                     "variant", r->variant, "kernel", r->kernel, "shape", r->shape, "cache", heats[r->heat], "median_s", t->median, "spread",
                     t->spread, "repetitions", t->repetitions, "calls", t->calls, "held", t->held, "rate", now / scale, "unit", r->unit.name,
                     "limit", known(r->limit / scale, r->limit > 0), "ratio_limit", known(now / r->limit, r->limit > 0), "ratio_rival",
                     known(now / r->rival, r->rival > 0), "max_error", known(r->max_error, r->max_error >= 0), "mean_error",
                     known(r->mean_error, r->mean_error >= 0), "leaf", (json_int_t)r->leaf, "tile", (json_int_t)r->tile,
                     "threads", r->threads > 0 ? json_integer(r->threads) : json_null());
}

static json_t *device_object(const gm_device_info *d)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:i, s:i, s:I, s:I, s:i, s:I, s:f, s:f, s:f}", "kind", d->kind, "name", d->name, "uuid", d->uuid,
                     "pci", d->pci, "memory_total", (json_int_t)d->memory_total, "capability", d->capability, "multiprocessors",
                     d->multiprocessors, "clock_hz", (json_int_t)d->clock_hz, "memory_clock_hz", (json_int_t)d->memory_clock_hz,
                     "memory_bus_bits", d->memory_bus_bits, "l2_bytes", (json_int_t)d->l2_bytes, "memory_limit", d->memory_limit, "fp32_limit",
                     d->fp32_limit, "fp64_limit", d->fp64_limit);
}

static json_t *compose(const gm_bench *bench)
{
    char date[32], blas[GM_VERSION_TEXT], cuda[GM_VERSION_TEXT];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_t *rows = json_array(), *command = json_array();
    for (int i = 0; i < bench->job->argc; i++)
        json_array_append_new(command, json_string(bench->job->argv[i]));
    for (int i = 0; i < bench->row_count; i++) {
        const gm_old_figure *old = &bench->rows[i].old;
        json_t *row = row_object(&bench->rows[i]);
        if (old->rate > 0)
            json_object_set_new(row, "old", json_pack("{s:f, s:o, s:o}", "rate", old->rate / bench->rows[i].unit.scale, "max_error",
                                                      known(old->max_error, old->max_error >= 0), "mean_error",
                                                      known(old->mean_error, old->mean_error >= 0)));
        json_array_append_new(rows, row);
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:i, s:s, s:s, s:o, s:o}", "schema", "gpumem.bench/1", "date", date, "version",
                     PACKAGE_VERSION, "command", command, "host", bench->job->ranks->host, "threads", bench->job->threads, "cuda",
                     gm_cuda_version(cuda), "blas", gm_blas_version(blas), "device", device_object(&bench->job->info), "rows", rows);
}

static int write_json(const gm_bench *bench, FILE *file)
{
    json_t *root = compose(bench);
    int failed = !root || json_dumpf(root, file, JSON_INDENT(2)) || fputc('\n', file) == EOF;
    json_decref(root);
    return failed;
}

/* Names, or values, of the members of a row. Only texts hold anything that CSV quotes. */
static void write_line(FILE *file, json_t *row, int names)
{
    const char *key, *comma = "";
    json_t *value;
    json_object_foreach(row, key, value) {
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        fprintf(file, "%s%s", comma, names ? key : json_is_null(value) || !text ? "" : text);
        free(text);
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

static int write_file(const gm_bench *bench, const char *name, int (*write)(const gm_bench *bench, FILE *file))
{
    FILE *file = name ? fopen(name, "w") : NULL;
    if (!name)
        return GM_OK;
    int failed = !file || write(bench, file), error = errno;
    if (file && fclose(file)) {
        failed = 1;
        error = errno;
    }
    return failed ? gm_fail(GM_EOUTPUT, "%s: the results cannot be written: %s", name, strerror(error)) : GM_OK;
}

int gm_bench_write(const gm_bench *bench)
{
    int status = write_file(bench, bench->job->options->json, write_json);
    return status ? status : write_file(bench, bench->job->options->csv, write_csv);
}
