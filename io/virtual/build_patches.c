/* build_patches.c - the mappings of a virtual dataset as patches. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "base/stop.h"
#include "io/virtual/build.h"

enum { SLABS = 2 };

/* One side of a mapping: selections whose elements follow each other. */
typedef struct pieces {
    int64_t count, elements;
    gm_slab slab[SLABS];          /* regular: one; two where an unlimited one ends inside a block */
    const gm_selection_words *at; /* of runs; NULL: regular */
} pieces;

static void get_piece(const pieces *p, int64_t i, gm_slab *slab)
{
    if (!p->at) {
        *slab = p->slab[i];
        return;
    }
    int rank = slab->rank = p->at->slab.rank;
    const int64_t *run = p->at->run + i * (rank + 1);
    for (int d = 0; d < rank; d++) {
        slab->start[d] = run[d];
        slab->stride[d] = slab->count[d] = slab->block[d] = 1;
    }
    slab->block[rank - 1] = run[rank];
}

/* --- Selections without end --- */

/* Indices of an unlimited dimension that are below extent. */
static int64_t indices_below(const gm_slab *s, int d, int64_t extent)
{
    int64_t left = extent - s->start[d];
    if (left <= 0)
        return 0;
    if (s->block[d] < 0)
        return left;
    return left / s->stride[d] * s->block[d] + gm_min(left % s->stride[d], s->block[d]);
}

/* The first n indices of an unlimited dimension, n > 0. Returns 0 where that is neither one regular selection nor two
 * in the order of elements. */
static int cut(const gm_slab *s, int d, int64_t n, pieces *p)
{
    gm_slab *first = &p->slab[0], *rest = &p->slab[1];
    int64_t block = s->block[d];
    *first = *s;
    first->count[d] = 1;
    first->block[d] = n;
    p->count = 1;
    if (block < 0 || block == s->stride[d] || n <= block)
        return 1;
    first->count[d] = n / block;
    first->block[d] = block;
    if (n % block == 0)
        return 1;
    *rest = *s;
    rest->start[d] += n / block * s->stride[d];
    rest->count[d] = 1;
    rest->block[d] = n % block;
    p->count = 2;
    for (int outer = 0; outer < d; outer++)
        if (s->count[outer] * s->block[outer] > 1)
            return 0;
    return 1;
}

/* --- The sides of a mapping --- */

typedef struct mapped {
    gm_sources_build *build;
    const gm_mapping *map;
    int to_source, from_source;
    pieces to, from;
} mapped;

static int fail_part(const mapped *m, const char *why)
{
    return gm_fail(GM_EINPUT, "%s: its part %s:%s %s", m->build->title, m->map->path, m->map->name, why);
}

static const int64_t *dims_of(const gm_sources_build *build, const gm_source *source)
{
    return (const int64_t *)build->word.data + source->words;
}

static void whole_slab(const gm_sources_build *build, const gm_source *source, gm_slab *slab)
{
    *slab = (gm_slab){.rank = source->rank};
    for (int d = 0; d < source->rank; d++) {
        slab->stride[d] = slab->count[d] = 1;
        slab->block[d] = dims_of(build, source)[d];
    }
}

/* Both have no end: as many indices as the source has. */
static int find_unlimited(const mapped *m, const gm_source *from, pieces *to_pieces, pieces *from_pieces)
{
    const gm_selection_words *t = &m->map->to, *f = &m->map->from;
    int64_t n = indices_below(&f->slab, f->unlimited, dims_of(m->build, from)[f->unlimited]);
    if (n == 0)
        return GM_OK;
    if (!cut(&t->slab, t->unlimited, n, to_pieces) || !cut(&f->slab, f->unlimited, n, from_pieces))
        return fail_part(m, "is mapped by an unlimited selection that ends inside a block, expected whole blocks");
    return GM_OK;
}

