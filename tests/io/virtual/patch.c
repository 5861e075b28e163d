/* patch.c - parts of virtual datasets, against every element of random selections one by one. */
#include "io/virtual/patch.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tests/tap.h"

enum { RANK = 3, SIDE = 24, CELLS = SIDE * SIDE * SIDE, TRIES = 20000 };

static int pick(int low, int high)
{
    return low + rand() % (high - low + 1);
}

/* A selection of one dimension with count x block elements, or of less. */
static void pick_dimension(gm_slab *s, int d)
{
    int block = pick(1, 4), count = pick(1, 4), stride = block + pick(0, 2);
    while (block * count > 1 && rand() % 3 == 0) {
        block = block > 1 ? block / 2 : block;
        count = count > 1 ? count / 2 : count;
    }
    s->block[d] = block;
    s->count[d] = count;
    s->stride[d] = stride > block ? stride : block;
    s->start[d] = pick(0, SIDE - 1 - ((count - 1) * (int)s->stride[d] + block - 1));
}

static void pick_slab(gm_slab *s, int rank)
{
    s->rank = rank;
    for (int d = 0; d < rank; d++)
        pick_dimension(s, d);
}

/* A selection with as many elements as another one, mostly of another shape. Returns 0 when none was found. */
static int pick_equal(gm_slab *s, const gm_slab *like)
{
    int64_t wanted = gm_slab_elements(like);
    for (int i = 0; i < 200; i++) {
        pick_slab(s, pick(1, RANK));
        if (gm_slab_elements(s) == wanted)
            return 1;
    }
    return 0;
}

/* Cells of a cube in the order of a selection. */
static int list_cells(const gm_slab *s, int *cells)
{
    int64_t at[RANK] = {0};
    int n = 0, d;
    do {
        int cell = 0;
        for (d = 0; d < s->rank; d++)
            cell = cell * SIDE + (int)(s->start[d] + at[d] / s->block[d] * s->stride[d] + at[d] % s->block[d]);
        cells[n++] = cell;
        for (d = s->rank - 1; d >= 0 && ++at[d] == s->count[d] * s->block[d]; d--)
            at[d] = 0;
    } while (d >= 0);
    return n;
}

static int source[CELLS]; /* of each element of the virtual dataset; -1: none */
static int to_cells[CELLS], from_cells[CELLS];

typedef struct filling {
    int from_rank, calls;
    int *memory;
} filling;

static int put_region(void *context, const gm_region *region, int64_t memory)
{
    filling *f = context;
    int64_t at[RANK] = {0};
    int d;
    f->calls++;
    do {
        int64_t cell = 0, byte = memory;
        for (d = 0; d < f->from_rank; d++) {
            cell = cell * SIDE + region->start[d] + at[d] * region->step[d];
            byte += at[d] * region->memory[d];
        }
        f->memory[byte / (int64_t)sizeof(int)] = (int)cell;
        for (d = f->from_rank - 1; d >= 0 && ++at[d] == region->count[d]; d--)
            at[d] = 0;
    } while (d >= 0);
    return GM_OK;
}

static int put_spans(void *context, const gm_spans *spans)
{
    return gm_spans_regions(spans, ((filling *)context)->from_rank, put_region, context);
}

/* A region of the cube, in memory of its own shape. */
static void pick_region(gm_region *r, int rank)
{
    int64_t memory = sizeof(int);
    for (int d = rank - 1; d >= 0; d--) {
        r->start[d] = pick(0, SIDE - 1);
        r->step[d] = rand() % 2 ? 1 : pick(1, 5);
        r->count[d] = pick(1, (SIDE - 1 - (int)r->start[d]) / (int)r->step[d] + 1);
        r->memory[d] = memory;
        memory *= r->count[d];
    }
}

static int region_is_wrong(const gm_region *r, int rank, const int *memory)
{
    int64_t at[RANK] = {0}, i = 0;
    int d;
    do {
        int64_t cell = 0;
        for (d = 0; d < rank; d++)
            cell = cell * SIDE + r->start[d] + at[d] * r->step[d];
        if (memory[i++] != source[cell])
            return 1;
        for (d = rank - 1; d >= 0 && ++at[d] == r->count[d]; d--)
            at[d] = 0;
    } while (d >= 0);
    return 0;
}

