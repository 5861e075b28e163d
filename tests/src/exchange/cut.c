/* Cuts of regions: the pieces cover each byte once, in order, and none is larger than asked. */
#include "src/exchange/cut.h"

#include "base/random.h"
#include "base/size.h"
#include "tests/tap.h"

enum { CASES = 2000 };

static int64_t draw(uint64_t *state, int64_t n)
{
    return (int64_t)(gm_random_bits(9, (*state)++) % (uint64_t)n);
}

/* Piece i begins where piece i - 1 has ended: to its right, or at the left end of the rows below. */
static int is_cover(const gm_exchange_region *r, const gm_cut *c, int64_t most)
{
    int64_t row = 0, at = 0, wrong = 0;
    for (int64_t i = 0; i < c->pieces; i++) {
        const gm_exchange_region p = gm_cut_piece(r, c, i);
        wrong += (char *)p.memory != (char *)r->memory + row * (int64_t)r->pitch + at;
        wrong += gm_exchange_region_bytes(&p) > most || gm_exchange_region_bytes(&p) < 1 || p.pitch != r->pitch ||
                 p.peer != r->peer;
        wrong += p.rows > 1 && p.width != r->width;
        at += (int64_t)p.width;
        row += at == (int64_t)r->width ? p.rows : 0;
        at = at == (int64_t)r->width ? 0 : at;
    }
    return wrong == 0 && row == r->rows && at == 0;
}

int main(void)
{
    static char memory[1];
    uint64_t state = 1;
    int faults = 0;
    for (int i = 0; i < CASES; i++) {
        int64_t width = 1 + draw(&state, draw(&state, 2) ? 50 : 5000), rows = 1 + draw(&state, 200);
        const gm_exchange_region r = {3, memory, (size_t)(width + draw(&state, 9)), (size_t)width, rows};
        int64_t most = 1 + draw(&state, draw(&state, 2) ? 10000 : 100);
        const gm_cut c = gm_cut_region(&r, most);
        faults += !is_cover(&r, &c, most);
    }
    tap_ok(!faults, "%d regions, faults %d", CASES, faults);
    const gm_exchange_region none = {0, memory, 8, 8, 0}, narrow = {0, memory, 8, 0, 8};
    tap_ok(gm_cut_region(NULL, 9).pieces == 0 && gm_cut_region(&none, 9).pieces == 0 &&
               gm_cut_region(&narrow, 9).pieces == 0,
           "no bytes, no pieces");
    return tap_done();
}