static void find_limited(const mapped *m, const gm_source *source, const gm_selection_words *s, pieces *p)
{
    p->count = s->kind == GM_SELECTION_NONE ? 0 : s->kind == GM_SELECTION_RUNS ? s->runs : 1;
    if (s->kind == GM_SELECTION_RUNS)
        p->at = s;
    else if (s->kind == GM_SELECTION_ALL)
        whole_slab(m->build, source, &p->slab[0]);
    else
        p->slab[0] = s->slab;
}

/* The extents of a selection. Returns how many they are; -1: it is irregular. */
static int extents_of(const pieces *p, int64_t *extent)
{
    const gm_slab *s = &p->slab[0];
    if (p->at || p->count != 1)
        return -1;
    for (int d = 0; d < s->rank; d++)
        extent[d] = s->count[d] * s->block[d];
    return s->rank;
}

/* The part that is mapped of a source that was mapped as a whole and has grown since: where that was its outermost
 * dimension, its first elements. Where another dimension has grown, an H5Dread of a hyperslab takes the first ones in C
 * order, which are others, and an H5Dread of all fails: then nothing is changed. */
static void find_grown(const gm_sources_build *build, const gm_source *source, const pieces *to, pieces *from)
{
    int64_t extent[GM_RANK_MAX], inner = 1;
    const int64_t *dims = dims_of(build, source);
    int left = extents_of(to, extent), outermost = 0;
    while (dims[outermost] == 1) /* it has several elements */
        outermost++;
    for (int d = source->rank - 1; d > outermost; d--) {
        if (dims[d] == 1)
            continue;
        while (left > 0 && extent[left - 1] == 1)
            left--;
        if (left <= 0 || extent[--left] != dims[d])
            return;
        inner *= dims[d];
    }
    from->slab[0].block[outermost] = to->elements / inner;
    from->elements = to->elements;
}

static int count_elements(pieces *p)
{
    p->elements = p->at ? p->at->elements : 0;
    for (int i = 0; i < p->count && !p->at; i++)
        p->elements = gm_add_sat(p->elements, gm_slab_elements(&p->slab[i]));
    return p->elements == INT64_MAX;
}

/* Does a selection end inside a dataset? ends: the extents that it needs. */
static int is_inside(const pieces *p, int rank, const int64_t *dims, int64_t *ends)
{
    gm_slab s;
    int inside = 1;
    memset(ends, 0, (size_t)rank * sizeof *ends);
    for (int64_t i = 0; i < p->count; i++) {
        get_piece(p, i, &s);
        for (int d = 0; d < rank; d++) {
            ends[d] = gm_max(ends[d], gm_add_sat(gm_slab_last(&s, d), 1));
            inside = inside && ends[d] <= dims[d];
        }
    }
    return inside;
}

/* "4x6", or "24 elements" where a selection is irregular. */
static char *format_selection(const pieces *p, char *text)
{
    int64_t extent[GM_RANK_MAX];
    int rank = extents_of(p, extent);
    if (rank >= 0)
        return gm_shape_format(rank, extent, text);
    snprintf(text, GM_SHAPE_TEXT, "%" PRId64 " elements", p->elements);
    return text;
}

static int fail_elements(const mapped *m, const gm_source *from)
{
    char why[4 * GM_SHAPE_TEXT], shape[GM_SHAPE_TEXT], some[GM_SHAPE_TEXT] = "all", to[GM_SHAPE_TEXT];
    if (m->map->from.kind != GM_SELECTION_ALL)
        format_selection(&m->from, some);
    snprintf(why, sizeof why, "has the shape %s, and %s of it is mapped to %s: expected as many elements",
             gm_shape_format(from->rank, dims_of(m->build, from), shape), some, format_selection(&m->to, to));
    return fail_part(m, why);
}

static int fail_short(const mapped *m, const gm_source *from, const int64_t *ends)
{
    char why[3 * GM_SHAPE_TEXT], shape[GM_SHAPE_TEXT], wanted[GM_SHAPE_TEXT];
    snprintf(why, sizeof why, "has the shape %s, smaller than the selection of it, which needs %s",
             gm_shape_format(from->rank, dims_of(m->build, from), shape), gm_shape_format(from->rank, ends, wanted));
    return fail_part(m, why);
}

