/* Shares of a piece: consecutive, complete, at multiples of the unit, of about equal length. */
#include "src/stream/share.h"
#include "tests/tap.h"

static void test_borders(void)
{
    int gaps = 0, ragged = 0;
    for (int of = 1; of <= 9; of++)
        for (int64_t first = 0; first < 40; first += 13)
            for (int64_t count = 0; count < 60; count += 7)
                for (int64_t unit = 1; unit < 32; unit *= 5) {
                    int64_t at = 0;
                    for (int i = 0; i < of; i++) {
                        gm_range share = gm_share_cut((gm_share){i, of}, first, count, unit);
                        gaps += share.begin != at || share.end < at;
                        at = share.end;
                        ragged += i + 1 < of && (first + at) % unit != 0 && at != 0 && at != count;
                    }
                    gaps += at != count;
                }
    tap_ok(gaps == 0, "shares follow each other and cover the whole");
    tap_ok(ragged == 0, "inner borders are multiples of the unit, or borders of the whole");
}

static void test_lengths(void)
{
    int uneven = 0;
    for (int of = 1; of <= 17; of++)
        for (int64_t count = 0; count < 100; count += 3)
            for (int i = 0; i < of; i++) {
                int64_t length = gm_range_length(gm_share_cut((gm_share){i, of}, 1000, count, 1));
                uneven += length != count / of && length != count / of + 1;
            }
    tap_ok(uneven == 0, "with unit 1, lengths differ by one byte at most");
}

static void test_large(void)
{
    int64_t previous = 0;
    int wrong = 0;
    for (int i = 0; i < 1000; i++) {
        gm_range share = gm_share_cut((gm_share){i, 1000}, 0, INT64_MAX, 1 << 20);
        wrong += share.begin != previous || share.end <= previous;
        previous = share.end;
    }
    tap_ok(wrong == 0 && previous == INT64_MAX, "2^63 - 1 bytes in 1000 shares: no overflow");
}

static void test_few_units(void)
{
    int nonempty = 0;
    for (int i = 0; i < 8; i++)
        nonempty += gm_range_length(gm_share_cut((gm_share){i, 8}, 100, 20, 50)) > 0;
    tap_ok(nonempty == 1, "one unit is one share; the others are empty");
}

int main(void)
{
    test_borders();
    test_lengths();
    test_large();
    test_few_units();
    return tap_done();
}
