/* chunk_read.c - boxes out of chunks. */
#include "io/chunk_read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/chunk_pool.h"
#include "io/chunks.h"
#include "io/cold.h"

struct gm_chunk_reader {
    const gm_dataset *dataset;
    const char *title;
    gm_bytes file;
    gm_chunks chunks;
    gm_chunk_pool *pool;
};

/* Stored as they are, elements are read where they lie when they lie together for so many bytes, or are so small a part of the chunk. */
enum { LONG_RUN = 64 * 1024, SMALL_PART = 8 };

static int open_data(gm_chunk_reader *reader)
{
    const char *file = reader->dataset->data_file;
    struct stat st;

    reader->file.fd = open(file, O_RDONLY | O_CLOEXEC);
    if (reader->file.fd < 0 || fstat(reader->file.fd, &st))
        return gm_fail(GM_EINPUT, "%s: %s cannot be opened: %s", reader->title, file, strerror(errno));
    if (reader->chunks.end > st.st_size)
        return gm_fail(GM_EINPUT, "%s: %s ends at byte %" PRId64 ", expected %" PRId64 ": it is damaged or cut", reader->title, file,
                       (int64_t)st.st_size, reader->chunks.end);
    reader->file.cold = gm_cold_open(reader->file.fd, GM_COLD_CONTEST);
    return GM_OK;
}

int64_t gm_chunk_reader_bytes(const gm_dataset *dataset, int threads)
{
    const int64_t overhead = 8192; /* of an allocation */
    int64_t place = (int64_t)gm_dtype_size(dataset->type), table = gm_add_sat(gm_chunks_bytes(dataset), overhead);

    for (int d = 0; d < dataset->rank; d++)
        place = gm_mul_sat(place, dataset->chunk[d]);
    place = gm_add_sat(gm_mul_sat(dataset->filters ? 2 : 1, (int64_t)gm_decode_room((size_t)place)), overhead);
    if (gm_add_sat(table, place) > (gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST)) / 4)
        return 0;
    return gm_add_sat(table, gm_mul_sat(place, threads));
}

int gm_chunk_reader_open(const gm_dataset *dataset, const char *title, gm_chunk_reader **out)
{
    gm_chunk_reader *reader = calloc(1, sizeof *reader);
    gm_chunk_work *first;
    int status, found;

    *out = NULL;
    if (gm_chunk_reader_bytes(dataset, 1) == 0) {
        free(reader);
        return GM_OK;
    }
    if (!reader)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    reader->dataset = dataset;
    reader->title = title;
    reader->file = (gm_bytes){-1, GM_EINPUT, title, 0, NULL};
    status = gm_chunks_find(dataset, title, &reader->chunks, &found);
    if (status || !found)
        goto out;
    status = open_data(reader);
    if (!status)
        status = gm_chunk_pool_open(&reader->chunks.pipeline, reader->chunks.room, &reader->pool);
    if (status)
        goto out;
    /* With one place to decode at, every read can be done, if need be by one thread after the other. */
    first = gm_chunk_pool_take(reader->pool, GM_CHUNK_NONE);
    if (first) {
        gm_chunk_pool_give(reader->pool, first);
        *out = reader;
    }
out:
    if (!*out)
        gm_chunk_reader_close(reader);
    return status;
}

void gm_chunk_reader_close(gm_chunk_reader *reader)
{
    if (!reader)
        return;
    gm_chunk_pool_close(reader->pool);
    gm_cold_close(reader->file.cold);
    if (reader->file.fd >= 0)
        close(reader->file.fd);
    gm_chunks_free(&reader->chunks);
    free(reader);
}

/* What a box wants of one chunk. */
typedef struct part {
    const gm_chunk *chunk;
    int64_t index;              /* in the table */
    int64_t at[GM_RANK_MAX];    /* coordinates of the chunk */
    gm_stride dims[GM_RANK_MAX];
    int64_t from;               /* byte of the chunk */
    char *to;
    int whole;                  /* all of the chunk, without gaps in memory */
} part;

static int fail_chunk(const gm_chunk_reader *reader, const part *p, const char *why)
{
    char coordinates[GM_COORDINATES_TEXT];

    return gm_fail(GM_EINPUT, "%s: chunk %s: %s", reader->title, gm_coordinates_format(reader->dataset->rank, p->at, coordinates), why);
}

