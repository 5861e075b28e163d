/* The plan of a batch: groups of frames if a frame fits a piece, otherwise the plan of one product. */
#include "src/matmul/batch/batch.h"

#include "base/memory.h"
#include "base/size.h"
#include "base/tiling.h"

enum {
    LARGEST_FRAME = 32 << 20,    /* bytes of a slot: a larger frame is cut into strips and steps, which overlap */
    LARGEST_OF_MANY = 256 << 20, /* on a device of its own, where whole frames overlap with each other ... */
    MANY = 8,                    /* ... as there are some */
    MOST_SLOTS = 512 << 20,      /* bytes of all slots, beyond three of them: pinning takes longer than reading */
    USUAL_PIECE = 8 << 20,       /* of frames of 64 x 64 a hundred: the calls of a piece take less time than its copy */
    ALLOCATIONS = 8              /* of device memory */
};

static int64_t times(int64_t a, int64_t b)
{
    return gm_mul_sat(a, b);
}

static int64_t section(int64_t bytes)
{
    return gm_round_up(gm_min(bytes, INT64_MAX - GM_SLOT_ALIGN), GM_SLOT_ALIGN);
}

gm_batch_layout gm_batch_lay_out(const gm_batch_plan *plan, int64_t frames)
{
    gm_batch_layout l = {.in = 0};
    for (int i = 0; i < GM_OPERANDS; i++) {
        l.at[i] = l.in;
        l.in = gm_add_sat(l.in, section(times(frames, plan->bytes[i])));
    }
    if (plan->bytes[GM_B] == 0 && plan->once[GM_B] == 0)
        l.at[GM_B] = l.at[GM_A]; /* B is A */
    l.nonfinite = section(times(frames, plan->result));
    l.sums = gm_add_sat(l.nonfinite, section(sizeof(gm_nonfinite)));
    l.out = gm_add_sat(l.sums, times(frames, plan->sums));
    return l;
}

gm_range gm_batch_plan_share(const gm_batch_plan *plan, int ranks, int rank)
{
    return gm_range_split(plan->frames, plan->unit, ranks, rank);
}

/* Frames that are best read together: those of a chunk. */
static int64_t unit_of(const gm_matmul_case *c)
{
    int64_t unit = 1;
    for (int i = 0; i < (c->has_c0 ? GM_OPERANDS : GM_C0); i++)
        if (c->is_stack[i])
            unit = gm_max(unit, gm_dataset_view_unit(&c->operand[i], 0));
    return unit;
}

/* Is the panel of A or B what lies in the file? Then the product uses the slot. */
static int is_panel(const gm_matmul_case *c, const gm_batch_plan *plan, gm_dtype operand, int which)
{
    const gm_dataset *d = &c->operand[which];
    return c->is_stack[which] && d->type == gm_panel_type(operand, d->type) && !d->swap &&
           plan->ld[which] == c->stored_cols[which];
}

/* Frames of the panel of A or B; 0: there is none. */
static int64_t panels_of(const gm_matmul_case *c, const gm_batch_plan *plan, gm_dtype operand, int which)
{
    if (plan->panel[which] == 0 || (which == GM_B && c->shared) || is_panel(c, plan, operand, which))
        return 0;
    return c->is_stack[which] ? plan->group : 1;
}

/* The bytes of a frame, and of operands that are the same for all; B that is A has none of its own. */
static void set_frame(const gm_matmul_case *c, const gm_matmul_problem *p, gm_batch_plan *plan)
{
    for (int i = 0; i < (c->has_c0 ? GM_OPERANDS : GM_C0); i++) {
        int64_t bytes = times(times(c->stored_rows[i], c->stored_cols[i]), (int64_t)gm_dtype_size(c->operand[i].type));
        if ((i != GM_C0 && c->k == 0) || (i == GM_B && c->shared))
            continue;
        if (c->is_stack[i])
            plan->bytes[i] = bytes;
        else
            plan->once[i] = bytes;
    }
    plan->result = times(times(c->m, c->n), p->file_bytes_c);
    plan->sums = c->verify ? times(gm_sum_offset(GM_SUMS, c->m, c->n), sizeof(double)) : 0;
    for (int i = GM_A; i <= GM_B && c->k > 0; i++) {
        plan->ld[i] = gm_tiling_ld(c->stored_cols[i], p->operand_bytes);
        plan->panel[i] = times(c->stored_rows[i], plan->ld[i]);
    }
    plan->ldacc = gm_tiling_ld(c->n, p->accumulator_bytes);
    plan->acc = c->k > 0 ? times(c->m, plan->ldacc) : 0;
    plan->vectors = c->verify ? times(4, c->k) : 0;
}

/* The context of a cut. */
typedef struct cutter {
    const gm_matmul_case *c;
    gm_batch_plan *plan;
    gm_dtype operand;
    int64_t most; /* frames of the largest share */
} cutter;

static int64_t bytes_of(const gm_batch_plan *plan, int64_t frames)
{
    gm_batch_layout l = gm_batch_lay_out(plan, frames);
    return gm_add_sat(l.in, section(l.out));
}

