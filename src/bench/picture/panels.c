/* The panels of a picture: the rows of each, and its kind. */
#include "src/bench/picture/picture.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_POINTS = 3 };

int gm_picture_has_place(const gm_bench_row *row)
{
    return row->x > 0 && row->x_name;
}

int gm_picture_are_of_series(const gm_bench_row *a, const gm_bench_row *b)
{
    return a->cache == b->cache && strcmp(a->variant, b->variant) == 0;
}

static int is_cell(const gm_bench_row *row)
{
    return gm_picture_has_place(row) && row->y > 0 && row->y_name;
}

static const char *name_of(const gm_bench_row *row)
{
    return row->panel ? row->panel : "";
}

static int are_of_name(const gm_bench_row *a, const gm_bench_row *b)
{
    return is_cell(a) == is_cell(b) && strcmp(a->unit.name, b->unit.name) == 0 && strcmp(a->test, b->test) == 0 &&
           strcmp(name_of(a), name_of(b)) == 0;
}

/* Do two rows have the same place, so that they cannot be in the same panel? */
static int collide(const gm_bench_row *a, const gm_bench_row *b)
{
    return gm_picture_has_place(a) && a->x == b->x && a->y == b->y && gm_picture_are_of_series(a, b);
}

/* Maps have the ratio to a named rival, not the rival: is the row that of another one with the same place? */
static int is_rival(const gm_bench *bench, const gm_bench_row *row)
{
    if (!is_cell(row) || row->rival > 0)
        return 0;
    for (int i = 0; i < bench->row_count; i++) {
        const gm_bench_row *other = &bench->rows[i];
        if (other->rival > 0 && other->rival_name && are_of_name(other, row) && other->x == row->x &&
            other->y == row->y && other->cache == row->cache)
            return 1;
    }
    return 0;
}

/* The panel of row `at`: the latest of its name, or a new one. belongs: the panels of the rows before it, -1 of
 * rows that are not drawn. */
static int panel_of(const gm_bench_row *rows, const int *belongs, int at, int count, int *is_again)
{
    int last = -1;
    *is_again = 0;
    for (int i = at - 1; i >= 0; i--) {
        if (belongs[i] < 0 || !are_of_name(&rows[i], &rows[at]))
            continue;
        *is_again = 1;
        last = last < 0 ? belongs[i] : last;
        if (belongs[i] == last && collide(&rows[i], &rows[at]))
            return count;
    }
    return last < 0 ? count : last;
}

/* Curves are drawn where a series has enough points. */
static gm_panel_kind kind_of(const gm_picture_panel *panel)
{
    if (is_cell(panel->rows[0]))
        return GM_PANEL_MAP;
    for (int i = 0; i < panel->count; i++) {
        int points = 0;
        for (int j = i; j < panel->count; j++)
            points += gm_picture_has_place(panel->rows[j]) && gm_picture_are_of_series(panel->rows[i], panel->rows[j]);
        if (points >= LEAST_POINTS)
            return GM_PANEL_CURVES;
    }
    return GM_PANEL_BARS;
}

int gm_picture_open(const gm_bench *bench, gm_picture *picture)
{
    size_t most = (size_t)bench->row_count;
    int *belongs = calloc(most, sizeof *belongs), is_again;
    *picture = (gm_picture){.device = bench->job->info.name,
                            .rows = calloc(most, sizeof *picture->rows),
                            .panels = calloc(most, sizeof *picture->panels)};
    if (!belongs || !picture->rows || !picture->panels) {
        free(belongs);
        return gm_fail(GM_EOUTPUT, "no memory for the picture");
    }
    for (int i = 0; i < bench->row_count; i++) {
        belongs[i] = -1;
        if (is_rival(bench, &bench->rows[i]))
            continue;
        belongs[i] = panel_of(bench->rows, belongs, i, picture->count, &is_again);
        if (belongs[i] == picture->count)
            picture->panels[picture->count++].is_again = is_again;
    }
    const gm_bench_row **next = picture->rows;
    for (int p = 0; p < picture->count; p++) {
        gm_picture_panel *panel = &picture->panels[p];
        panel->rows = next;
        for (int i = 0; i < bench->row_count; i++)
            if (belongs[i] == p)
                *next++ = &bench->rows[i];
        panel->count = (int)(next - panel->rows);
        panel->kind = kind_of(panel);
    }
    free(belongs);
    return GM_OK;
}

void gm_picture_close(gm_picture *picture)
{
    free(picture->panels);
    free(picture->rows);
    *picture = (gm_picture){0};
}

int gm_panel_has_one_shape(const gm_picture_panel *panel)
{
    for (int i = 1; i < panel->count; i++)
        if (strcmp(panel->rows[i]->shape, panel->rows[0]->shape) != 0)
            return 0;
    return 1;
}

int gm_panel_has_one_cache(const gm_picture_panel *panel)
{
    for (int i = 1; i < panel->count; i++)
        if (panel->rows[i]->cache != panel->rows[0]->cache)
            return 0;
    return 1;
}
