/* bench mpi - messages between ranks: their latency and their rate from and to rank 0, broadcasts and sums, from host
 * memory and from device memory that is staged through host memory. The program's own ways (mpi/exchange.h,
 * mpi/ranks.h): a message is a status and the data.
 *
 * All ranks take part in each case (together.h), and the clock of rank 0 counts. */
#include "base/size.h"
#include "src/bench/lab/host.h"
#include "src/bench/machine/talk.h"
#include "src/bench/machine/together.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORD = 8,
    TURNS = 100,             /* round trips, or sums of one number, in a repetition */
    WINDOW = 64,             /* messages in a repetition, at most */
    WINDOW_BYTES = 16 << 20, /* and their bytes, unless one is larger */
    LEAST_MESSAGE = 4 << 10, /* bytes */
    MOST_MESSAGE = 64 << 20,
    FACTOR = 4, /* from one size to the next */
};

/* The ways of a message, from memory to memory. */
typedef struct path {
    const char *name;
    int is_staged; /* device memory, which is copied to host memory, sent, and copied to device memory */
} path;

/* One repetition into cleared memory. Collective. */
static int check_all(const gm_talk *t)
{
    const gm_net *n = t->net;
    gm_bench *bench = n->bench;
    int status = GM_OK;
    memset(n->dst, 0, (size_t)t->bytes);
    if (t->is_staged)
        status = bench->ops->zero(bench->queue, n->device_dst, (size_t)t->bytes);
    if (!status)
        status = bench->ops->queue_sync(bench->queue);
    status = t->run(t, status);
    if (t->is_staged)
        memset(n->dst, 0, (size_t)t->bytes);
    if (!status && t->check)
        status = t->check(t);
    return gm_job_agree_all(bench->job, status);
}

/* --- Times --- */

static int run_talk(const void *context, int status)
{
    const gm_talk *t = context;
    return t->run(t, status);
}

/* Adds the row of a case: that of rank 0. *rate (may be NULL): its rate there. Collective. */
static int measure_all(const gm_talk *t, double *rate)
{
    gm_bench *bench = t->net->bench;
    gm_bench_timing timing;
    int status = check_all(t);
    if (!status)
        status = gm_together_time_all(bench, run_talk, t, &timing);
    if (status)
        return status;
    gm_bench_row row = gm_bench_row_make(bench, t->variant, "MPI", GM_CACHE_WARM, &timing);
    memcpy(row.shape, t->shape, sizeof row.shape);
    row.work = t->work;
    row.unit = *t->unit;
    row.measured = t->limit;
    row.measured_of = "host memory";
    row.panel = t->panel;
    row.x = t->x;
    row.x_name = "bytes";
    if (rate)
        *rate = gm_bench_rate(&row);
    return gm_job_agree_all(bench->job, gm_bench_add(bench, &row));
}

/* --- Cases --- */

static const path paths[] = {{"host", 0}, {"staged", 1}};
enum { PATHS = sizeof paths / sizeof paths[0] };

static int works(const gm_net *n, const path *p)
{
    return !p->is_staged || n->device_src;
}

static int64_t messages_of(int64_t bytes)
{
    return gm_max(gm_min(WINDOW_BYTES / bytes, WINDOW), 1);
}

/* By each path to a rank and back. Collective. */
static int measure_latency_all(gm_net *n, int peer)
{
    double host_rate = 0;
    int status = GM_OK;
    for (int p = 0; p < PATHS && !status; p++) {
        gm_talk t = {.run = gm_talk_ping_pong,
                     .check = gm_talk_check_ping_pong,
                     .net = n,
                     .is_staged = paths[p].is_staged,
                     .peer = peer,
                     .bytes = WORD,
                     .count = TURNS,
                     .work = 2 * TURNS,
                     .unit = &gm_bench_unit_latency,
                     .panel = "latency",
                     .limit = host_rate};
        snprintf(t.variant, sizeof t.variant, "ping-pong, %s", paths[p].name);
        snprintf(t.shape, sizeof t.shape, "%d bytes, rank %d", WORD, peer);
        if (works(n, &paths[p]))
            status = measure_all(&t, paths[p].is_staged ? NULL : &host_rate);
    }
    return status;
}

static gm_talk sized(gm_net *n, int64_t bytes, const char *panel)
{
    int count = (int)messages_of(bytes);
    return (gm_talk){.net = n,
                     .bytes = bytes,
                     .count = count,
                     .work = (double)bytes * count,
                     .unit = &gm_bench_unit_bytes,
                     .panel = panel,
                     .x = (double)bytes};
}

/* Messages of each size to a rank, by each path. Collective. */
static int measure_messages_all(gm_net *n, int peer)
{
    int status = GM_OK;
    for (int64_t bytes = LEAST_MESSAGE; bytes <= n->most; bytes *= FACTOR) {
        double host_rate = 0;
        for (int p = 0; p < PATHS && !status; p++) {
            gm_talk t = sized(n, bytes, "messages");
            t.run = gm_talk_send;
            t.check = gm_talk_check_send;
            t.is_staged = paths[p].is_staged;
            t.peer = peer;
            t.limit = host_rate;
            snprintf(t.variant, sizeof t.variant, "send to rank %d, %s", peer, paths[p].name);
            gm_size_format(bytes, t.shape);
            if (works(n, &paths[p]))
                status = measure_all(&t, paths[p].is_staged ? NULL : &host_rate);
        }
    }
    return status;
}

