/* The sizer of the ring: what it chooses fits its budget, a refusal names a budget that is enough, larger budgets are
 * never refused. */
#include "src/stream/ring_plan.h"
#include "tests/tap.h"

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"

/* A job of `total` bytes with other memory on host and device; pieces are whole units. */
typedef struct job {
    int64_t total, unit, host, device;
    int64_t asked; /* bytes of the last cut */
    int copied;    /* I/O threads with buffers copy from the device themselves */
} job;

static void cut(void *context, const gm_ring_budget *budget, int64_t bytes, gm_ring_cost *cost)
{
    job *j = context;
    (void)budget;
    j->asked = bytes;
    int64_t slot = gm_max(bytes / j->unit, 1) * j->unit;
    *cost = (gm_ring_cost){.slot = slot,
                           .out = j->copied ? 0 : slot / 8,
                           .host = j->host,
                           .device = j->device,
                           .pieces = gm_ceil_div(j->total, slot),
                           .slots = 6};
}

static gm_ring_request request_of(job *j)
{
    return (gm_ring_request){
        .usual = 8 << 20, .least = j->unit, .readers = 1 << 20, .readers_least = 1 << 16, .cut = cut, .context = j};
}

/* Bytes of a plan on the host and on the device, added up here. */
static int holds(const job *j, const gm_ring_plan *plan, const gm_ring_budget *budget)
{
    int64_t ring = plan->depth * (plan->slot + GM_ALLOC_OVERHEAD), on_host = ring;
    if (plan->buffer)
        on_host = plan->depth * (plan->slot / 8 + GM_ALLOC_OVERHEAD) +
                  budget->threads * (GM_RING_BUFFERS * plan->buffer + GM_ALLOC_OVERHEAD);
    int64_t host = on_host + j->host + plan->reader_bytes + (budget->unified ? j->device : 0);
    int64_t device = j->device + (budget->unified ? 0 : ring);
    return plan->host_bytes == host && plan->device_bytes == device && host <= budget->host &&
           device <= budget->device && plan->depth >= 1 && plan->slot % j->unit == 0;
}

static void test_budgets(int64_t buffer)
{
    int fits = 1, enough = 1, monotone = 1, made = 0, refused = 0;
    for (int unified = 0; unified <= 1; unified++)
        for (int64_t unit = 1; unit <= 1 << 22; unit <<= 7)
            for (int64_t other = 0; other <= 1 << 24; other += 1 << 22) {
                int was_made = 0;
                for (int64_t bytes = 1 << 12; bytes <= 1 << 28; bytes <<= 1) {
                    job j = {.total = 1 << 26, .unit = unit, .host = other, .device = other / 2};
                    gm_ring_budget budget = {.host = bytes,
                                             .device = bytes,
                                             .unified = unified,
                                             .threads = 4,
                                             .buffer = buffer},
                                   need;
                    gm_ring_request request = request_of(&j);
                    gm_ring_plan plan;
                    request.buffers = buffer > 0;
                    if (gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK) {
                        fits &= holds(&j, &plan, &budget);
                        was_made = 1;
                        made++;
                        continue;
                    }
                    refused++;
                    monotone &= !was_made;
                    enough &= (need.host > bytes || need.device > bytes) &&
                              gm_ring_plan_make(&request, &need, &plan, &need) == GM_OK && holds(&j, &plan, &need);
                }
            }
    tap_ok(fits && made > 0, "plans fit their budget and count their bytes (%d of them)", made);
    tap_ok(enough && refused > 0, "the budget that a refusal names is enough (%d of them)", refused);
    tap_ok(monotone, "a larger budget is never refused");
}

static void test_choice(void)
{
    job j = {.total = 1 << 26, .unit = 4096};
    gm_ring_budget wide = {.host = INT64_C(1) << 32, .device = INT64_C(1) << 32, .threads = 4}, narrow = wide, need;
    narrow.host = 1 << 20;
    gm_ring_request request = request_of(&j);
    gm_ring_plan plan;
    tap_ok(gm_ring_plan_make(&request, &wide, &plan, &need) == GM_OK && plan.slot == 8 << 20 && plan.depth == 6,
           "with room: usual pieces, as many slots as keep the device busy");
    j.total = 12 << 20;
    tap_ok(gm_ring_plan_make(&request, &wide, &plan, &need) == GM_OK && plan.depth == 2, "no more slots than pieces");
    j.total = 1 << 26;
    tap_ok(gm_ring_plan_make(&request, &narrow, &plan, &need) == GM_OK && plan.slot < 8 << 20 && plan.depth >= 2 &&
               plan.host_bytes <= narrow.host,
           "with little room: smaller pieces");
    request.piece = 1 << 16;
    request.depth = 5;
    tap_ok(gm_ring_plan_make(&request, &wide, &plan, &need) == GM_OK && plan.slot == 1 << 16 && plan.depth == 5,
           "piece and depth as they are asked for");
    request.piece = 1 << 20;
    tap_ok(gm_ring_plan_make(&request, &narrow, &plan, &need) == GM_EDEVICE && need.host > 5 << 20,
           "and never smaller ones in their place");
}

