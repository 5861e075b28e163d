/* cat.c - writes the selection of a dataset: a line "TYPE SWAP METHOD DIM,DIM,...", then the elements as a reader
 * delivers them.
 *
 *     io_cat FILE[:DATASET[SELECTION]] ROWS COLUMNS [THREADS]    read in rectangles of this size
 *
 * METHOD is "direct", "chunks" (decoded by us), "virtual" or "libhdf5". */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/types/dtype.h"
#include "base/size.h"
#include "base/status.h"
#include "io/describe/describe.h"
#include "io/read/reader.h"

typedef struct task {
    gm_reader *reader;
    int64_t rows, cols, step_rows, step_cols;
    size_t size;
    char *all;
    int index, threads, status;
} task;

/* Every threads-th rectangle. */
static void *read_some(void *context)
{
    task *t = context;
    int64_t turn = 0;
    for (int64_t row = 0; row < t->rows && !t->status; row += t->step_rows)
        for (int64_t col = 0; col < t->cols && !t->status; col += t->step_cols)
            if (turn++ % t->threads == t->index)
                t->status = gm_reader_read(t->reader, row, gm_min(t->step_rows, t->rows - row), col,
                                           gm_min(t->step_cols, t->cols - col),
                                           t->all + (size_t)(row * t->cols + col) * t->size, (size_t)t->cols * t->size);
    return NULL;
}

enum { THREADS_MAX = 16 };

static int read_all(const task *all, int threads)
{
    pthread_t thread[THREADS_MAX];
    task tasks[THREADS_MAX];
    int status = GM_OK, started = 0;
    for (int i = 0; i < threads; i++) {
        tasks[i] = *all;
        tasks[i].index = i;
        tasks[i].threads = threads;
        if (pthread_create(&thread[i], NULL, read_some, &tasks[i]))
            break;
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
        status = status ? status : tasks[i].status;
    }
    return started == threads ? status : GM_EDEVICE;
}

static const char *method(const gm_dataset *record)
{
    return record->layout == GM_VIRTUAL ? "virtual"
           : record->direct             ? "direct"
           : record->raw_chunks         ? "chunks"
                                        : "libhdf5";
}

int main(int argc, char **argv)
{
    gm_dataset record;
    gm_reader *reader = NULL;
    int64_t rows = 0, cols = 0, step_rows, step_cols, threads = 1;
    char *all = NULL;
    gm_error error;
    size_t size = 0;
    int status;
    if (argc < 4 || argc > 5 || gm_integer_parse(argv[2], 1, INT64_MAX, &step_rows) ||
        gm_integer_parse(argv[3], 1, INT64_MAX, &step_cols) ||
        (argc == 5 && gm_integer_parse(argv[4], 1, THREADS_MAX, &threads)))
        return GM_EUSAGE;
    status = gm_describe(argv[1], NULL, &record);
    if (!status)
        status = gm_reader_open(&record, &reader);
    if (!status) {
        size = gm_dtype_size(record.type);
        gm_dataset_matrix(&record, &rows, &cols);
        all = malloc((size_t)(rows * cols) * size + 1);
        status = all ? read_all(&(task){reader, rows, cols, step_rows, step_cols, size, all, 0, 1, GM_OK}, (int)threads)
                     : GM_EDEVICE;
    }
    gm_reader_close(reader);
    if (!status) {
        printf("%s %d %s ", gm_dtype_name(record.type), record.swap, method(&record));
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
