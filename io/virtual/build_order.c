/* build_order.c - the order in which the patches of a virtual source are searched, and whether they cover it. */
#include <stdlib.h>

#include "base/size.h"
#include "base/status.h"
#include "io/virtual/build.h"

/* A patch by its first index in one dimension. */
typedef struct entry {
    int64_t first, last, patch;
} entry;

static int compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->patch > y->patch) - (x->patch < y->patch);
}

/* The patches in order of one dimension. Returns how many first indices there are. */
static int64_t sort(const gm_sources *s, const gm_source *source, int d, entry *entries)
{
    int64_t different = 0, sorted = 1;
    for (int64_t i = 0; i < source->patches; i++) {
        const int64_t *word = s->word + s->patch[source->patch + i].words;
        entries[i] = (entry){word[d], word[source->rank + d], i};
        sorted = sorted && (i == 0 || entries[i - 1].first <= entries[i].first);
    }
    if (!sorted)
        qsort(entries, (size_t)source->patches, sizeof *entries, compare);
    for (int64_t i = 0; i < source->patches; i++)
        different += i == 0 || entries[i].first != entries[i - 1].first;
    return different;
}

/* The dimension in which the patches differ most; sorts by it. */
static int choose_dimension(const gm_sources *s, const gm_source *source, entry *entries)
{
    int64_t most = 0, now = 0;
    int best = 0, last = source->rank - 1;
    for (int d = 0; d < source->rank; d++) {
        now = sort(s, source, d, entries);
        if (now > most) {
            most = now;
            best = d;
        }
    }
    if (best != last)
        sort(s, source, best, entries);
    return best;
}

/* Is it known that no two patches share an element? Of very many pairs, not all are looked at. */
static int are_apart(const gm_sources *s, const gm_source *source, const entry *entries)
{
    int64_t pairs_left = INT64_C(1) << 22;
    gm_patch a, b;
    for (int64_t i = 0; i < source->patches; i++) {
        gm_source_get_patch(s, source, entries[i].patch, &a);
        for (int64_t j = i + 1; j < source->patches && entries[j].first <= entries[i].last; j++) {
            gm_source_get_patch(s, source, entries[j].patch, &b);
            if (pairs_left-- == 0 || !gm_patch_is_apart(&a, &b))
                return 0;
        }
    }
    return 1;
}

/* Have the patches as many elements as the source, and all of them inside it? */
static int fill_it(const gm_sources *s, const gm_source *source)
{
    const int64_t *dims = s->word + source->words;
    int64_t all = gm_product_sat(dims, source->rank), sum = 0;
    for (int64_t i = 0; i < source->patches; i++) {
        gm_patch p;
        int64_t elements = 1;
        gm_source_get_patch(s, source, i, &p);
        for (int a = 0; a < p.axes; a++)
            elements *= p.axis[a].count;
        for (int d = 0; d < source->rank; d++)
            if (p.last[d] >= dims[d])
                return 0;
        sum = gm_add_sat(sum, elements);
    }
    return sum == all;
}

static int put_order(gm_sources_build *build, int source, const entry *entries)
{
    int64_t patches = gm_build_source(build, source)->patches, words, most = INT64_MIN;
    int status = gm_build_add(build, &build->word, 2 * patches, &words);
    if (status)
        return status;
    int64_t *order = (int64_t *)build->word.data + words;
    for (int64_t i = 0; i < patches; i++) {
        most = gm_max(most, entries[i].last);
        order[i] = entries[i].patch;
        order[patches + i] = most;
    }
    gm_build_source(build, source)->order = words;
    return GM_OK;
}

int gm_build_order(gm_sources_build *build, int index)
{
    gm_sources s = gm_build_view(build);
    gm_source *source = gm_build_source(build, index);
    entry *entries = malloc((size_t)gm_max(source->patches, 1) * sizeof *entries);
    if (!entries)
        return gm_fail(GM_EDEVICE, "%s: no memory for its parts", build->title);
    source->order_dim = source->rank && source->patches ? choose_dimension(&s, source, entries) : 0;
    for (int64_t i = 0; i < source->patches && source->rank == 0; i++)
        entries[i] = (entry){0, 0, i};
    source->apart = are_apart(&s, source, entries);
    source->complete = source->apart && fill_it(&s, source);
    source->ordered = 1;
    for (int64_t i = 1; i < source->patches; i++)
        source->ordered = source->ordered && entries[i - 1].patch < entries[i].patch;
    int status = put_order(build, index, entries);
    free(entries);
    return status;
}