/* Finds both sides, and checks that they fit each other and the source. */
static int find_sides(mapped *m)
{
    const gm_source *to = gm_build_source(m->build, m->to_source), *from = gm_build_source(m->build, m->from_source);
    const gm_selection_words *t = &m->map->to, *f = &m->map->from;
    int64_t ends[GM_RANK_MAX];
    int status = GM_OK;
    m->to.count = m->from.count = 0;
    m->to.at = m->from.at = NULL;
    if ((t->kind >= GM_SELECTION_SLAB && t->slab.rank != to->rank) ||
        (f->kind >= GM_SELECTION_SLAB && f->slab.rank != from->rank))
        return fail_part(m, "has another number of dimensions than the selection of it");
    if (t->unlimited >= 0 && f->unlimited >= 0) {
        status = find_unlimited(m, from, &m->to, &m->from);
    } else if (t->unlimited >= 0 || f->unlimited >= 0) {
        return fail_part(m, "is mapped by an unlimited selection on one side only");
    } else {
        find_limited(m, to, t, &m->to);
        find_limited(m, from, f, &m->from);
    }
    if (status)
        return status;
    if (count_elements(&m->to) || count_elements(&m->from))
        return fail_part(m, "is mapped by a selection of more than 2^63 elements");
    if (m->to.elements == 0)
        return GM_OK;
    if (f->kind == GM_SELECTION_ALL && m->from.elements > m->to.elements)
        find_grown(m->build, from, &m->to, &m->from);
    if (m->from.elements != m->to.elements)
        return fail_elements(m, from);
    return is_inside(&m->from, from->rank, dims_of(m->build, from), ends) ? GM_OK : fail_short(m, from, ends);
}

/* --- Patches --- */

/* A selection of a source, of as many elements as one of another source. axes: those that they share. */
static int add_patch(gm_sources_build *build, const gm_slab *to, int source, const gm_slab *from, int axes,
                     const gm_axis *axis)
{
    int64_t patch, words, axis_words = (int64_t)(sizeof *axis / sizeof(int64_t));
    int status = gm_build_add(build, &build->patch, 1, &patch);
    if (!status)
        status = gm_build_add(build, &build->word, 2 * to->rank + from->rank + axes * axis_words, &words);
    if (status)
        return status;
    int64_t *word = (int64_t *)build->word.data + words;
    for (int d = 0; d < to->rank; d++) {
        word[d] = to->start[d];
        word[to->rank + d] = gm_slab_last(to, d);
    }
    for (int d = 0; d < from->rank; d++)
        word[2 * to->rank + d] = from->start[d];
    if (axes)
        memcpy(word + 2 * to->rank + from->rank, axis, (size_t)axes * sizeof *axis);
    ((gm_source_patch *)build->patch.data)[patch] = (gm_source_patch){words, source, axes};
    return GM_OK;
}

/* A line of elements as a source of its own. */
static int add_line(gm_sources_build *build, int64_t elements, int *line)
{
    int64_t source, words, depth;
    int status = gm_build_add(build, &build->source, 1, &source);
    if (!status)
        status = gm_build_add(build, &build->depth, 1, &depth);
    if (!status)
        status = gm_build_add(build, &build->word, 1, &words);
    if (status)
        return status;
    ((int64_t *)build->word.data)[words] = elements;
    *gm_build_source(build, source) = (gm_source){
        .kind = GM_SOURCE_VIRTUAL, .rank = 1, .file = -1, .data_file = -1, .words = words};
    *line = (int)source;
    return GM_OK;
}

static void set_line(gm_slab *line, int64_t first, int64_t elements)
{
    *line = (gm_slab){.rank = 1, .start = {first}, .stride = {1}, .count = {1}, .block = {elements}};
}

