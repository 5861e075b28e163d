#include "src/rates/model.h"

#include "base/size.h"
#include "base/text/words.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The kinds of GPU: what a device of the kind tells of itself, and the rate of its link. Limits are computed from
 * clocks and widths, as for a device that is there. The link of the A100 is half that of the others, PCI Express 4. */
static const struct {
    const char *name;
    gm_device_info info;
    double to_device, from_device; /* bytes/s */
} gpus[] = {{.name = "h200",
             .info = {.kind = "cuda",
                      .name = "NVIDIA H200",
                      .memory_total = INT64_C(139) << 30,
                      .memory_free = INT64_C(139) << 30,
                      .capability = 90,
                      .multiprocessors = 132,
                      .memory_limit = 4814e9,
                      .fp32_limit = 66.9e12,
                      .fp64_limit = 66.9e12},
             .to_device = 55e9,
             .from_device = 55e9},
            {.name = "h100",
             .info = {.kind = "cuda",
                      .name = "NVIDIA H100",
                      .memory_total = INT64_C(78) << 30,
                      .memory_free = INT64_C(78) << 30,
                      .capability = 90,
                      .multiprocessors = 132,
                      .memory_limit = 3352e9,
                      .fp32_limit = 66.9e12,
                      .fp64_limit = 66.9e12},
             .to_device = 55e9,
             .from_device = 55e9},
            {.name = "a100",
             .info = {.kind = "cuda",
                      .name = "NVIDIA A100",
                      .memory_total = INT64_C(78) << 30,
                      .memory_free = INT64_C(78) << 30,
                      .capability = 80,
                      .multiprocessors = 108,
                      .memory_limit = 2039e9,
                      .fp32_limit = 19.5e12,
                      .fp64_limit = 19.5e12},
             .to_device = 27.5e9,
             .from_device = 27.5e9}};
enum { GPUS = sizeof gpus / sizeof *gpus, TEXT = 256 };

static const int64_t usual_memory = INT64_C(512) << 30; /* of a node */

typedef int read_value(const char *text, int64_t *value);

static int read_count(const char *text, int64_t *value)
{
    return gm_integer_parse(text, 1, GM_MODEL_RANKS, value);
}

static int read_size(const char *text, int64_t *value)
{
    return gm_size_parse(text, value) || *value == 0;
}

static int read_gpu(const char *text, int64_t *value)
{
    for (*value = 0; *value < GPUS; ++*value)
        if (strcmp(text, gpus[*value].name) == 0)
            return 0;
    return 1;
}

static const char count_text[] = "an integer from 1 to 16384",
                  size_text[] = "a size such as 512M, 1.5G or 4GiB, of at most " GM_SIZE_MOST_TEXT;

static const struct {
    const char *name;
    size_t field;
    read_value *read;
    const char *expected;
} keys[] = {
    {"nodes", offsetof(gm_model, nodes), read_count, count_text},
    {"gpus", offsetof(gm_model, gpus), read_count, count_text},
    {"gpu", offsetof(gm_model, gpu), read_gpu, "h200, h100 or a100"},
    {"link", offsetof(gm_model, link), read_size, size_text},
    {"net", offsetof(gm_model, net), read_size, size_text},
    {"storage", offsetof(gm_model, storage), read_size, size_text},
    {"node_storage", offsetof(gm_model, node_storage), read_size, size_text},
    {"memory", offsetof(gm_model, memory), read_size, size_text},
};
enum { KEYS = sizeof keys / sizeof *keys };

static int fail_key(const char *word)
{
    char list[TEXT] = "";
    for (int i = 0; i < KEYS; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", keys[i].name);
    return gm_fail(GM_EUSAGE, "--model: '%s', expected KEY=VALUE, with one of the keys %s", word, list);
}

/* "net=50G" of a model. given: [KEYS]. */
static int read_word(char *word, gm_model *model, int *given)
{
    char *value = strchr(word, '=');
    int key = 0;
    while (value && key < KEYS &&
           !(strlen(keys[key].name) == (size_t)(value - word) &&
             strncmp(word, keys[key].name, (size_t)(value - word)) == 0))
        key++;
    if (!value || key == KEYS)
        return fail_key(word);
    if (given[key]++)
        return gm_fail(GM_EUSAGE, "--model: %s is given twice, expected once", keys[key].name);
    if (keys[key].read(value + 1, (int64_t *)(void *)((char *)model + keys[key].field)))
        return gm_fail(GM_EUSAGE, "--model: '%s', expected %s", word, keys[key].expected);
    return GM_OK;
}

int gm_model_parse(const char *text, gm_model *model)
{
    char word[TEXT];
    int given[KEYS] = {0}, status = GM_OK;
    *model = (gm_model){.nodes = 1, .gpus = 1, .memory = usual_memory};
    for (const char *list = text; list && !status;)
        status = gm_word_next(&list, ',', word, sizeof word) ? read_word(word, model, given) : fail_key(word);
    if (!status && model->nodes * model->gpus > GM_MODEL_RANKS)
        status = gm_fail(GM_EUSAGE, "--model: %lld nodes of %lld GPUs are %lld ranks, expected at most %d",
                         (long long)model->nodes, (long long)model->gpus, (long long)(model->nodes * model->gpus),
                         GM_MODEL_RANKS);
    return status;
}

gm_model gm_model_single(const gm_model *model)
{
    gm_model one = *model;
    one.nodes = one.gpus = 1;
    return one;
}

const char *gm_model_gpu_name(const gm_model *model)
{
    return gpus[model->gpu].name;
}

const gm_device_info *gm_model_device(const gm_model *model)
{
    return &gpus[model->gpu].info;
}

/* Of 64 processors for four GPUs, one of each 16 is the ring's own. */
int gm_model_threads(void)
{
    return 15;
}

static void limit(double *rate, int64_t most)
{
    if (most)
        *rate = fmin(*rate, (double)most);
}

void gm_model_set_rates(const gm_model *m, gm_rates *rates)
{
    rates->modelled = 1;
    rates->to_device = gpus[m->gpu].to_device;
    rates->from_device = gpus[m->gpu].from_device;
    if (m->link)
        rates->exchange_near = (double)m->link;
    if (m->link)
        rates->exchange_direct = 0;
    if (m->net)
        rates->exchange_far = (double)m->net / (double)m->gpus;
    if (m->storage)
        rates->storage = (double)m->storage;
    limit(&rates->read_rank, m->node_storage);
    limit(&rates->read_host, m->node_storage);
    limit(&rates->write_rank, m->node_storage);
    limit(&rates->write_host, m->node_storage);
    if (m->storage || m->node_storage) /* it is no memory */
        rates->ahead_rank = 0;
}
