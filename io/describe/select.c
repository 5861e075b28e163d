/* select.c - parsing a selection. */
#include "io/describe/select.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"

/* An item as written: start:stop:step, each with a flag if it was given, or an index alone. */
typedef struct item {
    int range;    /* has a colon */
    int given[3]; /* start, stop, step */
    int64_t value[3];
} item;

enum { START, STOP, STEP };

static void skip_blanks(const char **at)
{
    while (isblank((unsigned char)**at))
        (*at)++;
}

/* An integer, cut to +-huge. Returns whether there was one. */
static int parse_integer(const char **at, int64_t *value)
{
    const char *digit = *at;
    int negative = *digit == '-';
    int64_t sum = 0;
    if (*digit == '-' || *digit == '+')
        digit++;
    if (!isdigit((unsigned char)*digit))
        return 0;
    for (; isdigit((unsigned char)*digit); digit++) {
        int64_t next = *digit - '0';
        sum = sum > (INT64_MAX - next) / 10 ? INT64_MAX : sum * 10 + next; /* no index is INT64_MAX or more */
    }
    *value = negative ? -sum : sum;
    *at = digit;
    return 1;
}

/* One item, up to the comma or bracket that ends it. Returns whether it was one. */
static int parse_item(const char **at, item *it)
{
    int part = START;
    memset(it, 0, sizeof *it);
    for (;; part++) {
        skip_blanks(at);
        it->given[part] = parse_integer(at, &it->value[part]);
        skip_blanks(at);
        if (**at != ':' || part == STEP)
            break;
        it->range = 1;
        (*at)++;
    }
    return it->range || it->given[START];
}

static int apply_index(gm_dataset *record, int d, const item *it, const char *title)
{
    int64_t dim = record->dims[d], index = it->value[START];
    if (index < -dim || index >= dim)
        return gm_fail(GM_EINPUT, "%s: index %" PRId64 " is outside dimension %d, which has %" PRId64 " elements",
                       title, index, d, dim);
    record->selection.start[d] = index < 0 ? index + dim : index;
    record->selection.step[d] = 1;
    record->selection.count[d] = 1;
    record->selection.dropped[d] = 1;
    return GM_OK;
}

static int apply_range(gm_dataset *record, int d, const item *it, const char *title)
{
    int64_t dim = record->dims[d];
    int64_t start = it->given[START] ? it->value[START] : 0;
    int64_t stop = it->given[STOP] ? it->value[STOP] : dim;
    int64_t step = it->given[STEP] ? it->value[STEP] : 1;
    if (step < 1)
        return gm_fail(GM_EUSAGE, "%s: step %" PRId64 " of dimension %d, expected 1 or more", title, step, d);
    if (start < 0)
        start += dim;
    if (stop < 0)
        stop += dim;
    if (it->given[START] && it->given[STOP] && start > stop)
        return gm_fail(GM_EINPUT,
                       "%s: the range of dimension %d (%" PRId64
                       " elements) runs backwards, expected start before stop",
                       title, d, dim);
    start = gm_min(gm_max(start, 0), dim);
    stop = gm_min(gm_max(stop, start), dim);
    record->selection.start[d] = start;
    record->selection.step[d] = gm_min(step, gm_max(dim, 1)); /* a longer one selects no less, and could overflow */
    record->selection.count[d] = gm_ceil_div(stop - start, step);
    return GM_OK;
}

static void select_all(gm_dataset *record)
{
    memset(&record->selection, 0, sizeof record->selection);
    for (int d = 0; d < record->rank; d++) {
        record->selection.step[d] = 1;
        record->selection.count[d] = record->dims[d];
    }
}

/* The shape as NumPy writes it, for messages. */
static const char *shape_text(const gm_dataset *record, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "(");
    for (int d = 0; d < record->rank && used < room; d++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64, d ? ", " : "", record->dims[d]);
    if (used < room)
        snprintf(text + used, room - used, record->rank == 1 ? ",)" : ")");
    return text;
}

static int parse(gm_dataset *record, const char *text, const char *title)
{
    const char *at = text;
    char shape[256];
    int status = GM_OK, d = 0, closed;
    if (*at++ != '[')
        return gm_fail(GM_EUSAGE, "%s: a selection begins with [", title);
    skip_blanks(&at);
    for (closed = *at == ']'; !closed && !status; d++) {
        item it;
        if (!parse_item(&at, &it) || (*at != ',' && *at != ']'))
            return gm_fail(GM_EUSAGE,
                           "%s: malformed selection at \"%s\", expected indices or start:stop:step between commas",
                           title, at);
        closed = *at++ == ']';
        if (d >= record->rank)
            return gm_fail(GM_EINPUT, "%s: more items than the dataset of shape %s has dimensions (%d)", title,
                           shape_text(record, shape, sizeof shape), record->rank);
        status = it.range ? apply_range(record, d, &it, title) : apply_index(record, d, &it, title);
    }
    if (!status && d == 0)
        at++; /* the bracket of "[]", which names no dimension */
    if (!status && *at)
        status = gm_fail(GM_EUSAGE, "%s: \"%s\" follows the selection", title, at);
    return status;
}

int gm_select(gm_dataset *record, const char *text)
{
    char title[GM_PATH_MAX];
    int status = GM_OK;
    select_all(record);
    if (*text) {
        if (record->selected != text)
            snprintf(record->selected, sizeof record->selected, "%s", text);
        status = parse(record, text, gm_dataset_title(record, title));
    }
    record->view_rank = 0;
    for (int d = 0; d < record->rank; d++)
        if (!record->selection.dropped[d])
            record->view[record->view_rank++] = record->selection.count[d];
    return status;
}