static void set_patch(gm_patch *p, const gm_slab *to, const gm_slab *from, gm_axis *axes, int64_t *last)
{
    for (int d = 0; d < to->rank; d++)
        last[d] = gm_slab_last(to, d);
    *p = (gm_patch){to->rank, from->rank, gm_slab_axes(to, from, axes), to->start, last, from->start, axes};
}

static void check_walk(void)
{
    static int memory[CELLS];
    int wrong = 0, found = 0, odd = 0, most = 0;
    for (int i = 0; i < TRIES; i++) {
        gm_slab to, from;
        gm_axis axes[GM_AXES_MAX];
        gm_region region;
        gm_patch p;
        int64_t last[RANK];
        pick_slab(&to, pick(1, RANK));
        if (!pick_equal(&from, &to))
            continue;
        set_patch(&p, &to, &from, axes, last);
        if (p.axes < 0) {
            odd++;
            continue;
        }
        found++;
        memset(source, -1, sizeof source);
        memset(memory, -1, sizeof memory);
        int n = list_cells(&to, to_cells);
        list_cells(&from, from_cells);
        for (int c = 0; c < n; c++)
            source[to_cells[c]] = from_cells[c];
        pick_region(&region, to.rank);
        filling f = {from.rank, 0, memory};
        wrong += gm_patch_walk(&p, &region, put_spans, &f) != GM_OK || region_is_wrong(&region, to.rank, memory);
        most = f.calls > most ? f.calls : most;
    }
    tap_ok(wrong == 0 && found > TRIES / 8 && odd > 0, "%d regions of virtual datasets are those of their sources",
           found);
    tap_diag("%d wrong, %d pairs without a common division, %d pieces at most", wrong, odd, most);
}

/* Two selections that are said to be apart share no element; most that share none are said to be. */
static void check_apart(void)
{
    static unsigned char taken[CELLS];
    int wrong = 0, apart = 0, said = 0;
    for (int i = 0; i < TRIES; i++) {
        gm_slab a, b;
        gm_axis a_axes[GM_AXES_MAX], b_axes[GM_AXES_MAX];
        gm_patch p, q;
        int64_t a_last[RANK], b_last[RANK];
        int shared = 0;
        pick_slab(&a, 2);
        pick_slab(&b, 2);
        set_patch(&p, &a, &a, a_axes, a_last);
        set_patch(&q, &b, &b, b_axes, b_last);
        memset(taken, 0, sizeof taken);
        for (int c = list_cells(&a, to_cells); c > 0; c--)
            taken[to_cells[c - 1]] = 1;
        for (int c = list_cells(&b, to_cells); c > 0; c--)
            shared += taken[to_cells[c - 1]];
        apart += !shared;
        said += gm_patch_is_apart(&p, &q);
        wrong += shared && gm_patch_is_apart(&p, &q);
    }
    tap_ok(wrong == 0 && said > apart / 2, "%d of %d pairs that are apart are known to be", said, apart);
}

/* Stripes, as the program's own outputs have them, are one piece. */
static void check_stripes(void)
{
    static int memory[CELLS];
    gm_slab to = {.rank = 2, .start = {3, 0}, .stride = {6, 1}, .count = {3, 1}, .block = {2, SIDE}},
            from = {.rank = 2, .start = {0, 0}, .stride = {1, 1}, .count = {1, 1}, .block = {6, SIDE}};
    gm_axis axes[GM_AXES_MAX];
    gm_region region = {
        .start = {0, 0}, .step = {1, 1}, .count = {SIDE, SIDE}, .memory = {SIDE * sizeof(int), sizeof(int)}};
    gm_patch p;
    int64_t last[2];
    filling f = {2, 0, memory};
    set_patch(&p, &to, &from, axes, last);
    gm_patch_walk(&p, &region, put_spans, &f);
    tap_ok(p.axes == 3 && f.calls == 3, "three stripes of a part are three regions");
}

int main(void)
{
    srand(1);
    check_walk();
    check_apart();
    check_stripes();
    return tap_done();
}
