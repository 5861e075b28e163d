#include "src/stream/sample.h"

#include <math.h>

/* Seconds: the start, then a part of each period. A copy lasts less than `ahead`, also where the link has copies of all
 * lanes to do. */
static const double start = 0.032, period = 0.016, part = 0.001, ahead = 0.001;

/* Seconds of the sample after the start and before `end`. */
static double later(double end)
{
    double after = fmax(end - start, 0), periods = floor(after / period);
    return periods * part + fmin(after - periods * period, part);
}

int gm_sample_has(double begin)
{
    return begin < start || later(begin + ahead) > later(begin);
}

void gm_sample_add(gm_sample *sample, double begin, double end)
{
    if (begin >= end)
        return;
    sample->first += fmin(end, start) - fmin(begin, start);
    sample->later += later(end) - later(begin);
}

double gm_sample_estimate(const gm_sample *sample, double end)
{
    double of = later(end);
    return sample->first + (of > 0 ? sample->later / of * (end - start) : 0);
}
