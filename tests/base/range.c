/* Shares of a range: they follow each other, cover it, begin at multiples of the unit, and are as even as these allow.
 */
#include "base/range.h"
#include "tests/tap.h"

static void check_rectangles(void)
{
    int wrong = 0;
    for (int64_t columns = 1; columns <= 7; columns++) {
        for (int64_t begin = 0; begin < 30; begin++) {
            for (int64_t end = begin + 1; end <= 30; end++) {
                int64_t at = begin, pieces = 0;
                for (gm_rectangle r; at < end; at += r.rows * r.cols, pieces++) {
                    r = gm_rectangle_next(columns, at, end);
                    wrong += r.rows < 1 || r.cols < 1 || r.row * columns + r.col != at || r.col + r.cols > columns ||
                             (r.rows > 1 && r.cols != columns);
                }
                wrong += at != end || pieces > 3;
            }
        }
    }
    tap_ok(wrong == 0, "a range is at most three rectangles");
}

int main(void)
{
    int covers = 1, even = 1, units = 1;
    for (int64_t count = 0; count < 200; count += 7)
        for (int64_t unit = 1; unit <= 64; unit *= 4)
            for (int64_t shares = 1; shares <= 9; shares++) {
                int64_t at = 0, most = gm_range_length(gm_range_split(count, unit, shares, 0));
                for (int64_t i = 0; i < shares; i++) {
                    gm_range share = gm_range_split(count, unit, shares, i);
                    int64_t length = gm_range_length(share);
                    covers &= share.begin == at && length >= 0;
                    units &= share.begin % unit == 0 || share.begin == count;
                    even &= length <= most && (length >= most - 2 * unit || share.end == count);
                    at = share.end;
                }
                covers &= at == count;
            }
    tap_ok(covers, "shares follow each other and cover the range");
    tap_ok(units, "they begin at multiples of the unit");
    tap_ok(even, "the first share is the largest, and they differ by a unit");
    gm_range large = gm_range_split(INT64_MAX, 1, 3, 2);
    tap_ok(large.end == INT64_MAX && gm_range_length(large) == INT64_MAX / 3, "64-bit ranges");
    gm_range common = gm_range_overlap((gm_range){3, 9}, (gm_range){5, 20}),
             none = gm_range_overlap((gm_range){3, 9}, (gm_range){9, 20});
    tap_ok(common.begin == 5 && common.end == 9 && gm_range_length(none) == 0, "the common part of two ranges");
    check_rectangles();
    return tap_done();
}
