/* Maps over two axes: a cell for each row, light where it is fast, with the ratio of its rate to that of its rival, or
 * else to its limit, or its rate where a row has neither. A third coordinate is below the number. */
#include "base/size.h"
#include "src/bench/picture/picture.h"

#include <math.h>
#include <string.h>

enum {
    CELL_WIDTH = 38,
    CELL_HEIGHT = 20,
    THIRD_HEIGHT = 12,
    MARGIN = 16,
    WORD_LINES = 2,
    WORDS = 30 /* their height */
};

static const double darkest = 0.25; /* ratio to a rival */

typedef enum map_axis { MAP_X, MAP_Y } map_axis;

static double value_of(const gm_bench_row *row, map_axis axis)
{
    return axis == MAP_X ? row->x : row->y;
}

static const char *axis_name(const gm_picture_panel *panel, map_axis axis)
{
    return axis == MAP_X ? panel->rows[0]->x_name : panel->rows[0]->y_name;
}

/* Is the row the first one with its value? */
static int is_first(const gm_picture_panel *panel, map_axis axis, int at)
{
    for (int i = 0; i < at; i++)
        if (value_of(panel->rows[i], axis) == value_of(panel->rows[at], axis))
            return 0;
    return 1;
}

/* The number of values below this one: its place on the axis. */
static int place_of(const gm_picture_panel *panel, map_axis axis, double value)
{
    int place = 0;
    for (int i = 0; i < panel->count; i++)
        place += value_of(panel->rows[i], axis) < value && is_first(panel, axis, i);
    return place;
}

/* Pixels of the longest tick label. */
static int tick_width(const gm_picture_panel *panel, map_axis axis)
{
    char text[GM_PICTURE_TEXT];
    size_t longest = 0;
    for (int i = 0; i < panel->count; i++) {
        size_t length = strlen(gm_picture_tick(axis_name(panel, axis), value_of(panel->rows[i], axis), text));
        longest = length > longest ? length : longest;
    }
    return (int)longest * GM_PICTURE_LETTER;
}

static int left_of(const gm_picture_panel *panel)
{
    return MARGIN + tick_width(panel, MAP_Y);
}

/* The meaning of the numbers. */
typedef enum map_content { MAP_OF_RIVAL, MAP_OF_LIMIT, MAP_RATES } map_content;

static double reference_of(const gm_bench_row *row, map_content content)
{
    return content == MAP_OF_RIVAL   ? row->rival_name ? row->rival : 0
           : content == MAP_OF_LIMIT ? gm_bench_limit(row)
                                     : 0;
}

/* That which all rows have. */
static map_content content_of(const gm_picture_panel *panel)
{
    for (map_content content = MAP_OF_RIVAL; content < MAP_RATES; content++) {
        int with = 0;
        for (int i = 0; i < panel->count; i++)
            with += reference_of(panel->rows[i], content) > 0;
        if (with == panel->count)
            return content;
    }
    return MAP_RATES;
}

/* The name of the rival of all rows. */
static const char *rival_of(const gm_picture_panel *panel)
{
    const char *name = panel->rows[0]->rival_name;
    for (int i = 0; i < panel->count && name; i++)
        if (!panel->rows[i]->rival_name || strcmp(panel->rows[i]->rival_name, name) != 0)
            name = NULL;
    return name ? name : "the fastest rival";
}

static int has_third(const gm_picture_panel *panel)
{
    for (int i = 0; i < panel->count; i++)
        if (panel->rows[i]->z <= 0 || !panel->rows[i]->z_name)
            return 0;
    return 1;
}

/* The lines below the titles: what the numbers are, and the axes that have no label. */
static void words_of(const gm_picture_panel *panel, int line, char text[GM_PICTURE_TEXT])
{
    const gm_bench_row *first = panel->rows[0];
    map_content content = content_of(panel);
    if (line > 0)
        snprintf(text, GM_PICTURE_TEXT, "upwards: %s%s%s", first->y_name, has_third(panel) ? "; small: " : "",
                 has_third(panel) ? first->z_name : "");
    else if (content == MAP_OF_RIVAL)
        snprintf(text, GM_PICTURE_TEXT, "rate / %s, white: at least as fast", rival_of(panel));
    else
        snprintf(text, GM_PICTURE_TEXT, "%s%s, light is fast", content == MAP_OF_LIMIT ? "rate / " : first->unit.name,
                 content == MAP_OF_LIMIT ? first->measured > 0 ? first->measured_of : "computed limit" : "");
}

