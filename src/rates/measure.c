#include "src/rates/measure.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/range.h"
#include "base/size.h"
#include "io/bench/speed.h"
#include "io/read/reader.h"
#include "mpi/exchange.h"
#include "src/exchange/staged.h"
#include "src/rates/work.h"
#include "src/stream/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE = 8 << 20, /* bytes: about a band of a product */
    MESSAGES = 3       /* that are timed; one goes before them */
};

/* Bytes per second as an integer, for collective calls. */
static int64_t whole(double rate)
{
    return (int64_t)fmin(rate, 1e18);
}

/* --- Reading --- */

/* Each rank reads at a place of its own, and in the second round (together) at another one. */
static double read_speed(const gm_rates_sample *s, int together)
{
    gm_range mine = gm_range_split(gm_dataset_elements(s->input), 1, s->ranks->size, s->ranks->rank);
    int64_t middle = mine.begin + gm_range_length(mine) / 2;
    if (!together && s->ranks->local_rank != 0)
        return 0;
    return gm_reader_speed(s->input, s->threads, together ? middle : mine.begin, together ? mine.end : middle,
                           s->seconds / 3);
}

/* The rate of a host: the least of the ranks that read alone, or of all of them the sum of an average host. 0: unknown.
 * Collective. */
static int read_all(const gm_rates_sample *s, int together, double *rate)
{
    int64_t start = 0, sum, least;
    int status = gm_min_all(&start); /* all begin at the same time */
    if (status)
        return status;
    double speed = read_speed(s, together);
    int reads = together || s->ranks->local_rank == 0;
    sum = whole(speed);
    least = reads ? sum : INT64_MAX;
    status = gm_min_all(&least);
    if (!status)
        status = gm_sum_all(&sum);
    *rate = status || least == 0 ? 0 : together ? (double)sum / s->ranks->hosts : (double)least;
    return status;
}

static int measure_read_all(const gm_rates_sample *s, gm_rates *rates)
{
    double alone, together = 0;
    int status = read_all(s, 0, &alone);
    if (!status)
        status = read_all(s, 1, &together);
    if (status || alone <= 0 || together <= 0)
        return status;
    together = fmax(together, alone); /* the first round has read from slower storage than the second */
    rates->reads_measured = 1;
    if (rates->unified) {
        rates->read_rank = alone;
        rates->read_host = together;
        return GM_OK;
    }
    rates->read_rank = fmin(alone, rates->read_rank); /* of reading with copies */
    rates->read_host = fmin(gm_work_read_host(rates->read_rank, together, gm_rates_host_ranks(rates)),
                            rates->read_host);
    return GM_OK;
}

/* --- The exchange --- */

/* The path of an exchange, and the two regions of device memory. */
typedef struct exchanger {
    const gm_rates_sample *sample;
    gm_staged *staged;
    gm_pool pool;
    void *memory[2]; /* [MESSAGE] */
} exchanger;

static void close_exchanger_all(exchanger *e)
{
    gm_staged_close_all(e->staged);
    gm_pool_release(&e->pool);
}

/* Whether there is memory for it, on all ranks: without an error. Collective. */
static int open_exchanger_all(const gm_rates_sample *s, exchanger *e, int64_t *opened)
{
    const int64_t host = s->ops->unified ? 2 * (MESSAGE + GM_ALLOC_OVERHEAD) : GM_STAGED_PINNED;
    *e = (exchanger){.sample = s, .pool = {.ops = s->ops, .device = s->device}};
    *opened = gm_host_try_charge(host);
    if (*opened) {
        int before = gm_error_hush(1);
        gm_host_release_charge(host);
        for (int i = 0; i < 2; i++)
            e->memory[i] = gm_pool_device(&e->pool, MESSAGE, 1);
        for (int i = 0; i < 2 && s->ops->unified && !e->pool.status; i++)
            memset(e->memory[i], 0, MESSAGE); /* its pages are there before the time counts */
        *opened = !e->pool.status;
        gm_error_hush(before);
    }
    int status = gm_min_all(opened);
    if (status || !*opened)
        return status;
    int before = gm_error_hush(1);
    *opened = !gm_staged_open_all(s->ops, s->device, s->ranks, 0, &e->staged);
    gm_error_hush(before);
    return gm_min_all(opened);
}

