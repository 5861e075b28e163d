/* A machine that is only described: its words, its rates, and the plans and limits that follow from them. */
#include "src/rates/model.h"
#include "src/matmul/cost.h"
#include "src/rates/work.h"
#include "tests/src/matmul/float32.h"
#include "tests/tap.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const int64_t giga = INT64_C(1) << 30;

static gm_model model_of(const char *text)
{
    gm_model model;
    if (gm_model_parse(text, &model))
        tap_ok(0, "'%s' is a model", text);
    return model;
}

static int is(const gm_model *a, const gm_model *b)
{
    return a->nodes == b->nodes && a->gpus == b->gpus && a->gpu == b->gpu && a->link == b->link && a->net == b->net &&
           a->storage == b->storage && a->node_storage == b->node_storage && a->memory == b->memory;
}

static void test_good(void)
{
    const int64_t memory = 512 * giga;
    const struct {
        const char *text;
        gm_model model;
    } cases[] = {
        {"nodes=8", {.nodes = 8, .gpus = 1, .memory = memory}},
        {"nodes=8,gpus=4,net=50G,storage=100G",
         {.nodes = 8, .gpus = 4, .net = 50 * giga, .storage = 100 * giga, .memory = memory}},
        {"storage=1.5G,nodes=2", {.nodes = 2, .gpus = 1, .storage = 3 * giga / 2, .memory = memory}},
        {"net=50e9", {.nodes = 1, .gpus = 1, .net = INT64_C(50000000000), .memory = memory}},
        {"gpu=h100", {.nodes = 1, .gpus = 1, .gpu = 1, .memory = memory}},
        {"gpu=h200,gpus=2", {.nodes = 1, .gpus = 2, .memory = memory}},
        {"link=300G,node_storage=10GiB,memory=1T",
         {.nodes = 1, .gpus = 1, .link = 300 * giga, .node_storage = 10 * giga, .memory = 1024 * giga}},
        {"nodes=16384", {.nodes = 16384, .gpus = 1, .memory = memory}},
        {"nodes=1024,gpus=16", {.nodes = 1024, .gpus = 16, .memory = memory}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm_model found = model_of(cases[i].text);
        tap_ok(is(&found, &cases[i].model), "'%s'", cases[i].text);
    }
}

static void test_bad(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "KEY=VALUE"},
        {"nodes", "'nodes', expected KEY=VALUE"},
        {"node=3", "'node=3', expected KEY=VALUE, with one of the keys nodes, gpus, gpu, link"},
        {"nodess=3", "'nodess=3'"},
        {"=3", "'=3'"},
        {"nodes=8,", "'', expected"},
        {",nodes=8", "'', expected"},
        {"nodes=8 gpus=4", "'nodes=8 gpus=4', expected an integer"},
        {"nodes=8;gpus=4", "an integer from 1 to 16384"},
        {"nodes=", "an integer from 1"},
        {"nodes=0", "an integer from 1"},
        {"nodes=-1", "an integer from 1"},
        {"nodes=1.5", "an integer from 1"},
        {"nodes=4K", "an integer from 1"},
        {"nodes=16385", "an integer from 1 to 16384"},
        {"nodes=99999999999999999999", "an integer from 1"},
        {"nodes=16384,gpus=2", "32768 ranks, expected at most 16384"},
        {"nodes=2,nodes=2", "nodes is given twice"},
        {"net=1G,gpus=2,net=2G", "net is given twice"},
        {"net=0", "a size such as"},
        {"net=fast", "a size such as"},
        {"net=9223372036854775807", "of at most 4194304T"},
        {"storage=-1G", "a size such as"},
        {"storage=100G/s", "a size such as"},
        {"memory=", "a size such as"},
        {"gpu=b300", "'gpu=b300', expected h200, h100 or a100"},
        {"gpu=H200", "h200, h100 or a100"},
        {"gpu=", "h200, h100 or a100"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm_model model;
        gm_error error;
        int status = gm_model_parse(cases[i].text, &model);
        gm_error_get(&error);
        tap_ok(status == GM_EUSAGE && strstr(error.text, cases[i].message), "'%s': %s", cases[i].text, error.text);
        gm_error_clear();
    }
    char text[4096];
    gm_model model;
    memset(text, 'n', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    tap_ok(gm_model_parse(text, &model) == GM_EUSAGE, "a word of 4095 letters");
    memset(text, '0', sizeof text - 1);
    memcpy(text, "net=1.", strlen("net=1."));
    text[sizeof text - 2] = 'G';
    tap_ok(gm_model_parse(text, &model) == GM_EUSAGE, "a number of 4090 digits, whose unit is not cut off");
    gm_error_clear();
}

static gm_rates rates_of(const char *text)
{
    gm_model model = model_of(text);
    gm_rates_setting setting = {.device = gm_model_device(&model),
                                .threads = gm_model_threads(),
                                .ranks = (int)(model.nodes * model.gpus),
                                .hosts = (int)model.nodes,
                                .sharers = 1,
                                .parts = 1};
    gm_rates rates;
    gm_rates_default(&setting, &rates);
    gm_model_set_rates(&model, &rates);
    return rates;
}

static void test_rates(void)
{
    static const gm_device_info h200 = {.fp32_limit = 66.9e12, .fp64_limit = 66.9e12, .memory_limit = 4814e9};
    gm_rates_setting setting = {.device = &h200, .threads = 15, .ranks = 1, .hosts = 1, .sharers = 1, .parts = 1};
    gm_rates plain, one = rates_of("nodes=1"), r = rates_of("nodes=8,gpus=4,net=50G,link=300G,storage=100G");
    gm_rates_default(&setting, &plain);
    plain.modelled = 1;
    tap_ok(memcmp(&plain, &one, sizeof one) == 0, "a model that states nothing has the nominal rates");
    tap_ok(r.ranks == 32 && r.hosts == 8 && gm_rates_host_ranks(&r) == 4, "ranks of the model");
    tap_ok(r.exchange_far == 12.5 * (double)giga && r.exchange_near == 300.0 * (double)giga,
           "four ranks share the network of their node");
    tap_ok(r.storage == 100.0 * (double)giga && r.read_host == plain.read_host,
           "storage of all nodes leaves what a node takes");
    r = rates_of("node_storage=10G");
    tap_ok(r.read_host == 10.0 * (double)giga && r.read_rank == r.read_host && r.write_host == r.read_host &&
               r.write_rank == r.read_host && isinf(r.storage),
           "storage of a node");
    tap_ok(plain.ahead_rank > 0 && r.ahead_rank == 0 && rates_of("storage=100G").ahead_rank == 0,
           "of which no memory is allocated ahead");
    r = rates_of("node_storage=1T");
    tap_ok(r.read_host == plain.read_host, "which gives no more than its host takes");
    tap_ok(rates_of("gpu=h100").memory < one.memory && rates_of("gpu=a100").flop[GM_PRECISION_FP32] < 20e12 &&
               rates_of("gpu=a100").to_device < one.to_device,
           "kinds of GPU differ");
    tap_ok(rates_of("nodes=1024,gpus=4").open_s == rates_of("gpus=4").open_s, "nodes open side by side");
}

/* --- The limit of a run --- */

static int same_work(const void *context, int rank, gm_work *passes)
{
    (void)rank;
    passes[0] = *(const gm_work *)context;
    return 1;
}

static int about(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* Counted by hand: one stage alone, on four ranks of two nodes; bytes of a rank. */
static void test_limits(void)
{
    const double g = (double)giga;
    const struct {
        const char *title, *model;
        gm_resource part;
        double seconds; /* without the start */
        gm_work work;
    } cases[] = {
        {"storage of all, read", "storage=1G", GM_RESOURCE_STORAGE, 4, {.read = g, .times = 1}},
        {"storage of all, read and written", "storage=1G", GM_RESOURCE_STORAGE, 8, {.read = g, .write = g, .times = 1}},
        {"storage of a node", "node_storage=1G", GM_RESOURCE_STORAGE, 2, {.read = g, .times = 1}},
        {"what a rank takes", "storage=1T", GM_RESOURCE_STORAGE, 2, {.read = 83e9, .times = 1}},
        {"link to the device", "storage=1T", GM_RESOURCE_LINK, 2, {.to_device = 110e9, .times = 1}},
        {"link from the device", "gpu=a100", GM_RESOURCE_LINK, 4, {.from_device = 110e9, .times = 1}},
        {"kernels", "storage=1G", GM_RESOURCE_KERNELS, 3, {.flop_s = 3, .times = 1}},
        {"network", "net=2G", GM_RESOURCE_NETWORK, 2, {.received = 2 * g, .exchange = g, .times = 1}},
        {"a wait for others", "net=2G", GM_RESOURCE_NETWORK, 5, {.wait_s = 5, .times = 1}},
        {"the ring", "net=2G", GM_RESOURCE_RING, 5, {.pieces = 1e5, .read = 1, .times = 1}},
        {"the start", "storage=1G", GM_RESOURCE_START, 0, {.read = 1, .times = 1}},
        {"two passes", "storage=1G", GM_RESOURCE_STORAGE, 8, {.read = g, .times = 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        gm_expectation e;
        snprintf(text, sizeof text, "nodes=2,gpus=2,%s", cases[i].model);
        gm_rates rates = rates_of(text);
        gm_work_expect(&rates, same_work, &cases[i].work, &e);
        double start = e.times.resource[GM_RESOURCE_START], seconds = e.seconds - start;
        tap_ok(e.limit == cases[i].part && fabs(seconds - cases[i].seconds) < 1e-6,
               "%s: %s, %.9g s, expected %s, %.9g s", cases[i].title, gm_resource_name(e.limit), seconds,
               gm_resource_name(cases[i].part), cases[i].seconds);
    }
    gm_rates rates = rates_of("nodes=2,gpus=2");
    tap_ok(about(gm_work_start_seconds(&rates, 4), 0.006 + 2 * 0.003), "the start, of two ranks a node");
}

/* --- Products --- */

static gm_matmul_plan plan_of(int64_t m, int64_t n, int64_t k, const gm_rates *rates)
{
    gm_ring_budget budget = {.host = 64 * giga, .device = 120 * giga, .threads = 15, .buffer = 1 << 20}, need;
    gm_ring_request request = {.buffers = 1};
    gm_matmul_plan plan;
    gm_matmul_problem p = float32_problem_of_h200(m, n, k, rates);
    if (gm_matmul_plan_make(&p, &budget, &request, &plan, &need))
        tap_ok(0, "a plan is made");
    return plan;
}

static gm_expectation product_of(const int64_t *shape, const char *text)
{
    gm_rates rates = rates_of(text);
    gm_matmul_plan plan = plan_of(shape[0], shape[1], shape[2], &rates);
    gm_expectation e;
    gm_work_expect(&rates, gm_matmul_cost_work, &plan, &e);
    return e;
}

static const int64_t square[] = {65536, 65536, 65536}, large[] = {262144, 262144, 262144},
                     deep[] = {4096, 4096, 1 << 20}, small[] = {256, 256, 256};

static void test_products(void)
{
    const struct {
        const char *text;
        const int64_t *shape;
        gm_resource part;
    } cases[] = {{"nodes=1", square, GM_RESOURCE_KERNELS},
                 {"nodes=4,gpus=4,storage=1T,net=100G,link=300G", square, GM_RESOURCE_KERNELS},
                 {"nodes=4,gpus=4,storage=1G,net=100G,link=300G", square, GM_RESOURCE_STORAGE},
                 {"nodes=4,gpus=4,node_storage=1G,net=100G,link=300G", square, GM_RESOURCE_STORAGE},
                 {"nodes=1024,gpus=4,net=50G,link=2G,storage=100G", large, GM_RESOURCE_NETWORK},
                 {"nodes=1,node_storage=20G", deep, GM_RESOURCE_STORAGE},
                 {"nodes=64,gpus=4", small, GM_RESOURCE_START}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm_expectation e = product_of(cases[i].shape, cases[i].text);
        tap_ok(e.limit == cases[i].part, "%lld x %lld x %lld, %s: limited by %s, expected %s, %.3g s",
               (long long)cases[i].shape[0], (long long)cases[i].shape[1], (long long)cases[i].shape[2], cases[i].text,
               gm_resource_name(e.limit), gm_resource_name(cases[i].part), e.seconds);
    }
}

/* More of anything is never slower. */
static void test_monotone(void)
{
    static const char *const keys[] = {"net", "link", "storage", "node_storage"};
    static const int64_t *const shapes[] = {square, deep, small};
    int good = 1, better = 0, steps = 0;
    for (size_t key = 0; key < sizeof keys / sizeof *keys; key++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            double before = INFINITY;
            for (int m = 64; m <= 4 << 20; m *= 4, steps++) {
                char text[96];
                snprintf(text, sizeof text, "nodes=4,gpus=4,%s%s=%dM", strcmp(keys[key], "net") ? "" : "link=1T,",
                         keys[key], m);
                double seconds = product_of(shapes[s], text).seconds;
                if (seconds > before * 1.02)
                    tap_diag("%s: %g s, %g s with less", text, seconds, before);
                good &= seconds <= before * 1.02; /* grids are chosen by estimated blocks */
                better += seconds < before * 0.9;
                before = seconds;
            }
        }
    tap_ok(good && better > 10, "%d steps up: never slower, %d of them faster", steps, better);
}

/* The grid of many ranks is found while one waits for it. */
static void test_search(void)
{
    static const struct {
        int nodes;
        double most;
    } cases[] = {{1024, 1}, {4096, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[96];
        snprintf(text, sizeof text, "nodes=%d,gpus=4,net=50G,link=300G", cases[i].nodes);
        gm_rates rates = rates_of(text);
        double start = gm_clock();
        gm_matmul_plan plan = plan_of(1 << 20, 1 << 20, 1 << 20, &rates);
        double seconds = gm_clock() - start;
        tap_ok(seconds < cases[i].most, "%d ranks: %lldx%lldx%lld in %.3f s, expected less than %g s", rates.ranks,
               (long long)plan.grid[0], (long long)plan.grid[1], (long long)plan.grid[2], seconds, cases[i].most);
    }
}

static void test_single(void)
{
    gm_model model = model_of("nodes=9,gpus=3,gpu=h100,net=1G,storage=2G"), one = gm_model_single(&model);
    gm_model wanted = model_of("gpu=h100,net=1G,storage=2G");
    tap_ok(is(&one, &wanted), "one GPU of a model has its network and storage alone");
    double by_model = product_of(square, "nodes=1").seconds;
    gm_rates rates = rates_of("nodes=1");
    rates.modelled = 0;
    gm_matmul_plan plan = plan_of(square[0], square[1], square[2], &rates);
    gm_expectation e;
    gm_work_expect(&rates, gm_matmul_cost_work, &plan, &e);
    tap_ok(by_model == e.seconds, "a node of one GPU takes what that GPU takes by the same rates");
}

int main(void)
{
    test_good();
    test_bad();
    test_rates();
    test_limits();
    test_products();
    test_monotone();
    test_search();
    test_single();
    return tap_done();
}
