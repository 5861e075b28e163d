/* The seconds of work by the rates, and which rank is the busiest. */
#include "src/rates/work.h"
#include "tests/tap.h"

#include <math.h>
#include <string.h>

static const gm_device_info device = {.fp32_limit = 60e12, .fp64_limit = 30e12, .memory_limit = 1e12};

static gm_rates rates_of(int unified, int ranks, int hosts, int sharers)
{
    gm_rates_setting setting = {
        .device = &device, .unified = unified, .threads = 4, .ranks = ranks, .hosts = hosts, .sharers = sharers};
    gm_rates rates;
    gm_rates_default(&setting, &rates);
    return rates;
}

static int about(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* Of four ranks of a host with a GPU each. */
static double read_rate_of_four(const gm_rates *r)
{
    double sum = r->read_rank;
    for (int rank = 1; rank < 4; rank++)
        sum += (r->read_host - sum) / 2;
    return sum / 4;
}

static void test_rates(void)
{
    gm_rates gpu = rates_of(0, 4, 1, 1), cpu = rates_of(1, 4, 1, 1), bare;
    int good = 1;
    for (int p = 0; p < GM_PRECISIONS; p++)
        good &= gpu.flop[p] > 1e12 && cpu.flop[p] > 1e9 && cpu.flop[p] < 1e12;
    tap_ok(good, "every precision has a rate");
    tap_ok(gpu.flop[GM_PRECISION_FP32] < device.fp32_limit && gpu.flop[GM_PRECISION_FP64] < device.fp64_limit &&
               gpu.flop[GM_PRECISION_EXACT] < device.fp64_limit,
           "below the limit of the units that compute it");
    gm_rates_setting setting = {
        .device = &(const gm_device_info){.kind = "cuda"}, .ranks = 1, .hosts = 1, .sharers = 1};
    gm_rates_default(&setting, &bare);
    tap_ok(bare.flop[GM_PRECISION_FP32] > 1e12 && bare.memory > 1e12, "a device that tells no limits has rates too");
    double open_s = bare.open_s;
    setting.source_files = 1000;
    gm_rates_default(&setting, &bare);
    tap_ok(bare.open_s > open_s + 0.1 && bare.open_s < open_s + 1,
           "1000 files of a virtual input take %g s to describe", bare.open_s - open_s);
}

static void test_contention(void)
{
    static const struct {
        int ranks, hosts, sharers, working, on_host, on_device;
    } cases[] = {{1, 1, 1, 1, 1, 1}, {4, 1, 1, 4, 4, 1}, {4, 1, 1, 2, 2, 1}, {8, 2, 1, 8, 4, 1}, {8, 2, 1, 3, 3, 1},
                 {4, 1, 4, 4, 4, 4}, {4, 1, 2, 4, 4, 2}, {4, 1, 2, 2, 2, 1}, {6, 2, 1, 0, 1, 1}, {3, 1, 3, 2, 2, 2},
                 {5, 2, 1, 5, 3, 1}, {1, 1, 0, 1, 1, 1}, {16, 4, 2, 5, 4, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm_rates rates = {.ranks = cases[i].ranks, .hosts = cases[i].hosts, .sharers = cases[i].sharers};
        gm_contention contention = gm_rates_contention(&rates, cases[i].working);
        tap_ok(contention.on_host == cases[i].on_host && contention.on_device == cases[i].on_device,
               "%d of %d ranks on %d hosts, %d a device: %d share a host, %d a device", cases[i].working,
               cases[i].ranks, cases[i].hosts, cases[i].sharers, contention.on_host, contention.on_device);
    }
}

static void test_seconds(void)
{
    gm_rates gpu = rates_of(0, 4, 1, 1), cpu = rates_of(1, 4, 1, 1);
    gm_work work = {.read = 100e9, .to_device = 100e9, .times = 1};
    gm_contention one = {1, 1, 1}, four = {4, 1, 4};
    gm_work_times times = {0};
    double read = 100e9 / gpu.read_rank, copy = 100e9 / gpu.to_device;
    tap_ok(about(gm_work_seconds(&work, &gpu, one, &times), fmax(read, copy) + 0.1 * fmin(read, copy)) &&
               about(times.phases.seconds[GM_PHASE_READ], read) &&
               about(times.phases.seconds[GM_PHASE_TO_DEVICE], copy),
           "a GPU: the longer of two stages and a tenth of the other");
    tap_ok(about(gm_work_seconds(&work, &cpu, one, NULL), 100e9 / cpu.read_rank + 100e9 / cpu.to_device),
           "a processor: both");
    work.to_device = 0;
    tap_ok(about(gm_work_seconds(&work, &gpu, four, NULL), 100e9 / read_rate_of_four(&gpu)) &&
               about(gm_work_seconds(&work, &cpu, four, NULL), 100e9 / (cpu.read_host / 4)),
           "ranks share their host's storage, and each one adds half of what those before leave of it");
    int same = 1;
    for (int ranks = 1; ranks <= 64; ranks++) {
        const double alone = 10e9, together = ranks == 1 ? alone : 15e9;
        gm_rates measured = gpu;
        measured.read_rank = alone;
        measured.read_host = gm_work_read_host(alone, together, ranks);
        double seconds = gm_work_seconds(&work, &measured, (gm_contention){ranks, 1, ranks}, NULL);
        same &= about(seconds, 100e9 / fmin(alone, together / ranks));
    }
    tap_ok(same, "1 to 64 ranks that were measured read as they did then");
    gm_rates disk = gpu;
    disk.read_rank = disk.read_host = 1e9;
    tap_ok(about(gm_work_seconds(&work, &disk, one, NULL), 100) &&
               about(gm_work_seconds(&work, &disk, four, NULL), 400),
           "a disk that one rank uses in full");
    work = (gm_work){.read = 1e9, .write = 2e9, .times = 1};
    tap_ok(about(gm_work_seconds(&work, &gpu, one, NULL), 1e9 / gpu.read_rank + 2e9 / gpu.write_rank),
           "the same threads read and write");
    work = (gm_work){.received = 1e9, .sent = 0.5e9, .exchange = 1e9, .wait_s = 2, .times = 1};
    tap_ok(about(gm_work_seconds(&work, &gpu, four, NULL), 3), "the exchange, both ways at once, comes after the rest");
    work = (gm_work){.memory = 1e12, .times = 1};
    tap_ok(about(gm_work_seconds(&work, &gpu, (gm_contention){2, 2, 4}, NULL), 2e12 / gpu.memory),
           "ranks share a device");
    work = (gm_work){.write = 1e9, .first_read = 0, .last_out = 1e9, .times = 1};
    tap_ok(gm_work_seconds(&work, &gpu, one, NULL) > 1.9e9 / gpu.write_rank,
           "the last piece leaves when all is computed");
}

/* Calls for short runs: the threads of a rank read them side by side, and write those of parts; into one file all ranks
 * of a host write in turn. */
static void test_calls(void)
{
    gm_rates_setting setting = {.device = &device, .threads = 4, .ranks = 4, .hosts = 1, .sharers = 1};
    gm_rates single, parts;
    gm_rates_default(&setting, &single);
    setting.parts = 1;
    gm_rates_default(&setting, &parts);
    gm_contention one = {1, 1, 1}, four = {4, 1, 4};
    const double call = 1 / single.writes_rank, calls = 1e6;
    tap_ok(call > 1e-7 && call < 2e-6, "a call takes %g us", call * 1e6);
    gm_work reads = {.read = 1e9, .reads = calls, .times = 1}, writes = {.write = 1e9, .writes = calls, .times = 1};
    tap_ok(about(gm_work_seconds(&reads, &single, one, NULL), 1e9 / single.read_rank + calls * call / 4),
           "four threads read runs at the same time");
    tap_ok(about(gm_work_seconds(&reads, &single, four, NULL), 1e9 / read_rate_of_four(&single) + calls * call / 4),
           "and those of other ranks as well");
    gm_work_times times = {0};
    tap_ok(about(gm_work_seconds(&writes, &single, one, &times), 1e9 / single.write_rank + calls * call) &&
               about(times.phases.seconds[GM_PHASE_WRITE], 1e9 / single.write_rank + calls * call) &&
               about(times.resource[GM_RESOURCE_STORAGE], times.phases.seconds[GM_PHASE_WRITE]),
           "one thread at a time writes a file");
    tap_ok(about(gm_work_seconds(&writes, &single, four, NULL), 1e9 / (single.write_host / 4) + 4 * calls * call),
           "of all ranks");
    tap_ok(about(gm_work_seconds(&writes, &parts, four, NULL), 1e9 / (parts.write_host / 4) + calls * call / 4),
           "parts are written side by side");
    setting.threads = 0;
    gm_rates_default(&setting, &parts);
    tap_ok(isfinite(gm_work_seconds(&writes, &parts, one, NULL)), "a rank without I/O threads does it itself");
}

/* Strips of rows take longer than whole rows; where the processor computes, no difference is known. */
static void test_strips(void)
{
    gm_rates_setting setting = {.device = &device, .threads = 4, .ranks = 4, .hosts = 1, .sharers = 1};
    gm_rates gpu, cpu;
    gm_rates_default(&setting, &gpu);
    setting.unified = 1;
    gm_rates_default(&setting, &cpu);
    gm_contention four = {4, 1, 4};
    gm_work whole = {.read = 1e9, .write = 1e9, .times = 1}, strips = whole;
    strips.read_strips = strips.write_strips = 1e9;
    double more = 4 * (1e9 / gpu.read_strips + 1e9 / gpu.write_strips);
    tap_ok(about(gm_work_seconds(&strips, &gpu, four, NULL), gm_work_seconds(&whole, &gpu, four, NULL) + more) &&
               more > 1e-4,
           "strips take %g ms longer", 1e3 * more);
    tap_ok(about(gm_work_seconds(&strips, &cpu, four, NULL), gm_work_seconds(&whole, &cpu, four, NULL)),
           "on the processor they do not");
}

/* Rank 2 has twice the work of rank 0, the others none; a pass that is made three times. */
static int work_of(const void *context, int rank, gm_work *passes)
{
    (void)context;
    if (rank % 2)
        return 0;
    passes[0] = (gm_work){.read = 1e9 * (rank + 1), .times = 1};
    passes[1] = (gm_work){.write = 1e9 * (rank + 1), .writes = rank + 1, .times = 3};
    passes[2] = (gm_work){.read = 1e30, .times = 0};
    return 3;
}

/* A pass that reads, as often as the context says; then two that write. */
static int writes_later(const void *context, int rank, gm_work *passes)
{
    (void)rank;
    passes[0] = (gm_work){.read = 50e9, .times = *(const int *)context};
    passes[1] = passes[2] = (gm_work){.write = 40e9, .times = 1};
    return 3;
}

/* Memory of parts is allocated until the first write. */
static void test_ahead(void)
{
    gm_rates_setting setting = {
        .device = &device, .threads = 15, .ranks = 1, .hosts = 1, .sharers = 1, .parts = 1, .writes = 1};
    gm_rates rates, without;
    gm_expectation e;
    gm_rates_default(&setting, &rates);
    setting.parts = 0;
    gm_rates_default(&setting, &without);
    tap_ok(rates.ahead_rank > 0 && without.ahead_rank == 0 && rates_of(1, 1, 1, 1).ahead_rank == 0,
           "parts are allocated ahead, one file is not, nor where the processor computes");
    double copy = 1 / fmax(rates.read_rank, rates.write_rank), write = 40e9 / rates.write_rank;
    for (int times = 0; times < 6; times++) {
        double there = fmin(40e9, times * 50e9 / rates.read_rank * rates.ahead_rank);
        gm_work_expect(&rates, writes_later, &times, &e);
        tap_ok(about(e.times.phases.seconds[GM_PHASE_WRITE], 2 * write - there * (1 / rates.write_rank - copy)),
               "%.1f of 40 GB are there before they are written, and none of those written later", there / 1e9);
    }
}

static int no_work(const void *context, int rank, gm_work *passes)
{
    (void)context;
    (void)rank;
    passes[0] = (gm_work){.times = 1};
    return 1;
}

static void test_expectation(void)
{
    gm_rates rates = rates_of(0, 4, 1, 1);
    gm_expectation e;
    gm_work_expect(&rates, work_of, NULL, &e);
    tap_ok(e.working == 2 && e.busiest == 2 && e.rank.read == 3e9 && e.rank.write == 9e9 && e.all.read == 4e9 &&
               e.all.write == 12e9 && e.rank.writes == 9 && e.all.writes == 12 && e.all.reads == 0,
           "the busiest of two ranks, and the bytes of both");
    double read = 3e9 / ((rates.read_rank + rates.read_host) / 4),
           write = 9e9 / (rates.write_host / 2) + 9 / (rates.writes_host / 2);
    tap_ok(about(e.times.phases.seconds[GM_PHASE_READ], read) && about(e.times.phases.seconds[GM_PHASE_WRITE], write) &&
               about(e.seconds, read + write + e.times.phases.seconds[GM_PHASE_OPEN]),
           "passes follow each other, and begin when all is open");
    gm_work_expect(&rates, no_work, NULL, &e);
    tap_ok(e.working == 0 && e.busiest == 0 && e.seconds > 0 && e.all.read == 0, "no work takes the time to open");
}

int main(void)
{
    test_rates();
    test_ahead();
    test_contention();
    test_seconds();
    test_calls();
    test_strips();
    test_expectation();
    return tap_done();
}