/* Frames of a piece of at most some bytes: whole units where one fits, at least one frame. */
static int64_t group_of(const gm_batch_plan *plan, int64_t bytes, int64_t most)
{
    int64_t low = 1, high = gm_max(gm_min(most, GM_BATCH_MOST), 1);
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (bytes_of(plan, middle) <= bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return low > plan->unit ? low / plan->unit * plan->unit : low;
}

int64_t gm_batch_plan_work(const gm_batch_plan *plan, const gm_matmul_case *c, int operand)
{
    const gm_matmul_problem *p = &plan->product.problem;
    int64_t frames = p->batches && c->is_stack[operand] ? plan->group : 1, outer = operand == GM_A ? c->m : c->n;
    return (int64_t)gm_split_lay(&p->work, gm_mul_sat(frames, outer), c->k, plan->product.leaf, 0).bytes;
}

static int64_t device_bytes(const gm_batch_plan *plan, const gm_matmul_case *c)
{
    const gm_matmul_problem *p = &plan->product.problem;
    int64_t sum = times(plan->product.tile_count * plan->product.tile * plan->product.tile, p->accumulator_bytes);
    for (int i = GM_A; i <= GM_B; i++)
        sum = gm_add_sat(sum, times(times(plan->panels_of[i], plan->panel[i]), p->operand_bytes));
    sum = gm_add_sat(sum, times(times(plan->group, plan->acc), p->accumulator_bytes));
    sum = gm_add_sat(
        sum, gm_add_sat(times(times(plan->group, plan->vectors), sizeof(double)), gm_matmul_plan_vectors(c->m, c->n)));
    for (int i = GM_A; i <= GM_B; i++)
        sum = gm_add_sat(sum, gm_batch_plan_work(plan, c, i));
    return gm_add_sat(sum, ALLOCATIONS * GM_ALLOC_OVERHEAD);
}

static int64_t slots_of(const gm_ring_budget *budget, int64_t slot)
{
    return gm_max(3, gm_min(budget->threads + (budget->unified ? 2 : 4), MOST_SLOTS / gm_max(slot, 1)));
}

static void cut(void *context, const gm_ring_budget *budget, int64_t bytes, gm_ring_cost *cost)
{
    const cutter *cutter = context;
    gm_batch_plan *plan = cutter->plan;
    const gm_matmul_case *c = cutter->c;
    plan->group = group_of(plan, bytes, cutter->most);
    for (int i = GM_A; i <= GM_B; i++)
        plan->panels_of[i] = panels_of(c, plan, cutter->operand, i);
    gm_batch_layout l = gm_batch_lay_out(plan, plan->group);
    plan->out_at = l.in;
    *cost = (gm_ring_cost){.slot = gm_add_sat(l.in, section(l.out)),
                           .out = section(l.out),
                           .host = gm_add_sat(gm_matmul_plan_vectors(c->m, c->n), GM_ALLOC_OVERHEAD),
                           .device = device_bytes(plan, c),
                           .pieces = gm_max(gm_ceil_div(cutter->most, plan->group), 1) + 2,
                           .slots = slots_of(budget, gm_add_sat(l.in, section(l.out)))};
}

/* Groups, if a frame fits a piece and the memory has room. */
static int plan_groups(const gm_matmul_case *c, gm_dtype operand, const gm_ring_budget *budget,
                       const gm_ring_request *asked, gm_batch_plan *plan, gm_ring_budget *need)
{
    cutter cutter = {.c = c,
                     .plan = plan,
                     .operand = operand,
                     .most = gm_range_length(gm_batch_plan_share(plan, plan->product.problem.ranks, 0))};
    const gm_matmul_problem *p = &plan->product.problem;
    gm_ring_request request = *asked;
    int64_t frame = bytes_of(plan, 1);
    int64_t tiles = gm_min(budget->host, budget->device) / 8 /
                    (plan->product.tile * plan->product.tile * p->accumulator_bytes);
    int64_t largest = budget->unified || cutter.most < MANY ? LARGEST_FRAME : LARGEST_OF_MANY;
    if (frame > (asked->piece ? asked->piece : largest))
        return 0;
    request.usual = gm_max(USUAL_PIECE, frame);
    request.least = frame;
    request.cut = cut;
    request.context = &cutter;
    plan->product.tile_count = gm_matmul_tile_count(p, budget->threads, tiles);
    int made = gm_ring_plan_make(&request, budget, &plan->ring, need) == GM_OK;
    if (!made)
        plan->group = 0;
    return made;
}

int gm_batch_plan_make(const gm_matmul_case *c, gm_dtype operand, const gm_matmul_problem *frame,
                       const gm_ring_budget *budget, const gm_ring_request *request, gm_batch_plan *plan,
                       gm_ring_budget *need)
{
    gm_matmul_problem alone = *frame;
    *plan = (gm_batch_plan){
        .product = {.problem = *frame, .budget = *budget, .grid = {1, 1, 1}}, .frames = c->frames, .unit = unit_of(c)};
    plan->product.tile = gm_tiling_tile(frame->m, frame->n, frame->max_tile);
    plan->product.leaf = gm_tiling_leaf(&frame->leaf, frame->m, frame->n, frame->k);
    plan->product.leaves = gm_ceil_div(frame->k, plan->product.leaf);
    set_frame(c, frame, plan);
    if (plan_groups(c, operand, budget, request, plan, need))
        return GM_OK;
    alone.ranks = 1;
    alone.grid[0] = alone.grid[1] = alone.grid[2] = 1;
    alone.panels = GM_PANELS_READ;
    int status = gm_matmul_plan_make(&alone, budget, request, &plan->product, need);
    plan->ring = plan->product.ring;
    return status;
}

void gm_batch_plan_bytes(const gm_matmul_case *c, const gm_batch_plan *plan, int64_t frames, int64_t *read,
                         int64_t *written)
{
    gm_matmul_part part;
    *read = *written = 0;
    if (c->m == 0 || c->n == 0 || frames == 0)
        return;
    *written = frames * plan->result;
    if (plan->group) {
        *read = plan->once[GM_A] + plan->once[GM_B];
        for (int i = 0; i < GM_OPERANDS; i++)
            *read += frames * plan->bytes[i];
    } else {
        gm_matmul_plan_part(&plan->product, 0, &part);
        *read = gm_mul_sat(frames, gm_matmul_plan_bytes_read(&plan->product, &part));
    }
}
