/* dataset.c - properties of a dataset record. */
#include "io/dataset.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/size.h"

int64_t gm_dataset_elements(const gm_dataset *dataset)
{
    return gm_product_sat(dataset->view, dataset->view_rank);
}

char *gm_dataset_title(const gm_dataset *dataset, char *text)
{
    int length = snprintf(text, GM_PATH_MAX, "%s", dataset->file);
    if (length < GM_PATH_MAX && dataset->name[0])
        snprintf(text + length, (size_t)(GM_PATH_MAX - length), ":%s%s", dataset->name, dataset->selected);
    return text;
}

int gm_dataset_check(const gm_dataset *dataset, const char *title)
{
    int status = gm_identity_check(&dataset->identity, dataset->file, title);
    if (!status && dataset->data_file[0])
        status = gm_identity_check(&dataset->data_identity, dataset->data_file, title);
    return status;
}

void gm_dataset_matrix(const gm_dataset *dataset, int64_t *rows, int64_t *cols)
{
    *rows = dataset->view_rank > 0 ? dataset->view[0] : 1;
    *cols = gm_product_sat(dataset->view + 1, dataset->view_rank - 1);
}

char *gm_shape_format(int rank, const int64_t *dims, char *text)
{
    int used = snprintf(text, GM_SHAPE_TEXT, "%s", rank ? "" : "scalar");
    for (int d = 0; d < rank && used < GM_SHAPE_TEXT; d++)
        used += snprintf(text + used, (size_t)(GM_SHAPE_TEXT - used), "%s%lld", d ? "x" : "", (long long)dims[d]);
    return text;
}

char *gm_coordinates_format(int rank, const int64_t *at, char *text)
{
    int used = sprintf(text, "(");
    for (int d = 0; d < rank; d++)
        used += sprintf(text + used, "%s%" PRId64, d ? ", " : "", at[d]);
    sprintf(text + used, ")");
    return text;
}

int64_t gm_dataset_view_unit(const gm_dataset *dataset, int v)
{
    const gm_selection *s = &dataset->selection;
    int d = 0;
    if (dataset->layout != GM_CHUNKED || v >= dataset->view_rank)
        return 1;
    for (; s->dropped[d] || v > 0; d++)
        v -= !s->dropped[d];
    if (s->start[d] % dataset->chunk[d] || dataset->chunk[d] % s->step[d])
        return 1;
    return dataset->chunk[d] / s->step[d];
}

int gm_dataset_is_chunked(const gm_dataset *dataset)
{
    return dataset->layout == GM_CHUNKED || (dataset->layout == GM_VIRTUAL && dataset->chunked_sources > 0);
}

int64_t gm_dataset_chunk_bytes(const gm_dataset *dataset)
{
    return gm_mul_sat((int64_t)gm_dtype_size(dataset->type), gm_product_sat(dataset->chunk, dataset->rank));
}

gm_range gm_chunks_of_steps(int64_t start, int64_t step, int64_t count, int64_t chunk)
{
    int64_t first = start / chunk;
    return (gm_range){first, count ? (start + (count - 1) * step) / chunk + 1 : first};
}

gm_chunk_walk gm_chunk_walk_begin(int rank, const int64_t *start, const int64_t *step, const int64_t *count,
                                  const int64_t *chunk)
{
    gm_chunk_walk walk = {.rank = rank};
    for (int d = 0; d < rank; d++) {
        walk.along[d] = gm_chunks_of_steps(start[d], step[d], count[d], chunk[d]);
        walk.at[d] = walk.along[d].begin;
    }
    return walk;
}

int gm_chunk_walk_next(gm_chunk_walk *walk)
{
    int d = walk->rank - 1;
    for (; d >= 0 && ++walk->at[d] == walk->along[d].end; d--)
        walk->at[d] = walk->along[d].begin;
    return d >= 0;
}

int gm_chunk_is_partial(int rank, const int64_t *dims, const int64_t *chunk, const int64_t *at)
{
    for (int d = 0; d < rank; d++)
        if ((at[d] + 1) * chunk[d] > dims[d])
            return 1;
    return 0;
}

gm_range gm_steps_in_chunk(int64_t start, int64_t step, int64_t count, int64_t chunk, int64_t at)
{
    int64_t corner = at * chunk, first = corner > start ? gm_ceil_div(corner - start, step) : 0;
    int64_t end = gm_min(count, gm_ceil_div(corner + chunk - start, step));
    return (gm_range){first, gm_max(first, end)};
}

int gm_selection_meets(const gm_selection *s, int rank, const int64_t *chunk, const int64_t *at)
{
    for (int d = 0; d < rank; d++)
        if (gm_range_length(gm_steps_in_chunk(s->start[d], s->step[d], s->count[d], chunk[d], at[d])) == 0)
            return 0;
    return 1;
}

int64_t gm_dataset_row_unit(const gm_dataset *dataset)
{
    return gm_dataset_view_unit(dataset, 0);
}

int64_t gm_dataset_col_unit(const gm_dataset *dataset)
{
    return gm_mul_sat(gm_dataset_view_unit(dataset, 1), gm_product_sat(dataset->view + 2, dataset->view_rank - 2));
}
