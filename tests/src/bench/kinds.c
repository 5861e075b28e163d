/* Kinds of random matrices. */
#include "src/bench/bench.h"
#include "tests/tap.h"

#include <math.h>
#include <string.h>

static void test_kinds(void)
{
    enum { ROWS = 40, COLS = 500 };
    static float values[ROWS][COLS];
    double least[GM_BENCH_KINDS], most[GM_BENCH_KINDS], column[COLS];
    int far = 0, same = 1;
    for (int kind = 0; kind < GM_BENCH_KINDS; kind++) {
        const gm_bench_matrix m = {
            .type = GM_DTYPE_F32, .kind = (gm_bench_kind)kind, .cols = COLS, .key = 5, .by_columns = 1};
        least[kind] = INFINITY;
        most[kind] = -INFINITY;
        memset(column, 0, sizeof column);
        for (int i = 0; i < ROWS; i++) {
            float one;
            gm_bench_elements(&m, i, 0, COLS, values[i]);
            gm_bench_elements(&m, i, COLS / 3, 1, &one);
            same &= one == values[i][COLS / 3];
            for (int j = 0; j < COLS; j++) {
                least[kind] = fmin(least[kind], values[i][j]);
                most[kind] = fmax(most[kind], values[i][j]);
                column[j] = fmax(column[j], fabs((double)values[i][j]));
                far += kind == GM_BENCH_HUGE && fabs((double)values[i][j]) > 1;
            }
        }
        for (int j = 0; j < COLS && kind == GM_BENCH_SCALED; j++) /* the largest of 40 is near the scale */
            same &= fabs((double)values[0][j]) <= column[j] && column[j] > 0x1p-53 && column[j] <= 0x1p50;
    }
    tap_ok(same, "an element does not depend on where a call begins");
    tap_ok(least[GM_BENCH_UNIFORM] >= 0 && most[GM_BENCH_UNIFORM] < 1 && least[GM_BENCH_CENTRED] < -0.99 &&
               most[GM_BENCH_CENTRED] > 0.99 && most[GM_BENCH_CENTRED] < 1 && most[GM_BENCH_NORMAL] > 2 &&
               most[GM_BENCH_NORMAL] < 7,
           "uniform, centred, normal");
    tap_ok(most[GM_BENCH_SCALED] > 1e14 && most[GM_BENCH_SCALED] < 0x1p50, "scaled up to %g", most[GM_BENCH_SCALED]);
    tap_ok(far > ROWS / 2 && far <= ROWS && fmax(most[GM_BENCH_HUGE], -least[GM_BENCH_HUGE]) > 0x1p14,
           "a huge entry in a row: %d in %d rows", far, ROWS);
    tap_ok(gm_bench_kind_applies(GM_BENCH_NORMAL, GM_DTYPE_I8) &&
               !gm_bench_kind_applies(GM_BENCH_SCALED, GM_DTYPE_I8) &&
               gm_bench_kind_applies(GM_BENCH_HUGE, GM_DTYPE_F64),
           "kinds of integers and of floats");
}

int main(void)
{
    test_kinds();
    return tap_done();
}
