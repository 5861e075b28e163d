/* bench link - the link between the host and the devices: pieces of pinned memory of each size, to the device, from it,
 * and both at once; the device of each rank by itself, then those of all ranks at once, whose sum is held against that
 * of the ranks alone; where the host has several NUMA nodes, memory near the device and on another node; and from
 * device to device (pairs.c). Which way to copy is fast is the question of bench transfer (lab/transfer.c). */
#include "base/log.h"
#include "base/size.h"
#include "mpi/numa.h"
#include "src/bench/lab/copies.h"
#include "src/bench/lab/host.h"
#include "src/bench/lab/lab.h"
#include "src/bench/machine/pairs.h"
#include "src/bench/team.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNIT = 4 << 10,
    PIECES = 256 /* in a call, at most */,
    BUFFERS = 5 /* of host memory, that there must be room for */
};
static const int64_t call_bytes = 64 << 20; /* of a call, unless a piece is larger */

typedef enum direction { TO_DEVICE, FROM_DEVICE, BOTH_WAYS, DIRECTIONS } direction;

static const struct {
    const char *name, *kernel;
    int first, count; /* of the calls */
} directions[DIRECTIONS] = {
    {"to device", "host to device", 0, 1}, {"from device", "device to host", 1, 1}, {"both ways", "two queues", 0, 2}};

/* The copies of a rank, and on rank 0 the rates that all have reached alone. */
typedef struct links {
    gm_bench *bench;
    gm_copies copies;
    gm_copy_loop_call calls[2]; /* to the device, from it */
    int64_t piece, count;       /* bytes; pieces in a call */
    direction direction;
    const char *panel;
    gm_numa *numa; /* NULL: memory wherever the system has put it */
    int node;      /* that the memory is on */
    const char *place;
    double *limits; /* [ranks]: computed, byte/s; on rank 0 */
} links;

/* --- Measurements --- */

static int put(const void *context, gm_queue *queue)
{
    const links *l = context;
    const gm_copy_loop_call *calls = &l->calls[directions[l->direction].first];
    return l->direction == BOTH_WAYS ? gm_copies_put_both(&l->copies, queue, calls, gm_copies_put_program)
                                     : gm_copies_put_program(&l->copies, queue, calls);
}

static int run(void *context, gm_team_share *share)
{
    const links *l = context;
    int status = put(l, l->bench->queue);
    share->work = (double)l->piece * (double)l->count * directions[l->direction].count;
    return status ? status : l->bench->ops->queue_sync(l->bench->queue);
}

static int check(const links *l, const char *what)
{
    const gm_copy_loop_call *calls = &l->calls[directions[l->direction].first];
    return gm_copies_check(&l->copies, calls, directions[l->direction].count, put, l, what);
}

/* The computed limit of a team: the sum of its devices'. Rank 0. */
static double limit_of(const links *l, const gm_team *team)
{
    double limit = 0;
    for (int r = team->first; r < team->first + team->count; r++) {
        if (l->limits[r] <= 0)
            return 0;
        limit += l->limits[r] * directions[l->direction].count;
    }
    return limit;
}

/* A team's row. alone: the rate that its ranks reach one by one, together; 0: it is one rank. *rate: its rate, on
 * rank 0. */
static int measure_team_all(links *l, const gm_team *team, double alone, double *rate)
{
    const gm_job *job = l->bench->job;
    const gm_team_work work = {.run = run, .context = l};
    gm_bench_row row = gm_bench_row_make(l->bench, "", directions[l->direction].kernel, GM_CACHE_WARM,
                                         &(gm_bench_timing){0});
    snprintf(row.variant, sizeof row.variant, "%s%s, ", l->place, directions[l->direction].name);
    size_t length = strlen(row.variant);
    snprintf(row.variant + length, sizeof row.variant - length, team->count > 1 ? "%d ranks" : "rank %d",
             team->count > 1 ? team->count : team->first);
    gm_size_format(l->piece, row.shape);
    int status = gm_team_time_all(l->bench, team, &work, &row);
    if (!status && gm_team_has(team, job->ranks->rank))
        status = check(l, row.variant);
    status = gm_job_agree_all(job, status);
    if (status)
        return status;
    row.computed = job->ranks->rank == 0 ? limit_of(l, team) : 0;
    row.measured = alone;
    row.measured_of = "ranks alone";
    row.panel = l->panel;
    row.x = (double)l->piece;
    row.x_name = "bytes of a piece";
    *rate = gm_bench_rate(&row);
    return gm_job_agree_all(job, gm_bench_add(l->bench, &row));
}

/* Each rank alone, then all. */
static int measure_direction_all(links *l)
{
    const int ranks = l->bench->job->ranks->size;
    double sum = 0, rate = 0;
    int status = GM_OK;
    for (int r = 0; r < ranks && !status; r++) {
        status = measure_team_all(l, &(gm_team){r, 1}, 0, &rate);
        sum += rate;
    }
    return status || ranks == 1 ? status : measure_team_all(l, &(gm_team){0, ranks}, sum, &rate);
}

static void place_on_node(const void *where, void *memory, size_t bytes)
{
    const links *l = where;
    gm_numa_place(l->numa, memory, bytes, l->node);
}

