/* The plan of a batch: what a piece holds lies apart and fits a slot, frames are shared whole, tiles and leaves are
 * those of one product, and a plan that does not fit names a budget that does. Random cases. */
#include "src/matmul/batch/batch.h"

#include "base/random.h"
#include "base/size.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { CASES = 3000 };

static uint64_t state = 1;

static int64_t below(int64_t most)
{
    state += GM_RANDOM_STEP;
    return (int64_t)(gm_random_mix(state) % (uint64_t)most);
}

static void set_operand(gm_matmul_case *c, int which, int64_t rows, int64_t cols, int is_stack)
{
    static const gm_dtype types[] = {GM_DTYPE_F32, GM_DTYPE_F64, GM_DTYPE_U8, GM_DTYPE_F16};
    gm_dataset *d = &c->operand[which];
    *d = (gm_dataset){.type = types[below(4)], .layout = below(3) ? GM_CONTIGUOUS : GM_CHUNKED};
    c->stored_rows[which] = rows;
    c->stored_cols[which] = cols;
    c->is_stack[which] = is_stack;
    d->rank = d->view_rank = is_stack ? 3 : 2;
    for (int i = 0; i < d->rank; i++) {
        d->selection.step[i] = 1;
        d->chunk[i] = 1 + below(7);
    }
}

static void make_case(gm_matmul_case *c)
{
    memset(c, 0, sizeof *c);
    int64_t side = below(4) ? 100 : 3000;
    c->m = below(side);
    c->n = below(side);
    c->k = below(side);
    c->frames = 1 + below(100000);
    c->is_batch = 1;
    c->verify = (int)below(2);
    c->has_c0 = (int)below(2);
    c->result = GM_DTYPE_F32;
    int one = (int)below(3);
    set_operand(c, GM_A, c->m, c->k, one != 1);
    set_operand(c, GM_B, c->k, c->n, one != 2);
    if (c->has_c0)
        set_operand(c, GM_C0, c->m, c->n, 1);
    c->problem = (gm_matmul_problem){.m = c->m,
                                     .n = c->n,
                                     .k = c->k,
                                     .precision = GM_PRECISION_FP32,
                                     .leaf = {128, 0, 0},
                                     .operand_bytes = 4,
                                     .accumulator_bytes = 4,
                                     .file_bytes_a = (int64_t)gm_dtype_size(c->operand[GM_A].type),
                                     .file_bytes_b = (int64_t)gm_dtype_size(c->operand[GM_B].type),
                                     .file_bytes_c0 = c->has_c0 ? (int64_t)gm_dtype_size(c->operand[GM_C0].type) : 0,
                                     .file_bytes_c = 4,
                                     .max_tile = 512,
                                     .wants_tiles = (int)below(2),
                                     .verifies = c->verify,
                                     .is_batch = 1,
                                     .ranks = 1 + (int)below(5)};
}

/* Sections of a piece of some frames: in order, aligned, in the slot. */
static int lies_apart(const gm_batch_plan *p, int64_t frames)
{
    gm_batch_layout l = gm_batch_lay_out(p, frames), most = gm_batch_lay_out(p, p->group);
    int64_t end = 0;
    for (int i = 0; i < GM_OPERANDS; i++) {
        if (p->bytes[i] == 0)
            continue;
        if (l.at[i] < end || l.at[i] % GM_SLOT_ALIGN)
            return 0;
        end = l.at[i] + frames * p->bytes[i];
    }
    return end <= l.in && l.in <= p->out_at && p->out_at % GM_SLOT_ALIGN == 0 && frames * p->result <= l.nonfinite &&
           l.nonfinite + (int64_t)sizeof(gm_nonfinite) <= l.sums && l.sums % GM_SLOT_ALIGN == 0 &&
           l.sums + frames * p->sums <= l.out && p->out_at + most.out <= p->ring.slot && l.out <= most.out;
}

static int shares_are_whole(const gm_batch_plan *p, int ranks)
{
    int64_t at = 0;
    for (int r = 0; r < ranks; r++) {
        gm_range share = gm_batch_plan_share(p, ranks, r);
        if (gm_range_length(share) && (share.begin != at || share.begin % p->unit))
            return 0;
        at += gm_range_length(share);
    }
    return at == p->frames;
}

static int same_bits(const gm_batch_plan *p, const gm_matmul_case *c)
{
    return p->product.tile == gm_tiling_tile(c->m, c->n, c->problem.max_tile) &&
           p->product.leaf == gm_tiling_leaf(&c->problem.leaf, c->m, c->n, c->k) &&
           p->product.leaves == gm_ceil_div(c->k, p->product.leaf);
}

int main(void)
{
    static gm_matmul_case c;
    static gm_batch_plan p;
    int groups = 0, products = 0, refused = 0, good = 0;
    for (int i = 0; i < CASES; i++) {
        gm_ring_budget budget = {.host = (64 << 10) << below(16),
                                 .device = (64 << 10) << below(16),
                                 .threads = 1 + (int)below(8)},
                       need = {0};
        budget.unified = (int)below(2);
        gm_ring_request request = {.piece = below(2) ? 0 : 4096 << below(14), .depth = below(4) ? 0 : 2 + below(4)};
        make_case(&c);
        int status = gm_batch_plan_make(&c, GM_DTYPE_F32, &c.problem, &budget, &request, &p, &need), passed = 1;
        if (status == GM_EDEVICE) {
            refused++;
            for (int tries = 0; status == GM_EDEVICE && tries < 8; tries++) {
                budget = need;
                status = gm_batch_plan_make(&c, GM_DTYPE_F32, &c.problem, &budget, &request, &p, &need);
            }
        }
        passed = status == GM_OK && same_bits(&p, &c) && shares_are_whole(&p, c.problem.ranks) &&
                 p.ring.host_bytes <= budget.host && p.ring.device_bytes <= budget.device;
        if (passed && p.group) {
            groups++;
            passed = p.group <= GM_BATCH_MOST && lies_apart(&p, p.group) && lies_apart(&p, 1) &&
                     (p.group <= p.unit || p.group % p.unit == 0) &&
                     (p.group == 1 || !request.piece || p.ring.slot <= request.piece + GM_SLOT_ALIGN);
        } else if (passed) {
            products++;
        }
        if (!passed)
            tap_diag("case %d: status %d, %lld x %lld x %lld, group %lld", i, status, (long long)c.m, (long long)c.n,
                     (long long)c.k, (long long)p.group);
        good += passed;
    }
    tap_ok(good == CASES, "%d of %d plans hold", good, CASES);
    tap_ok(groups > CASES / 10 && products > CASES / 10 && refused > CASES / 10,
           "%d groups, %d products, %d refused first", groups, products, refused);
    return tap_done();
}
