/* Random plans on a device that is as strict as a GPU, and has its products: shapes, types, grids, budgets. Each result
 * has the bits that the same device gives with room for all; those of other operations the bits of the processor.
 *
 * GPUMEM_TEST_RUNS: how many (20); GPUMEM_TEST_SEED: other ones. */
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 420, DEPTH = 3000, FRAMES = 24, HEIGHT = 70, WIDTH = 90, LINE = 1024 };

static gm_ranks ranks;
static uint64_t state;

/* The same on all ranks. */
static int64_t draw(int64_t most)
{
    return (int64_t)(gm_random_mix(state += GM_RANDOM_STEP) % (uint64_t)most);
}

#define PICK(list) (list)[draw((int64_t)(sizeof(list) / sizeof *(list)))]

/* --- The device --- */

static gm_device_ops gpu;
static int64_t device_memory, host_memory;
static int capability, multiprocessors;

static void use_gpu(gm_job *job)
{
    gpu = *slow_device_ops(job->ops);
    slow_device_imitate(&gpu);
    job->ops = &gpu;
    job->info.capability = capability;
    job->info.multiprocessors = multiprocessors;
    gm_memory_set_cap(GM_DEVICE, device_memory);
    gm_memory_set_cap(GM_HOST, host_memory);
}

static void choose_gpu(void)
{
    static const int capabilities[] = {90, 90, 90, 80, 86, 70}, processors[] = {132, 132, 7, 1};
    capability = PICK(capabilities);
    multiprocessors = PICK(processors);
}

/* --- Runs --- */

static int refused;

static int run_gpu(const char *words, const char *tight)
{
    return command_run_all(&ranks, use_gpu, "%s --device cpu -o f.h5 --force --no-sync %s", words, tight);
}

/* The memory that a refusal names, which is enough. */
static int takes_named(void)
{
    gm_error error;
    gm_error_get(&error);
    const char *at = strstr(error.text, "expected at least ");
    if (error.code != GM_EDEVICE || !at)
        return 0;
    for (const char *name = strstr(error.text, "-memory "); name && name < at; name = strstr(name + 1, "-memory ")) {
        int64_t *memory = name[-1] == 'e' ? &device_memory : &host_memory;
        const char *bytes = strstr(error.text, " bytes ");
        bytes = name > strstr(error.text, "-memory ") && bytes ? strstr(bytes + 1, " bytes ") : bytes;
        while (bytes && bytes > at && bytes[-1] >= '0' && bytes[-1] <= '9')
            bytes--;
        *memory = bytes ? atoll(bytes) : 0;
    }
    refused++;
    return 1;
}

/* A run with room for all, or on the processor, and one with the memory that is left to it. */
static int agree(const char *words, const char *tight, const char *dataset, int64_t memory, command_setup *first)
{
    gm_error error;
    device_memory = host_memory = INT64_C(512) << 20;
    int status = command_run_all(&ranks, first, "%s --device cpu -o e.h5 --force --no-sync", words);
    device_memory = memory;
    host_memory = draw(2) ? host_memory : (INT64_C(100) << 10) * (1 + draw(1 << draw(8)));
    if (!status)
        status = run_gpu(words, tight);
    gm_error_get(&error);
    if (status == GM_EUSAGE && strstr(error.text, "--panels exchange")) /* by this plan they cannot be */
        status = run_gpu(words, tight = "--panels read");
    if (status && takes_named())
        status = run_gpu(words, tight);
    if (!status)
        status = command_run_all(&ranks, NULL, "compare e.h5:%s f.h5:%s --device cpu", dataset, dataset);
    gm_error_get(&error);
    if (status)
        tap_diag("%s %s, memory %lld and %lld, capability %d, %d multiprocessors: status %d %s", words, tight,
                 (long long)device_memory, (long long)host_memory, capability, multiprocessors, status, error.text);
    gm_error_clear();
    return status == GM_OK;
}

static int64_t random_memory(void)
{
    return (INT64_C(200) << 10) * (1 + draw(1 << draw(8)));
}

