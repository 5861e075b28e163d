/* The sample of copies that are timed: all of a short run, a known part of a long one, and every copy that lasts into
 * it. */
#include "src/stream/sample.h"
#include "tests/tap.h"

#include <math.h>

static const double step = 1e-5; /* seconds */

static void test_seconds(void)
{
    int steps = 0, wrong = 0;
    double before = 0;
    tap_ok(gm_sample_seconds(-1) == 0 && gm_sample_seconds(0) == 0, "nothing before the run");
    for (double t = step; t < 1; t += step, steps++) {
        double now = gm_sample_seconds(t);
        wrong += now < before || now - before > step * (1 + 1e-9) || (t < 0.03 && fabs(now - t) > 1e-12);
        before = now;
    }
    tap_ok(wrong == 0, "%d of %d steps are wrong: time adds itself, a part of itself or nothing", wrong, steps);
    double part = (gm_sample_seconds(101) - gm_sample_seconds(1)) / 100;
    tap_ok(part > 0.05 && part < 0.1, "a long run has %g of its time in the sample", part);
}

/* A copy that lasts for less than a millisecond and has a part in the sample is timed. */
static void test_copies(void)
{
    const double length = 0.9e-3;
    int timed = 0, copies = 0, missed = 0;
    for (double t = 0; t < 1; t += step, copies++) {
        int has = gm_sample_has(t), lasts_into = gm_sample_seconds(t + length) > gm_sample_seconds(t);
        timed += has;
        missed += lasts_into && !has;
    }
    tap_ok(missed == 0 && timed < copies / 6, "%d of %d copies are timed, %d are missed", timed, copies, missed);
}

int main(void)
{
    test_seconds();
    test_copies();
    return tap_done();
}
