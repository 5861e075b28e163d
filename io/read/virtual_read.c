/* virtual_read.c - regions of a virtual dataset: intersects them with its patches, and reads those from the sources. */
#include "io/read/virtual_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/stop.h"
#include "io/describe/sources_describe.h"
#include "io/read/source_pool.h"

struct gm_virtual {
    const gm_dataset *record;
    gm_sources sources;
    gm_source_pool *pool;
};

int64_t gm_virtual_bytes(const gm_dataset *record, int threads, int64_t room)
{
    return gm_source_pool_bytes(record, threads, room);
}

static int check_shape(const gm_dataset *record, const gm_sources *s, const char *title)
{
    const gm_source *first = &s->source[0];
    int same = s->sources > 0 && first->rank == record->rank;
    for (int d = 0; d < record->rank && same; d++)
        same = s->word[first->words + d] == record->dims[d];
    return same ? GM_OK : gm_fail(GM_EINPUT, "%s: has changed during the run (shape)", title);
}

int gm_virtual_open(const gm_dataset *record, const char *title, gm_virtual **out)
{
    gm_virtual *reader = calloc(1, sizeof *reader);
    *out = NULL;
    if (!reader)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    reader->record = record;
    int status = gm_sources_open(record, title, &reader->sources);
    if (!status)
        status = gm_source_pool_open(record, title, &reader->sources, &reader->pool);
    if (!status)
        status = check_shape(record, &reader->sources, title);
    if (!status) /* its own file is in the table */
        status = gm_identity_check(&record->identity, record->file, title);
    if (status)
        gm_virtual_close(reader);
    else
        *out = reader;
    return status;
}

void gm_virtual_close(gm_virtual *reader)
{
    if (!reader)
        return;
    gm_source_pool_close(reader->pool);
    free(reader);
}

/* --- Sources --- */

/* A place in memory for the elements of a source. */
typedef struct target {
    gm_virtual *reader;
    int source;
    char *dst;
    gm_plain *plain;
} target;

static int read_region(gm_virtual *reader, int source, const gm_region *region, char *dst);

static int visit_virtual(void *context, const gm_region *region, int64_t memory)
{
    const target *t = context;
    return read_region(t->reader, t->source, region, t->dst + memory);
}

static int visit_plain(void *context, const gm_region *region, int64_t memory)
{
    const target *t = context;
    return gm_plain_read(t->plain, region, t->dst + memory);
}

static int read_bytes(const target *t, const gm_bytes *bytes, const gm_spans *spans)
{
    const gm_source *source = &t->reader->sources.source[t->source];
    const int64_t *dims = t->reader->sources.word + source->words;
    int64_t size = (int64_t)gm_dtype_size(t->reader->record->type), first = source->offset, stride = size;
    int64_t strides[GM_RANK_MAX];
    gm_stride span[GM_SPANS_MAX];
    for (int d = source->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        first += spans->start[d] * stride;
        stride *= dims[d];
    }
    for (int i = 0; i < spans->spans; i++)
        span[i] = (gm_stride){spans->span[i].count, spans->span[i].step * strides[spans->span[i].dim],
                              spans->span[i].memory};
    return gm_bytes_gather(bytes, first, span, spans->spans, (size_t)size, t->dst + spans->memory);
}

/* More strides than a gather takes: the outermost ones in a loop. */
static int read_many_spans(const target *t, const gm_bytes *bytes, const gm_spans *spans)
{
    int status = GM_OK;
    if (spans->spans < GM_STRIDES_MAX)
        return read_bytes(t, bytes, spans);
    gm_spans inner = *spans;
    inner.spans--;
    memmove(inner.span, inner.span + 1, (size_t)inner.spans * sizeof *inner.span);
    for (int64_t i = 0; i < spans->span[0].count && !status; i++) {
        inner.start[spans->span[0].dim] = spans->start[spans->span[0].dim] + i * spans->span[0].step;
        inner.memory = spans->memory + i * spans->span[0].memory;
        status = read_many_spans(t, bytes, &inner);
    }
    return status;
}