static void add(char *line, const char *format, ...) GM_PRINTF(2, 3);
static void add(char *line, const char *format, ...)
{
    va_list arguments;
    size_t length = strlen(line);
    va_start(arguments, format);
    vsnprintf(line + length, LINE - length, format, arguments);
    va_end(arguments);
}

static void add_ring(char *line)
{
    static const char *const pieces[] = {"", " --piece 3000", " --piece 40000", " --piece 300K"};
    static const char *const depths[] = {"", "", " --depth 1", " --depth 2", " --depth 5"};
    static const char *const buffers[] = {" --buffer 0", " --buffer 64K", ""};
    add(line, "%s%s%s --threads %d", PICK(pieces), PICK(depths), PICK(buffers), 1 + (int)draw(3));
}

static void add_grid(char *line)
{
    int size = ranks.size, rows = 1 + (int)draw(size), cols = 1 + (int)draw(size / rows), layers = size / rows / cols;
    if (size > 1 && draw(3))
        add(line, " --grid %dx%dx%d%s", rows, cols, draw(2) ? layers : 1, draw(2) ? " --panels exchange" : "");
}

static int one_product(void)
{
    static const char *const precisions[] = {"fp32", "fp32", "fp64", "exact", "tf32", "fp16", "bf16"};
    static const char *const turns[] = {"", "a", "b", "ab"}, *const kernels[] = {"", "", "", " --kernel mma"};
    char words[LINE] = "", tight[LINE] = "";
    const char *turn = PICK(turns), *type = draw(4) ? "f4" : "f8", *precision = PICK(precisions);
    int64_t m = 1 + draw(draw(2) ? SIDE : 70), n = 1 + draw(draw(2) ? SIDE : 70), k = 1 + draw(draw(3) ? 700 : DEPTH);
    int is_whole = draw(6) == 0, a = strchr(turn, 'a') != NULL, b = strchr(turn, 'b') != NULL;
    choose_gpu();
    is_whole = is_whole && capability >= 80;
    if (is_whole)
        type = "i1", precision = "int8";
    else if (capability < 80)
        precision = "fp32";
    if (strcmp(precision, "exact") == 0)
        type = "f4";
    add(words, "matmul %s.h5:/%s[:%lld,:%lld] %s.h5:/%s[:%lld,:%lld] --precision %s", type, a ? "B" : "A",
        (long long)(a ? k : m), (long long)(a ? m : k), type, b ? "A" : "B", (long long)(b ? n : k),
        (long long)(b ? k : n), precision);
    if (turn[0])
        add(words, " --transpose %s", turn);
    if (capability >= 80 && !strstr("fp64 exact", precision))
        add(words, "%s", PICK(kernels));
    if (!is_whole && draw(4) == 0)
        add(words, " --beta 0.5 --alpha 2 --add c.h5:/A[:%lld,:%lld]", (long long)m, (long long)n);
    if (!is_whole && draw(4) == 0)
        add(words, " --type %s", draw(2) ? "f64" : "f32");
    if (draw(5) == 0)
        add(words, " --no-verify");
    add_ring(tight);
    add_grid(tight);
    return agree(words, tight, "C", random_memory(), use_gpu);
}

static int one_batch(void)
{
    static const char *const precisions[] = {"fp32", "fp64", "exact", "tf32", "fp16"};
    char words[LINE] = "", tight[LINE] = "";
    int64_t m = 1 + draw(HEIGHT), k = 1 + draw(WIDTH), n = 1 + draw(HEIGHT), frames = 1 + draw(FRAMES);
    int first = draw(4) == 0, second = draw(4) == 0 && !first;
    choose_gpu();
    capability = capability < 80 ? 80 : capability;
    add(words, "matmul --batch --transpose b --precision %s s.h5:/images[", PICK(precisions));
    add(words, first ? "0" : ":%lld", (long long)frames);
    add(words, ",:%lld,:%lld] s.h5:/images[", (long long)m, (long long)k);
    add(words, second ? "1" : ":%lld", (long long)frames);
    add(words, ",:%lld,:%lld]", (long long)n, (long long)k);
    add_ring(tight);
    return agree(words, tight, "C", random_memory(), use_gpu);
}

