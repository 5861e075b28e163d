#include "src/rates/work.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

/* Of a rate for one rank and one for all, what each of some ranks gets. */
static double part_of(double alone, double together, int ranks)
{
    return fmin(alone, together / ranks);
}

/* What each of some ranks of a host reads. Where the processor computes they seldom read at the same time. Ranks with
 * devices of their own read all the time: each of them adds half of what those before it leave of the host's rate. By
 * one, two and four GPUs: docs/performance.md, "Four GPUs of one host". */
static double read_rate_of(const gm_rates *r, int ranks)
{
    double left = r->unified ? 0 : ldexp(fmax(r->read_host - r->read_rank, 0), 1 - ranks);
    return part_of(r->read_rank, r->read_host - left, ranks);
}

double gm_work_read_host(double alone, double together, int ranks)
{
    return ranks > 1 ? together + (together - alone) / (ldexp(1, ranks - 1) - 1) : together;
}

/* Stages at the same time: as long as the longest, and a part of the others, as none is ever ready when another wants
 * it: wall time over the busiest phase is 1.05 to 1.17 in docs/performance.md. */
static double overlapped(const double *stages, int count)
{
    const double lost = 0.1;
    double most = 0, sum = 0;
    for (int i = 0; i < count; i++) {
        most = fmax(most, stages[i]);
        sum += stages[i];
    }
    return most + lost * (sum - most);
}

const char *gm_resource_name(gm_resource resource)
{
    static const char *const names[] = {
        [GM_RESOURCE_STORAGE] = "storage", [GM_RESOURCE_LINK] = "link", [GM_RESOURCE_KERNELS] = "kernels",
        [GM_RESOURCE_NETWORK] = "network", [GM_RESOURCE_RING] = "ring", [GM_RESOURCE_START] = "start"};
    return names[resource];
}

/* Seconds of a pass beside those of its bytes: of its calls, and of strips. */
typedef struct more_times {
    double read, write;
} more_times;

static more_times more_of(const gm_work *w, const gm_rates *r, int on_host)
{
    double writes = part_of(r->writes_rank, r->writes_host, on_host);
    return (more_times){
        .read = (w->reads > 0 ? w->reads / r->reads_rank : 0) + w->read_strips / (r->read_strips / on_host),
        .write = (w->writes > 0 ? w->writes / writes : 0) + w->write_strips / (r->write_strips / on_host)};
}

/* Of the bytes that a rank writes. Where their memory is there, they take no longer than bytes that are read: one copy.
 */
static double write_seconds(const gm_work *w, double read_rate, double write_rate)
{
    return (w->write - w->ahead) / write_rate + w->ahead / fmax(read_rate, write_rate);
}

/* Reading and writing: seconds of both by the rank and its host, one after the other, as the same I/O threads do both,
 * or those of the storage of all hosts, which all ranks at work share evenly. */
static double storage_seconds(const gm_work *w, double read_rate, double write, double each, more_times more)
{
    return fmax(w->read / read_rate + write + more.read + more.write, (w->read + w->write) / each);
}

/* Seconds of the stages of a pass, but exchanges. */
typedef struct stage_times {
    double phase[GM_PHASES];
    double storage, compute, ring;
} stage_times;

/* Those on a device of its own: all at the same time. */
static double together(const stage_times *t, double exchange)
{
    const double stages[] = {
        t->storage, t->phase[GM_PHASE_TO_DEVICE], t->compute, t->phase[GM_PHASE_FROM_DEVICE], t->ring, exchange};
    return overlapped(stages, sizeof stages / sizeof *stages);
}

/* Those where the processor computes: one after the other. */
static double in_turn(const stage_times *t, double exchange)
{
    double sum = t->ring + exchange;
    for (int i = 0; i < GM_PHASES; i++)
        sum += t->phase[i];
    return sum;
}

static void add_times(const gm_work *w, const gm_rates *r, const stage_times *t, double exchange, gm_work_times *times)
{
    double to = t->phase[GM_PHASE_TO_DEVICE], from = t->phase[GM_PHASE_FROM_DEVICE];
    const double busy[GM_RESOURCES] = {[GM_RESOURCE_STORAGE] = t->storage,
                                       [GM_RESOURCE_LINK] = r->unified ? 0 : fmax(to, from),
                                       [GM_RESOURCE_KERNELS] = t->compute + (r->unified ? to : 0),
                                       [GM_RESOURCE_NETWORK] = exchange,
                                       [GM_RESOURCE_RING] = t->ring};
    for (int i = 0; i < GM_PHASES; i++)
        times->phases.seconds[i] += w->times * (i == GM_PHASE_EXCHANGE ? exchange : t->phase[i]);
    for (int i = 0; i < GM_RESOURCES; i++)
        times->resource[i] += w->times * busy[i];
}

