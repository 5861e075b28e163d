/* The pairs of bench link: the copy engine of a device reads the memory of another process's device, by NVLink or PCI
 * Express. Each pair by itself, in both directions, then all devices at once, each of which reads that of the next
 * rank: its limit is the sum of the same pairs alone. Every byte that arrives is compared. */
#include "src/bench/machine/pairs.h"

#include "base/log.h"
#include "base/size.h"
#include "src/bench/lab/host.h"
#include "src/bench/machine/together.h"
#include "src/bench/team.h"

#include <stdlib.h>
#include <string.h>

enum { ROW = 4 << 10 /* of random data */, LEAST = 4 << 20, MOST = 256 << 20, MOST_BACK = 16 << 20 };

/* A rank's device, as the others know it. */
typedef struct place {
    gm_shared_memory memory;
    char uuid[48], why[GM_SHARED_WHY]; /* why: it cannot be shared; "": it is */
    int host, node;
} place;

typedef struct pairs {
    gm_bench *bench;
    int rank, ranks;
    int64_t size;    /* bytes, of src and dst, the same on all ranks */
    char *src, *dst; /* device memory: random bits of this rank's own; what arrives */
    char *back;      /* [MOST_BACK or less], pinned */
    place *places;   /* [ranks] */
    char **memory;   /* [ranks]: src of each as this device addresses it; NULL: out of reach */
    char *whys;      /* [ranks][GM_SHARED_WHY], on rank 0: of one pair */
    int from;        /* the rank whose memory this one reads now */
} pairs;

/* --- The memory of others --- */

static int find_room_all(pairs *p)
{
    int64_t room = gm_min(gm_bench_room(p->bench) / 3, gm_lab_host_room(p->bench) / 2);
    p->size = gm_bench_wanted(p->bench, MOST);
    while (p->size > room && p->size > LEAST)
        p->size /= 2;
    return gm_min_all(&p->size);
}

static int open_pairs(pairs *p)
{
    const gm_device_ops *ops = p->bench->ops;
    gm_device *device = p->bench->device;
    void *memory[3] = {0};
    p->places = calloc((size_t)p->ranks, sizeof *p->places);
    p->memory = calloc((size_t)p->ranks, sizeof *p->memory);
    p->whys = calloc((size_t)p->ranks, GM_SHARED_WHY);
    if (!p->places || !p->memory || !p->whys)
        return gm_fail(GM_EDEVICE, "no memory for pairs of %d ranks", p->ranks);
    int status = ops->alloc(device, (size_t)p->size, &memory[0]);
    if (!status)
        status = ops->alloc(device, (size_t)p->size, &memory[1]);
    if (!status)
        status = ops->host_alloc(device, (size_t)gm_min(p->size, MOST_BACK), &memory[2]);
    p->src = memory[0];
    p->dst = memory[1];
    p->back = memory[2];
    return status ? status
                  : gm_bench_fill(p->bench, p->src, GM_DTYPE_U64, p->size / ROW, ROW / 8, ROW / 8,
                                  gm_together_key(p->rank));
}

/* Every rank learns the names of all. Collective. */
static int exchange_names_all(pairs *p)
{
    const gm_job *job = p->bench->job;
    place mine = {.host = job->ranks->host_index, .node = job->info.numa_node};
    memcpy(mine.uuid, job->info.uuid, sizeof mine.uuid);
    int status = p->bench->ops->share(p->bench->device, p->src, &mine.memory, mine.why);
    status = gm_job_agree_all(job, status);
    return status ? status : gm_allgather_all(job->ranks, &mine, sizeof mine, p->places);
}

static int is_pair(const pairs *p, int to, int from)
{
    const place *a = &p->places[to], *b = &p->places[from];
    return to != from && a->host == b->host && (!a->uuid[0] || strcmp(a->uuid, b->uuid) != 0);
}

/* Where it fails this rank's part of `why` tells. */
static int attach(pairs *p, int from, char why[GM_SHARED_WHY])
{
    void *memory = NULL;
    if (p->memory[from])
        return GM_OK;
    memcpy(why, p->places[from].why, GM_SHARED_WHY);
    int status = why[0] ? GM_OK : p->bench->ops->open_shared(p->bench->device, &p->places[from].memory, &memory, why);
    p->memory[from] = memory;
    return status;
}

/* Nobody frees what another rank still addresses. Collective. */
static int close_pairs_all(pairs *p, int status)
{
    gm_bench *bench = p->bench;
    for (int r = 0; r < p->ranks && p->memory; r++)
        bench->ops->close_shared(bench->device, p->memory[r]);
    status = gm_job_agree_all(bench->job, status);
    bench->ops->host_free(bench->device, p->back);
    bench->ops->free(bench->device, p->dst);
    bench->ops->free(bench->device, p->src);
    free(p->whys);
    free(p->memory);
    free(p->places);
    return status;
}

/* --- Rows --- */

static int run(void *context, gm_team_share *share)
{
    const pairs *p = context;
    const gm_bench *bench = p->bench;
    size_t n = (size_t)p->size;
    int status = bench->ops->copy_within(bench->queue, p->dst, n, p->memory[p->from], n, n, 1);
    share->work = (double)p->size;
    return status ? status : bench->ops->queue_sync(bench->queue);
}

