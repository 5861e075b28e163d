/* Pictures of results: which rows make a panel, of which kind, and that gnuplot draws them. */
#include "base/status.h"
#include "src/bench/picture/picture.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 256, SCRIPT = 1 << 17 };

static gm_bench_row rows[ROWS];
static gm_job job = {.info = {.name = "GPU `touch struck` \"X\" <&>"}};
static gm_bench bench = {.job = &job, .rows = rows};

static gm_bench_row *add(const char *panel, const char *variant, gm_bench_unit unit, double rate)
{
    gm_bench_row *row = &rows[bench.row_count++];
    *row = (gm_bench_row){.test = "made",
                          .shape = "1.00 GiB",
                          .cache = GM_CACHE_COLD,
                          .timing = {.median = 1},
                          .work = rate,
                          .unit = unit,
                          .panel = panel};
    snprintf(row->variant, sizeof row->variant, "%s", variant);
    return row;
}

/* Stages over five decades, with old figures and a limit. */
static void add_ladder(void)
{
    static const char *const stages[] = {"1 thread", "256 threads", "coalesced", "shared memory", "unrolled"};
    double rate = 3e7;
    for (int i = 0; i < 5; i++, rate *= 20) {
        gm_bench_row *row = add("ladder", stages[i], gm_bench_unit_bytes, rate);
        row->published.rate = rate / 4;
        row->computed = 4.8e12;
    }
}

/* Curves of latency over bytes, of two variants, and a row without a place. */
static void add_sweep(void)
{
    for (double bytes = 4096; bytes <= 1 << 26; bytes *= 4)
        for (int of = 0; of < 2; of++) {
            gm_bench_row *row = add("latency", of ? "texture" : "global", gm_bench_unit_latency, 0);
            row->work = 1e9 / ((of ? 300 : 30) + bytes / 1e5);
            row->x = bytes;
            row->x_name = "bytes";
        }
    add("latency", "shared", gm_bench_unit_latency, 1e9 / 23);
}

static void add_map(const char *panel, double computed)
{
    for (int y = 1; y <= 4; y++)
        for (int x = 1; x <= 32; x *= 2) {
            gm_bench_row *row = add(panel, "read", gm_bench_unit_bytes, 3e12 / x / y);
            row->x = x;
            row->y = y;
            row->x_name = "stride, elements";
            row->y_name = "first element";
            row->computed = computed;
            snprintf(row->variant, sizeof row->variant, "from %d by %d", y, x);
        }
}

/* Ours over the library's, by two sides of a product; the third one is told. */
static void add_rivals(void)
{
    for (int m = 64; m <= 1024; m *= 4)
        for (int n = 64; n <= 1024; n *= 4)
            for (int is_rival = 0; is_rival < 2; is_rival++) {
                gm_bench_row *row = add("fp32", is_rival ? "BLAS" : "fp32", gm_bench_unit_flops,
                                        is_rival ? 4e12 : 1e10 * n);
                row->rival = is_rival ? 0 : 4e12;
                row->rival_name = is_rival ? NULL : "BLAS";
                row->computed = 67e12;
                row->x = n;
                row->y = m;
                row->z = 512;
                row->x_name = "n";
                row->y_name = "m";
                row->z_name = "k";
            }
}

static void add_ranks(void)
{
    for (int i = 0; i < 3; i++) {
        gm_bench_row *row = add("ranks", "copy", gm_bench_unit_bytes, 3e12 - 1e11 * i);
        row->ranks = 4;
        row->rate_min = row->work / 1.3;
        row->rate_max = row->work / 0.9;
        snprintf(row->shape, sizeof row->shape, "%d GiB", i + 1);
    }
}