/* Ranks [0, distance), [2 distance, 3 distance) ... and those `distance` further on are pairs; -1: none. */
static int partner_of(const gm_ranks *ranks, int distance, int *is_first)
{
    *is_first = ranks->rank / distance % 2 == 0;
    int partner = *is_first ? ranks->rank + distance : ranks->rank - distance;
    return partner < ranks->size ? partner : -1;
}

/* The index of the partner's host. */
static int meet(const gm_ranks *ranks, int partner, int is_first, int *host)
{
    int mine = ranks->host_index, status = is_first ? gm_send(partner, &mine, sizeof mine) : GM_OK;
    if (!status)
        status = gm_receive(partner, host, sizeof *host);
    return status || is_first ? status : gm_send(partner, &mine, sizeof mine);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Both ways at once. *rate: by the median of the exchanges. */
static int exchange(const exchanger *e, int partner, double *rate)
{
    gm_exchange_region send = {.peer = partner, .memory = e->memory[0], .pitch = MESSAGE, .width = MESSAGE, .rows = 1};
    gm_exchange_region receive = send;
    double took[MESSAGES + 1];
    int status = GM_OK;
    receive.memory = e->memory[1];
    for (int i = 0; i <= MESSAGES; i++) { /* all of them, also after a failure */
        double start = gm_clock();
        status = gm_staged_exchange(e->staged, &send, &receive, NULL, status);
        took[i] = gm_clock() - start;
    }
    qsort(took + 1, MESSAGES, sizeof *took, by_size);
    *rate = MESSAGE / fmax(took[1 + MESSAGES / 2], 1e-9);
    return status;
}

/* The least rate of all pairs at a distance, of one host and of two. Collective. */
static int exchange_all(const exchanger *e, int distance, int64_t *near, int64_t *far)
{
    const gm_ranks *ranks = e->sample->ranks;
    int is_first, partner = partner_of(ranks, distance, &is_first), host = ranks->host_index, status = GM_OK;
    double rate = INFINITY;
    if (partner >= 0)
        status = meet(ranks, partner, is_first, &host);
    status = gm_agree_all(ranks, status); /* all begin at the same time */
    if (status)
        return status;
    if (partner >= 0)
        status = exchange(e, partner, &rate);
    int64_t *mine = host == ranks->host_index ? near : far;
    if (partner >= 0)
        *mine = gm_min(*mine, whole(rate));
    return gm_agree_all(ranks, status);
}

/* Neighbours, mostly of one host, and with several hosts ranks half of the run apart. */
static int measure_pairs_all(const exchanger *e, gm_rates *rates)
{
    const gm_ranks *ranks = e->sample->ranks;
    int64_t near = INT64_MAX, far = INT64_MAX;
    int status = exchange_all(e, 1, &near, &far);
    if (!status && ranks->hosts > 1)
        status = exchange_all(e, ranks->size / 2, &near, &far);
    if (!status)
        status = gm_min_all(&near);
    if (!status)
        status = gm_min_all(&far);
    if (status)
        return status;
    if (near < INT64_MAX) /* panels are read meanwhile, which the usual rate knows */
        rates->exchange_near = rates->unified ? (double)near : fmin((double)near, rates->exchange_near);
    rates->exchange_far = far < INT64_MAX ? (double)far : rates->exchange_far;
    rates->exchanges_measured = near < INT64_MAX || far < INT64_MAX;
    return GM_OK;
}

static int measure_exchange_all(const gm_rates_sample *s, gm_rates *rates)
{
    exchanger e;
    int64_t opened;
    int status = open_exchanger_all(s, &e, &opened);
    if (!status && opened)
        status = measure_pairs_all(&e, rates);
    close_exchanger_all(&e);
    return status;
}

int gm_rates_measure_all(const gm_rates_sample *s, gm_rates *rates)
{
    int status = s->input ? measure_read_all(s, rates) : GM_OK;
    if (!status && s->ranks->size > 1)
        status = measure_exchange_all(s, rates);
    return gm_agree_all(s->ranks, status);
}
