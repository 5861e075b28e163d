/* The layers as a chain: what a layer has folded goes on to the next one, band by band, while other bands are on their
 * way. The elements of C add up in the order of their leaves, as each layer has the leaves after those of the layer
 * before it, and each rank sends and receives a block once, however many leaves there are.
 *
 * The items of a block are its bands, and the sums of the check after them. Exchange i of a block receives item i and
 * sends item i - 1, which is folded by then; so a block of n items takes n + 1 exchanges, and all ranks make the same
 * ones: those at the ends of the chain receive or send nothing. */
#include "src/matmul/matmul.h"

#include "base/size.h"
#include "src/exchange/exchange.h"

void gm_matmul_chain_begin(gm_matmul *p)
{
    int layer = p->part.layer;
    p->chain.from = layer + 1 < p->plan.grid[2] ? gm_matmul_plan_partner(&p->plan, &p->part, layer + 1) : -1;
    p->chain.to = layer > 0 ? gm_matmul_plan_partner(&p->plan, &p->part, layer - 1) : -1;
}

static int64_t bands_of(const gm_matmul *p, const gm_matmul_block *block)
{
    return gm_ceil_div(block->rows, p->plan.band_rows);
}

/* The bands, and the sums: without a check they hold the counts of schemes. */
static int64_t items_of(const gm_matmul *p, const gm_matmul_block *block)
{
    return bands_of(p, block) + 1;
}

/* An item of a block, which goes to a rank or comes from it; none beyond the last one, or without a rank. */
static gm_exchange_region item_at(const gm_matmul *p, const gm_matmul_block *block, int64_t item, int peer,
                                  double *sums)
{
    size_t element = (size_t)p->plan.problem.accumulator_bytes, pitch = (size_t)p->ldacc * element;
    int64_t down = item * p->plan.band_rows;
    if (peer < 0 || item < 0 || item >= items_of(p, block))
        return (gm_exchange_region){0};
    if (item < bands_of(p, block))
        return (gm_exchange_region){.peer = peer,
                                    .memory = (char *)p->acc + (size_t)down * pitch,
                                    .pitch = pitch,
                                    .width = (size_t)block->cols * element,
                                    .rows = gm_min(p->plan.band_rows, block->rows - down)};
    size_t bytes = (size_t)gm_sum_offset(GM_SUM_LAYERS, block->rows, block->cols) * sizeof(double);
    return (gm_exchange_region){.peer = peer, .memory = sums, .pitch = bytes, .width = bytes, .rows = 1};
}

static void begin(gm_matmul *p, int status)
{
    gm_chain *c = &p->chain;
    gm_matmul_block block = gm_matmul_plan_block(&p->plan, &p->part, c->block);
    gm_exchange_region send = item_at(p, &block, c->step - 1, c->to, p->sums);
    gm_exchange_region receive = item_at(p, &block, c->step, c->from, p->sums_in);
    gm_exchange_begin(p->exchange, &send, &receive, c->folded, status);
}

/* Waits, unless gm_exchange_advance() has said that the exchange is done. */
static int end(gm_matmul *p)
{
    gm_chain *c = &p->chain;
    gm_matmul_block block = gm_matmul_plan_block(&p->plan, &p->part, c->block);
    int status = gm_exchange_end(p->exchange);
    if (c->step++ == items_of(p, &block)) {
        c->step = 0;
        c->block++;
    }
    return status;
}

static int has_passed(const gm_chain *c, int64_t block, int64_t step)
{
    return c->block > block || (c->block == block && c->step > step);
}

int gm_matmul_chain_await(void *context, const gm_piece *piece, int *is_there)
{
    gm_matmul *p = context;
    gm_chain *c = &p->chain;
    *is_there = 1;
    if (piece->kind != GM_PIECE_FOLD && piece->kind != GM_PIECE_FOLD_SUMS && piece->kind != GM_PIECE_PASS)
        return GM_OK;
    while (!has_passed(c, piece->block, piece->step)) {
        if (!gm_exchange_is_under_way(p->exchange))
            begin(p, GM_OK);
        *is_there = gm_exchange_advance(p->exchange);
        int status = *is_there ? end(p) : GM_OK;
        if (status || !*is_there)
            return status;
    }
    return GM_OK;
}

void gm_matmul_chain_abandon(void *context, int status)
{
    gm_matmul *p = context;
    if (gm_exchange_is_under_way(p->exchange)) {
        gm_exchange_fail(p->exchange, status);
        end(p);
    }
    while (p->chain.block < gm_matmul_plan_blocks(&p->plan, &p->part)) {
        begin(p, status);
        end(p);
    }
}
