/* A bar for each row, with its limit, its old figure, and the extremes of its ranks. */
#include "base/size.h"
#include "src/bench/picture/picture.h"

#include <string.h>

enum { BAR = 15, LEGEND = 18, MARGIN = 16, MOST_LABEL = 460, VALUE = 80 };

static int label_width(const gm_picture_panel *panel)
{
    char text[GM_PICTURE_TEXT];
    size_t longest = 0;
    for (int i = 0; i < panel->count; i++) {
        size_t length = strlen(gm_picture_label(panel, panel->rows[i], 0, text));
        longest = length > longest ? length : longest;
    }
    return (int)gm_min((int64_t)longest * GM_PICTURE_LETTER, MOST_LABEL) + MARGIN;
}

void gm_bars_measure(const gm_picture *picture, gm_picture_panel *panel)
{
    (void)picture;
    panel->width = GM_PICTURE_WIDTH;
    panel->height = GM_PICTURE_ABOVE + LEGEND + BAR * panel->count + GM_PICTURE_BELOW;
}

static void put_value(FILE *script, const gm_bench_row *row, double rate)
{
    fprintf(script, rate > 0 ? " %.6g" : " NaN", gm_bench_in_unit(&row->unit, rate));
}

/* Row, rate, limit, old figure, the rates of the slowest and the fastest rank, label, value. */
static void put_data(FILE *script, const gm_picture_panel *panel)
{
    char text[GM_PICTURE_TEXT];
    fprintf(script, "$rows << END\n");
    for (int i = 0; i < panel->count; i++) {
        const gm_bench_row *row = panel->rows[i];
        int several = row->ranks > 1 && row->rate_min > 0 && row->rate_max > 0;
        fprintf(script, "%d", i);
        put_value(script, row, gm_bench_rate(row));
        put_value(script, row, gm_bench_limit(row));
        put_value(script, row, row->published.rate);
        put_value(script, row, several ? row->rate_min : 0);
        put_value(script, row, several ? row->rate_max : 0);
        fputc(' ', script);
        gm_picture_quote(script, gm_picture_label(panel, row, 0, text));
        fprintf(script, " \"%s\"\n", gm_picture_number(gm_bench_in_unit(&row->unit, gm_bench_rate(row)), text));
    }
    fprintf(script, "END\n");
}

void gm_bars_write(FILE *script, const gm_picture *picture, const gm_picture_panel *panel)
{
    int limits = 0, old = 0, ranks = 0;
    for (int i = 0; i < panel->count; i++) {
        limits |= gm_bench_limit(panel->rows[i]) > 0;
        old |= panel->rows[i]->published.rate > 0;
        ranks |= panel->rows[i]->ranks > 1;
    }
    gm_picture_frame(script, picture, panel,
                     (int[]){label_width(panel), VALUE, GM_PICTURE_ABOVE + LEGEND, GM_PICTURE_BELOW});
    gm_picture_put_axis(script, panel, "x");
    put_data(script, panel);
    fprintf(script,
            "set yrange [%d.5:-0.5]\nunset ytics\nset x2range [0:1]\nset grid x lt 1 lc rgb 'gray85' lw 0.5\nset key "
            "at graph 1,1 right bottom horizontal samplen 2 width 1\n"
            "plot $rows using 2:1:(%.9g):2:($1-0.36):($1+0.36) with boxxyerror fs solid noborder lc rgb 'gray70' title "
            "'measured'",
            panel->count - 1, gm_picture_axis_of(panel).low);
    if (ranks)
        fprintf(script, ", $rows using 2:1:5:6 with xerrorbars pt 0 lc rgb 'black' title 'all ranks'");
    if (limits)
        fprintf(script, ", $rows using 3:($1-0.42):(0):(0.84) with vectors nohead lw 2 lc rgb 'black' title 'limit'");
    if (old)
        fprintf(script, ", $rows using 4:1 with points pt 6 ps 0.8 lc rgb 'black' title 'published'");
    fprintf(script, ", $rows using (0):1:7 axes x2y1 with labels right offset -0.7,0 notitle"
                    ", $rows using (1):1:8 axes x2y1 with labels left offset 0.7,0 notitle\n");
}
