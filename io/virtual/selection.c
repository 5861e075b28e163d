/* selection.c - selections of HDF5 to words and back. */
#include "io/virtual/selection.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"

static int put_word(gm_reply *reply, int64_t word)
{
    return gm_reply_add(reply, &word, sizeof word);
}

static int fail_damaged(const char *title)
{
    return gm_fail(GM_EINPUT, "%s: a selection of its parts cannot be read, the file is damaged", title);
}

/* --- Regular ones --- */

typedef struct slab {
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
} slab;

static int put_slab(const slab *s, int rank, const char *title, gm_reply *reply)
{
    int64_t words[2 + 4 * GM_RANK_MAX] = {GM_SELECTION_SLAB, rank};
    for (int d = 0; d < rank; d++) {
        const hsize_t values[4] = {s->start[d], s->stride[d], s->count[d], s->block[d]};
        for (int i = 0; i < 4; i++) {
            if (values[i] > INT64_MAX && values[i] != H5S_UNLIMITED)
                return fail_damaged(title);
            words[2 + 4 * d + i] = values[i] == H5S_UNLIMITED ? -1 : (int64_t)values[i];
        }
    }
    return gm_reply_add(reply, words, (size_t)(2 + 4 * rank) * sizeof *words);
}

static int get_slab(hid_t space, slab *s)
{
    return H5Sget_select_type(space) == H5S_SEL_HYPERSLABS && H5Sis_regular_hyperslab(space) > 0 &&
           H5Sget_regular_hyperslab(space, s->start, s->stride, s->count, s->block) >= 0;
}

int gm_selection_is_unlimited(hid_t space)
{
    int rank = H5Sget_simple_extent_ndims(space), unlimited = 0;
    slab s;
    if (!get_slab(space, &s))
        return 0;
    for (int d = 0; d < rank; d++)
        unlimited |= s.count[d] == H5S_UNLIMITED || s.block[d] == H5S_UNLIMITED;
    return unlimited;
}

int gm_selection_put_block(hid_t space, int64_t block, const char *title, gm_reply *reply)
{
    int rank = H5Sget_simple_extent_ndims(space);
    slab s;
    if (!get_slab(space, &s))
        return fail_damaged(title);
    for (int d = 0; d < rank; d++) {
        if (s.count[d] != H5S_UNLIMITED)
            continue;
        s.start[d] = (hsize_t)gm_add_sat((int64_t)s.start[d], gm_mul_sat((int64_t)s.stride[d], block));
        s.count[d] = 1;
    }
    return put_slab(&s, rank, title, reply);
}

/* --- Irregular ones --- */

/* Runs of elements: rank + 1 words each. */
typedef struct runs {
    int64_t *word;
    int64_t count, room;
    int rank;
} runs;

static int fail_runs(const char *title)
{
    return gm_fail(GM_EINPUT, "%s: a selection of its parts has more than %d irregular pieces, expected fewer", title,
                   GM_SELECTION_RUNS_MAX);
}

static int add_run(runs *r, const hsize_t *first, hsize_t elements, const char *title)
{
    if (r->count == r->room) {
        int64_t room = gm_max(2 * r->room, 1024);
        int64_t *more = realloc(r->word, (size_t)(room * (r->rank + 1)) * sizeof *more);
        if (!more)
            return gm_fail(GM_EDEVICE, "%s: no memory for its parts", title);
        r->word = more;
        r->room = room;
    }
    if (r->count == GM_SELECTION_RUNS_MAX)
        return fail_runs(title);
    int64_t *run = r->word + r->count++ * (r->rank + 1);
    for (int d = 0; d < r->rank; d++)
        run[d] = (int64_t)first[d];
    run[r->rank] = (int64_t)elements;
    return GM_OK;
}

/* The rows of one block from corner to corner. */
static int add_block(runs *r, const hsize_t *corners, const char *title)
{
    const hsize_t *low = corners, *high = corners + r->rank;
    hsize_t at[H5S_MAX_RANK];
    int last = r->rank - 1, status = GM_OK, d;
    memcpy(at, low, (size_t)r->rank * sizeof *at);
    do {
        status = add_run(r, at, high[last] - low[last] + 1, title);
        for (d = last - 1; d >= 0 && at[d]++ == high[d]; d--)
            at[d] = low[d];
    } while (d >= 0 && !status);
    return status;
}

static int sort_rank; /* under the lock */

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    int d = 0;
    while (d < sort_rank - 1 && x[d] == y[d])
        d++;
    return (x[d] > y[d]) - (x[d] < y[d]);
}

/* Blocks lie in any order, elements in that of rows. */
static int find_blocks(hid_t space, runs *r, const char *title)
{
    enum { AT_ONCE = 1024 };
    hssize_t blocks = H5Sget_select_hyper_nblocks(space);
    hsize_t *corners = NULL;
    int status = GM_OK;
    if (blocks < 0)
        return fail_damaged(title);
    if (blocks > GM_SELECTION_RUNS_MAX)
        return fail_runs(title);
    size_t bytes = 2 * (size_t)r->rank * sizeof *corners;
    if (!(corners = malloc(gm_max((int64_t)blocks, 1) * bytes)))
        return gm_fail(GM_EDEVICE, "%s: no memory for its parts", title);
    if (H5Sget_select_hyper_blocklist(space, 0, (hsize_t)blocks, corners) < 0)
        status = fail_damaged(title);
    for (hssize_t i = 0; i < blocks && !status; i++) {
        status = add_block(r, corners + 2 * i * r->rank, title);
        if (i % AT_ONCE == 0)
            gm_worker_progress();
    }
    free(corners);
    sort_rank = r->rank;
    if (!status && r->count)
        qsort(r->word, (size_t)r->count, (size_t)(r->rank + 1) * sizeof *r->word, compare);
    return status;
}