static int is_on_node(const links *l)
{
    size_t bytes = (size_t)l->copies.size;
    int good = gm_numa_find(l->numa, l->copies.random, bytes) == l->node &&
               gm_numa_find(l->numa, l->copies.back, bytes) == l->node;
    if (!good)
        gm_note("bench link: the system puts no memory on NUMA node %d", l->node);
    return good;
}

/* Pieces of one size from memory in one place. Where a rank cannot have memory there, none measures. */
static int measure_place_all(links *l)
{
    int64_t there = 1;
    int status = gm_copies_open(l->bench, l->piece * l->count, l->numa ? place_on_node : NULL, l, &l->copies);
    l->calls[0] = gm_copies_in(&l->copies, l->copies.random, l->piece, l->count);
    l->calls[1] = gm_copies_out(&l->copies, l->copies.back, l->piece, l->count);
    if (!status && l->numa)
        there = is_on_node(l);
    status = gm_job_agree_all(l->bench->job, status);
    if (!status)
        status = gm_min_all(&there);
    for (l->direction = 0; l->direction < DIRECTIONS && there && !status; l->direction++)
        status = measure_direction_all(l);
    gm_copies_close(&l->copies);
    return status;
}

/* The pieces of a call: there is room for them on every rank. Collective. */
static int64_t count_all(const gm_bench *bench, int64_t piece)
{
    int64_t count = gm_max(gm_min(call_bytes / piece, PIECES), 1);
    while (count > 1 && (BUFFERS * count * piece > gm_lab_host_room(bench) || 3 * count * piece > gm_bench_room(bench)))
        count /= 2;
    return gm_min_all(&count) ? 1 : count;
}

/* --- NUMA nodes --- */

/* A node that is not the device's; -1: there is none. */
static int other_node(const gm_numa *numa, int near)
{
    for (int i = 0; i < gm_numa_count(numa); i++)
        if (gm_numa_node(numa, i) != near)
            return gm_numa_node(numa, i);
    return -1;
}

/* Memory near the device of each rank, then on another node. */
static int measure_nodes_all(links *l)
{
    const gm_job *job = l->bench->job;
    gm_numa *numa = gm_numa_open();
    const int near = job->info.numa_node, other = numa ? other_node(numa, near) : -1;
    int64_t several = near >= 0 && other >= 0;
    int status = gm_min_all(&several);
    l->numa = numa;
    l->panel = "NUMA nodes";
    if (!several && job->ranks->rank == 0)
        gm_note("bench link: no memory far from a device: a host has one NUMA node, or does not report a device's");
    for (int is_far = 0; is_far < 2 && several && !status; is_far++) {
        l->node = is_far ? other : near;
        l->place = is_far ? "far " : "near ";
        status = measure_place_all(l);
    }
    gm_numa_close(numa);
    return status;
}

/* --- The test --- */

static int gather_limits_all(links *l)
{
    const gm_job *job = l->bench->job;
    int is_first = job->ranks->rank == 0, status = GM_OK;
    if (is_first && !(l->limits = calloc((size_t)job->ranks->size, sizeof *l->limits)))
        status = gm_fail(GM_EDEVICE, "no memory for %d ranks", job->ranks->size);
    status = gm_job_agree_all(job, status);
    return status ? status : gm_gather_all(job->ranks, &job->info.host_limit, sizeof job->info.host_limit, l->limits);
}

static int measure_all(gm_bench *bench, int64_t piece, int with_nodes)
{
    links l = {
        .bench = bench, .piece = piece, .count = count_all(bench, piece), .panel = "pieces, pinned", .place = ""};
    int status = gather_limits_all(&l);
    if (!status)
        status = with_nodes ? measure_nodes_all(&l) : measure_place_all(&l);
    free(l.limits);
    return status;
}

static int measure_piece(gm_bench *bench, int64_t piece)
{
    return measure_all(bench, piece, 0);
}

/* The sizes that every rank has room for. Returns their number. Collective. */
static int find_sizes_all(const gm_bench *bench, int64_t sizes[GM_BENCH_SIZES])
{
    static const int64_t usual[] = {4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
    int count = 0;
    int64_t room = gm_min(gm_lab_host_room(bench) / BUFFERS, gm_bench_room(bench) / 3);
    if (gm_min_all(&room))
        return 0;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (usual[i] <= room && (!bench->is_brief || i % 3 == 0))
            sizes[count++] = usual[i];
    return count;
}

int gm_bench_link(gm_bench *bench)
{
    int64_t sizes[GM_BENCH_SIZES];
    if (bench->ops->unified)
        return gm_bench_skip(bench, "the processor addresses host memory itself");
    int count = find_sizes_all(bench, sizes);
    if (count == 0)
        return gm_bench_skip(bench, "too little memory is free");
    int status = gm_bench_each_size(bench, UNIT, sizes, count, measure_piece);
    if (!status && !bench->job->options->shapes)
        status = measure_all(bench, sizes[count - 1], 1);
    return status || bench->job->options->shapes ? status : gm_bench_pairs_all(bench);
}
