/* bench exchange - device memory of one rank to device memory of another, by each path that there is: the latency of
 * small messages; over the size one way, both ways, and all ranks at once in a ring. Rates are of the bytes that a rank
 * sends. All ranks take part in each case (together.h), and the clock of rank 0 counts. Beside them the copies of the
 * same bytes from the device to pinned memory, which on a processor are memcpy. */
#include "base/log.h"
#include "base/size.h"
#include "src/bench/lab/host.h"
#include "src/bench/machine/together.h"

#include <math.h>
#include <string.h>

enum {
    WORD = 8,                /* bytes */
    TURNS = 100,             /* round trips in a repetition */
    WINDOW = 64,             /* exchanges in a repetition, at most */
    WINDOW_BYTES = 16 << 20, /* and their bytes, unless one is larger */
    LEAST_MESSAGE = 4 << 10, /* bytes */
    MOST_MESSAGE = 1 << 30,
    MOST_BRIEF = 64 << 20, /* where all tests run */
    MOST_BACK = 16 << 20,  /* bytes that come back from the device together */
    ROW = 4 << 10          /* of random data */
};
static const int64_t factor[2] = {4, 16 /* all tests run */}; /* from one size to the next */

/* --- Cases --- */

enum { PATHS = 4 /* at most */ };

/* A path that is open. */
typedef struct open_path {
    const gm_path *kind;
    gm_exchange *exchange;
} open_path;

typedef struct net {
    gm_bench *bench;
    const gm_ranks *ranks;
    open_path paths[PATHS];
    int count;    /* of them */
    int64_t most; /* bytes of the largest message, the same on all ranks */
    char *src;    /* [most], device memory: random bits of this rank's own */
    char *dst;    /* [most], device memory: what arrives */
    char *back;   /* [part], pinned: what comes back from the device */
    int64_t part;
    double copying; /* rate of copies of the size of now, of two ranks at once */
} net;

typedef enum pattern { PING_PONG, ONE_WAY, BOTH_WAYS, RING, COPIES } pattern;

typedef struct trade {
    net *net;
    const open_path *path; /* NULL of copies */
    pattern pattern;
    int a, b;      /* two ranks; of a ring none */
    int to, from;  /* of this rank: -1 for none */
    int64_t bytes; /* of a message */
    int64_t count; /* in a repetition */
    char variant[GM_BENCH_TEXT], shape[GM_BENCH_TEXT];
} trade;

/* The ranks that this rank sends to and receives from. */
static void place(trade *t)
{
    int rank = t->net->ranks->rank, size = t->net->ranks->size;
    int other = rank == t->a ? t->b : rank == t->b ? t->a : -1;
    t->to = t->pattern == RING ? (rank + 1) % size : t->pattern == ONE_WAY && rank == t->b ? -1 : other;
    t->from = t->pattern == RING ? (rank + size - 1) % size : t->pattern == ONE_WAY && rank == t->a ? -1 : other;
}

/* One message each way, or those that are there. */
static int exchange(const trade *t, int sends, int receives, int status)
{
    size_t n = (size_t)t->bytes;
    const gm_exchange_region out = {t->to, t->net->src, n, n, 1}, in = {t->from, t->net->dst, n, n, 1};
    return gm_exchange_trade(t->path->exchange, sends && t->to >= 0 ? &out : NULL,
                             receives && t->from >= 0 ? &in : NULL, NULL, status);
}

static int copy(const trade *t, int status)
{
    const gm_bench *bench = t->net->bench;
    for (int64_t at = 0; at < t->bytes && !status; at += t->net->part) {
        size_t n = (size_t)gm_min(t->bytes - at, t->net->part);
        status = bench->ops->copy_out(bench->queue, t->net->back, n, t->net->src + at, n, n, 1);
    }
    return status ? status : bench->ops->queue_sync(bench->queue);
}

/* A repetition ends when all ranks have received. */
static int run(const void *context, int status)
{
    const trade *t = context;
    int64_t end = 0;
    for (int64_t i = 0; i < t->count; i++) {
        int is_first = t->net->ranks->rank == t->a;
        if (t->pattern == COPIES && t->to >= 0)
            status = copy(t, status);
        else if (t->pattern == PING_PONG)
            status = exchange(t, !is_first, is_first, exchange(t, is_first, !is_first, status));
        else if (t->pattern != COPIES)
            status = exchange(t, 1, 1, status);
    }
    int done = gm_min_all(&end);
    return status ? status : done;
}

/* --- Checks --- */