/* Broadcasts, then sums, of each size. Collective. */
static int measure_collectives_all(gm_net *n)
{
    static const struct {
        const char *name;
        int (*run)(const gm_talk *t, int status);
        int (*check)(const gm_talk *t);
    } kinds[] = {{"broadcast", gm_talk_broadcast, gm_talk_check_broadcast},
                 {"sum of float64", gm_talk_sums, gm_talk_check_sums}};
    int status = GM_OK;
    for (int k = 0; k < 2; k++) {
        if (kinds[k].run == gm_talk_sums)
            gm_net_fill_weights(n);
        for (int64_t bytes = LEAST_MESSAGE; bytes <= n->most && !status; bytes *= FACTOR) {
            char size[GM_SIZE_TEXT];
            gm_talk t = sized(n, bytes, "collectives");
            t.run = kinds[k].run;
            t.check = kinds[k].check;
            snprintf(t.variant, sizeof t.variant, "%s", kinds[k].name);
            snprintf(t.shape, sizeof t.shape, "%s, %d ranks", gm_size_format(bytes, size), n->ranks->size);
            status = measure_all(&t, NULL);
        }
    }
    return status;
}

static int measure_sum_all(gm_net *n)
{
    gm_talk t = {.variant = "sum of an integer",
                 .run = gm_talk_sum,
                 .net = n,
                 .bytes = WORD,
                 .count = TURNS,
                 .work = TURNS,
                 .unit = &gm_bench_unit_latency,
                 .panel = "latency"};
    snprintf(t.shape, sizeof t.shape, "%d bytes, %d ranks", WORD, n->ranks->size);
    return measure_all(&t, NULL);
}

static int measure_net_all(gm_net *n)
{
    const int peers[] = {n->near, n->far};
    int status = GM_OK;
    for (int r = 1; r < n->ranks->size && !status; r++)
        status = measure_latency_all(n, r);
    if (!status)
        status = measure_sum_all(n);
    for (int i = 0; i < 2 && !status; i++)
        if (peers[i] > 0)
            status = measure_messages_all(n, peers[i]);
    return status ? status : measure_collectives_all(n);
}

/* --- The test --- */

/* One rank of each kind: rank 0 has the hosts of all. Collective. */
static int find_peers_all(gm_net *n)
{
    const gm_ranks *ranks = n->ranks;
    int leading = ranks->rank == 0, found[2] = {0};
    int *hosts = leading ? calloc((size_t)ranks->size, sizeof *hosts) : NULL;
    int status = gm_job_agree_all(
        n->bench->job, leading && !hosts ? gm_fail(GM_EDEVICE, "no memory for %d ranks", ranks->size) : GM_OK);
    if (!status)
        status = gm_gather_all(ranks, &ranks->host_index, sizeof ranks->host_index, hosts);
    for (int r = ranks->size - 1; r > 0 && hosts && !status; r--)
        found[hosts[r] != hosts[0]] = r;
    free(hosts);
    if (!status)
        status = gm_broadcast_all(found, sizeof found);
    n->near = found[0];
    n->far = found[1];
    return status;
}

static int allocate(gm_net *n)
{
    gm_bench *bench = n->bench;
    void *memory[4] = {0};
    size_t size = (size_t)n->most;
    int status = bench->ops->host_alloc(bench->device, size, &memory[0]);
    if (!status)
        status = bench->ops->host_alloc(bench->device, size, &memory[1]);
    if (!status && !bench->ops->unified)
        status = bench->ops->alloc(bench->device, size, &memory[2]);
    if (!status && !bench->ops->unified)
        status = bench->ops->alloc(bench->device, size, &memory[3]);
    n->src = memory[0];
    n->dst = memory[1];
    n->device_src = memory[2];
    n->device_dst = memory[3];
    if (status)
        return status;
    gm_lab_randomize(bench, n->src, n->most);
    return n->device_src ? gm_bench_upload(bench, n->device_src, n->src, size) : GM_OK;
}

static void release(gm_net *n)
{
    gm_bench *bench = n->bench;
    bench->ops->free(bench->device, n->device_dst);
    bench->ops->free(bench->device, n->device_src);
    bench->ops->host_free(bench->device, n->dst);
    bench->ops->host_free(bench->device, n->src);
}

/* Ranks agree here by themselves, and the rows are rank 0's: to the harness the test is one of rank 0 alone. */
int gm_bench_mpi(gm_bench *bench)
{
    gm_net n = {.bench = bench, .ranks = bench->job->ranks, .most = MOST_MESSAGE};
    if (bench->job->options->shapes)
        return gm_fail(GM_EUSAGE, "--shapes: bench mpi has no shapes");
    if (gm_together_is_lonely(bench))
        return GM_OK;
    while (n.most > LEAST_MESSAGE && 4 * n.most > gm_min(gm_lab_host_room(bench), gm_bench_room(bench)))
        n.most /= FACTOR;
    int status = gm_min_all(&n.most);
    if (!status)
        status = gm_job_agree_all(bench->job, allocate(&n));
    if (!status)
        status = find_peers_all(&n);
    bench->is_alone = 1;
    if (!status)
        status = measure_net_all(&n);
    bench->is_alone = 0;
    release(&n);
    return status;
}
