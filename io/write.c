/* write.c - rectangles of memory to the output. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/scratch.h"

struct gm_output {
    gm_output_record record;
    gm_bytes bytes;
};

/* Whole rows shorter than PACKED are joined in memory to requests of about WINDOW bytes. */
enum { PACKED = 64 * 1024, WINDOW = 256 * 1024 };

int gm_output_open(const gm_output_record *record, gm_output **out)
{
    gm_output *output = malloc(sizeof *output);

    *out = NULL;
    if (!output)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", record->file);
    output->record = *record;
    output->bytes = (gm_bytes){open(record->raw, O_WRONLY | O_CLOEXEC), GM_EOUTPUT, output->record.file, 0};
    for (int i = 0; i < record->datasets; i++)
        output->bytes.needed = gm_add_sat(output->bytes.needed, gm_output_bytes(&record->dataset[i]));
    if (output->bytes.fd < 0) {
        gm_fail(GM_EOUTPUT, "%s: %s cannot be opened for writing: %s", record->file, record->raw, strerror(errno));
        free(output);
        return GM_EOUTPUT;
    }
    *out = output;
    return GM_OK;
}

int gm_output_close(gm_output *output)
{
    int status = GM_OK;

    if (!output)
        return GM_OK;
    /* A scratch file is read once more and goes away: it need not reach the disk. */
    if (output->record.sync && !gm_output_has_scratch(&output->record) && fsync(output->bytes.fd))
        status = gm_fail(GM_EOUTPUT, "%s: flushing to the disk failed: %s", output->record.file, strerror(errno));
    if (close(output->bytes.fd) && errno != EINTR)
        status = gm_fail(GM_EOUTPUT, "%s: closing failed: %s", output->record.file, strerror(errno));
    free(output);
    return status;
}

/* Rows that follow each other in the file but not in memory: joined, then written. */
static int write_packed(gm_output *output, int64_t offset, int64_t rows, size_t row_bytes, const char *src, size_t pitch)
{
    int64_t at_once = gm_min(WINDOW / (int64_t)row_bytes, rows);
    char *window = malloc((size_t)at_once * row_bytes);
    int status = GM_OK;

    if (!window)
        return gm_fail(GM_EDEVICE, "%s: no memory for a buffer of %d bytes", output->record.file, WINDOW);
    for (int64_t row = 0; row < rows && !status; row += at_once) {
        int64_t count = gm_min(at_once, rows - row);

        for (int64_t i = 0; i < count; i++)
            memcpy(window + (size_t)i * row_bytes, src + (size_t)(row + i) * pitch, row_bytes);
        status = gm_bytes_write(&output->bytes, offset + row * (int64_t)row_bytes, window, (size_t)count * row_bytes);
    }
    free(window);
    return status;
}

int gm_output_write(gm_output *output, int index, int64_t row, int64_t rows, int64_t col, int64_t cols, const void *src, size_t pitch)
{
    const gm_output_record *record = &output->record;
    const gm_output_dataset *dataset = &record->dataset[index];
    int64_t size = (int64_t)gm_dtype_size(dataset->type), all_rows = dataset->rank ? dataset->dims[0] : 1, all_cols = 1, offset;
    size_t row_bytes;
    int status = GM_OK;

    for (int d = 1; d < dataset->rank; d++)
        all_cols = gm_mul_sat(all_cols, dataset->dims[d]);
    if (index < 0 || index >= record->datasets || row < 0 || rows < 0 || rows > all_rows - row || col < 0 || cols < 0
        || cols > all_cols - col)
        return gm_fail(GM_EINTERNAL, "%s: rows %" PRId64 "+%" PRId64 ", columns %" PRId64 "+%" PRId64 " lie outside dataset %d", record->file,
                       row, rows, col, cols, index);
    if (rows == 0 || cols == 0)
        return GM_OK;
    offset = record->offset[index] + (row * all_cols + col) * size;
    row_bytes = (size_t)(cols * size);
    if (rows == 1 || (cols == all_cols && pitch == row_bytes))
        return gm_bytes_write(&output->bytes, offset, src, (size_t)rows * row_bytes);
    if (cols == all_cols && row_bytes < PACKED)
        return write_packed(output, offset, rows, row_bytes, src, pitch);
    for (int64_t i = 0; i < rows && !status; i++)
        status = gm_bytes_write(&output->bytes, offset + i * all_cols * size, (const char *)src + (size_t)i * pitch, row_bytes);
    return status;
}