/* A budget that is exact to the byte. */
static void test_exact(void)
{
    job j = {.total = 1 << 26, .unit = 4096, .host = 500};
    gm_ring_request request = request_of(&j);
    int64_t usual = (8 << 20) + GM_ALLOC_OVERHEAD, least = 4096 + GM_ALLOC_OVERHEAD;
    gm_ring_budget budget = {.host = 500 + (1 << 16) + 4 * usual, .device = INT64_C(1) << 32, .threads = 4}, need;
    gm_ring_plan plan;
    request.readers = request.readers_least;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.slot == 8 << 20 && plan.depth == 4 &&
               plan.host_left == 0,
           "memory for four usual slots: four");
    budget.host -= 2 * usual + 1;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.slot == 4 << 20 && plan.depth == 3,
           "one byte less than two: half the size, as many as fit");
    budget.host = 1000;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_EDEVICE &&
               need.host == 500 + (1 << 16) + 2 * least && need.device == budget.device,
           "a refusal names two least slots and the other memory");
    budget.host = need.host - 1;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_EDEVICE, "one byte less is refused");
    j.total = 0;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.depth == 1, "no piece: one slot");
}

/* Readers take an eighth of the host memory at most, and their least where the ring needs the rest. */
static void test_readers_memory(void)
{
    job j = {.total = 1 << 26, .unit = 4096};
    gm_ring_request request = request_of(&j);
    gm_ring_budget budget = {.host = INT64_C(1) << 30, .device = INT64_C(1) << 30, .threads = 4}, need;
    gm_ring_plan plan;
    request.readers = INT64_C(1) << 30;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.reader_bytes == 1 << 27,
           "readers: an eighth of the host memory at most");
    budget.host = (1 << 16) + 2 * (4096 + GM_ALLOC_OVERHEAD);
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.reader_bytes == 1 << 16 &&
               plan.host_left == 0,
           "readers: their least where there is too little memory");
}

static void test_changes(void)
{
    job j = {.total = 1 << 26, .unit = 4096};
    gm_ring_budget budget = {.host = 64 << 20, .device = 64 << 20, .unified = 1, .threads = 4}, need;
    gm_ring_request request = request_of(&j);
    gm_ring_plan plan;
    int good = gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK;
    int64_t left = plan.host_left, host = plan.host_bytes;
    good &= gm_ring_plan_add(&plan, &budget, 0, left) && plan.host_left == 0 && plan.host_bytes == host + left;
    good &= !gm_ring_plan_add(&plan, &budget, 1, 0) && plan.host_bytes == host + left;
    tap_ok(good, "bytes are added up to the budget and not beyond");
    gm_ring_cost cost = {.slot = plan.slot, .device = 1 << 20};
    good = gm_ring_plan_recost(&plan, &budget, &cost) && plan.device_bytes == 1 << 20;
    cost.device = 64 << 20;
    tap_ok(good && !gm_ring_plan_recost(&plan, &budget, &cost), "another cost, with as many slots");
}

static void test_readers(void)
{
    tap_ok(gm_ring_readers(0, 0, 4) == 1 && gm_ring_readers(INT64_C(1) << 40, 3, 8) == 3 &&
               gm_ring_readers(INT64_C(1) << 40, 1000, 8) == 8 && gm_ring_readers(4 << 20, 1000, 8) == 2 &&
               gm_ring_readers(INT64_C(1) << 40, 1, 8) == 1,
           "readers of a piece: no more than threads, units, and shares that are worth a thread");
}

/* With buffers a slot has little host memory. */
static void test_buffers(void)
{
    job j = {.total = 1 << 26, .unit = 4096};
    gm_ring_request request = request_of(&j);
    gm_ring_budget budget = {.host = 1 << 30, .device = INT64_C(1) << 32, .threads = 4, .buffer = 1 << 20}, need;
    gm_ring_plan plan;
    request.buffers = 1;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.buffer == 1 << 20 &&
               plan.slot == 8 << 20 && plan.out == 1 << 20 && plan.host_bytes < 18 << 20,
           "buffers as asked for: slots of the usual size take little of the host's memory");
    j.copied = 1;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.buffer == 1 << 20 &&
               plan.slot == 8 << 20 && plan.out == 0 && plan.host_bytes < 10 << 20,
           "and none where threads copy all that comes back");
    j.copied = 0;
    budget.host = 16 << 20;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.buffer == 512 << 10 &&
               plan.slot == 8 << 20,
           "smaller ones where they would take more than a quarter");
    budget.host = 1 << 20;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.buffer == 0 && plan.slot < 8 << 20,
           "none where they would be too small");
    budget.host = 1 << 30;
    budget.unified = 1;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.buffer == 0,
           "none where the device addresses host memory");
    budget.unified = request.buffers = 0;
    tap_ok(gm_ring_plan_make(&request, &budget, &plan, &need) == GM_OK && plan.buffer == 0,
           "none where the job has no use for them");
}

int main(void)
{
    test_budgets(0);
    test_budgets(1 << 20);
    test_choice();
    test_exact();
    test_readers_memory();
    test_changes();
    test_readers();
    test_buffers();
    return tap_done();
}