static int find_points(hid_t space, runs *r, const char *title)
{
    hssize_t points = H5Sget_select_elem_npoints(space);
    hsize_t *coordinates;
    int status = GM_OK;
    if (points < 0)
        return fail_damaged(title);
    if (points > GM_SELECTION_RUNS_MAX)
        return fail_runs(title);
    if (!(coordinates = malloc((size_t)gm_max(points, 1) * (size_t)r->rank * sizeof *coordinates)))
        return gm_fail(GM_EDEVICE, "%s: no memory for its parts", title);
    if (H5Sget_select_elem_pointlist(space, 0, (hsize_t)points, coordinates) < 0)
        status = fail_damaged(title);
    for (hssize_t i = 0; i < points && !status; i++)
        status = add_run(r, coordinates + i * r->rank, 1, title);
    free(coordinates);
    return status;
}

static int put_runs(hid_t space, const char *title, gm_reply *reply)
{
    runs r = {.rank = H5Sget_simple_extent_ndims(space)};
    if (r.rank < 1 || r.rank > GM_RANK_MAX)
        return fail_damaged(title);
    int status = H5Sget_select_type(space) == H5S_SEL_POINTS ? find_points(space, &r, title)
                                                             : find_blocks(space, &r, title);
    const int64_t head[3] = {GM_SELECTION_RUNS, r.rank, r.count};
    if (!status)
        status = gm_reply_add(reply, head, sizeof head);
    if (!status)
        status = gm_reply_add(reply, r.word, (size_t)(r.count * (r.rank + 1)) * sizeof *r.word);
    free(r.word);
    return status;
}

int gm_selection_put(hid_t space, const char *title, gm_reply *reply)
{
    slab s;
    int rank = H5Sget_simple_extent_ndims(space);
    switch (H5Sget_select_type(space)) {
    case H5S_SEL_ALL:
        return put_word(reply, GM_SELECTION_ALL);
    case H5S_SEL_NONE:
        return put_word(reply, GM_SELECTION_NONE);
    case H5S_SEL_HYPERSLABS:
    case H5S_SEL_POINTS:
        if (rank < 0 || rank > GM_RANK_MAX)
            break;
        return get_slab(space, &s) ? put_slab(&s, rank, title, reply) : put_runs(space, title, reply);
    default:
        break;
    }
    return fail_damaged(title);
}

/* --- Back --- */

static int get_slab_words(const int64_t **at, gm_selection_words *s)
{
    for (int d = 0; d < s->slab.rank; d++, *at += 4) {
        s->slab.start[d] = (*at)[0];
        s->slab.stride[d] = (*at)[1];
        s->slab.count[d] = (*at)[2];
        s->slab.block[d] = (*at)[3];
        if ((*at)[2] == -1 || (*at)[3] == -1)
            s->unlimited = d;
        if ((*at)[0] < 0 || (*at)[1] < 0 || (*at)[2] < -1 || (*at)[3] < -1)
            return 1;
        if ((*at)[2] != 1 && (*at)[2] != 0 && ((*at)[1] < 1 || (*at)[1] < (*at)[3])) /* blocks do not overlap */
            return 1;
    }
    return 0;
}

static int get_runs(const int64_t **at, const int64_t *end, gm_selection_words *s)
{
    int64_t width = s->slab.rank + 1;
    if (end - *at < 1)
        return 1;
    s->runs = *(*at)++;
    s->run = *at;
    if (s->slab.rank < 1 || s->runs < 0 || s->runs > (end - *at) / width)
        return 1;
    for (int64_t i = 0; i < s->runs; i++) {
        for (int d = 0; d < width; d++)
            if (s->run[i * width + d] < (d == s->slab.rank))
                return 1;
        s->elements = gm_add_sat(s->elements, s->run[i * width + width - 1]);
    }
    *at += s->runs * width;
    return 0;
}

int gm_selection_get(const int64_t **at, const int64_t *end, gm_selection_words *s)
{
    *s = (gm_selection_words){.unlimited = -1};
    if (end - *at < 1)
        return 1;
    s->kind = (int)*(*at)++;
    if (s->kind == GM_SELECTION_ALL || s->kind == GM_SELECTION_NONE)
        return 0;
    if (s->kind < 0 || s->kind > GM_SELECTION_RUNS || end - *at < 1 || **at < 0 || **at > GM_RANK_MAX)
        return 1;
    s->slab.rank = (int)*(*at)++;
    if (s->kind == GM_SELECTION_RUNS)
        return get_runs(at, end, s);
    return end - *at < 4 * s->slab.rank || get_slab_words(at, s);
}
