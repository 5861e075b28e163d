/* Titles, labels, numbers and the axis of rates. */
#include "src/bench/picture/picture.h"

#include <math.h>
#include <string.h>

enum { FIGURES = 5 }; /* of a row */

static const double much = 30; /* rates that differ more need a logarithmic axis */
static const double few = 5e3; /* span of an axis with marks between powers of ten */
static const double tiny = 1e-6;

/* Appends to a text, after a comma if there is text before. */
static void append(char text[GM_PICTURE_TEXT], const char *more)
{
    size_t length = strlen(text);
    if (*more)
        snprintf(text + length, GM_PICTURE_TEXT - length, "%s%s", length > 0 ? ", " : "", more);
}

void gm_picture_titles(const gm_picture *picture, const gm_picture_panel *panel,
                       char titles[GM_PICTURE_TITLES][GM_PICTURE_TEXT])
{
    const gm_bench_row *row = panel->rows[0];
    char ranks[32];
    snprintf(titles[0], GM_PICTURE_TEXT, "bench %s%s%s", row->test, row->panel ? ": " : "",
             row->panel ? row->panel : "");
    titles[1][0] = 0;
    if (gm_panel_has_one_shape(panel) || panel->is_again)
        append(titles[1], row->shape);
    if (gm_panel_has_one_cache(panel))
        append(titles[1], gm_bench_cache_name(row->cache));
    append(titles[1], picture->device);
    snprintf(ranks, sizeof ranks, "%d ranks", row->ranks);
    if (row->ranks > 1)
        append(titles[1], ranks);
}

char *gm_picture_label(const gm_picture_panel *panel, const gm_bench_row *row, int of_curve, char text[GM_PICTURE_TEXT])
{
    text[0] = 0;
    append(text, row->variant);
    if (!of_curve && !gm_panel_has_one_shape(panel))
        append(text, row->shape);
    if (!gm_panel_has_one_cache(panel))
        append(text, gm_bench_cache_name(row->cache));
    return text;
}

/* gnuplot interprets quotes, backslashes, and commands in backquotes. */
void gm_picture_quote(FILE *script, const char *text)
{
    fputc('"', script);
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 127 ? '?' : strchr("\"\\`", *text) ? '\'' : *text, script);
    fputc('"', script);
}

char *gm_picture_number(double number, char text[GM_PICTURE_TEXT])
{
    int digits = number >= 100 ? 0 : number >= 10 ? 1 : 2;
    if (number < 1)
        snprintf(text, GM_PICTURE_TEXT, "%.3g", number);
    else
        snprintf(text, GM_PICTURE_TEXT, "%.*f", digits, number);
    return text;
}

char *gm_picture_tick(const char *name, double value, char text[GM_PICTURE_TEXT])
{
    static const char *const prefixes[] = {"", "Ki", "Mi", "Gi", "Ti"};
    int is_bytes = strstr(name, "byte") != NULL, prefix = 0;
    double scaled = value;
    /* counts of fewer than seven digits are readable as they are */
    while (prefix < 4 && (is_bytes ? scaled >= 1024 : value >= 1e6 && scaled >= 1024 && fmod(scaled, 1024) == 0)) {
        scaled /= 1024;
        prefix++;
    }
    snprintf(text, GM_PICTURE_TEXT, prefix || is_bytes ? "%.4g %s%s" : "%.7g", scaled, prefixes[prefix],
             is_bytes ? "B" : "");
    return text;
}

void gm_picture_put_line(FILE *script, const gm_picture *picture, const gm_picture_panel *panel, int line,
                         const char *text)
{
    fprintf(script, "set label ");
    gm_picture_quote(script, text);
    fprintf(script, " at screen %.5f,%.5f left%s\n", (panel->left + 8.0) / picture->width,
            1 - (panel->top + 14.0 + 15 * line) / picture->height, line ? "" : " font ',13'");
}