/* Compares every byte that has arrived, or, of copies, those that came last. */
static int check_bytes(const trade *t)
{
    const net *n = t->net;
    int status = GM_OK, is_copy = t->pattern == COPIES, sender = is_copy && t->to >= 0 ? n->ranks->rank : t->from;
    for (int64_t at = is_copy ? (t->bytes - 1) / n->part * n->part : 0, size; at < t->bytes && sender >= 0 && !status;
         at += size) {
        size = gm_min(t->bytes - at, n->part);
        if (!is_copy)
            status = gm_bench_download(n->bench, n->back, n->dst + at, (size_t)size);
        if (!status && !gm_together_is_right(n->bench, sender, at, size, n->back))
            status = gm_fail(GM_ECHECK, "bench exchange: %s %s: wrong bytes arrived from rank %d", t->variant, t->shape,
                             sender);
    }
    return status;
}

/* One repetition into cleared memory. Collective. */
static int check_all(const trade *t)
{
    gm_bench *bench = t->net->bench;
    int status = bench->ops->zero(bench->queue, t->net->dst, (size_t)t->bytes);
    if (!status)
        status = bench->ops->queue_sync(bench->queue);
    status = run(t, status);
    return gm_job_agree_all(bench->job, status ? status : check_bytes(t));
}

/* --- Rows --- */

static const struct {
    const char *variant, *panel;
} names[] = {[PING_PONG] = {"ping-pong", "latency"},
             [ONE_WAY] = {"one way", "one way"},
             [BOTH_WAYS] = {"both ways", "both ways"},
             [RING] = {"ring", "ring"},
             [COPIES] = {"copy to host", "one way"}};

static void name(trade *t)
{
    char size[GM_SIZE_TEXT] = "8 bytes";
    if (t->pattern != PING_PONG)
        gm_size_format(t->bytes, size);
    if (t->pattern == RING)
        snprintf(t->shape, sizeof t->shape, "%s, %d ranks", size, t->net->ranks->size);
    else
        snprintf(t->shape, sizeof t->shape, "%s, %d %s %d", size, t->a, t->pattern == ONE_WAY ? "to" : "and", t->b);
    snprintf(t->variant, sizeof t->variant, t->path ? "%s, %s" : "%s", names[t->pattern].variant,
             t->path ? t->path->kind->name : "");
}

/* Checks and times a case, and adds its row: that of rank 0. Collective. */
static int measure_all(trade *t)
{
    net *n = t->net;
    gm_bench *bench = n->bench;
    int is_latency = t->pattern == PING_PONG, is_pair = t->pattern == ONE_WAY || t->pattern == BOTH_WAYS;
    gm_bench_timing timing;
    place(t);
    name(t);
    int status = check_all(t);
    if (!status)
        status = gm_together_time_all(bench, run, t, &timing);
    if (status)
        return status;
    gm_bench_row row = gm_bench_row_make(bench, t->variant, t->path ? t->path->kind->kernel : "copy", GM_CACHE_WARM,
                                         &timing);
    memcpy(row.shape, t->shape, sizeof row.shape);
    row.work = is_latency ? 2 * TURNS : (double)t->bytes * (double)t->count;
    row.unit = is_latency ? gm_bench_unit_latency : gm_bench_unit_bytes;
    row.computed = !is_latency && (!t->path || t->path->kind->is_through_host) ? bench->job->info.host_limit : 0;
    row.measured = is_pair ? n->copying : 0;
    row.measured_of = "copy to host";
    row.panel = names[t->pattern].panel;
    row.x = is_latency ? 0 : (double)t->bytes;
    row.x_name = "bytes";
    if (t->pattern == COPIES)
        n->copying = gm_bench_rate(&row);
    return gm_job_agree_all(bench->job, gm_bench_add(bench, &row));
}

/* Messages of a size between ranks a and b, or in a ring, by each path. Collective. */
static int measure_paths_all(net *n, pattern p, int a, int b, int64_t bytes)
{
    int status = GM_OK;
    for (int i = 0; i < n->count && !status; i++) {
        trade t = {.net = n, .path = &n->paths[i], .pattern = p, .a = a, .b = b, .bytes = bytes};
        t.count = p == PING_PONG ? TURNS : gm_max(gm_min(WINDOW_BYTES / bytes, WINDOW), 1);
        status = measure_all(&t);
    }
    return status;
}

/* Of a size: copies, then messages between two ranks. Collective. */
static int measure_pair_all(net *n, int a, int b, int64_t bytes)
{
    trade copies = {.net = n, .pattern = COPIES, .a = a, .b = b, .bytes = bytes};
    copies.count = gm_max(gm_min(WINDOW_BYTES / bytes, WINDOW), 1);
    int status = measure_all(&copies);
    if (!status)
        status = measure_paths_all(n, ONE_WAY, a, b, bytes);
    return status ? status : measure_paths_all(n, BOTH_WAYS, a, b, bytes);
}

/* The other neighbours, by messages of the largest size only. Collective. */
static int measure_neighbours_all(net *n)
{
    int status = GM_OK;
    for (int r = 1; r + 1 < n->ranks->size && !status; r++) {
        status = measure_paths_all(n, PING_PONG, r, r + 1, WORD);
        if (!status)
            status = measure_pair_all(n, r, r + 1, n->most);
    }
    return status;
}