static int check(pairs *p)
{
    gm_bench *bench = p->bench;
    gm_team_share share;
    int status = bench->ops->zero(bench->queue, p->dst, (size_t)p->size);
    if (!status)
        status = bench->ops->queue_sync(bench->queue);
    if (!status)
        status = run(p, &share);
    for (int64_t at = 0; at < p->size && !status; at += MOST_BACK) {
        int64_t n = gm_min(p->size - at, MOST_BACK);
        status = gm_bench_download(bench, p->back, p->dst + at, (size_t)n);
        if (!status && !gm_together_is_right(bench, p->from, at, n, p->back))
            status = gm_fail(GM_ECHECK, "bench link: wrong bytes arrived from the device of rank %d", p->from);
    }
    return status;
}

static gm_bench_row make_row(const pairs *p, const gm_team *team, int from)
{
    char size[GM_SIZE_TEXT], node[2][16] = {"?", "?"};
    const int ends[2] = {p->places[team->first].node, p->places[from].node};
    gm_bench_row row = gm_bench_row_make(p->bench, "devices, ring", "device to device", GM_CACHE_WARM,
                                         &(gm_bench_timing){0});
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            snprintf(node[i], sizeof node[i], "%d", ends[i]);
    gm_size_format(p->size, size);
    if (team->count == 1) {
        snprintf(row.variant, sizeof row.variant, "rank %d reads rank %d", team->first, from);
        snprintf(row.shape, sizeof row.shape, "%s, node %s, %s", size, node[0], node[1]);
    } else {
        snprintf(row.shape, sizeof row.shape, "%s, %d ranks", size, team->count);
    }
    row.panel = "devices";
    row.measured_of = "pairs alone";
    row.ranks = team->count;
    return row;
}

/* A team whose ranks read from p->from. alone: as rates of pairs. *rate: on rank 0. Collective. */
static int measure_team_all(pairs *p, const gm_team *team, int from, double alone, double *rate)
{
    const gm_job *job = p->bench->job;
    const gm_team_work work = {.run = run, .context = p};
    gm_bench_row row = make_row(p, team, from);
    int status = gm_job_agree_all(job, gm_team_has(team, p->rank) ? check(p) : GM_OK);
    if (!status)
        status = gm_team_time_all(p->bench, team, &work, &row);
    if (status)
        return status;
    row.measured = alone;
    *rate = gm_bench_rate(&row);
    return gm_job_agree_all(job, gm_bench_add(p->bench, &row));
}

/* A pair that has no rate, and why. */
static int add_unreached_all(pairs *p, const gm_team *team, int from)
{
    gm_bench_row row = make_row(p, team, from);
    snprintf(row.kernel, sizeof row.kernel, "out of reach");
    if (p->rank == 0)
        gm_note("bench link: rank %d cannot read the device memory of rank %d: %s", team->first, from,
                p->whys + (ptrdiff_t)team->first * GM_SHARED_WHY);
    return gm_job_agree_all(p->bench->job, gm_bench_add(p->bench, &row));
}

/* *rate: on rank 0; 0: out of reach, which all ranks know. Collective. */
static int measure_pair_all(pairs *p, int to, int from, int64_t *reaches, double *rate)
{
    const gm_job *job = p->bench->job;
    const gm_team team = {to, 1};
    char why[GM_SHARED_WHY] = "";
    int status = gm_job_agree_all(job, p->rank == to ? attach(p, from, why) : GM_OK);
    *reaches = p->rank != to || p->memory[from];
    *rate = 0;
    if (!status)
        status = gm_gather_all(job->ranks, why, sizeof why, p->whys);
    if (!status)
        status = gm_min_all(reaches);
    p->from = from;
    return status ? status : *reaches ? measure_team_all(p, &team, from, 0, rate) : add_unreached_all(p, &team, from);
}

/* Collective. */
static int measure_ring_all(pairs *p, double alone)
{
    double rate;
    p->from = (p->rank + 1) % p->ranks;
    return measure_team_all(p, &(gm_team){0, p->ranks}, 0, alone, &rate);
}

/* Where all tests run only the pairs of the ring. Collective. */
static int measure_all(pairs *p)
{
    int64_t reaches, ring = 1;
    int status = GM_OK;
    double alone = 0, rate;
    for (int to = 0; to < p->ranks; to++)
        for (int from = 0; from < p->ranks && !status; from++) {
            int is_next = from == (to + 1) % p->ranks, is_wanted = is_next || !p->bench->is_brief;
            if (!is_pair(p, to, from) || !is_wanted) {
                ring &= !is_next;
                continue;
            }
            status = measure_pair_all(p, to, from, &reaches, &rate);
            alone += is_next ? rate : 0;
            ring &= reaches || !is_next;
        }
    return status || !ring ? status : measure_ring_all(p, alone);
}

int gm_bench_pairs_all(gm_bench *bench)
{
    pairs p = {.bench = bench, .rank = bench->job->ranks->rank, .ranks = bench->job->ranks->size};
    if (p.ranks == 1)
        return GM_OK;
    if (!bench->ops->share) {
        gm_note("bench link: a device of kind %s does not share its memory: no pairs of devices", bench->ops->kind);
        return GM_OK;
    }
    int status = gm_job_agree_all(bench->job, find_room_all(&p));
    if (!status)
        status = gm_job_agree_all(bench->job, open_pairs(&p));
    if (!status)
        status = gm_job_agree_all(bench->job, exchange_names_all(&p));
    if (!status)
        status = measure_all(&p);
    return close_pairs_all(&p, status);
}
