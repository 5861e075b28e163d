/* The script of a picture: panels from the top down, maps side by side as far as the width goes. */
#include "base/size.h"
#include "src/bench/picture/picture.h"

static const struct {
    void (*measure)(const gm_picture *picture, gm_picture_panel *panel);
    void (*write)(FILE *script, const gm_picture *picture, const gm_picture_panel *panel);
} kinds[GM_PANEL_KINDS] = {[GM_PANEL_BARS] = {gm_bars_measure, gm_bars_write},
                           [GM_PANEL_CURVES] = {gm_curves_measure, gm_curves_write},
                           [GM_PANEL_MAP] = {gm_maps_measure, gm_maps_write}};

/* Gives each panel its place. */
static void arrange(gm_picture *picture)
{
    int left = 0, top = 0, below = 0;
    for (int i = 0; i < picture->count; i++) {
        gm_picture_panel *panel = &picture->panels[i];
        kinds[panel->kind].measure(picture, panel);
        if (left + panel->width > GM_PICTURE_WIDTH) {
            left = 0;
            top = below;
        }
        panel->left = left;
        panel->top = top;
        left += panel->width;
        below = (int)gm_max(below, top + panel->height);
        picture->width = (int)gm_max(picture->width, left);
    }
    picture->width = (int)gm_max(picture->width, GM_PICTURE_WIDTH);
    picture->height = below;
}

static void put_script(FILE *script, const gm_picture *picture)
{
    fprintf(script,
            "set terminal svg noenhanced size %d,%d font 'sans-serif,11' background 'white'\nset encoding utf8\n"
            "set multiplot\n",
            picture->width, picture->height);
    for (int i = 0; i < picture->count; i++) {
        fprintf(script,
                "reset\nset errorbars 0\nset border lw 0.5\nset xlabel offset 0,0.6\nset xtics offset 0,0.2 nomirror\n"
                "set ytics nomirror\n");
        kinds[picture->panels[i].kind].write(script, picture, &picture->panels[i]);
    }
    fprintf(script, "unset multiplot\n");
}

int gm_picture_write(FILE *script, const gm_bench *bench)
{
    gm_picture picture;
    int status = gm_picture_open(bench, &picture);
    if (!status) {
        arrange(&picture);
        put_script(script, &picture);
    }
    gm_picture_close(&picture);
    return status;
}
