/* The sample of copies that are timed: every copy that goes on while the sample does is in it, few are, and the time
 * that is estimated by it is that of the whole run, wherever the copies are. */
#include "src/stream/sample.h"
#include "tests/tap.h"

#include <math.h>

static const double step = 1e-5; /* seconds */

/* Seconds of [begin, end] that are in the sample. */
static double in_sample(double begin, double end)
{
    gm_sample sample = {0};
    gm_sample_add(&sample, begin, end);
    return sample.first + sample.later;
}

static void test_copies(void)
{
    const double length = 0.9e-3; /* of a copy: less than a millisecond */
    int timed = 0, copies = 0, missed = 0;
    for (double t = 0; t < 1; t += step, copies++) {
        int has = gm_sample_has(t);
        timed += has;
        missed += in_sample(t, t + length) > 1e-12 && !has;
    }
    tap_ok(missed == 0 && timed < copies / 6, "%d of %d copies are timed, %d are missed", timed, copies, missed);
}

static void test_seconds(void)
{
    int wrong = 0;
    for (double t = 0; t < 0.5; t += 7 * step)
        for (double length = 0; length < 0.1; length += 131 * step) {
            double whole = in_sample(t, t + length), middle = t + length / 3;
            wrong += whole < 0 || whole > length + 1e-12 ||
                     fabs(in_sample(t, middle) + in_sample(middle, t + length) - whole) > 1e-12;
        }
    tap_ok(wrong == 0, "a span has the seconds of its parts, and no more than its length (%d wrong)", wrong);
    tap_ok(in_sample(0, 0.02) == 0.02 && in_sample(0.02, 0.01) == 0, "all of the start; nothing of an empty span");
}

/* Copies that are under way in a part of [begin, end), in a run of some seconds. */
static void test_estimate(const char *name, double run, double begin, double end, double part)
{
    const double period = 1.1e-4;
    gm_sample sample = {0};
    for (double t = begin; t < end; t += period)
        gm_sample_add(&sample, t, fmin(t + part * period, end));
    double found = gm_sample_estimate(&sample, run), wanted = part * (end - begin), most = 0.004 + 0.05 * wanted;
    tap_ok(fabs(found - wanted) <= most && found <= run, "%s: %.4f s are estimated, %.4f s expected", name, found,
           wanted);
}

int main(void)
{
    test_copies();
    test_seconds();
    test_estimate("a short run", 0.02, 0.005, 0.02, 0.5);
    test_estimate("all of a long run", 3, 0, 3, 1);
    test_estimate("half of a long run", 3, 0, 3, 0.5);
    test_estimate("only the start", 3, 0, 0.03, 1);
    test_estimate("the first tenth", 3, 0, 0.304, 0.8);
    test_estimate("only the end", 3, 2.5, 3, 0.7);
    test_estimate("nothing", 3, 0, 0, 1);
    return tap_done();
}
