#include "base/size.h"
#include "base/stop.h"
#include "src/move/gather.h"

enum {
    DIGIT = 11, /* bits that a pass sorts by */
    BUCKETS = 1 << DIGIT,
    BATCH = 1 << 20, /* entries between two looks at signals */
    GAP = 16 << 10   /* bytes that cost no more to read than another read */
};

static int is_sorted(const gm_gather_entry *entries, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        if (entries[i].row < entries[i - 1].row)
            return 0;
    return 1;
}

/* One pass by the digit that begins at bit `shift`, from and to [count]. */
static int sort_digit(const gm_gather_entry *from, gm_gather_entry *to, int64_t count, int shift)
{
    int64_t begin[BUCKETS] = {0}, sum = 0;
    int status = GM_OK;
    for (int64_t i = 0; i < count; i++)
        begin[from[i].row >> shift & (BUCKETS - 1)]++;
    for (int b = 0; b < BUCKETS; b++) {
        int64_t here = begin[b];
        begin[b] = sum;
        sum += here;
    }
    for (int64_t first = 0; first < count && !status; first += BATCH) {
        status = gm_stop_status();
        for (int64_t i = first; i < gm_min(first + BATCH, count); i++)
            to[begin[from[i].row >> shift & (BUCKETS - 1)]++] = from[i];
    }
    return status;
}

int gm_gather_sort(gm_gather_entry **entries, gm_gather_entry **spare, int64_t count, int64_t rows)
{
    int status = GM_OK;
    for (int shift = 0; shift < 63 && (rows - 1) >> shift > 0 && !status; shift += DIGIT) {
        if (is_sorted(*entries, count))
            break;
        status = sort_digit(*entries, *spare, count, shift);
        gm_gather_entry *sorted = *spare;
        *spare = *entries;
        *entries = sorted;
    }
    return status;
}

int64_t gm_gather_gap(const gm_gather_case *c, int64_t columns)
{
    return columns == c->columns ? GAP / gm_max(columns * c->size, 1) : 0;
}

int64_t gm_gather_pack(const gm_gather_entry *last, const gm_gather_entry *next, int64_t at, int64_t gap, int *joins)
{
    *joins = at >= 0 && next->row - last->row <= gap + 1;
    return at < 0 ? 0 : *joins ? at + (next->row - last->row) : at + 1;
}

int64_t gm_gather_cut(const gm_gather_entry *entries, int64_t count, int64_t most, int64_t room, int64_t gap,
                      int64_t *rows)
{
    int64_t at = -1, n = 0;
    int joins;
    for (; n < gm_min(count, most); n++) {
        int64_t next = gm_gather_pack(&entries[n] - (n > 0), &entries[n], at, gap, &joins);
        if (next >= room)
            break;
        at = next;
    }
    *rows = at + 1;
    return n;
}
