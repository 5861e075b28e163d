#include "src/rates/work.h"

#include <math.h>
#include <string.h>

/* Of a rate for one rank and one for all, what each of some ranks gets. */
static double part_of(double alone, double together, int ranks)
{
    return fmin(alone, together / ranks);
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

double gm_work_seconds(const gm_work *w, const gm_rates *r, gm_crew crew, gm_phase_times *phases)
{
    double read_rate = part_of(r->read_rank, r->read_host, crew.on_host);
    double write_rate = part_of(r->write_rank, r->write_host, crew.on_host);
    double in_rate = r->to_device / crew.on_device, out_rate = r->from_device / crew.on_device;
    double seconds[GM_PHASES] = {
        [GM_PHASE_READ] = w->read / read_rate,
        [GM_PHASE_TO_DEVICE] = w->to_device / in_rate,
        [GM_PHASE_COMPUTE] = (w->memory / r->memory + w->flop_s) * crew.on_device,
        [GM_PHASE_FROM_DEVICE] = w->from_device / out_rate,
        [GM_PHASE_WRITE] = w->write / write_rate,
        [GM_PHASE_VERIFY] = w->verify / r->verify * crew.on_device,
    };
    double moved = fmax(w->received, w->sent), exchange = moved > 0 ? moved / w->exchange : 0;
    double meanwhile = w->overlaps ? exchange : 0;
    double compute = seconds[GM_PHASE_COMPUTE] + seconds[GM_PHASE_VERIFY], main_thread = w->pieces * r->piece_s, sum;
    if (r->unified) {
        sum = main_thread + meanwhile;
        for (int i = 0; i < GM_PHASES; i++)
            sum += seconds[i];
    } else {
        double stages[] = {seconds[GM_PHASE_READ],
                           seconds[GM_PHASE_TO_DEVICE],
                           compute,
                           seconds[GM_PHASE_FROM_DEVICE],
                           seconds[GM_PHASE_WRITE],
                           main_thread,
                           meanwhile};
        sum = overlapped(stages, sizeof stages / sizeof *stages) + w->first_read * (1 / read_rate + 1 / in_rate) +
              w->last_out * (1 / write_rate + 1 / out_rate);
    }
    seconds[GM_PHASE_EXCHANGE] = exchange + w->wait_s;
    for (int i = 0; phases && i < GM_PHASES; i++)
        phases->seconds[i] += w->times * seconds[i];
    return sum + w->wait_s + exchange - meanwhile; /* else a rank receives when its own part is done */
}

double gm_work_start_seconds(const gm_rates *rates, int working)
{
    return rates->open_s + rates->rank_s * working;
}

static void add(gm_work *sum, const gm_work *w)
{
    sum->read += w->times * w->read;
    sum->to_device += w->times * w->to_device;
    sum->from_device += w->times * w->from_device;
    sum->write += w->times * w->write;
    sum->received += w->times * w->received;
    sum->sent += w->times * w->sent;
}

static int has_work(const gm_work *w)
{
    return w->times > 0 && (w->read > 0 || w->write > 0);
}

void gm_work_expect(const gm_rates *rates, gm_work_of *of, const void *context, gm_expectation *e)
{
    gm_work passes[GM_WORK_PASSES];
    memset(e, 0, sizeof *e);
    for (int rank = 0; rank < rates->ranks; rank++) {
        int count = of(context, rank, passes), works = 0;
        for (int i = 0; i < count; i++)
            works |= has_work(&passes[i]);
        e->working += works;
    }
    gm_crew crew = gm_rates_crew(rates, e->working);
    for (int rank = 0; rank < rates->ranks; rank++) {
        gm_work sum = {0};
        gm_phase_times phases = {0};
        int count = of(context, rank, passes);
        double seconds = 0;
        for (int i = 0; i < count; i++) {
            seconds += passes[i].times * gm_work_seconds(&passes[i], rates, crew, &phases);
            add(&sum, &passes[i]);
            add(&e->all, &passes[i]);
        }
        if (rank > 0 && seconds <= e->seconds)
            continue;
        e->seconds = seconds;
        e->busiest = rank;
        e->phases = phases;
        e->rank = sum;
    }
    e->phases.seconds[GM_PHASE_OPEN] = gm_work_start_seconds(rates, e->working);
    e->seconds += e->phases.seconds[GM_PHASE_OPEN];
}