/* Elements side by side in the other order of bytes. */
#define SWAP_ROW(bits)                                                   \
    for (int64_t i = 0; i < count; i++, row += sizeof(uint##bits##_t)) { \
        uint##bits##_t value;                                            \
        memcpy(&value, row, sizeof value);                               \
        value = __builtin_bswap##bits(value);                            \
        memcpy(row, &value, sizeof value);                               \
    }
static void swap_row(char *row, int64_t count, size_t size)
{
    if (size == 2) {
        SWAP_ROW(16)
    } else if (size == 4) {
        SWAP_ROW(32)
    } else if (size == 8) {
        SWAP_ROW(64)
    }
}

/* The other order of bytes, in memory. */
static void swap_spans(const gm_spans *spans, int at, size_t size, char *dst)
{
    int is_row = at == spans->spans - 1 && spans->span[at].memory == (int64_t)size;
    if (at == spans->spans || is_row) {
        swap_row(dst, is_row ? spans->span[at].count : 1, size);
        return;
    }
    for (int64_t i = 0; i < spans->span[at].count; i++, dst += spans->span[at].memory)
        swap_spans(spans, at + 1, size, dst);
}

static int visit_spans(void *context, const gm_spans *spans)
{
    target *t = context;
    const gm_source *source = &t->reader->sources.source[t->source];
    gm_source_entry *entry;
    if (source->kind == GM_SOURCE_VIRTUAL)
        return gm_spans_regions(spans, source->rank, visit_virtual, t);
    int status = gm_source_pool_acquire(t->reader->pool, t->source, &entry);
    if (status)
        return status;
    t->plain = entry->plain;
    status = entry->plain ? gm_spans_regions(spans, source->rank, visit_plain, t)
                          : read_many_spans(t, &entry->bytes, spans);
    gm_source_pool_release(t->reader->pool, entry);
    if (!status && source->swap != t->reader->record->swap)
        swap_spans(spans, 0, gm_dtype_size(t->reader->record->type), t->dst + spans->memory);
    return status;
}

/* --- Patches --- */

/* Patches of a source that a region may touch: indices of the order. */
typedef struct candidates {
    const int64_t *order, *most;
    int64_t first, end;
} candidates;

/* The first index whose value is at least `least`; values do not fall. */
static int64_t search(const int64_t *values, int64_t count, int64_t least)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (values[middle] < least)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_candidates(const gm_sources *s, const gm_source *source, const gm_region *region, candidates *c)
{
    int d = source->order_dim;
    *c = (candidates){s->word + source->order, s->word + source->order + source->patches, 0, source->patches};
    if (source->rank == 0)
        return;
    int64_t last = region->start[d] + (region->count[d] - 1) * region->step[d], low, high;
    c->first = search(c->most, source->patches, region->start[d]);
    for (low = c->first, high = source->patches; low < high;) { /* first indices do not fall */
        int64_t middle = low + (high - low) / 2;
        if (s->word[s->patch[source->patch + c->order[middle]].words + d] <= last)
            low = middle + 1;
        else
            high = middle;
    }
    c->end = low;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Calls visit for all spans of a region; target: of the source. */
typedef struct walk {
    gm_virtual *reader;
    const gm_source *source;
    const gm_region *region;
    char *dst;
    gm_spans_visit *visit;
    int64_t elements; /* counted */
} walk;

static int walk_patch(walk *w, int64_t index, int64_t turn)
{
    enum { AT_ONCE = 1024 };
    target t = {w->reader, w->reader->sources.patch[w->source->patch + index].source, w->dst, NULL};
    gm_patch patch;
    gm_source_get_patch(&w->reader->sources, w->source, index, &patch);
    int status = gm_patch_walk(&patch, w->region, w->visit, w->visit == visit_spans ? (void *)&t : (void *)w);
    if (!status && turn % AT_ONCE == AT_ONCE - 1)
        status = gm_stop_status();
    return status;
}

/* In the order of the mappings, where that matters. */
static int walk_all(walk *w)
{
    const gm_source *source = w->source;
    candidates c;
    int status = GM_OK;
    find_candidates(&w->reader->sources, source, w->region, &c);
    if (c.first >= c.end)
        return GM_OK;
    if (source->apart || source->ordered || w->visit != visit_spans) {
        for (int64_t i = c.first; i < c.end && !status; i++)
            status = walk_patch(w, c.order[i], i);
        return status;
    }
    size_t bytes = (size_t)(c.end - c.first) * sizeof *c.order;
    int64_t *order = malloc(bytes);
    if (order) {
        memcpy(order, c.order + c.first, bytes);
        qsort(order, (size_t)(c.end - c.first), sizeof *order, compare);
    }
    for (int64_t i = 0; i < (order ? c.end - c.first : source->patches) && !status; i++)
        status = walk_patch(w, order ? order[i] : i, i);
    free(order);
    return status;
}

static int count_spans(void *context, const gm_spans *spans)
{
    int64_t elements = 1;
    for (int i = 0; i < spans->spans; i++)
        elements *= spans->span[i].count;
    ((walk *)context)->elements += elements;
    return GM_OK;
}

/* The fill value where no patch may lie: everywhere, unless the patches cover the region. */
static int fill_gaps(gm_virtual *reader, const gm_source *source, const gm_region *region, char *dst)
{
    walk w = {reader, source, region, dst, count_spans, 0};
    gm_stride dims[GM_RANK_MAX];
    int status = GM_OK;
    if (source->complete)
        return GM_OK;
    if (source->apart)
        status = walk_all(&w);
    if (status || w.elements == gm_region_elements(source->rank, region))
        return status;
    for (int d = 0; d < source->rank; d++)
        dims[d] = (gm_stride){region->count[d], 0, region->memory[d]};
    gm_bytes_copy(source->fill, dims, source->rank, gm_dtype_size(reader->record->type), dst);
    return GM_OK;
}

static int read_region(gm_virtual *reader, int index, const gm_region *region, char *dst)
{
    const gm_source *source = &reader->sources.source[index];
    walk w = {reader, source, region, dst, visit_spans, 0};
    int status = fill_gaps(reader, source, region, dst);
    return status ? status : walk_all(&w);
}

int gm_virtual_read(gm_virtual *reader, const gm_region *region, char *dst)
{
    for (int d = 0; d < reader->record->rank; d++)
        if (region->count[d] == 0)
            return GM_OK;
    return read_region(reader, 0, region, dst);
}