/* Each piece of one side from or to its place on a line. */
static int add_pieces(gm_sources_build *build, const pieces *p, int source, int to_line)
{
    enum { AT_ONCE = 4096 };
    gm_axis axis[GM_AXES_MAX];
    gm_slab piece, line;
    int64_t first = 0;
    int status = GM_OK;
    build->runs += p->at ? p->count : 0;
    if (build->runs > GM_SELECTION_RUNS_MAX)
        return gm_fail(GM_EINPUT, "%s: the selections of its parts are irregular, of more than %d pieces", build->title,
                       GM_SELECTION_RUNS_MAX);
    for (int64_t i = 0; i < p->count && !status; i++) {
        get_piece(p, i, &piece);
        set_line(&line, first, gm_slab_elements(&piece));
        first += line.block[0];
        status = to_line ? add_patch(build, &line, source, &piece, gm_slab_axes(&line, &piece, axis), axis)
                         : add_patch(build, &piece, source, &line, gm_slab_axes(&piece, &line, axis), axis);
        if (!status && i % AT_ONCE == 0)
            status = gm_stop_status();
    }
    return status;
}

/* The patch of a mapping; or patches to a line, whose own are for later. *line: -1, or its index. */
static int add_mapping(mapped *m, int *line)
{
    gm_axis axis[GM_AXES_MAX];
    *line = -1;
    if (m->to.elements == 0)
        return GM_OK;
    if (m->to.count == 1 && m->from.count == 1) {
        gm_slab to, from;
        get_piece(&m->to, 0, &to);
        get_piece(&m->from, 0, &from);
        int axes = gm_slab_axes(&to, &from, axis);
        if (axes >= 0)
            return add_patch(m->build, &to, m->from_source, &from, axes, axis);
    }
    int status = add_line(m->build, m->to.elements, line);
    return status ? status : add_pieces(m->build, &m->to, *line, 0);
}

/* The patches of a line from its source. */
static int add_line_patches(mapped *m, int line)
{
    int64_t first = m->build->patch.count;
    int status = add_pieces(m->build, &m->from, m->from_source, 1);
    if (status)
        return status;
    gm_build_source(m->build, line)->patch = first;
    gm_build_source(m->build, line)->patches = m->build->patch.count - first;
    return gm_build_order(m->build, line);
}

/* Calls next for each mapping in turn. */
static int each(gm_sources_build *build, int source, gm_mappings mappings, const int *sources, int *lines,
                int (*next)(mapped *m, int *line))
{
    enum { AT_ONCE = 4096 };
    gm_mapping map;
    mapped m = {.build = build, .map = &map, .to_source = source};
    int status = GM_OK;
    for (int64_t i = 0; gm_mappings_next(&mappings, &map) > 0 && !status; i++) {
        m.from_source = sources[i];
        status = find_sides(&m);
        if (!status)
            status = next(&m, &lines[i]);
        if (!status && i % AT_ONCE == 0)
            status = gm_stop_status();
    }
    return status;
}

static int add_rest(mapped *m, int *line)
{
    return *line < 0 ? GM_OK : add_line_patches(m, *line);
}

int gm_build_patches(gm_sources_build *build, int source, gm_mappings mappings, const int *sources)
{
    gm_mapping map;
    gm_mappings counted = mappings;
    int64_t count = 0, first = build->patch.count;
    while (gm_mappings_next(&counted, &map) > 0)
        count++;
    int *lines = malloc((size_t)gm_max(count, 1) * sizeof *lines);
    if (!lines)
        return gm_fail(GM_EDEVICE, "%s: no memory for its parts", build->title);
    int status = each(build, source, mappings, sources, lines, add_mapping);
    if (!status) {
        gm_build_source(build, source)->patch = first;
        gm_build_source(build, source)->patches = build->patch.count - first;
        status = gm_build_order(build, source);
    }
    if (!status)
        status = each(build, source, mappings, sources, lines, add_rest);
    free(lines);
    return status;
}
