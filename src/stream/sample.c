#include "src/stream/sample.h"

#include <math.h>

/* Seconds. A copy lasts less than `ahead`, also where the link has copies of all lanes to do. */
static const double whole = 0.032, period = 0.032, part = 0.002, ahead = 0.001;

double gm_sample_seconds(double end)
{
    if (end <= whole)
        return fmax(end, 0);
    double periods = floor((end - whole) / period);
    return whole + periods * part + fmin(end - whole - periods * period, part);
}

int gm_sample_has(double begin)
{
    return gm_sample_seconds(begin + ahead) > gm_sample_seconds(begin);
}