/* A ring of two ranks is both ways. Collective. */
static int measure_net_all(net *n)
{
    int is_brief = n->bench->is_brief, status = measure_paths_all(n, PING_PONG, 0, 1, WORD);
    for (int64_t bytes = LEAST_MESSAGE; bytes <= n->most && !status; bytes *= factor[is_brief]) {
        status = measure_pair_all(n, 0, 1, bytes);
        if (!status && n->ranks->size > 2)
            status = measure_paths_all(n, RING, -1, -1, bytes);
    }
    return status || is_brief ? status : measure_neighbours_all(n);
}

/* --- The test --- */

static int open_net(net *n)
{
    gm_bench *bench = n->bench;
    void *memory[3] = {0};
    n->part = gm_min(n->most, MOST_BACK);
    int status = bench->ops->alloc(bench->device, (size_t)n->most, &memory[0]);
    if (!status)
        status = bench->ops->alloc(bench->device, (size_t)n->most, &memory[1]);
    if (!status)
        status = bench->ops->host_alloc(bench->device, (size_t)n->part, &memory[2]);
    n->src = memory[0];
    n->dst = memory[1];
    n->back = memory[2];
    return status ? status
                  : gm_bench_fill(bench, n->src, GM_DTYPE_U64, n->most / ROW, ROW / 8, ROW / 8,
                                  gm_together_key(n->ranks->rank));
}

static void close_net(net *n)
{
    gm_bench *bench = n->bench;
    for (int i = 0; i < n->count; i++)
        gm_exchange_close_all(n->paths[i].exchange);
    bench->ops->host_free(bench->device, n->back);
    bench->ops->free(bench->device, n->dst);
    bench->ops->free(bench->device, n->src);
}

/* Opens a path. One that does not open is left out, unless the user has asked for it. Collective. */
static int open_path_all(net *n, const gm_path *path)
{
    gm_job *job = n->bench->job;
    open_path *p = &n->paths[n->count++];
    p->kind = path;
    const gm_exchange_setup purpose = {.wanted = path->name, .reason = "each path is measured", .seconds = INFINITY};
    int status = gm_job_open_exchange_all(job, &purpose, &p->exchange);
    if (!status || status == GM_ESTOPPED || strcmp(job->options->exchange, "auto") != 0)
        return status;
    gm_error_clear();
    gm_note("bench exchange: without %s: %s", path->name, job->exchange.reason);
    gm_exchange_close_all(p->exchange);
    n->count--;
    return GM_OK;
}

/* All paths, or the one that --exchange names. The report has the best of them, and why there is no better one.
 * Collective. */
static int open_paths_all(net *n)
{
    gm_job *job = n->bench->job;
    const char *wanted = job->options->exchange;
    gm_exchange_choice best = {0};
    int status = GM_OK;
    for (int i = 0; gm_exchange_path(i) && n->count < PATHS && !status; i++) {
        const gm_path *path = gm_exchange_path(i);
        int is_any = strcmp(wanted, "auto") == 0;
        if (!is_any && strcmp(wanted, path->name) != 0)
            continue;
        status = open_path_all(n, path);
        if (job->exchange.version[0])
            memcpy(best.version, job->exchange.version, sizeof best.version);
        if (best.path[0])
            continue;
        memcpy(best.path, job->exchange.path, sizeof best.path);
        if (!best.path[0] || !is_any)
            gm_exchange_add_reason(&best, job->exchange.reason);
    }
    job->exchange = best;
    return status || n->count > 0 ? status : gm_fail(GM_EDEVICE, "bench exchange: no path works");
}

/* Ranks agree here by themselves, and the rows are rank 0's: to the harness the test is one of rank 0 alone. */
int gm_bench_exchange(gm_bench *bench)
{
    net n = {.bench = bench, .ranks = bench->job->ranks, .most = LEAST_MESSAGE};
    int64_t next = factor[bench->is_brief], most = gm_bench_wanted(bench, bench->is_brief ? MOST_BRIEF : MOST_MESSAGE);
    if (bench->job->options->shapes)
        return gm_fail(GM_EUSAGE, "--shapes: bench exchange has no shapes");
    if (gm_together_is_lonely(bench))
        return GM_OK;
    while (next * n.most <= most && 3 * next * n.most <= gm_min(gm_lab_host_room(bench), gm_bench_room(bench)))
        n.most *= next;
    int status = gm_min_all(&n.most);
    if (!status)
        status = gm_job_agree_all(bench->job, open_net(&n));
    if (!status)
        status = open_paths_all(&n);
    bench->is_alone = 1;
    if (!status)
        status = measure_net_all(&n);
    bench->is_alone = 0;
    close_net(&n);
    return status;
}
