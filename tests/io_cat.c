/* io_cat.c - writes what is selected of a dataset: a line "TYPE SWAP DIRECT DIM,DIM,...", then the elements as a reader delivers them.
 *
 *     io_cat FILE[:DATASET[SELECTION]] ROWS COLUMNS    read in rectangles of this size */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/size.h"
#include "base/status.h"
#include "io/describe.h"
#include "io/reader.h"

static int read_all(gm_reader *reader, int64_t rows, int64_t cols, size_t size, int64_t step_rows, int64_t step_cols, char *all)
{
    int status = GM_OK;

    for (int64_t row = 0; row < rows && !status; row += step_rows)
        for (int64_t col = 0; col < cols && !status; col += step_cols)
            status = gm_reader_read(reader, row, gm_min(step_rows, rows - row), col, gm_min(step_cols, cols - col),
                                    all + (size_t)(row * cols + col) * size, (size_t)cols * size);
    return status;
}

int main(int argc, char **argv)
{
    gm_dataset record;
    gm_reader *reader = NULL;
    int64_t rows = 0, cols = 0, step_rows, step_cols;
    char *all = NULL;
    gm_error error;
    size_t size = 0;
    int status;

    if (argc != 4 || gm_integer_parse(argv[2], 1, INT64_MAX, &step_rows) || gm_integer_parse(argv[3], 1, INT64_MAX, &step_cols))
        return GM_EUSAGE;
    status = gm_describe(argv[1], NULL, &record);
    if (!status)
        status = gm_reader_open(&record, &reader);
    if (!status) {
        size = gm_dtype_size(record.type);
        gm_dataset_matrix(&record, &rows, &cols);
        all = malloc((size_t)(rows * cols) * size + 1);
        status = all ? read_all(reader, rows, cols, size, step_rows, step_cols, all) : GM_EDEVICE;
    }
    gm_reader_close(reader);
    if (!status) {
        printf("%s %d %d ", gm_dtype_name(record.type), record.swap, record.direct);
        for (int d = 0; d < record.view_rank; d++)
            printf("%s%" PRId64, d ? "," : "", record.view[d]);
        putchar('\n');
        fwrite(all, size, (size_t)(rows * cols), stdout);
    } else {
        gm_error_get(&error);
        fprintf(stderr, "%s\n", error.text);
    }
    free(all);
    return status;
}