/* The stored bytes of a chunk to its elements. */
static int decode(gm_chunk_reader *reader, const part *p, gm_chunk_work *work)
{
    char why[GM_DECODE_WHY];
    const char *data = NULL;
    int status = gm_bytes_read(&reader->file, p->chunk->address, work->decoder.room[0], p->chunk->bytes);

    if (!status && gm_decode(&reader->chunks.pipeline, p->chunk->skipped, &work->decoder, p->chunk->bytes, p->whole ? p->to : NULL, &data, why))
        status = fail_chunk(reader, p, why);
    gm_chunk_pool_decoded(reader->pool, work, status ? NULL : data);
    return status;
}

static int read_part(gm_chunk_reader *reader, part *p)
{
    size_t size = gm_dtype_size(reader->dataset->type);
    int rank = reader->dataset->rank, status = GM_OK;
    int64_t run = gm_bytes_run(p->dims, rank, size), wanted = (int64_t)size, chunk_bytes = (int64_t)reader->chunks.pipeline.bytes;
    gm_chunk_work *work;

    for (int d = 0; d < rank; d++)
        wanted *= p->dims[d].count;
    if (p->chunk->address < 0) {
        for (int d = 0; d < rank; d++)
            p->dims[d].file = 0;
        gm_bytes_copy(reader->chunks.fill, p->dims, rank, size, p->to);
        return GM_OK;
    }
    p->whole = run == chunk_bytes;
    if (gm_decode_is_plain(&reader->chunks.pipeline, p->chunk->skipped) && (run >= LONG_RUN || p->whole || wanted < chunk_bytes / SMALL_PART))
        return gm_bytes_gather(&reader->file, p->chunk->address + p->from, p->dims, rank, size, p->to);
    work = gm_chunk_pool_take(reader->pool, p->whole ? GM_CHUNK_NONE : p->index);
    if (!work->data)
        status = decode(reader, p, work);
    if (!status && !p->whole)
        gm_bytes_copy(work->data + p->from, p->dims, rank, size, p->to);
    gm_chunk_pool_give(reader->pool, work);
    return status;
}

/* What box wants of the chunk at p->at; 0 when steps pass over it. memory[d]: bytes from step to step in dst. */
static int cut_part(const gm_chunk_reader *reader, const gm_box *box, const int64_t *memory, char *dst, part *p)
{
    const gm_dataset *dataset = reader->dataset;
    int64_t stride = (int64_t)gm_dtype_size(dataset->type);

    p->from = 0;
    p->to = dst;
    for (int d = dataset->rank - 1; d >= 0; d--) {
        int64_t step = dataset->selection.step[d], start = box->start[d], corner = p->at[d] * dataset->chunk[d];
        int64_t first = corner > start ? gm_ceil_div(corner - start, step) : 0;
        int64_t end = gm_min(box->count[d], gm_ceil_div(corner + dataset->chunk[d] - start, step));

        if (first >= end)
            return 0;
        p->dims[d] = (gm_stride){end - first, stride * step, memory[d]};
        p->from += (start + first * step - corner) * stride;
        p->to += first * memory[d];
        stride *= dataset->chunk[d];
    }
    p->index = gm_chunks_index(&reader->chunks, p->at);
    p->chunk = &reader->chunks.chunk[p->index];
    return 1;
}

int gm_chunk_reader_read(gm_chunk_reader *reader, const gm_box *box, char *dst, size_t pitch)
{
    const gm_dataset *dataset = reader->dataset;
    int64_t memory[GM_RANK_MAX], first[GM_RANK_MAX], last[GM_RANK_MAX], dense = (int64_t)gm_dtype_size(dataset->type);
    int status = GM_OK, d;
    part p;

    for (d = dataset->rank - 1; d >= 0; d--) {
        memory[d] = d == box->row_dim ? (int64_t)pitch : dense;
        if (d != box->row_dim)
            dense *= box->count[d];
        first[d] = p.at[d] = box->start[d] / dataset->chunk[d];
        last[d] = (box->start[d] + (box->count[d] - 1) * dataset->selection.step[d]) / dataset->chunk[d];
    }
    do {
        if (cut_part(reader, box, memory, dst, &p))
            status = read_part(reader, &p);
        for (d = dataset->rank - 1; d >= 0 && p.at[d]++ == last[d]; d--)
            p.at[d] = first[d];
    } while (d >= 0 && !status);
    return status;
}
