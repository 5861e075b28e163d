/* dataset.c - questions to a record. */
#include "io/dataset.h"

#include <stdio.h>

#include "base/size.h"

int64_t gm_dataset_elements(const gm_dataset *dataset)
{
    int64_t elements = 1;

    for (int d = 0; d < dataset->view_rank; d++)
        elements = gm_mul_sat(elements, dataset->view[d]);
    return elements;
}

char *gm_dataset_title(const gm_dataset *dataset, char *text)
{
    int length = snprintf(text, GM_PATH_MAX, "%s", dataset->file);

    if (length < GM_PATH_MAX && dataset->name[0])
        snprintf(text + length, (size_t)(GM_PATH_MAX - length), ":%s%s", dataset->name, dataset->selected);
    return text;
}

void gm_dataset_matrix(const gm_dataset *dataset, int64_t *rows, int64_t *cols)
{
    *rows = dataset->view_rank > 0 ? dataset->view[0] : 1;
    *cols = 1;
    for (int d = 1; d < dataset->view_rank; d++)
        *cols = gm_mul_sat(*cols, dataset->view[d]);
}