double gm_work_seconds(const gm_work *w, const gm_rates *r, gm_contention contention, gm_work_times *times)
{
    double read_rate = read_rate_of(r, contention.on_host);
    double write_rate = part_of(r->write_rank, r->write_host, contention.on_host);
    double in_rate = r->to_device / contention.on_device, out_rate = r->from_device / contention.on_device;
    double each = r->storage / fmax(contention.working, 1); /* of the storage of all hosts */
    double write = write_seconds(w, read_rate, write_rate);
    more_times more = more_of(w, r, contention.on_host);
    stage_times t = {.storage = storage_seconds(w, read_rate, write, each, more),
                     .phase = {[GM_PHASE_READ] = w->read / fmin(read_rate, each) + more.read,
                               [GM_PHASE_TO_DEVICE] = w->to_device / in_rate,
                               [GM_PHASE_COMPUTE] = (w->memory / r->memory + w->flop_s) * contention.on_device,
                               [GM_PHASE_FROM_DEVICE] = w->from_device / out_rate,
                               [GM_PHASE_WRITE] = fmax(write, w->write / each) + more.write,
                               [GM_PHASE_VERIFY] = w->verify / r->verify * contention.on_device},
                     .ring = w->pieces * r->piece_s};
    t.compute = t.phase[GM_PHASE_COMPUTE] + t.phase[GM_PHASE_VERIFY];
    double moved = fmax(w->received, w->sent), exchange = moved > 0 ? moved / w->exchange : 0;
    double meanwhile = w->overlaps ? exchange : 0, sum;
    if (r->unified)
        sum = in_turn(&t, meanwhile);
    else
        sum = together(&t, meanwhile) + w->first_read * (1 / fmin(read_rate, each) + 1 / in_rate) +
              w->last_out * (1 / fmin(write_rate, each) + 1 / out_rate);
    if (times)
        add_times(w, r, &t, exchange + w->wait_s, times);
    return sum + w->wait_s + exchange - meanwhile; /* else a rank receives when its own part is done */
}

double gm_work_start_seconds(const gm_rates *rates, int working)
{
    int on_host = gm_rates_contention(rates, working).on_host;
    return rates->open_s + rates->rank_s * on_host + (on_host > 1 ? rates->several_s : 0);
}

static void add(gm_work *sum, const gm_work *w)
{
    sum->read += w->times * w->read;
    sum->to_device += w->times * w->to_device;
    sum->from_device += w->times * w->from_device;
    sum->write += w->times * w->write;
    sum->reads += w->times * w->reads;
    sum->writes += w->times * w->writes;
    sum->read_strips += w->times * w->read_strips;
    sum->write_strips += w->times * w->write_strips;
    sum->received += w->times * w->received;
    sum->sent += w->times * w->sent;
}

int gm_work_is_there(gm_work_of *of, const void *context, int rank)
{
    gm_work passes[GM_WORK_PASSES];
    int count = of(context, rank, passes), is_there = 0;
    for (int i = 0; i < count; i++)
        is_there |= passes[i].times > 0 && (passes[i].read > 0 || passes[i].write > 0);
    return is_there;
}

void gm_work_expect(const gm_rates *rates, gm_work_of *of, const void *context, gm_expectation *e)
{
    gm_work passes[GM_WORK_PASSES];
    memset(e, 0, sizeof *e);
    for (int rank = 0; rank < rates->ranks; rank++)
        e->working += gm_work_is_there(of, context, rank);
    gm_contention contention = gm_rates_contention(rates, e->working);
    double ahead = part_of(rates->ahead_rank, rates->ahead_host, contention.on_host);
    for (int rank = 0; rank < rates->ranks; rank++) {
        gm_work sum = {0};
        gm_work_times times = {0};
        int count = of(context, rank, passes), writes = 0;
        double seconds = 0;
        for (int i = 0; i < count; i++) {
            passes[i].ahead = writes ? 0 : fmin(passes[i].write, seconds * ahead);
            writes |= passes[i].times > 0 && passes[i].write > 0;
            seconds += passes[i].times * gm_work_seconds(&passes[i], rates, contention, &times);
            add(&sum, &passes[i]);
            add(&e->all, &passes[i]);
        }
        if (rank > 0 && seconds <= e->seconds)
            continue;
        e->seconds = seconds;
        e->busiest = rank;
        e->times = times;
        e->rank = sum;
    }
    double start = gm_work_start_seconds(rates, e->working);
    e->times.phases.seconds[GM_PHASE_OPEN] = e->times.resource[GM_RESOURCE_START] = start;
    e->seconds += start;
    for (int i = 0; i < GM_RESOURCES; i++)
        if (e->times.resource[i] > e->times.resource[e->limit])
            e->limit = (gm_resource)i;
}
