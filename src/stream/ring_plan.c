#include "src/stream/ring_plan.h"

#include "base/memory.h"
#include "base/size.h"

/* Bytes that a thread reads at memory speed while another is woken. */
static const int64_t least_share = 2 << 20;

static int64_t host_besides_ring(const gm_ring_budget *budget, const gm_ring_cost *cost, int64_t readers)
{
    int64_t bytes = gm_add_sat(cost->host, readers);
    return budget->unified ? gm_add_sat(bytes, cost->device) : bytes;
}

static int64_t slot_bytes(const gm_ring_cost *cost)
{
    return gm_add_sat(cost->slot, GM_ALLOC_OVERHEAD);
}

static int64_t slots_that_fit(const gm_ring_budget *budget, const gm_ring_cost *cost, int64_t readers)
{
    int64_t host = budget->host - host_besides_ring(budget, cost, readers), device = budget->device - cost->device;
    if (host < 0 || device < 0)
        return 0;
    return (budget->unified ? host : gm_min(host, device)) / slot_bytes(cost);
}

static void set_plan(const gm_ring_budget *budget, const gm_ring_cost *cost, int64_t readers, int64_t depth,
                     gm_ring_plan *plan)
{
    int64_t ring = gm_mul_sat(depth, slot_bytes(cost));
    *plan = (gm_ring_plan){.slot = cost->slot,
                           .depth = depth,
                           .reader_bytes = readers,
                           .host_bytes = gm_add_sat(host_besides_ring(budget, cost, readers), ring),
                           .device_bytes = gm_add_sat(cost->device, budget->unified ? 0 : ring)};
    plan->host_left = budget->host - plan->host_bytes;
    plan->device_left = budget->device - plan->device_bytes;
    if (budget->unified)
        plan->host_left = plan->device_left = gm_min(plan->host_left, plan->device_left);
}

/* With readers of the given bytes. */
static int search(const gm_ring_request *r, const gm_ring_budget *budget, int64_t readers, gm_ring_plan *plan,
                  gm_ring_budget *need)
{
    int64_t bytes = gm_max(r->piece ? r->piece : r->usual, 1);
    for (;; bytes = gm_max(bytes / 2, r->least)) {
        gm_ring_cost cost;
        r->cut(r->context, budget, bytes, &cost);
        int64_t wanted = gm_max(1, gm_min(r->depth ? r->depth : cost.slots, cost.pieces));
        int64_t fit = slots_that_fit(budget, &cost, readers);
        int64_t depth = r->depth ? wanted : gm_min(wanted, gm_max(fit, 2));
        set_plan(budget, &cost, readers, depth, plan);
        if (fit >= depth)
            return 1;
        if (r->piece || bytes <= r->least)
            break;
    }
    *need = *budget;
    need->host = gm_max(need->host, plan->host_bytes);
    need->device = gm_max(need->device, plan->device_bytes);
    return 0;
}

int gm_ring_plan_make(const gm_ring_request *request, const gm_ring_budget *budget, gm_ring_plan *plan,
                      gm_ring_budget *need)
{
    int64_t most = gm_max(request->readers_least, gm_min(request->readers, budget->host / 8));
    return search(request, budget, most, plan, need) || search(request, budget, request->readers_least, plan, need);
}

int gm_ring_plan_recost(gm_ring_plan *plan, const gm_ring_budget *budget, const gm_ring_cost *cost)
{
    int64_t depth = plan->depth, readers = plan->reader_bytes;
    set_plan(budget, cost, readers, depth, plan);
    return slots_that_fit(budget, cost, readers) >= depth;
}

int gm_ring_plan_add(gm_ring_plan *plan, const gm_ring_budget *budget, int64_t host, int64_t device)
{
    int64_t on_host = budget->unified ? gm_add_sat(host, device) : host;
    int64_t on_device = budget->unified ? on_host : device;
    if (on_host > plan->host_left || on_device > plan->device_left)
        return 0;
    plan->host_bytes += on_host;
    plan->device_bytes += device;
    plan->host_left -= on_host;
    plan->device_left -= on_device;
    return 1;
}

int64_t gm_ring_plan_spare(const gm_ring_plan *plan)
{
    return gm_add_sat(plan->reader_bytes, plan->host_left);
}

int gm_ring_readers(int64_t bytes, int64_t units, int threads)
{
    return (int)gm_max(1, gm_min(gm_min(threads, units), (bytes + least_share / 2) / least_share));
}
