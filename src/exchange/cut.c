#include "src/exchange/cut.h"

#include "base/size.h"

int64_t gm_exchange_region_bytes(const gm_exchange_region *r)
{
    return r ? gm_mul_sat(r->rows, (int64_t)r->width) : 0;
}

gm_cut gm_cut_region(const gm_exchange_region *r, int64_t most)
{
    gm_cut c = {0};
    if (gm_exchange_region_bytes(r) == 0)
        return c;
    int64_t width = (int64_t)r->width, down = gm_ceil_div(r->rows, gm_max(most / width, 1));
    c.rows = gm_ceil_div(r->rows, down);
    c.width = gm_ceil_div(width, gm_ceil_div(width, most));
    c.across = gm_ceil_div(width, c.width);
    c.pieces = gm_ceil_div(r->rows, c.rows) * c.across;
    return c;
}

gm_exchange_region gm_cut_piece(const gm_exchange_region *r, const gm_cut *c, int64_t i)
{
    int64_t row = i / c->across * c->rows, at = i % c->across * c->width;
    gm_exchange_region piece = *r;
    piece.memory = (char *)r->memory + (size_t)row * r->pitch + at;
    piece.width = (size_t)gm_min((int64_t)r->width - at, c->width);
    piece.rows = gm_min(r->rows - row, c->rows);
    return piece;
}
