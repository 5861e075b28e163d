/* chunk_read.c - reads boxes from chunks. */
#include "io/read/chunk_read.h"

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
#include "io/read/chunk_pool.h"
#include "io/read/chunks.h"
#include "io/cold.h"

struct gm_chunk_reader {
    const gm_dataset *dataset;
    const char *title;
    gm_bytes file;
    gm_chunks chunks;
    gm_chunk_pool *pool;
};

/* Elements of unfiltered chunks are read in place when LONG_RUN bytes are contiguous, or when they are less than one
 * SMALL_PARTth of the chunk. */
enum { LONG_RUN = 64 * 1024, SMALL_PART = 8 };

static int open_data(gm_chunk_reader *reader)
{
    const char *file = reader->dataset->data_file;
    struct stat st;
    reader->file.fd = open(file, O_RDONLY | O_CLOEXEC);
    if (reader->file.fd < 0 || fstat(reader->file.fd, &st))
        return gm_fail(GM_EINPUT, "%s: %s cannot be opened: %s", reader->title, file, strerror(errno));
    if (reader->chunks.end > st.st_size)
        return gm_fail(GM_EINPUT, "%s: %s ends at byte %" PRId64 ", expected %" PRId64 ": it is damaged or truncated",
                       reader->title, file, (int64_t)st.st_size, reader->chunks.end);
    reader->file.cold = gm_cold_open(reader->file.fd, GM_COLD_PROBE);
    return gm_identity_check_open(&reader->dataset->data_identity, reader->file.fd, file, reader->title);
}

int64_t gm_chunk_reader_estimate(int64_t table_bytes, int64_t chunk_bytes, int filtered, int threads, int64_t room)
{
    const int64_t overhead = GM_ALLOC_OVERHEAD;
    int64_t table = gm_add_sat(table_bytes, overhead);
    int64_t place = gm_mul_sat(filtered ? 2 : 1, (int64_t)gm_decode_buffer_bytes((size_t)chunk_bytes));
    place = gm_add_sat(place, overhead);
    if (gm_add_sat(table, place) > room / 4)
        return 0;
    return gm_add_sat(table, gm_mul_sat(place, threads));
}

int64_t gm_chunk_reader_bytes(const gm_dataset *dataset, int threads, int64_t room)
{
    return gm_chunk_reader_estimate(gm_chunks_bytes(dataset), gm_dataset_chunk_bytes(dataset), dataset->filters > 0,
                                    threads, room);
}