static void check_panels(void)
{
    gm_picture picture;
    int good = gm_picture_open(&bench, &picture) == GM_OK;
    tap_ok(good && picture.count == 7, "the panels: %d", picture.count);
    if (good && picture.count == 7) {
        const gm_picture_panel *p = picture.panels;
        tap_ok(p[0].kind == GM_PANEL_BARS && p[0].count == 5, "a ladder: bars");
        tap_ok(p[1].kind == GM_PANEL_CURVES && p[1].count == 17, "a sweep: curves, of rows in any order");
        tap_ok(p[2].kind == GM_PANEL_MAP && p[2].count == 24 && p[3].kind == GM_PANEL_MAP, "two axes: maps");
        tap_ok(p[4].count == 24 && p[4].is_again && !p[3].is_again, "the same places again: another panel");
        tap_ok(p[5].kind == GM_PANEL_BARS && p[5].count == 3, "places are not needed");
        tap_ok(p[6].kind == GM_PANEL_MAP && p[6].count == 9, "a map of ratios to a rival, without the rival");
        tap_ok(gm_picture_axis_of(&p[0]).is_log && !gm_picture_axis_of(&p[5]).is_log,
               "a logarithmic axis where rates differ much");
    }
    gm_picture_close(&picture);
}

static void check_text(void)
{
    static const struct {
        const char *name, *want;
        double value;
    } ticks[] = {{"bytes", "96 B", 96},
                 {"bytes of a block", "64 KiB", 65536},
                 {"bytes", "1.5 MiB", 1.5 * (1 << 20)},
                 {"stride, elements", "4096", 4096},
                 {"elements", "4 Mi", 1 << 22},
                 {"elements", "1000001", 1000001}};
    char text[GM_PICTURE_TEXT];
    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++)
        tap_ok(strcmp(gm_picture_tick(ticks[i].name, ticks[i].value, text), ticks[i].want) == 0, "a mark: %s is %s",
               ticks[i].want, text);
    tap_ok(strcmp(gm_picture_number(0.01234, text), "0.0123") == 0 &&
               strcmp(gm_picture_number(1234.5, text), "1234") == 0 &&
               strcmp(gm_picture_number(9.87, text), "9.87") == 0,
           "numbers have three digits or more");
}

static void check_script(void)
{
    static char script[SCRIPT];
    FILE *file = fmemopen(script, sizeof script - 1, "w");
    int good = file && gm_picture_write(file, &bench) == GM_OK && fclose(file) == 0;
    tap_ok(good && !strchr(script, '`') && !strchr(script, '\\'), "nothing in a name is a command of gnuplot's");
    tap_ok(strstr(script, "\"stride, elements\"") && strstr(script, "first element") && strstr(script, "\"64 KiB\"") &&
               strstr(script, "'published'") && strstr(script, "'limit'") && strstr(script, "'all ranks'"),
           "axes and legends");
    tap_ok(strstr(script, "rate / BLAS, white") && strstr(script, "upwards: m; small: k") &&
               strstr(script, "2 0 \"2.56\" 16777215 0 \"512\"\n") && strstr(script, "0 0 \"0.16\" 3947580 16777215"),
           "ratios to a rival: white from 1 on, dark where it is several times as fast");
    tap_ok(strstr(script, "ns (less is faster)") != NULL, "times say that less is faster");
}

/* name: where the picture stays; NULL: nowhere. */
static void check_picture(const char *name)
{
    char made[64];
    gm_text_file file = {0};
    snprintf(made, sizeof made, "picture-%ld.svg", (long)getpid());
    if (system("gnuplot --version > /dev/null 2>&1") != 0) {
        tap_skip("no gnuplot", "a picture");
        return;
    }
    int status = gm_text_open(&file, name ? name : made, 1, gm_bench_plot_kind);
    if (!status)
        status = gm_bench_plot_write(&bench, &file);
    FILE *picture = fopen(name ? name : made, "r");
    int bytes = picture && !fseek(picture, 0, SEEK_END) ? (int)ftell(picture) : 0;
    tap_ok(status == GM_OK && bytes > 10000 && bytes < 90000 && access("struck", F_OK) != 0,
           "gnuplot draws it: %d bytes", bytes);
    if (picture)
        fclose(picture);
    gm_text_discard(&file);
    if (!name)
        unlink(made);
}

int main(int argc, char **argv)
{
    add_ladder();
    add_sweep();
    add_map("with a limit", 4e12);
    add_map("without", 0);
    add_map("without", 0);
    add_ranks();
    add_rivals();
    check_panels();
    check_text();
    check_script();
    check_picture(argc > 1 ? argv[1] : NULL);
    return tap_done();
}
