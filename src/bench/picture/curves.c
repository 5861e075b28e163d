/* Curves over the axis of a sweep, one for each variant, and their limits. A row without a place is a level line. */
#include "base/size.h"
#include "src/bench/picture/picture.h"

#include <math.h>
#include <string.h>

enum { HEIGHT = 260, LEFT = 72, LEGEND = 270, LINE = 16, MOST_TICKS = 9 };

static const double wide = 8; /* a wider span needs a logarithmic axis */
static const double same = 0.1;

static int begins_series(const gm_picture_panel *panel, int at)
{
    for (int i = 0; i < at; i++)
        if (gm_picture_are_of_series(panel->rows[i], panel->rows[at]))
            return 0;
    return 1;
}

static int are_near(const gm_bench_row *a, const gm_bench_row *b)
{
    double x = gm_bench_limit(a), y = gm_bench_limit(b);
    return strcmp(gm_bench_limit_name(a), gm_bench_limit_name(b)) == 0 && fabs(x - y) <= same * fmax(x, y);
}

/* Is the limit of the series of row `at` in the picture without being drawn for it: as a curve of its own, or as the
 * limit of an earlier series? */
static int is_limit_drawn(const gm_picture_panel *panel, int at)
{
    const gm_bench_row *first = panel->rows[at];
    for (int i = 0; i < panel->count; i++)
        if (first->measured > 0 && strcmp(panel->rows[i]->variant, first->measured_of) == 0)
            return 1;
    for (int i = 0; i < at; i++) {
        int alike = 1;
        for (int j = at; j < panel->count && alike; j++)
            if (gm_picture_are_of_series(first, panel->rows[j]))
                for (int k = 0; k < panel->count; k++)
                    if (gm_picture_are_of_series(panel->rows[i], panel->rows[k]) &&
                        panel->rows[k]->x == panel->rows[j]->x)
                        alike &= are_near(panel->rows[j], panel->rows[k]);
        if (alike && gm_bench_limit(panel->rows[i]) > 0 && are_near(first, panel->rows[i]))
            return 1;
    }
    return 0;
}

void gm_curves_measure(const gm_picture *picture, gm_picture_panel *panel)
{
    int lines = 0;
    (void)picture;
    for (int i = 0; i < panel->count; i++)
        if (begins_series(panel, i))
            lines += gm_bench_limit(panel->rows[i]) > 0 && !is_limit_drawn(panel, i) ? 2 : 1;
    panel->width = GM_PICTURE_WIDTH;
    panel->height = GM_PICTURE_ABOVE + GM_PICTURE_BELOW + (int)gm_max(HEIGHT, LINE * lines);
}

static void span_of(const gm_picture_panel *panel, double *low, double *high)
{
    *low = INFINITY;
    *high = 0;
    for (int i = 0; i < panel->count; i++)
        if (gm_picture_has_place(panel->rows[i])) {
            *low = fmin(*low, panel->rows[i]->x);
            *high = fmax(*high, panel->rows[i]->x);
        }
}

static void put_ticks(FILE *script, const char *name, double low, double high)
{
    char text[GM_PICTURE_TEXT];
    const char *comma = "";
    int first = (int)ceil(log2(low)), last = (int)floor(log2(high)), step = 1 + (last - first) / MOST_TICKS;
    fprintf(script, "set logscale x 2\nset xrange [%.9g:%.9g]\nset xtics (", low / 1.1, high * 1.1);
    for (int power = first; power <= last; power += step, comma = ", ") {
        fputs(comma, script);
        gm_picture_quote(script, gm_picture_tick(name, exp2(power), text));
        fprintf(script, " %.17g", exp2(power));
    }
    fprintf(script, ")\nunset mxtics\n");
}

/* The axis of the sweep. */
static void put_sweep(FILE *script, const gm_picture_panel *panel)
{
    const char *name = "";
    double low, high;
    span_of(panel, &low, &high);
    if (high <= low) { /* one place: an axis around it */
        low *= 0.9;
        high = high * 1.1;
    }
    for (int i = panel->count - 1; i >= 0; i--)
        if (gm_picture_has_place(panel->rows[i]))
            name = panel->rows[i]->x_name;
    fprintf(script, "set xlabel ");
    gm_picture_quote(script, name);
    fprintf(script, "\nset format x '%%g'\n");
    if (high >= wide * low)
        put_ticks(script, name, low, high);
    else
        fprintf(script, "set xrange [%.9g:%.9g]\n", low - 0.04 * (high - low), high + 0.04 * (high - low));
}

static void put_point(FILE *script, const gm_bench_row *row, double x)
{
    double limit = gm_bench_limit(row);
    fprintf(script, "%.9g %.6g", x, gm_bench_in_unit(&row->unit, gm_bench_rate(row)));
    fprintf(script, limit > 0 ? " %.6g\n" : " NaN\n", gm_bench_in_unit(&row->unit, limit));
}

/* x, rate, limit of the series of row `at`. */
static void put_series(FILE *script, const gm_picture_panel *panel, int at)
{
    double low, high;
    span_of(panel, &low, &high);
    fprintf(script, "$series%d << END\n", at);
    for (int i = at; i < panel->count; i++) {
        const gm_bench_row *row = panel->rows[i];
        if (!gm_picture_are_of_series(panel->rows[at], row))
            continue;
        put_point(script, row, gm_picture_has_place(row) ? row->x : low);
        if (!gm_picture_has_place(row))
            put_point(script, row, high);
    }
    fprintf(script, "END\n");
}

static void put_curve(FILE *script, const gm_picture_panel *panel, int at, int number)
{
    static const int points[] = {7, 6, 5, 4, 9, 8, 11, 10, 13, 12, 1, 2}, dashes[] = {1, 2, 4, 5};
    char text[GM_PICTURE_TEXT], limit[GM_PICTURE_TEXT];
    fprintf(script, "$series%d using 1:2 smooth unique with linespoints lc rgb '%s' dt %d pt %d ps 0.7 title ", at,
            number / 4 % 2 ? "gray40" : "black", dashes[number % 4], points[number % 12]);
    gm_picture_quote(script, gm_picture_label(panel, panel->rows[at], 1, text));
    if (gm_bench_limit(panel->rows[at]) <= 0 || is_limit_drawn(panel, at))
        return;
    snprintf(limit, sizeof limit, "limit: %s", gm_bench_limit_name(panel->rows[at]));
    fprintf(script, ", $series%d using 1:3 smooth unique with lines lw 2 dt 3 lc rgb 'gray50' title ", at);
    gm_picture_quote(script, limit);
}

void gm_curves_write(FILE *script, const gm_picture *picture, const gm_picture_panel *panel)
{
    const char *comma = "plot ";
    gm_picture_frame(script, picture, panel, (int[]){LEFT, LEGEND, GM_PICTURE_ABOVE, GM_PICTURE_BELOW});
    gm_picture_put_axis(script, panel, "y");
    put_sweep(script, panel);
    fprintf(
        script,
        "set grid x y lt 1 lc rgb 'gray85' lw 0.5\nset key at graph 1,1 left top vertical Left reverse samplen 4\n");
    for (int i = 0; i < panel->count; i++)
        if (begins_series(panel, i))
            put_series(script, panel, i);
    for (int i = 0, number = 0; i < panel->count; i++)
        if (begins_series(panel, i)) {
            fputs(comma, script);
            put_curve(script, panel, i, number++);
            comma = ", ";
        }
    fputc('\n', script);
}