int gm_chunk_reader_open(const gm_dataset *dataset, const char *title, gm_chunk_reader **out)
{
    gm_chunk_reader *reader = calloc(1, sizeof *reader);
    int found;
    *out = NULL;
    if (gm_chunk_reader_bytes(dataset, 1, gm_memory_cap(GM_HOST)) == 0) {
        free(reader);
        return GM_OK;
    }
    if (!reader)
        return gm_fail(GM_EDEVICE, "%s: no memory to open it", title);
    reader->dataset = dataset;
    reader->title = title;
    reader->file = (gm_bytes){.fd = -1, .code = GM_EINPUT, .title = title};
    int status = gm_chunks_find(dataset, title, &reader->chunks, &found);
    if (status || !found)
        goto out;
    status = open_data(reader);
    if (!status)
        status = gm_chunk_pool_open(&reader->chunks.pipeline, reader->chunks.buffer_bytes, &reader->pool);
    if (status)
        goto out;
    /* With one entry, every read can be done, if need be by one thread after the other. */
    gm_chunk_entry *first = gm_chunk_pool_acquire(reader->pool, GM_CHUNK_NONE);
    if (first) {
        gm_chunk_pool_release(reader->pool, first);
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

/* The intersection of a box and a chunk. */
typedef struct part {
    const gm_chunk *chunk;
    int64_t index;     /* in the table */
    const int64_t *at; /* coordinates of the chunk */
    gm_stride dims[GM_RANK_MAX];
    int64_t from; /* byte of the chunk */
    char *to;
    int whole; /* all of the chunk, without gaps in memory */
} part;

static int fail_chunk(const gm_chunk_reader *reader, const part *p, const char *why)
{
    char coordinates[GM_COORDINATES_TEXT];
    return gm_fail(GM_EINPUT, "%s: chunk %s: %s", reader->title,
                   gm_coordinates_format(reader->dataset->rank, p->at, coordinates), why);
}

/* Reads and decodes a chunk. */
static int decode(gm_chunk_reader *reader, const part *p, gm_chunk_entry *entry)
{
    char why[GM_DECODE_WHY];
    const char *data = NULL;
    int status = gm_bytes_read(&reader->file, p->chunk->address, entry->decoder.buffer[0], p->chunk->bytes);
    if (!status && gm_decode(&reader->chunks.pipeline, p->chunk->filter_mask, &entry->decoder, p->chunk->bytes,
                             p->whole ? p->to : NULL, &data, why))
        status = fail_chunk(reader, p, why);
    gm_chunk_pool_decoded(reader->pool, entry, status ? NULL : data);
    return status;
}

static int read_part(gm_chunk_reader *reader, part *p)
{
    size_t size = gm_dtype_size(reader->dataset->type);
    int rank = reader->dataset->rank, status = GM_OK;
    int64_t run = gm_bytes_run(p->dims, rank, size), wanted = (int64_t)size,
            chunk_bytes = (int64_t)reader->chunks.pipeline.bytes;
    for (int d = 0; d < rank; d++)
        wanted *= p->dims[d].count;
    if (p->chunk->address < 0) {
        for (int d = 0; d < rank; d++)
            p->dims[d].file = 0;
        gm_bytes_copy(reader->chunks.fill, p->dims, rank, size, p->to);
        return GM_OK;
    }
    p->whole = run == chunk_bytes;
    if (gm_decode_is_plain(&reader->chunks.pipeline, p->chunk->filter_mask) &&
        (run >= LONG_RUN || p->whole || wanted < chunk_bytes / SMALL_PART))
        return gm_bytes_gather(&reader->file, p->chunk->address + p->from, p->dims, rank, size, p->to);
    gm_chunk_entry *entry = gm_chunk_pool_acquire(reader->pool, p->whole ? GM_CHUNK_NONE : p->index);
    if (!entry->data)
        status = decode(reader, p, entry);
    if (!status && !p->whole)
        gm_bytes_copy(entry->data + p->from, p->dims, rank, size, p->to);
    gm_chunk_pool_release(reader->pool, entry);
    return status;
}

/* The intersection of a region with the chunk at p->at; 0 when the steps skip it. */
static int cut_part(const gm_chunk_reader *reader, const gm_region *region, char *dst, part *p)
{
    const gm_dataset *dataset = reader->dataset;
    int64_t stride = (int64_t)gm_dtype_size(dataset->type);
    p->from = 0;
    p->to = dst;
    for (int d = dataset->rank - 1; d >= 0; d--) {
        int64_t step = region->step[d], start = region->start[d], corner = p->at[d] * dataset->chunk[d];
        gm_range in = gm_steps_in_chunk(start, step, region->count[d], dataset->chunk[d], p->at[d]);
        if (gm_range_length(in) == 0)
            return 0;
        p->dims[d] = (gm_stride){gm_range_length(in), stride * step, region->memory[d]};
        p->from += (start + in.begin * step - corner) * stride;
        p->to += in.begin * region->memory[d];
        stride *= dataset->chunk[d];
    }
    p->index = gm_chunks_index(&reader->chunks, p->at);
    p->chunk = &reader->chunks.chunk[p->index];
    return 1;
}

int gm_chunk_reader_read(gm_chunk_reader *reader, const gm_region *region, char *dst)
{
    const gm_dataset *dataset = reader->dataset;
    gm_chunk_walk walk = gm_chunk_walk_begin(dataset->rank, region->start, region->step, region->count, dataset->chunk);
    part p = {.at = walk.at};
    int status = GM_OK;
    do {
        if (cut_part(reader, region, dst, &p))
            status = read_part(reader, &p);
    } while (!status && gm_chunk_walk_next(&walk));
    return status;
}
