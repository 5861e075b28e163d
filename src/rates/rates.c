#include "src/rates/rates.h"

#include "base/size.h"
#include "kernels/matmul/calls.h"
#include "src/exchange/path.h"

#include <math.h>
#include <string.h>

/* The defaults of a kind of device. docs/performance.md, "Rates that plans expect", has the source of each. */
typedef struct defaults {
    double read_rank, read_host;
    double write_single, write_parts_rank, write_parts_host;
    double read_strips, write_strips; /* take so much longer than whole rows, bytes/s */
    double ahead_thread;              /* memory of parts that a thread allocates while others read */
    double to_device, from_device;
    double exchange_near, exchange_far, exchange_direct;
    double flop[GM_PRECISIONS]; /* own: part of the device's limit; unified: flop/s of a thread */
    double memory, verify;      /* own: part of the device's limit; unified: bytes/s of a thread */
    double piece_s;
    double open_s, open_rank_s; /* of a run, and more for each rank of a host: hosts open side by side */
    double rank_s;              /* for each that works */
    double output_s, several_s; /* of a run that writes; more where several ranks of a host do */
    double source_s;            /* for each file of a virtual dataset, which rank 0 describes */
    double exchange_s;          /* until the first exchange */
} defaults;

static const defaults of_own = {
    .read_rank = 56e9,
    .read_host = 110e9,
    .write_single = 6.7e9,
    .write_parts_rank = 30e9,
    .write_parts_host = 37e9,
    .read_strips = 240e9,
    .write_strips = 400e9,
    .ahead_thread = 4e9,
    .to_device = 55e9,
    .from_device = 55e9,
    .exchange_near = 12e9,
    .exchange_far = 2e9,
    .exchange_direct = 100e9,
    .flop = {[GM_PRECISION_FP64] = 0.82, [GM_PRECISION_FP32] = 0.75, [GM_PRECISION_EXACT] = 0.89},
    .memory = 0.88,
    .verify = 0.18,
    .piece_s = 50e-6,
    .open_s = 0.006,
    .rank_s = 0.003,
    .output_s = 0.03,
    .several_s = 0.008,
    .source_s = 0.0003,
    .exchange_s = 0.015};

static const defaults of_unified = {
    .read_rank = 22e9,
    .read_host = 37e9,
    .write_single = 3.4e9,
    .write_parts_rank = 2.5e9,
    .write_parts_host = 2.5e9,
    .read_strips = INFINITY,
    .write_strips = INFINITY,
    .to_device = 1.5e9,
    .from_device = INFINITY,
    .exchange_near = 2.5e9,
    .exchange_far = 2e9,
    .flop = {[GM_PRECISION_FP64] = 47e9, [GM_PRECISION_FP32] = 88e9, [GM_PRECISION_EXACT] = 47e9},
    .memory = 5e9,
    .verify = 2.2e9,
    .piece_s = 50e-6,
    .open_s = 0.003,
    .open_rank_s = 0.005,
    .rank_s = 0.002,
    .source_s = 0.0003};

/* Seconds of a thread for a call that reads or writes a run, beside those of the run's bytes. */
static const double call_s = 0.5e-6;

/* Limits of an H200, for a device that does not tell its own. */
static const double usual_flop = 66.9e12, usual_memory = 4814e9;

static double or_usual(double limit, double usual)
{
    return limit > 0 ? limit : usual;
}

/* flop/s of one of the device's units of arithmetic, of which `part` is the figure of a precision. A precision without
 * a figure counts as fp32. */
static double flop_of(const gm_rates_setting *s, const defaults *d, gm_precision precision)
{
    const gm_product_query query = {.precision = precision, .kernel = s->kernel, .capability = s->device->capability};
    const gm_product *product = s->ops ? gm_product_find(s->ops, s->handle, &query) : NULL;
    double part = product && product->speed > 0 ? product->speed
                  : d->flop[precision] > 0      ? d->flop[precision]
                                                : d->flop[GM_PRECISION_FP32];
    int wide = gm_precision_get(precision)->accumulator == GM_DTYPE_F64;
    if (s->unified)
        return part * s->threads;
    return part * or_usual(wide ? s->device->fp64_limit : s->device->fp32_limit, usual_flop);
}

static int may_be_direct(const char *path)
{
    return !path || strcmp(path, "auto") == 0 || strcmp(path, gm_path_ipc.name) == 0;
}

void gm_rates_default(const gm_rates_setting *s, gm_rates *rates)
{
    const defaults *d = s->unified ? &of_unified : &of_own;
    double calls = (double)gm_max(s->threads, 1) / call_s, in_turn = 1 / call_s; /* one file: one thread at a time */
    double memory = s->unified ? s->threads : or_usual(s->device->memory_limit, usual_memory);
    *rates = (gm_rates){.unified = s->unified,
                        .ranks = s->ranks,
                        .hosts = s->hosts,
                        .sharers = s->sharers,
                        .read_rank = d->read_rank,
                        .read_host = d->read_host,
                        .write_rank = s->parts ? d->write_parts_rank : d->write_single,
                        .write_host = s->parts ? d->write_parts_host : d->write_single,
                        .ahead_rank = s->parts ? d->ahead_thread * (s->threads / GM_ALLOCATOR_READERS) : 0,
                        .ahead_host = d->write_parts_host,
                        .read_strips = d->read_strips,
                        .write_strips = d->write_strips,
                        .reads_rank = calls,
                        .writes_rank = s->parts ? calls : in_turn,
                        .writes_host = s->parts ? INFINITY : in_turn,
                        .storage = INFINITY,
                        .to_device = d->to_device * (s->unified ? s->threads : 1),
                        .from_device = d->from_device,
                        .exchange_near = d->exchange_near,
                        .exchange_far = d->exchange_far,
                        .memory = d->memory * memory,
                        .verify = d->verify * memory,
                        .piece_s = d->piece_s,
                        .rank_s = d->rank_s,
                        .several_s = s->writes ? d->several_s : 0,
                        .exchange_s = d->exchange_s,
                        .exchange_direct = s->hosts == 1 && may_be_direct(s->path) ? d->exchange_direct : 0,
                        .direct_s = gm_path_ipc.start_s};
    rates->open_s = d->open_s + gm_rates_host_ranks(rates) * d->open_rank_s + (s->writes ? d->output_s : 0) +
                    (double)s->source_files * d->source_s;
    for (int p = 0; p < GM_PRECISIONS; p++)
        rates->flop[p] = flop_of(s, d, (gm_precision)p);
}

int gm_rates_host_ranks(const gm_rates *rates)
{
    return (int)gm_ceil_div(rates->ranks, gm_max(rates->hosts, 1));
}

gm_contention gm_rates_contention(const gm_rates *rates, int working)
{
    int host = gm_rates_host_ranks(rates), on_host = (int)gm_max(gm_min(working, host), 1);
    int devices = (int)gm_max(host / gm_max(rates->sharers, 1), 1);
    return (gm_contention){.on_host = on_host,
                           .on_device = (int)gm_ceil_div(on_host, devices),
                           .working = (int)gm_max(gm_min(working, rates->ranks), 1)};
}