static int one_of_others(void)
{
    static const struct {
        const char *words, *dataset;
    } kinds[] = {
        {"normalize %s --per stack --method minmax", "images"},
        {"normalize %s --per frame --method zscore", "images"},
        {"normalize %s --per pixel --type f64", "images"},
        {"normalize %s --method percentile", "images"},
        {"normalize %s --per frame --method percentile", "images"},
        {"normalize %s --type u8 --per frame", "images"},
        {"flip %s --axis 0", "images"},
        {"flip %s --axis 2", "images"},
        {"transpose %s --axes 0,2", "images"},
        {"transpose %s --axes 1,2", "images"},
        {"transpose %s --axes 0,1", "images"},
        {"reduce %s --axis 0 --stat sum,var", "var"},
        {"reduce %s --axis frame --stat sum,argmax", "sum"},
        {"reduce %s --axis 2 --stat mean,min", "mean"},
        {"reduce %s --axis 1 --stat norm", "norm"},
    };
    static const char *const stacks[] = {"s", "t", "u"};
    char words[LINE] = "", tight[LINE] = "", in[LINE] = "";
    int i = (int)draw((int64_t)(sizeof kinds / sizeof *kinds));
    int64_t f = draw(5), y = draw(9), x = draw(9);
    add(in, "%s.h5:/images[%lld:%lld,%lld:%lld,%lld:%lld]", PICK(stacks), (long long)f,
        (long long)(f + 1 + draw(FRAMES - 5)), (long long)y, (long long)(y + 1 + draw(HEIGHT - 9)), (long long)x,
        (long long)(x + 1 + draw(WIDTH - 9)));
    const char *at = strstr(kinds[i].words, "%s");
    add(words, "%.*s%s%s", (int)(at - kinds[i].words), kinds[i].words, in, at + 2);
    add_ring(tight);
    return agree(words, tight, kinds[i].dataset, (INT64_C(20) << 10) * (1 + draw(1 << draw(8))), NULL);
}

static int make_inputs(void)
{
    static const char *const matrices[] = {"f4.h5", "f8.h5 --type f64", "c.h5 --seed 5 --big-endian",
                                           "i1.h5 --type i8 --distribution integers"};
    static const char *const stacks[] = {"s.h5", "t.h5 --type u16", "u.h5 --type f64 --big-endian --chunk 3,17,90"};
    int status = GM_OK;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices && !status; i++)
        status = command_run_all(&ranks, NULL,
                                 "gen matrices %s --rows %d --inner %d --columns %d --device cpu --no-sync",
                                 matrices[i], i == 2 ? SIDE : DEPTH, i == 2 ? SIDE : DEPTH, i == 2 ? SIDE : DEPTH);
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks && !status; i++)
        status = command_run_all(&ranks, NULL, "gen stack %s --frames %d --height %d --width %d --device cpu --no-sync",
                                 stacks[i], FRAMES, HEIGHT, WIDTH);
    return status;
}

static void run(const char *name, int (*one)(void), int count)
{
    int good = 0;
    refused = 0;
    for (int i = 0; i < count; i++)
        good += one();
    tap_ok(good == count, "%d of %d %s have the same bits; %d had to ask for memory", good, count, name, refused);
}

int main(void)
{
    const char *runs = getenv("GPUMEM_TEST_RUNS"), *seed = getenv("GPUMEM_TEST_SEED");
    int count = runs ? atoi(runs) : 20;
    state = seed ? (uint64_t)atoi(seed) : 1;
    if (gm_ranks_start_all(&ranks) || folder_enter_all(&ranks))
        return 1;
    gm_log_setup(0, GM_QUIET);
    tap_ok(make_inputs() == GM_OK, "inputs are made");
    run("products", one_product, 2 * count);
    run("batches", one_batch, count / 2);
    run("other operations", one_of_others, count);
    folder_leave_all(&ranks, NULL);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
