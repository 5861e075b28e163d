/* Maps over two axes: a cell for each row, light where it is fast, with the ratio of its rate to its limit, or its rate
 * where a row has no limit. */
#include "base/size.h"
#include "src/bench/picture/picture.h"

#include <math.h>
#include <string.h>

enum { CELL_WIDTH = 38, CELL_HEIGHT = 20, MARGIN = 16, WORDS = 30 /* of height: what the numbers are */ };

typedef enum map_axis { MAP_X, MAP_Y } map_axis;

static double value_of(const gm_bench_row *row, map_axis axis)
{
    return axis == MAP_X ? row->x : row->y;
}

static const char *axis_name(const gm_panel *panel, map_axis axis)
{
    return axis == MAP_X ? panel->rows[0]->x_name : panel->rows[0]->y_name;
}

/* Is the row the first one with its value? */
static int is_first(const gm_panel *panel, map_axis axis, int at)
{
    for (int i = 0; i < at; i++)
        if (value_of(panel->rows[i], axis) == value_of(panel->rows[at], axis))
            return 0;
    return 1;
}

/* The number of values below this one: its place on the axis. */
static int place_of(const gm_panel *panel, map_axis axis, double value)
{
    int place = 0;
    for (int i = 0; i < panel->count; i++)
        place += value_of(panel->rows[i], axis) < value && is_first(panel, axis, i);
    return place;
}

/* Pixels of the longest tick label. */
static int tick_width(const gm_panel *panel, map_axis axis)
{
    char text[GM_PICTURE_TEXT];
    size_t longest = 0;
    for (int i = 0; i < panel->count; i++) {
        size_t length = strlen(gm_picture_tick(axis_name(panel, axis), value_of(panel->rows[i], axis), text));
        longest = length > longest ? length : longest;
    }
    return (int)longest * GM_PICTURE_LETTER;
}

static int left_of(const gm_panel *panel)
{
    return MARGIN + tick_width(panel, MAP_Y);
}

static int have_limits(const gm_panel *panel)
{
    for (int i = 0; i < panel->count; i++)
        if (gm_bench_limit(panel->rows[i]) <= 0)
            return 0;
    return 1;
}

static int cells_width(const gm_panel *panel)
{
    return place_of(panel, MAP_X, INFINITY) * (int)gm_max(CELL_WIDTH, tick_width(panel, MAP_X));
}

void gm_maps_measure(const gm_picture *picture, gm_panel *panel)
{
    char titles[GM_PICTURE_TITLES][GM_PICTURE_TEXT];
    int width = left_of(panel) + cells_width(panel);
    gm_picture_titles(picture, panel, titles);
    for (int i = 0; i < GM_PICTURE_TITLES; i++)
        width = (int)gm_max(width, (int64_t)strlen(titles[i]) * GM_PICTURE_LETTER);
    width = (int)gm_max(width, (int64_t)(strlen(axis_name(panel, MAP_Y)) + strlen("upwards: ")) * GM_PICTURE_LETTER);
    panel->width = width + MARGIN;
    panel->height = GM_PICTURE_ABOVE + WORDS + place_of(panel, MAP_Y, INFINITY) * CELL_HEIGHT + GM_PICTURE_BELOW;
}

static void put_axis(FILE *script, const gm_panel *panel, map_axis axis)
{
    char text[GM_PICTURE_TEXT], letter = axis == MAP_X ? 'x' : 'y';
    const char *name = axis_name(panel, axis), *comma = "";
    fprintf(script, "set %crange [-0.5:%d.5]\nset %ctics scale 0 (", letter, place_of(panel, axis, INFINITY) - 1,
            letter);
    for (int i = 0; i < panel->count; i++) {
        double value = value_of(panel->rows[i], axis);
        if (!is_first(panel, axis, i))
            continue;
        fputs(comma, script);
        gm_picture_quote(script, gm_picture_tick(name, value, text));
        fprintf(script, " %d", place_of(panel, axis, value));
        comma = ", ";
    }
    fprintf(script, ")\n");
}

/* Places, number, shade and the colour of the number. The square root tells low ratios apart. */
static void put_cell(FILE *script, const gm_panel *panel, const gm_bench_row *row, double ratio, int is_ratio)
{
    char text[GM_PICTURE_TEXT];
    int shade = (int)(60 + 195 * sqrt(fmin(fmax(ratio, 0), 1)));
    if (is_ratio)
        snprintf(text, sizeof text, "%.2f", ratio);
    else
        gm_picture_number(gm_bench_in_unit(&row->unit, gm_bench_rate(row)), text);
    fprintf(script, "%d %d \"%s\" %d %d\n", place_of(panel, MAP_X, row->x), place_of(panel, MAP_Y, row->y), text,
            shade * 0x10101, shade < 140 ? 0xffffff : 0);
}

void gm_maps_write(FILE *script, const gm_picture *picture, const gm_panel *panel)
{
    const gm_bench_row *first = panel->rows[0];
    char text[GM_PICTURE_TEXT];
    int is_ratio = have_limits(panel);
    double most = 0;
    for (int i = 0; i < panel->count; i++)
        most = fmax(most, gm_bench_rate(panel->rows[i]));
    gm_picture_frame(script, picture, panel,
                     (int[]){left_of(panel), panel->width - left_of(panel) - cells_width(panel),
                             GM_PICTURE_ABOVE + WORDS, GM_PICTURE_BELOW});
    snprintf(text, sizeof text, "%s%s, light is fast", is_ratio ? "rate / " : first->unit.name,
             is_ratio ? first->measured > 0 ? first->measured_of : "computed limit" : "");
    gm_picture_put_line(script, picture, panel, GM_PICTURE_TITLES, text);
    snprintf(text, sizeof text, "upwards: %s", first->y_name);
    gm_picture_put_line(script, picture, panel, GM_PICTURE_TITLES + 1, text);
    fprintf(script, "set xlabel ");
    gm_picture_quote(script, first->x_name);
    fputc('\n', script);
    put_axis(script, panel, MAP_X);
    put_axis(script, panel, MAP_Y);
    fprintf(script, "$cells << END\n");
    for (int i = 0; i < panel->count; i++) {
        double rate = gm_bench_rate(panel->rows[i]), of = is_ratio ? gm_bench_limit(panel->rows[i]) : most;
        put_cell(script, panel, panel->rows[i], of > 0 ? rate / of : 0, is_ratio);
    }
    fprintf(script, "END\nunset key\nplot $cells using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):4 with boxxyerror "
                    "fs solid noborder lc rgb variable, $cells using 1:2:3:5 with labels tc rgb variable\n");
}
