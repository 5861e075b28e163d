/* Panels that are read once: the ranks of a row of the grid need the same rows of A, those of a column the same columns
 * of B. Each of them reads a chunk of a step, and the chunks go around the circle of these ranks: in each exchange a
 * rank sends the chunk that it has received last, at first its own, to the next rank, and receives one from the rank
 * before. So a circle of n ranks takes n - 1 exchanges for each step, first that of the row, then that of the column,
 * and all ranks of the grid make the same ones, in the same order, also with empty chunks.
 *
 * A chunk is a rectangle of the panel, where it stays. The exchanges of a step go on while the strips of the next steps
 * are read and the device multiplies the steps before: the SHARE piece after the strips of a step releases its chunks,
 * and the main thread drives the exchanges on in each of its turns. */
#include "src/matmul/matmul.h"

#include "src/exchange/exchange.h"

int gm_matmul_share_ways(gm_matmul *p, gm_exchange_way ways[GM_MATMUL_WAYS])
{
    for (int matrix = GM_A; matrix <= GM_B; matrix++) {
        gm_matmul_circle c = gm_matmul_plan_circle(&p->plan, &p->part, matrix);
        ways[matrix] = (gm_exchange_way){.to = -1, .from = -1};
        if (p->part.idle || c.size == 1)
            continue;
        ways[matrix].memory = gm_matmul_panel_at(p, 0, matrix, 0, 0);
        ways[matrix].bytes = gm_matmul_panel(p, 0, matrix)->bytes;
        ways[matrix].to = (int)(c.first + (c.index + 1) % c.size * c.stride);
        ways[matrix].from = (int)(c.first + (c.index + c.size - 1) % c.size * c.stride);
    }
    return GM_MATMUL_WAYS;
}

void gm_matmul_share_begin(gm_matmul *p)
{
    p->sharing.whole = p->sharing.own = p->part.leaf0;
}

/* Exchanges of a step. */
static int64_t turns_of(const gm_matmul *p)
{
    return p->plan.grid[1] - 1 + p->plan.grid[0] - 1;
}

/* The chunk of a member of a circle, as the step has it that is exchanged, for the rank that it comes from or goes to.
 */
static gm_exchange_region region_of(gm_matmul *p, int matrix, const gm_matmul_circle *circle, int64_t member,
                                    int64_t peer)
{
    int64_t leaf = p->sharing.whole, end = gm_matmul_plan_step_end(&p->plan, &p->part, leaf);
    int64_t outer0 = matrix == GM_A ? p->part.row0 : p->part.col0;
    gm_matmul_span s = gm_matmul_plan_chunk(&p->plan, &p->part, matrix, (member + circle->size) % circle->size, leaf,
                                            end);
    int64_t element = gm_matmul_operand_bytes(p), by_rows = p->plan.problem.by_rows[matrix];
    return (gm_exchange_region){
        .peer = (int)(circle->first + (peer + circle->size) % circle->size * circle->stride),
        .memory = gm_matmul_panel_at(p, 0, matrix, s.outer0 - outer0, s.k0 - gm_matmul_k(p, p->part.leaf0)),
        .pitch = (size_t)(gm_matmul_panel(p, 0, matrix)->ld * element),
        .width = (size_t)((by_rows ? s.depth : s.outer) * element),
        .rows = by_rows ? s.outer : s.depth};
}

static void begin(gm_matmul *p, int status)
{
    gm_sharing *s = &p->sharing;
    int64_t in_row = p->plan.grid[1] - 1;
    int matrix = s->turn < in_row ? GM_A : GM_B;
    int64_t round = matrix == GM_A ? s->turn : s->turn - in_row;
    gm_matmul_circle c = gm_matmul_plan_circle(&p->plan, &p->part, matrix);
    gm_exchange_region send = region_of(p, matrix, &c, c.index - round, c.index + 1);
    gm_exchange_region receive = region_of(p, matrix, &c, c.index - round - 1, c.index - 1);
    gm_exchange_begin(p->exchange, &send, &receive, s->loaded, status);
}

/* Waits, unless gm_exchange_advance() has said that the exchange is done. */
static int end(gm_matmul *p)
{
    gm_sharing *s = &p->sharing;
    int status = gm_exchange_end(p->exchange);
    if (++s->turn == turns_of(p)) {
        s->turn = 0;
        s->whole = gm_matmul_plan_step_end(&p->plan, &p->part, s->whole);
    }
    return status;
}

/* The first launch of a kernel loads its code, which may wait for a message of NCCL, and that for a rank that has
 * failed: the first product goes to the device before the second step is exchanged. */
static int is_free(const gm_matmul *p)
{
    return p->sharing.whole == p->part.leaf0 || p->products > 0;
}

/* Exchanges what there is, without waiting. */
int gm_matmul_share_drive(void *context, int *is_under_way)
{
    gm_matmul *p = context;
    gm_sharing *s = &p->sharing;
    int status = GM_OK, is_done = 1;
    while (s->whole < s->own && is_free(p) && is_done && !status) {
        if (!gm_exchange_is_under_way(p->exchange))
            begin(p, GM_OK);
        is_done = gm_exchange_advance(p->exchange);
        status = is_done ? end(p) : GM_OK;
    }
    *is_under_way = gm_exchange_is_under_way(p->exchange);
    return status;
}

/* The strips before the piece have been given to the queue `in`, which knows of those that I/O threads copy. */
int gm_matmul_share(gm_matmul *p, const gm_piece *piece, gm_queue *in)
{
    int status = p->job->ops->event_record(p->sharing.loaded, in);
    if (!status)
        p->sharing.own = piece->leaf;
    return status;
}

void gm_matmul_share_abandon(void *context, int status)
{
    gm_matmul *p = context;
    if (gm_exchange_is_under_way(p->exchange)) {
        gm_exchange_fail(p->exchange, status);
        end(p);
    }
    while (p->sharing.whole < p->part.leaf1) {
        begin(p, status);
        end(p);
    }
}
