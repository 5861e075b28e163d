/* Messages between the ranks of bench mpi, by the program's own ways (mpi/exchange.h, mpi/ranks.h), in which a
 * message is a status and the data. */
#include "src/bench/machine/talk.h"

#include "base/random.h"
#include "mpi/exchange.h"
#include "src/bench/lab/host.h"

/* --- Messages --- */

static int copy_and_wait(const gm_net *n, int is_out, void *dst, const void *src, int64_t bytes)
{
    gm_bench *bench = n->bench;
    size_t size = (size_t)bytes;
    int status = is_out ? bench->ops->copy_out(bench->queue, dst, size, src, size, size, 1)
                        : bench->ops->copy_in(bench->queue, dst, size, src, size, size, 1);
    return status ? status : bench->ops->queue_sync(bench->queue);
}

/* Sends the random bits, or, as an echo, what has arrived. Returns the status with what has failed here. */
static int put(const gm_talk *t, int to, int is_echo, int status)
{
    const gm_net *n = t->net;
    const char *from = is_echo || t->is_staged ? n->dst : n->src;
    if (!status && t->is_staged)
        status = copy_and_wait(n, 1, n->dst, is_echo ? n->device_dst : n->device_src, t->bytes);
    int sent = gm_send(to, status ? NULL : from, (size_t)t->bytes);
    return status ? status : sent;
}

static int take(const gm_talk *t, int from, int status)
{
    const gm_net *n = t->net;
    int received = gm_receive(from, status ? NULL : n->dst, (size_t)t->bytes);
    status = status ? status : received;
    return !status && t->is_staged ? copy_and_wait(n, 0, n->device_dst, n->dst, t->bytes) : status;
}

int gm_talk_ping_pong(const gm_talk *t, int status)
{
    int rank = t->net->ranks->rank;
    for (int i = 0; i < t->count; i++) {
        if (rank == 0) {
            status = put(t, t->peer, 0, status);
            status = take(t, t->peer, status);
        } else if (rank == t->peer) {
            status = take(t, 0, status);
            status = put(t, 0, 1, status);
        }
    }
    return status;
}

/* Messages in one direction; a word in the other one when all have arrived. */
int gm_talk_send(const gm_talk *t, int status)
{
    int rank = t->net->ranks->rank, answered = GM_OK;
    int64_t word = 0;
    for (int i = 0; i < t->count; i++) {
        if (rank == 0)
            status = put(t, t->peer, 0, status);
        else if (rank == t->peer)
            status = take(t, 0, status);
    }
    if (rank == 0)
        answered = gm_receive(t->peer, status ? NULL : &word, sizeof word);
    else if (rank == t->peer)
        answered = gm_send(0, status ? NULL : &word, sizeof word);
    return status ? status : answered;
}

/* --- Collectives --- */

int gm_talk_broadcast(const gm_talk *t, int status)
{
    const gm_net *n = t->net;
    int64_t end = 0;
    int done = GM_OK;
    for (int i = 0; i < t->count && !done; i++)
        done = gm_broadcast_all(n->ranks->rank == 0 ? n->src : n->dst, (size_t)t->bytes);
    if (!done)
        done = gm_min_all(&end); /* all have received */
    return status ? status : done;
}

/* 1 + 2 + ... over all ranks. */
static double sum_of_ranks(const gm_net *n)
{
    return 0.5 * n->ranks->size * (n->ranks->size + 1.0);
}

int gm_talk_sum(const gm_talk *t, int status)
{
    const gm_net *n = t->net;
    int done = GM_OK;
    for (int i = 0; i < t->count && !done; i++) {
        int64_t value = n->ranks->rank + 1;
        done = gm_sum_all(&value);
        if (!done && !status && (double)value != sum_of_ranks(n))
            status = gm_fail(GM_ECHECK, "bench mpi: %s: the sum is %lld", t->variant, (long long)value);
    }
    return status ? status : done;
}

int gm_talk_sums(const gm_talk *t, int status)
{
    const gm_net *n = t->net;
    int done = GM_OK;
    for (int i = 0; i < t->count && !done; i++)
        done = gm_sum_floats_all((const double *)n->src, (double *)n->dst, (size_t)t->bytes / sizeof(double));
    return status ? status : done;
}

/* Element i of what rank 0 adds: an integer below 2^20, so that all sums are exact. */
static double weight(int64_t i)
{
    return (double)(gm_random_bits(1, (uint64_t)i) >> 44);
}

/* Replaces the random bits: rank r adds r + 1 times the weights. */
void gm_net_fill_weights(const gm_net *n)
{
    double *values = (double *)n->src;
#pragma omp parallel for num_threads(n->bench->job->threads)
    for (int64_t i = 0; i < n->most / (int64_t)sizeof *values; i++)
        values[i] = (n->ranks->rank + 1) * weight(i);
}

/* --- Checks --- */

static int fail_check(const gm_talk *t, const char *what)
{
    return gm_fail(GM_ECHECK, "bench mpi: %s %s: %s", t->variant, t->shape, what);
}

static int check_data(const gm_talk *t)
{
    const gm_net *n = t->net;
    int status = GM_OK;
    if (t->is_staged)
        status = copy_and_wait(n, 1, n->dst, n->device_dst, t->bytes);
    return status || gm_lab_is_equal(n->bench, n->dst, n->src, t->bytes) ? status
                                                                         : fail_check(t, "wrong bytes arrived");
}

int gm_talk_check_ping_pong(const gm_talk *t)
{
    int rank = t->net->ranks->rank;
    return rank == 0 || rank == t->peer ? check_data(t) : GM_OK;
}

int gm_talk_check_send(const gm_talk *t)
{
    return t->net->ranks->rank == t->peer ? check_data(t) : GM_OK;
}

int gm_talk_check_broadcast(const gm_talk *t)
{
    return t->net->ranks->rank != 0 ? check_data(t) : GM_OK;
}

int gm_talk_check_sums(const gm_talk *t)
{
    const double *sums = (const double *)t->net->dst, factor = sum_of_ranks(t->net);
    int wrong = 0;
#pragma omp parallel for num_threads(t->net->bench->job->threads) reduction(| : wrong)
    for (int64_t i = 0; i < t->bytes / (int64_t)sizeof *sums; i++)
        wrong |= sums[i] != factor * weight(i);
    return wrong ? fail_check(t, "a sum is wrong") : GM_OK;
}
