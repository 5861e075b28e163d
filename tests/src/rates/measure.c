/* A measurement of rates on several ranks: the same figures everywhere; what cannot be measured stays, without an
 * error. */
#include "src/rates/measure.h"
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/tap.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/describe/describe.h"
#include "kernels/kernels.h"
#include "tests/src/slow_device.h"

#include <string.h>
#include <unistd.h>

static gm_ranks ranks;
static gm_device *device;

static gm_rates nominal(int unified)
{
    static const gm_device_info device;
    gm_rates_setting setting = {
        .device = &device, .unified = unified, .threads = 2, .ranks = ranks.size, .hosts = 1, .sharers = 1};
    gm_rates rates;
    gm_rates_default(&setting, &rates);
    return rates;
}

/* The rates of rank 0 are those of all ranks. */
static int same_on_all_ranks(const gm_rates *rates)
{
    gm_rates first = *rates;
    int64_t same = !gm_broadcast_all(&first, sizeof first) && first.read_rank == rates->read_rank &&
                   first.read_host == rates->read_host && first.exchange_near == rates->exchange_near &&
                   first.reads_measured == rates->reads_measured;
    return !gm_min_all(&same) && same;
}

static int no_error(void)
{
    gm_error error;
    gm_error_get(&error);
    return error.code == GM_OK;
}

static void test_measured(const gm_dataset *input)
{
    gm_rates_sample sample = {
        .ranks = &ranks, .ops = &gm_device_cpu, .device = device, .input = input, .threads = 2, .seconds = 0.03};
    gm_rates rates = nominal(1), gpu = nominal(0);
    double from = gm_clock();
    int status = gm_rates_measure_all(&sample, &rates);
    tap_ok(status == GM_OK && rates.reads_measured && rates.exchanges_measured && same_on_all_ranks(&rates),
           "reading and the exchange are measured, the same on all ranks, in %.3f s", gm_clock() - from);
    tap_ok(rates.read_rank > 1e6 && rates.read_host >= rates.read_rank && rates.exchange_near > 1e6,
           "they are rates: %.3g, %.3g and %.3g byte/s", rates.read_rank, rates.read_host, rates.exchange_near);
    sample.ops = slow_device_ops(&gm_device_cpu);
    status = gm_rates_measure_all(&sample, &gpu);
    tap_ok(status == GM_OK && gpu.exchanges_measured && gpu.read_rank <= nominal(0).read_rank &&
               gpu.read_host <= nominal(0).read_host && same_on_all_ranks(&gpu),
           "on a device of its own reading is never faster than the ring");
    tap_ok(gm_memory_used(GM_HOST) == 0 && gm_memory_used(GM_DEVICE) == 0, "no memory is left");
}

static void test_not_measured(const gm_dataset *input)
{
    gm_rates_sample sample = {.ranks = &ranks, .ops = &gm_device_cpu, .device = device, .threads = 2, .seconds = 0.03};
    gm_rates rates = nominal(1);
    tap_ok(gm_rates_measure_all(&sample, &rates) == GM_OK && !rates.reads_measured && rates.exchanges_measured,
           "without an input only the exchange is");
    gm_dataset broken = *input;
    if (ranks.rank == 1)
        strcpy(broken.data_file, "nofile.h5");
    sample.input = &broken;
    rates = nominal(1);
    int status = gm_rates_measure_all(&sample, &rates);
    tap_ok(status == GM_OK && !rates.reads_measured && rates.read_rank == nominal(1).read_rank &&
               same_on_all_ranks(&rates) && no_error(),
           "a file that one rank cannot open is not measured, and is no error");
    gm_memory_set_optional(ranks.rank == 1 ? 0 : INT64_MAX);
    sample.input = input;
    rates = nominal(1);
    status = gm_rates_measure_all(&sample, &rates);
    tap_ok(status == GM_OK && !rates.reads_measured && rates.exchange_near == nominal(1).exchange_near &&
               same_on_all_ranks(&rates) && no_error(),
           "nor anything where one rank has no memory for it");
    gm_memory_set_optional(INT64_MAX);
    gm_memory_set_cap(GM_DEVICE, ranks.rank == 1 ? 1 << 20 : INT64_MAX);
    rates = nominal(1);
    status = gm_rates_measure_all(&sample, &rates);
    tap_ok(status == GM_OK && rates.reads_measured && !rates.exchanges_measured &&
               rates.exchange_near == nominal(1).exchange_near && same_on_all_ranks(&rates) && no_error(),
           "nor the exchange where one rank has no memory on its device");
    gm_memory_set_cap(GM_DEVICE, INT64_MAX);
}

int main(void)
{
    static gm_dataset input;
    if (gm_ranks_start_all(&ranks))
        return 1;
    gm_log_setup(0, GM_QUIET);
    int status = folder_enter_all(&ranks);
    if (status)
        return 1;
    tap_ok(command_run_all(&ranks, NULL, "gen matrices m.h5 --size 2048 --no-sync --force") == GM_OK,
           "an input is made");
    if (ranks.rank == 0)
        status = gm_describe("m.h5:/A", NULL, &input);
    tap_ok(gm_agree_all(&ranks, status) == GM_OK && !gm_broadcast_all(&input, sizeof input) && input.direct,
           "and described");
    tap_ok(gm_device_cpu.open(0, 1, &device) == GM_OK, "a device is opened");
    test_measured(&input);
    test_not_measured(&input);
    tap_ok(folder_leave_all(&ranks, "m.h5"), "no other files are left");
    gm_device_cpu.close(device);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
