/* picture.h - rows of results as a script for gnuplot: panels of bars, curves or maps.
 *
 *   picture.c  the places of the panels, and the script
 *   panels.c   the rows that make a panel, and its kind
 *   bars.c, curves.c, maps.c   a panel of each kind
 *   text.c     titles, labels and numbers
 */
#ifndef GM_SRC_BENCH_PICTURE_PICTURE_H
#define GM_SRC_BENCH_PICTURE_PICTURE_H

#include "src/bench/bench.h"

#include <stdio.h>

enum { GM_PICTURE_TEXT = 256, GM_PICTURE_TITLES = 2, GM_PICTURE_LETTER = 7 /* pixels of width, at most on average */ };
enum { GM_PICTURE_WIDTH = 960, GM_PICTURE_ABOVE = 48 /* of titles */, GM_PICTURE_BELOW = 44 /* of an axis */ };

typedef enum gm_panel_kind { GM_PANEL_BARS, GM_PANEL_CURVES, GM_PANEL_MAP, GM_PANEL_KINDS } gm_panel_kind;

typedef struct gm_picture_panel {
    const gm_bench_row **rows; /* [count] */
    int count;
    gm_panel_kind kind;
    int is_again;                 /* a panel before it has the same name */
    int left, top, width, height; /* pixels */
} gm_picture_panel;

typedef struct gm_picture {
    const char *device;
    const gm_bench_row **rows; /* those of all panels */
    gm_picture_panel *panels;  /* [count] */
    int count, width, height;
} gm_picture;

/* The axis of rates, in the unit of the panel. */
typedef struct gm_picture_axis {
    int is_log;
    double low, high;
} gm_picture_axis;

/* Writes the script of all rows of bench, of which there is at least one. GM_EOUTPUT. */
int gm_picture_write(FILE *script, const gm_bench *bench);

/* --- Panels --- */

/* The caller closes the picture, also after a failure. */
int gm_picture_open(const gm_bench *bench, gm_picture *picture);
void gm_picture_close(gm_picture *picture);

/* Is the row a point of a curve or a cell of a map? */
int gm_picture_has_place(const gm_bench_row *row);

/* Rows of one curve. */
int gm_picture_are_of_series(const gm_bench_row *a, const gm_bench_row *b);

/* Do all rows of the panel have the same shape, or cache? */
int gm_panel_has_one_shape(const gm_picture_panel *panel);
int gm_panel_has_one_cache(const gm_picture_panel *panel);

/* --- Kinds of panels: their width and height in pixels, and their part of the script --- */

void gm_bars_measure(const gm_picture *picture, gm_picture_panel *panel);
void gm_bars_write(FILE *script, const gm_picture *picture, const gm_picture_panel *panel);
void gm_curves_measure(const gm_picture *picture, gm_picture_panel *panel);
void gm_curves_write(FILE *script, const gm_picture *picture, const gm_picture_panel *panel);
void gm_maps_measure(const gm_picture *picture, gm_picture_panel *panel);
void gm_maps_write(FILE *script, const gm_picture *picture, const gm_picture_panel *panel);

/* --- Text --- */

/* Test, panel, device and what all rows have in common, in two lines. */
void gm_picture_titles(const gm_picture *picture, const gm_picture_panel *panel,
                       char titles[GM_PICTURE_TITLES][GM_PICTURE_TEXT]);

/* The texts that tell a row, or its curve, from the others of its panel. */
char *gm_picture_label(const gm_picture_panel *panel, const gm_bench_row *row, int of_curve,
                       char text[GM_PICTURE_TEXT]);

/* A string of gnuplot's, in quotes. */
void gm_picture_quote(FILE *script, const char *text);

/* "0.0123", "1.23", "1234". */
char *gm_picture_number(double number, char text[GM_PICTURE_TEXT]);

/* A value of the axis `name` of a sweep: "64 KiB" of bytes, "4096", "2 Mi". */
char *gm_picture_tick(const char *name, double value, char text[GM_PICTURE_TEXT]);

/* The titles, and the place of the plot in its panel: pixels to each side of it. */
void gm_picture_frame(FILE *script, const gm_picture *picture, const gm_picture_panel *panel, const int sides[4]);
enum { GM_SIDE_LEFT, GM_SIDE_RIGHT, GM_SIDE_ABOVE, GM_SIDE_BELOW };

/* A line of text at the top of the panel. The titles are the first ones. */
void gm_picture_put_line(FILE *script, const gm_picture *picture, const gm_picture_panel *panel, int line,
                         const char *text);

/* Rates, limits and published figures have their places on the axis; a logarithmic one if rates differ much. */
gm_picture_axis gm_picture_axis_of(const gm_picture_panel *panel);

/* axis: "x" or "y". */
void gm_picture_put_axis(FILE *script, const gm_picture_panel *panel, const char *axis);

#endif
