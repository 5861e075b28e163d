/* The device memory of groups. One of each will do: groups follow each other on the queue of the compute stage. */
#include "src/matmul/batch/batch.h"

int gm_batch_allocate(gm_batch *b, gm_pool *pool)
{
    gm_matmul *p = &b->product;
    const gm_batch_plan *plan = &b->plan;
    const gm_matmul_case *c = p->c;
    for (int i = GM_A; i <= GM_B; i++)
        if (plan->panels_of[i])
            b->panel[i] = gm_pool_device(pool, plan->panels_of[i] * plan->panel[i], (size_t)c->problem.operand_bytes);
    if (plan->acc)
        p->acc = gm_pool_device(pool, plan->group * plan->acc, (size_t)c->problem.accumulator_bytes);
    if (plan->product.tile_count)
        p->tiles = gm_pool_device(pool, plan->product.tile_count * plan->product.tile * plan->product.tile,
                                  (size_t)c->problem.accumulator_bytes);
    for (int i = GM_A; i <= GM_B && c->problem.work.planes; i++)
        p->work[i] = gm_pool_device(pool, gm_batch_plan_work(plan, c, i), 1);
    b->vectors = gm_pool_device(pool, plan->group * plan->vectors + c->m + c->n + GM_MATMUL_NOTES, sizeof *b->vectors);
    if (gm_matmul_allocate_pinned(p, pool, c->m, c->n))
        return pool->status;
    p->x = b->vectors + plan->group * plan->vectors;
    p->u = p->x + c->n;
    p->underflow = (uint64_t *)(void *)(p->u + c->m);
    return GM_OK;
}
