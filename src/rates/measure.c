#include "src/rates/measure.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/range.h"
#include "base/size.h"
#include "io/read/reader.h"
#include "io/read/speed.h"
#include "mpi/exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE = 2 << 20, /* bytes: a large one to MPI */
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
    rates->read_rank = rates->unified ? alone : fmin(alone, rates->read_rank);
    rates->read_host = rates->unified ? together : fmin(together, rates->read_host);
    rates->reads_measured = 1;
    return GM_OK;
}

/* --- The exchange --- */

/* Ranks [0, distance), [2 distance, 3 distance) ... send to the rank that is `distance` further on. */
static int partner_of(const gm_ranks *ranks, int distance, int *sends)
{
    *sends = ranks->rank / distance % 2 == 0;
    int partner = *sends ? ranks->rank + distance : ranks->rank - distance;
    return partner < ranks->size ? partner : -1;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first message has the index of the sender's host, and after it both ranks have touched their buffers. */
static int send_messages(int to, int host, char *buffer)
{
    int status = GM_OK;
    if (buffer)
        memcpy(buffer, &host, sizeof host);
    for (int i = 0; i <= MESSAGES && !status; i++)
        status = gm_send(to, buffer, MESSAGE);
    return status;
}

/* *rate: by the median of the messages; 0 if a rank has no buffer. */
static int receive_messages(int from, int *host, char *buffer, double *rate)
{
    double took[MESSAGES];
    int status = GM_OK, received = 0;
    *rate = 0;
    for (int i = 0; i <= MESSAGES && (!status || status == GM_EPEER); i++) {
        double start = gm_clock();
        status = gm_receive(from, buffer, MESSAGE);
        if (status || !buffer)
            continue;
        if (i == 0)
            memcpy(host, buffer, sizeof *host);
        else
            took[received++] = gm_clock() - start;
    }
    if (received == MESSAGES) {
        qsort(took, MESSAGES, sizeof *took, by_size);
        *rate = MESSAGE / fmax(took[MESSAGES / 2], 1e-9);
    }
    return status == GM_EPEER ? GM_OK : status;
}

/* *rate: of a rank that receives, 0 of others; *host: the sender's. buffer: MESSAGE bytes, or NULL. GM_OK also when the
 * other rank has no buffer; GM_EMPI. */
static int exchange(const gm_ranks *ranks, int distance, char *buffer, double *rate, int *host)
{
    int sends, partner = partner_of(ranks, distance, &sends);
    *rate = 0;
    *host = ranks->host_index;
    if (partner < 0)
        return GM_OK;
    return sends ? send_messages(partner, *host, buffer) : receive_messages(partner, host, buffer, rate);
}

/* The least rate of all pairs at a distance, of one host and of two. Collective. */
static int exchange_all(const gm_ranks *ranks, int distance, char *buffer, int64_t *near, int64_t *far)
{
    double rate;
    int host, status = exchange(ranks, distance, buffer, &rate, &host);
    int64_t *mine = host == ranks->host_index ? near : far;
    if (rate > 0)
        *mine = gm_min(*mine, whole(rate));
    return gm_agree_all(ranks, status);
}

/* Neighbours, mostly of one host, and with several hosts ranks half of the run apart. */
static int measure_exchange_all(const gm_ranks *ranks, gm_rates *rates)
{
    int64_t near = INT64_MAX, far = INT64_MAX;
    void *buffer = NULL;
    if (gm_host_try(MESSAGE, &buffer))
        memset(buffer, 0, MESSAGE);
    int status = exchange_all(ranks, 1, buffer, &near, &far);
    if (!status && ranks->hosts > 1)
        status = exchange_all(ranks, ranks->size / 2, buffer, &near, &far);
    gm_host_free(buffer);
    if (!status)
        status = gm_min_all(&near);
    if (!status)
        status = gm_min_all(&far);
    if (status)
        return status;
    rates->exchange_near = near < INT64_MAX ? (double)near : rates->exchange_near;
    rates->exchange_far = far < INT64_MAX ? (double)far : rates->exchange_far;
    rates->exchanges_measured = near < INT64_MAX || far < INT64_MAX;
    return GM_OK;
}

int gm_rates_measure_all(const gm_rates_sample *s, gm_rates *rates)
{
    int status = s->input ? measure_read_all(s, rates) : GM_OK;
    if (!status && s->ranks->size > 1)
        status = measure_exchange_all(s->ranks, rates);
    return gm_agree_all(s->ranks, status);
}
