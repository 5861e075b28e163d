/* each.h - common to the tests of outputs: a record to fill in, files written in rectangles and read back, the files in
 * the folder. */
#ifndef GM_TESTS_IO_WRITE_EACH_H
#define GM_TESTS_IO_WRITE_EACH_H

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/size.h"
#include "io/describe/describe.h"
#include "io/write/output.h"
#include "io/read/reader.h"
#include "tests/io/each.h"

static gm_output_record record;

/* Files in a folder, hidden ones too, whose name has this in it. */
static inline int count_files_in(const char *path, const char *part)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    int count = 0;
    while (folder && (entry = readdir(folder)))
        count += strstr(entry->d_name, part) != NULL;
    if (folder)
        closedir(folder);
    return count;
}

static inline int count_files(const char *part)
{
    return count_files_in(own(""), part);
}

static inline void copy_file(const char *from, const char *to)
{
    FILE *in = fopen(own(from), "rb"), *out = fopen(own(to), "wb");
    for (int c; in && out && (c = getc(in)) != EOF;)
        putc(c, out);
    if (in)
        fclose(in);
    if (out)
        fclose(out);
}

static inline void start(const char *name, int force)
{
    memset(&record, 0, sizeof record);
    strcpy(record.file, own(name));
    record.force = force;
    record.sync = 1;
}

static inline gm_output_dataset *add(const char *name, gm_dtype type, int rank, const int64_t *dims)
{
    gm_output_dataset *dataset = &record.dataset[record.datasets++];
    strcpy(dataset->name, name);
    dataset->type = type;
    dataset->rank = rank;
    for (int d = 0; d < rank; d++)
        dataset->dims[d] = dims[d];
    return dataset;
}

static inline void touch(const char *name)
{
    FILE *file = fopen(own(name), "w");
    if (file)
        fclose(file);
}

/* Writes every dataset of the record in rectangles; elements are their flat index (type I32 and F64). */
static inline int write_all(int64_t step_rows, int64_t step_cols, size_t gap)
{
    gm_output *output = NULL;
    int status = gm_output_open(&record, &output);
    for (int i = 0; i < record.datasets && !status; i++) {
        const gm_output_dataset *d = &record.dataset[i];
        int64_t rows = d->rank ? d->dims[0] : 1, cols = 1;
        size_t size = gm_dtype_size(d->type);
        for (int k = 1; k < d->rank; k++)
            cols *= d->dims[k];
        for (int64_t row = 0; row < rows && !status; row += step_rows) {
            for (int64_t col = 0; col < cols && !status; col += step_cols) {
                int64_t m = gm_min(step_rows, rows - row), n = gm_min(step_cols, cols - col);
                size_t pitch = (size_t)n * size + gap;
                char *block = aligned_alloc(4096, ((size_t)m * pitch + 4095) / 4096 * 4096);
                for (int64_t r = 0; r < m; r++) {
                    for (int64_t c = 0; c < n; c++) {
                        int32_t flat = (int32_t)((row + r) * cols + col + c);
                        double real = flat;
                        if (d->big_endian)
                            flat = (int32_t)__builtin_bswap32((uint32_t)flat);
                        memcpy(block + (size_t)r * pitch + (size_t)c * size,
                               d->type == GM_DTYPE_I32 ? (void *)&flat : (void *)&real, size);
                    }
                }
                status = gm_output_write(output, i, row, m, col, n, block, pitch);
                free(block);
            }
        }
    }
    if (!status)
        status = gm_output_close(output, NULL);
    else
        gm_output_close(output, NULL);
    for (int rank = 0; rank < gm_max(record.ranks, 1) && !status; rank++)
        status = gm_output_pack(&record, rank, 3);
    return status;
}

/* Wrong elements of dataset i under the final name. */
static inline int64_t read_back(int i)
{
    const gm_output_dataset *d = &record.dataset[i];
    char text[2 * GM_PATH_MAX];
    gm_dataset found;
    gm_reader *reader = NULL;
    int64_t rows, cols, wrong = 0;
    char *all = NULL;
    snprintf(text, sizeof text, "%s:%s", record.file, d->name);
    if (gm_describe(text, NULL, &found) || found.type != d->type || found.rank != d->rank ||
        gm_reader_open(&found, &reader))
        return 1;
    wrong += found.layout != (d->chunked ? GM_CHUNKED : record.stripe[i] ? GM_VIRTUAL : GM_CONTIGUOUS);
    wrong += found.filters != (d->shuffle != 0) + (d->deflate != 0);
    gm_dataset_matrix(&found, &rows, &cols);
    all = malloc((size_t)(rows * cols) * gm_dtype_size(d->type) + 1);
    if (gm_reader_read(reader, 0, rows, 0, cols, all, (size_t)cols * gm_dtype_size(d->type)))
        wrong++;
    for (int64_t k = 0; k < rows * cols; k++) {
        int32_t flat;
        double real;
        if (d->type == GM_DTYPE_I32) {
            memcpy(&flat, all + k * 4, 4);
            wrong += (found.swap ? (int32_t)__builtin_bswap32((uint32_t)flat) : flat) != k;
        } else {
            memcpy(&real, all + k * 8, 8);
            wrong += real != (double)k;
        }
    }
    free(all);
    gm_reader_close(reader);
    return wrong;
}

static inline void check_round(const char *what, int64_t step_rows, int64_t step_cols, size_t gap)
{
    double seconds = 0;
    int64_t wrong = 0;
    if (!succeeds(gm_output_create(&record), what))
        return;
    tap_ok((record.force || access(record.file, F_OK) != 0) && access(record.temporary, F_OK) == 0,
           "not there before it is finished");
    succeeds(write_all(step_rows, step_cols, gap), "written");
    succeeds(gm_output_finish(&record, NULL, 0, &seconds), "finished");
    for (int i = 0; i < record.datasets; i++)
        wrong += read_back(i);
    tap_ok(wrong == 0 && seconds >= 0, "%s: read back", what);
    tap_ok(count_files(".tmp") == 0 && count_files(".raw") == 0, "no temporary file is left");
}

/* Can the record be written with its strategy on this file system? */
static inline int works(gm_write_strategy strategy)
{
    gm_output *output = NULL;
    int status = gm_output_create(&record);
    if (!status)
        status = gm_output_open(&record, &output);
    gm_output_close(output, NULL);
    gm_output_discard(&record);
    gm_error_clear();
    return !status && record.strategy == strategy;
}

#endif
