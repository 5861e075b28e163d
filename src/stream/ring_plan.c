#include "src/stream/ring_plan.h"

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"

/* Bytes that a thread reads at memory speed while another is woken. */
static const int64_t least_share = 2 << 20;

static int64_t host_besides_ring(const gm_ring_budget *budget, const gm_ring_cost *cost, int64_t readers)
{
    int64_t bytes = gm_add_sat(cost->host, readers);
    return budget->unified ? gm_add_sat(bytes, cost->device) : bytes;
}

/* Of a slot and of a buffer of each thread. */
typedef struct unit {
    int64_t host, device, buffers;
} unit;

static unit unit_of(const gm_ring_budget *budget, const gm_ring_cost *cost, int64_t buffer)
{
    unit u = {.host = gm_add_sat(cost->slot, GM_ALLOC_OVERHEAD), .device = gm_add_sat(cost->slot, GM_ALLOC_OVERHEAD)};
    if (buffer) {
        u.host = gm_add_sat(cost->out, GM_ALLOC_OVERHEAD);
        u.buffers = gm_mul_sat(budget->threads, GM_RING_BUFFERS * buffer + GM_ALLOC_OVERHEAD);
    }
    return u;
}

static int64_t slots_that_fit(const gm_ring_budget *budget, const gm_ring_cost *cost, int64_t readers, int64_t buffer)
{
    unit u = unit_of(budget, cost, buffer);
    int64_t host = budget->host - host_besides_ring(budget, cost, readers) - u.buffers,
            device = budget->device - cost->device;
    if (host < 0 || device < 0)
        return 0;
    return budget->unified ? host / u.host : gm_min(host / u.host, device / u.device);
}

static void set_plan(const gm_ring_budget *budget, const gm_ring_cost *cost, int64_t readers, int64_t buffer,
                     int64_t depth, gm_ring_plan *plan)
{
    unit u = unit_of(budget, cost, buffer);
    int64_t host = gm_add_sat(gm_mul_sat(depth, u.host), u.buffers);
    *plan = (gm_ring_plan){.slot = cost->slot,
                           .depth = depth,
                           .buffer = buffer,
                           .out = cost->out,
                           .reader_bytes = readers,
                           .host_bytes = gm_add_sat(host_besides_ring(budget, cost, readers), host),
                           .device_bytes = gm_add_sat(cost->device, budget->unified ? 0 : gm_mul_sat(depth, u.device))};
    plan->host_left = budget->host - plan->host_bytes;
    plan->device_left = budget->device - plan->device_bytes;
    if (budget->unified)
        plan->host_left = plan->device_left = gm_min(plan->host_left, plan->device_left);
}

/* With readers and buffers of the given bytes. Returns whether it fits. */
static int search(const gm_ring_request *r, const gm_ring_budget *budget, int64_t readers, int64_t buffer,
                  gm_ring_plan *plan, gm_ring_budget *need)
{
    int64_t bytes = gm_max(r->piece ? r->piece : r->usual, 1);
    for (;; bytes = gm_max(bytes / 2, r->least)) {
        gm_ring_cost cost;
        r->cut(r->context, budget, bytes, &cost);
        int64_t wanted = gm_max(1, gm_min(r->depth ? r->depth : cost.slots, cost.pieces));
        int64_t fit = slots_that_fit(budget, &cost, readers, buffer);
        int64_t depth = r->depth ? wanted : gm_min(wanted, gm_max(fit, 2));
        set_plan(budget, &cost, readers, buffer, depth, plan);
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

/* Smaller than asked for where memory is short; 0: too small to be of use. */
static int64_t buffer_of(const gm_ring_request *r, const gm_ring_budget *budget)
{
    int64_t buffer = budget->unified || !r->buffers ? 0 : budget->buffer;
    while (buffer >= GM_RING_LEAST_BUFFER && gm_mul_sat(budget->threads, GM_RING_BUFFERS * buffer) > budget->host / 4)
        buffer /= 2;
    return buffer >= GM_RING_LEAST_BUFFER ? buffer - buffer % GM_RING_LEAST_BUFFER : 0;
}

int gm_ring_plan_make(const gm_ring_request *request, const gm_ring_budget *budget, gm_ring_plan *plan,
                      gm_ring_budget *need)
{
    int64_t most = gm_max(request->readers_least, gm_min(request->readers, budget->host / 8));
    int64_t buffer = buffer_of(request, budget);
    int made = (buffer && search(request, budget, most, buffer, plan, need)) ||
               search(request, budget, most, 0, plan, need) ||
               search(request, budget, request->readers_least, 0, plan, need);
    return made ? GM_OK : GM_EDEVICE;
}

int gm_ring_plan_recost(gm_ring_plan *plan, const gm_ring_budget *budget, const gm_ring_cost *cost)
{
    int64_t depth = plan->depth, readers = plan->reader_bytes, buffer = plan->buffer;
    set_plan(budget, cost, readers, buffer, depth, plan);
    return slots_that_fit(budget, cost, readers, buffer) >= depth;
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