static int cell_height(const gm_picture_panel *panel)
{
    return CELL_HEIGHT + (has_third(panel) ? THIRD_HEIGHT : 0);
}

static int cells_width(const gm_picture_panel *panel)
{
    return place_of(panel, MAP_X, INFINITY) * (int)gm_max(CELL_WIDTH, tick_width(panel, MAP_X));
}

void gm_maps_measure(const gm_picture *picture, gm_picture_panel *panel)
{
    char titles[GM_PICTURE_TITLES][GM_PICTURE_TEXT], text[GM_PICTURE_TEXT];
    int width = left_of(panel) + cells_width(panel);
    gm_picture_titles(picture, panel, titles);
    for (int i = 0; i < GM_PICTURE_TITLES; i++)
        width = (int)gm_max(width, (int64_t)strlen(titles[i]) * GM_PICTURE_LETTER);
    for (int i = 0; i < WORD_LINES; i++) {
        words_of(panel, i, text);
        width = (int)gm_max(width, (int64_t)strlen(text) * GM_PICTURE_LETTER);
    }
    panel->width = width + MARGIN;
    panel->height = GM_PICTURE_ABOVE + WORDS + place_of(panel, MAP_Y, INFINITY) * cell_height(panel) + GM_PICTURE_BELOW;
}

static void put_axis(FILE *script, const gm_picture_panel *panel, map_axis axis)
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

/* Of a ratio to a limit the square root tells low ones apart; a rival may be slower by as much as it may be faster. */
static int shade_of(double ratio, map_content content)
{
    double part = content == MAP_OF_RIVAL ? 1 + log2(fmax(ratio, darkest)) / -log2(darkest) : sqrt(fmax(ratio, 0));
    return (int)(60 + 195 * fmin(part, 1));
}

/* Places, number, shade, the colour of the numbers, and the third coordinate. */
static void put_cell(FILE *script, const gm_picture_panel *panel, const gm_bench_row *row, double ratio,
                     map_content content)
{
    char text[GM_PICTURE_TEXT], third[GM_PICTURE_TEXT] = "";
    int shade = shade_of(ratio, content);
    if (content != MAP_RATES)
        snprintf(text, sizeof text, "%.2f", ratio);
    else
        gm_picture_number(gm_bench_in_unit(&row->unit, gm_bench_rate(row)), text);
    if (has_third(panel))
        gm_picture_tick(row->z_name, row->z, third);
    fprintf(script, "%d %d \"%s\" %d %d \"%s\"\n", place_of(panel, MAP_X, row->x), place_of(panel, MAP_Y, row->y), text,
            shade * 0x10101, shade < 140 ? 0xffffff : 0, third);
}

void gm_maps_write(FILE *script, const gm_picture *picture, const gm_picture_panel *panel)
{
    map_content content = content_of(panel);
    char text[GM_PICTURE_TEXT];
    double most = 0, raised = has_third(panel) ? 0.18 : 0;
    for (int i = 0; i < panel->count; i++)
        most = fmax(most, gm_bench_rate(panel->rows[i]));
    gm_picture_frame(script, picture, panel,
                     (int[]){left_of(panel), panel->width - left_of(panel) - cells_width(panel),
                             GM_PICTURE_ABOVE + WORDS, GM_PICTURE_BELOW});
    for (int i = 0; i < WORD_LINES; i++) {
        words_of(panel, i, text);
        gm_picture_put_line(script, picture, panel, GM_PICTURE_TITLES + i, text);
    }
    fprintf(script, "set xlabel ");
    gm_picture_quote(script, panel->rows[0]->x_name);
    fputc('\n', script);
    put_axis(script, panel, MAP_X);
    put_axis(script, panel, MAP_Y);
    fprintf(script, "$cells << END\n");
    for (int i = 0; i < panel->count; i++) {
        double of = content == MAP_RATES ? most : reference_of(panel->rows[i], content);
        put_cell(script, panel, panel->rows[i], of > 0 ? gm_bench_rate(panel->rows[i]) / of : 0, content);
    }
    fprintf(script,
            "END\nunset key\nplot $cells using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):4 with boxxyerror "
            "fs solid noborder lc rgb variable, $cells using 1:($2+%g):3:5 with labels tc rgb variable",
            raised);
    if (raised > 0)
        fprintf(script, ", $cells using 1:($2-0.27):6:5 with labels font ',7' tc rgb variable");
    fputc('\n', script);
}
