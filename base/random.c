#include "base/random.h"

#include <math.h>

double gm_random_normal(uint64_t key, uint64_t index)
{
    const double two_pi = 6.283185307179586;
    /* (0, 1], so that the logarithm is finite, and [0, 1). */
    double u = (double)((gm_random_bits(key, index & ~UINT64_C(1)) >> 11) + 1) * 0x1p-53;
    double v = (double)(gm_random_bits(key, index | 1) >> 11) * 0x1p-53;
    double radius = sqrt(-2 * log(u));
    return radius * (index & 1 ? sin(two_pi * v) : cos(two_pi * v));
}
