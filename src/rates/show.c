#include "src/rates/show.h"

#include "base/size.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* The links of a run: bytes of a gm_work that go over them. */
static const struct {
    const char *name;
    size_t field, other; /* of the busiest rank; the same again for a link without direction */
    size_t once;         /* of all ranks: what one rank sends another one receives */
} links[] = {
    {"file_to_host", offsetof(gm_work, read), 0, offsetof(gm_work, read)},
    {"host_to_device", offsetof(gm_work, to_device), 0, offsetof(gm_work, to_device)},
    {"rank_to_rank", offsetof(gm_work, received), offsetof(gm_work, sent), offsetof(gm_work, received)},
    {"device_to_host", offsetof(gm_work, from_device), 0, offsetof(gm_work, from_device)},
    {"host_to_file", offsetof(gm_work, write), 0, offsetof(gm_work, write)},
};
enum { LINKS = sizeof links / sizeof *links };

static double value_at(const gm_work *work, size_t field)
{
    return *(const double *)(const void *)((const char *)work + field);
}

static double of_rank(const gm_expectation *e, int link)
{
    return value_at(&e->rank, links[link].field) + (links[link].other ? value_at(&e->rank, links[link].other) : 0);
}

static double of_all(const gm_expectation *e, int link)
{
    return value_at(&e->all, links[link].once);
}

static const char *source(const gm_rates *r, int measured)
{
    return r->modelled ? "modelled" : measured ? "measured" : "nominal";
}

/* Bytes and calls are whole numbers, which sums of parts of them miss by rounding. */
static int64_t whole(double number)
{
    return number < 9e18 ? llround(number) : INT64_MAX;
}

static char *size_text(double bytes, char *text)
{
    return gm_size_format(whole(bytes), text);
}

void gm_expectation_print(const gm_expectation *e, const gm_rates *r)
{
    const double giga = 1e9;
    char text[2][GM_SIZE_TEXT];
    printf("read_rate       %.3g GB/s a rank, %.3g GB/s a host (%s)\n", r->read_rank / giga, r->read_host / giga,
           source(r, r->reads_measured));
    if (isfinite(r->storage))
        printf("storage_rate    %.3g GB/s, read and written by all hosts\n", r->storage / giga);
    if (r->ranks > 1)
        printf("exchange_rate   %.3g GB/s on a host", r->exchange_near / giga);
    if (r->ranks > 1 && r->exchange_direct > 0)
        printf(", %.3g GB/s from device to device", r->exchange_direct / giga);
    if (r->ranks > 1 && r->hosts > 1)
        printf(", %.3g GB/s between hosts", r->exchange_far / giga);
    if (r->ranks > 1)
        printf(" (%s)\n", source(r, r->exchanges_measured));
    printf("busiest         rank %d, %d of %d ranks work\n", e->busiest, e->working, r->ranks);
    for (int i = 0; i < LINKS; i++)
        if (of_all(e, i) > 0)
            printf("%-15s %s, %s by all ranks\n", links[i].name, size_text(of_rank(e, i), text[0]),
                   size_text(of_all(e, i), text[1]));
    if (e->all.reads + e->all.writes > 0)
        printf("runs            %lld to read, %lld to write by all ranks\n", (long long)whole(e->all.reads),
               (long long)whole(e->all.writes));
    for (int phase = 0; phase < GM_PHASES; phase++)
        if (e->times.phases.seconds[phase] > 0)
            printf("time_%-10s %.3g s\n", gm_phase_name((gm_phase)phase), e->times.phases.seconds[phase]);
    printf("limit           %s, %.3g s\n", gm_resource_name(e->limit), e->times.resource[e->limit]);
    printf("expected_time   %.3g s\n", e->seconds);
}

json_t *gm_expectation_json(const gm_expectation *e, const gm_rates *r)
{
    json_t *bytes = json_object(), *phases = json_object(), *parts = json_object();
    for (int i = 0; i < LINKS; i++)
        json_object_set_new(bytes, links[i].name,
                            json_pack("{s:I, s:I}", "busiest", (json_int_t)whole(of_rank(e, i)), "all",
                                      (json_int_t)whole(of_all(e, i))));
    for (int phase = 0; phase < GM_PHASES; phase++)
        json_object_set_new(phases, gm_phase_name((gm_phase)phase), json_real(e->times.phases.seconds[phase]));
    for (int i = 0; i < GM_RESOURCES; i++)
        json_object_set_new(parts, gm_resource_name((gm_resource)i), json_real(e->times.resource[i]));
    return json_pack("{s:f, s:i, s:i, s:s, s:o, s:o, s:o, s:{s:I, s:I}, s:{s:f, s:f, s:f, s:f, s:f, s:b, s:b}}",
                     "seconds", e->seconds, "working", e->working, "busiest", e->busiest, "limit",
                     gm_resource_name(e->limit), "parts", parts, "phases", phases, "bytes", bytes, "runs", "read",
                     (json_int_t)whole(e->all.reads), "written", (json_int_t)whole(e->all.writes), "rates", "read_rank",
                     r->read_rank, "read_host", r->read_host, "exchange_near", r->exchange_near, "exchange_far",
                     r->exchange_far, "exchange_direct", r->exchange_direct, "reads_measured", r->reads_measured,
                     "exchanges_measured", r->exchanges_measured);
}

static double speedup(const gm_expectation *e, const gm_expectation *single)
{
    return single->seconds / e->seconds;
}

static double efficiency(const gm_model *m, const gm_expectation *e, const gm_expectation *single)
{
    return speedup(e, single) / (double)(m->nodes * m->gpus);
}

void gm_model_print(const gm_model *m)
{
    char text[GM_SIZE_TEXT];
    printf("model           %lld nodes of %lld %s, %s of memory each\n", (long long)m->nodes, (long long)m->gpus,
           gm_model_device(m)->name, gm_size_format(m->memory, text));
}

void gm_gain_print(const gm_model *m, const gm_expectation *e, const gm_expectation *single)
{
    printf("single_time     %.3g s on one GPU\n", single->seconds);
    printf("speedup         %.3g\n", speedup(e, single));
    printf("efficiency      %.3g\n", efficiency(m, e, single));
}

json_t *gm_model_json(const gm_model *m, const gm_expectation *e, const gm_expectation *single)
{
    return json_pack("{s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "nodes", (json_int_t)m->nodes, "gpus",
                     (json_int_t)m->gpus, "gpu", gm_model_gpu_name(m), "link", (json_int_t)m->link, "net",
                     (json_int_t)m->net, "storage", (json_int_t)m->storage, "node_storage", (json_int_t)m->node_storage,
                     "memory", (json_int_t)m->memory, "single_seconds", single->seconds, "speedup", speedup(e, single),
                     "efficiency", efficiency(m, e, single));
}