void gm_picture_frame(FILE *script, const gm_picture *picture, const gm_picture_panel *panel, const int sides[4])
{
    char titles[GM_PICTURE_TITLES][GM_PICTURE_TEXT];
    double width = picture->width, height = picture->height;
    fprintf(script, "set lmargin at screen %.5f\nset rmargin at screen %.5f\n",
            (panel->left + sides[GM_SIDE_LEFT]) / width, (panel->left + panel->width - sides[GM_SIDE_RIGHT]) / width);
    fprintf(script, "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
            1 - (panel->top + sides[GM_SIDE_ABOVE]) / height,
            1 - (panel->top + panel->height - sides[GM_SIDE_BELOW]) / height);
    gm_picture_titles(picture, panel, titles);
    for (int i = 0; i < GM_PICTURE_TITLES; i++)
        gm_picture_put_line(script, picture, panel, i, titles[i]);
}

/* Figures that have a place on the axis: rate, limit, old figure, and the extremes of the ranks. */
static int figures_of(const gm_bench_row *row, double figures[FIGURES])
{
    const double rates[] = {gm_bench_rate(row), gm_bench_limit(row), row->published.rate,
                            row->ranks > 1 ? row->rate_min : 0, row->ranks > 1 ? row->rate_max : 0};
    int count = 0;
    for (int i = 0; i < FIGURES; i++)
        if (rates[i] > 0)
            figures[count++] = gm_bench_in_unit(&row->unit, rates[i]);
    return count;
}

/* The nearest of 1, 2, 5, 10, 20 ... that is at most this (up 0) or at least (1). */
static double round_to_step(double value, int up)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(value))), best = up ? 10 : 1;
    for (int i = 0; i < 4; i++)
        if (up ? steps[3 - i] * power >= value : steps[i] * power <= value)
            best = up ? steps[3 - i] : steps[i];
    return best * power;
}

gm_picture_axis gm_picture_axis_of(const gm_picture_panel *panel)
{
    double least = INFINITY, slowest = INFINITY, fastest = 0, most = 0, figures[FIGURES];
    for (int i = 0; i < panel->count; i++) {
        const gm_bench_row *row = panel->rows[i];
        double rate = gm_bench_in_unit(&row->unit, gm_bench_rate(row));
        int count = figures_of(row, figures);
        slowest = rate > 0 ? fmin(slowest, rate) : slowest;
        fastest = fmax(fastest, rate);
        for (int k = 0; k < count; k++) {
            least = fmin(least, figures[k]);
            most = fmax(most, figures[k]);
        }
    }
    int is_log = fastest > 0 && (fastest > much * slowest || most > much * fastest);
    return (gm_picture_axis){.is_log = is_log,
                             .low = is_log ? round_to_step(least / 1.5, 0) : 0,
                             .high = is_log     ? round_to_step(1.1 * most, 1)
                                     : most > 0 ? 1.05 * most
                                                : 1};
}

/* Marks at 1, 2, 5, 10 ..., or at powers of ten where there would be too many. */
static void put_log_ticks(FILE *script, const char *axis, const gm_picture_axis *a)
{
    const char *comma = "";
    int are_few = a->high < few * a->low;
    fprintf(script, "set logscale %s 10\nset %stics (", axis, axis);
    for (double mark = are_few ? a->low : round_to_step(a->low, 1); mark <= a->high * (1 + tiny);
         mark = round_to_step(mark * (1 + tiny), 1)) {
        double power = pow(10, round(log10(mark)));
        if (!are_few && fabs(mark / power - 1) > tiny)
            continue;
        fprintf(script, "%s\"%g\" %g", comma, mark, mark);
        comma = ", ";
    }
    fprintf(script, ")\n");
}

void gm_picture_put_axis(FILE *script, const gm_picture_panel *panel, const char *axis)
{
    const gm_bench_unit *unit = &panel->rows[0]->unit;
    gm_picture_axis a = gm_picture_axis_of(panel);
    /* gnuplot leaves marks at the ends out where their logarithms are not exact */
    fprintf(script, "set %srange [%.9g:%.9g]\n", axis, a.low * (1 - tiny), a.high * (1 + tiny));
    char label[GM_PICTURE_TEXT];
    snprintf(label, sizeof label, "%s%s", unit->name, unit->is_time ? " (less is faster)" : "");
    fprintf(script, "set %slabel ", axis);
    gm_picture_quote(script, label);
    fprintf(script, "\nset format %s '%%g'\n", axis);
    if (a.is_log)
        put_log_ticks(script, axis, &a);
}
