/* pack.c - chunks: from the scratch file into their final form, and to their places.
 *
 * Chunks are numbered in the order of their elements, over all chunked datasets; each rank has a range of them. It reads them from the scratch file,
 * shuffles and compresses them and appends them to a file of its own, its spool, in any order; behind them stands a table of what is where.
 * One rank then places them by H5Dwrite_chunk in the order of their numbers: the same file for any number of ranks and threads. */
#include "io/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/size.h"
#include "base/status.h"
#include "io/bytes.h"
#include "io/crew.h"
#include "io/scratch.h"

/* A chunk in a spool. */
typedef struct entry {
    int64_t offset;
    uint32_t bytes, mask; /* mask: bit i: filter i was left out */
} entry;

static int ranks_of(const gm_output_record *record)
{
    return record->ranks > 0 ? record->ranks : 1;
}

static int64_t count_chunks(const gm_output_dataset *dataset)
{
    int64_t count = dataset->chunked ? 1 : 0;

    for (int d = 0; d < dataset->rank && count; d++)
        count *= gm_ceil_div(dataset->dims[d], dataset->chunk[d]);
    return count;
}

static int64_t count_all(const gm_output_record *record)
{
    int64_t count = 0;

    for (int i = 0; i < record->datasets; i++)
        count += count_chunks(&record->dataset[i]);
    return count;
}

/* The first chunk of a rank; of rank `ranks`, their number. */
static int64_t first_of(const gm_output_record *record, int64_t chunks, int rank)
{
    int64_t ranks = ranks_of(record);

    return chunks / ranks * rank + gm_min(chunks % ranks, rank);
}

static int64_t chunk_bytes(const gm_output_dataset *dataset)
{
    int64_t bytes = (int64_t)gm_dtype_size(dataset->type);

    for (int d = 0; d < dataset->rank; d++)
        bytes *= dataset->chunk[d];
    return bytes;
}

/* Where chunk number of a dataset begins. */
static void locate(const gm_output_dataset *dataset, int64_t number, hsize_t *start)
{
    for (int d = dataset->rank - 1; d >= 0; d--) {
        int64_t along = gm_ceil_div(dataset->dims[d], dataset->chunk[d]);

        start[d] = (hsize_t)(number % along * dataset->chunk[d]);
        number /= along;
    }
}

static int spool_path(const gm_output_record *record, int rank, char *path)
{
    if (snprintf(path, GM_PATH_MAX, "%s.%d", record->raw, rank) >= GM_PATH_MAX)
        return gm_fail(GM_EOUTPUT, "%s: the name is too long", record->file);
    return GM_OK;
}

/* A thread's own. */
typedef struct packer {
    char *chunk, *other; /* chunk_bytes of the largest chunk each */
    struct libdeflate_compressor *compressor;
    int level; /* of the compressor */
} packer;

/* A rank's share. */
typedef struct share {
    const gm_output_record *record;
    gm_bytes raw, spool;
    int64_t first, count;
    entry *table; /* [count] */
    _Atomic int64_t end; /* of the spool */
    packer *packer; /* [thread] */
} share;

/* Elements of a chunk, zeros where it reaches over the edge of the dataset. */
static int read_chunk(const share *s, int index, int64_t number, char *chunk)
{
    const gm_output_dataset *dataset = &s->record->dataset[index];
    int64_t size = (int64_t)gm_dtype_size(dataset->type), stride = size, memory = size, offset = s->record->offset[index];
    hsize_t start[GM_RANK_MAX];
    gm_stride dims[GM_RANK_MAX];
    int cut = 0;

    locate(dataset, number, start);
    for (int d = dataset->rank - 1; d >= 0; d--) {
        int64_t count = gm_min(dataset->chunk[d], dataset->dims[d] - (int64_t)start[d]);

        cut = cut || count < dataset->chunk[d];
        dims[d] = (gm_stride){count, stride, memory};
        offset += (int64_t)start[d] * stride;
        stride *= dataset->dims[d];
        memory *= dataset->chunk[d];
    }
    if (cut)
        memset(chunk, 0, (size_t)chunk_bytes(dataset));
    return gm_bytes_gather(&s->raw, offset, dims, dataset->rank, (size_t)size, chunk);
}

/* First bytes of all elements, then second ones, ...: as libhdf5's filter does. */
static void shuffle(const char *from, char *to, size_t elements, size_t size)
{
    for (size_t byte = 0; byte < size; byte++)
        for (size_t i = 0; i < elements; i++)
            to[byte * elements + i] = from[i * size + byte];
}

static void swap(packer *p)
{
    char *chunk = p->chunk;

    p->chunk = p->other;
    p->other = chunk;
}

/* Applies the filters to p->chunk. A chunk that does not become smaller stays as it is, and the mask says so. */
static int filter(packer *p, const gm_output_dataset *dataset, const char *title, entry *e)
{
    size_t size = gm_dtype_size(dataset->type), bytes = (size_t)chunk_bytes(dataset), packed;

    e->bytes = (uint32_t)bytes;
    e->mask = 0;
    if (dataset->shuffle && size > 1) {
        shuffle(p->chunk, p->other, bytes / size, size);
        swap(p);
    }
    if (!dataset->deflate)
        return GM_OK;
    if (!p->compressor || p->level != dataset->deflate) {
        libdeflate_free_compressor(p->compressor);
        p->compressor = libdeflate_alloc_compressor(dataset->deflate);
        p->level = dataset->deflate;
    }
    if (!p->compressor)
        return gm_fail(GM_EDEVICE, "%s: no memory for a compressor", title);
    packed = libdeflate_zlib_compress(p->compressor, p->chunk, bytes, p->other, bytes - 1);
    if (packed) {
        e->bytes = (uint32_t)packed;
        swap(p);
    } else {
        e->mask = dataset->shuffle ? 2 : 1; /* deflate comes behind shuffle */
    }
    return GM_OK;
}

static int pack_chunk(void *context, int thread, int64_t i)
{
    share *s = context;
    packer *p = &s->packer[thread];
    int64_t number = s->first + i;
    int index = 0, status;

    for (int64_t chunks; number >= (chunks = count_chunks(&s->record->dataset[index])); index++)
        number -= chunks;
    status = read_chunk(s, index, number, p->chunk);
    if (!status)
        status = filter(p, &s->record->dataset[index], s->record->file, &s->table[i]);
    if (status)
        return status;
    s->table[i].offset = atomic_fetch_add(&s->end, s->table[i].bytes);
    return gm_bytes_write(&s->spool, s->table[i].offset, p->chunk, s->table[i].bytes);
}

enum { OVERHEAD = 8192 /* of an allocation, at most */ };

/* Memory for as many of the threads as there is room for, one at least. Returns their number; 0 after a message. */
static int make_packers(share *s, int threads, void **memory)
{
    int64_t bytes = 0, room;

    for (int i = 0; i < s->record->datasets; i++)
        if (s->record->dataset[i].chunked)
            bytes = gm_max(bytes, chunk_bytes(&s->record->dataset[i]));
    room = (gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST) - OVERHEAD) / (2 * bytes);
    threads = (int)gm_max(1, gm_min(gm_min(threads, s->count), room));
    s->packer = calloc((size_t)threads, sizeof *s->packer);
    if (!s->packer) {
        gm_fail(GM_EDEVICE, "%s: no memory for %d threads", s->record->file, threads);
        return 0;
    }
    if (gm_host_alloc((size_t)(2 * bytes) * (size_t)threads, memory))
        return 0;
    for (int i = 0; i < threads; i++) {
        s->packer[i].chunk = (char *)*memory + 2 * bytes * i;
        s->packer[i].other = s->packer[i].chunk + bytes;
    }
    return threads;
}

static int pack_share(share *s, int threads)
{
    size_t table_bytes = (size_t)s->count * sizeof *s->table;
    void *table, *memory = NULL;
    int status = gm_host_alloc(table_bytes, &table), made = 0;

    s->table = table;
    if (!status) {
        made = make_packers(s, threads, &memory);
        status = made ? gm_crew_run(made, s->count, pack_chunk, s) : GM_EDEVICE;
    }
    if (!status)
        status = gm_bytes_write(&s->spool, s->end, s->table, table_bytes);
    for (int i = 0; i < made; i++)
        libdeflate_free_compressor(s->packer[i].compressor);
    free(s->packer);
    gm_host_free(memory);
    gm_host_free(table);
    return status;
}

int gm_output_pack(const gm_output_record *record, int rank, int threads)
{
    char path[GM_PATH_MAX];
    int64_t chunks = count_all(record), first = first_of(record, chunks, rank);
    share s = {.record = record, .first = first, .count = first_of(record, chunks, rank + 1) - first};
    int status;

    if (s.count == 0)
        return GM_OK;
    status = spool_path(record, rank, path);
    if (status)
        return status;
    s.raw = (gm_bytes){open(record->raw, O_RDONLY | O_CLOEXEC), GM_EOUTPUT, record->file, 0, NULL};
    s.spool = (gm_bytes){open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), GM_EOUTPUT, record->file, 0, NULL};
    if (s.raw.fd < 0 || s.spool.fd < 0)
        status = gm_fail(GM_EOUTPUT, "%s: %s cannot be opened: %s", record->file, s.raw.fd < 0 ? record->raw : path, strerror(errno));
    if (!status)
        status = pack_share(&s, threads);
    if (s.raw.fd >= 0)
        close(s.raw.fd);
    if (s.spool.fd >= 0 && close(s.spool.fd) && errno != EINTR && !status)
        status = gm_fail(GM_EOUTPUT, "%s: closing %s failed: %s", record->file, path, strerror(errno));
    return status;
}

/* Chunks [from, to) of a spool to their places; base: the number of the dataset's first chunk; first: of the spool's. */
static int place_chunks(hid_t set, const gm_output_dataset *dataset, const gm_bytes *spool, const entry *table, int64_t from, int64_t to,
                        int64_t base, char *buffer)
{
    char reason[GM_H5_TEXT];
    hsize_t start[GM_RANK_MAX];
    int status = GM_OK;

    for (int64_t number = from; number < to && !status; number++, table++) {
        if (table->bytes > chunk_bytes(dataset))
            return gm_fail(GM_EOUTPUT, "%s: its compressed chunks are damaged", spool->title);
        status = gm_bytes_read(spool, table->offset, buffer, table->bytes);
        locate(dataset, number - base, start);
        if (!status && H5Dwrite_chunk(set, H5P_DEFAULT, table->mask, start, table->bytes, buffer) < 0)
            status = gm_fail(GM_EOUTPUT, "%s: writing chunks failed: %s", spool->title, gm_h5_error(reason));
    }
    return status;
}

/* What one rank has of chunks [base, end), those of the dataset. */
static int place_share(hid_t set, const gm_output_record *record, int index, int rank, int64_t base, int64_t end, const char *title)
{
    const gm_output_dataset *dataset = &record->dataset[index];
    int64_t chunks = count_all(record), first = first_of(record, chunks, rank), last = first_of(record, chunks, rank + 1);
    int64_t from = gm_max(first, base), to = gm_min(last, end);
    char path[GM_PATH_MAX];
    void *table = NULL, *buffer = NULL;
    gm_bytes spool;
    off_t size;
    int status;

    if (from >= to)
        return GM_OK;
    status = spool_path(record, rank, path);
    if (status)
        return status;
    spool = (gm_bytes){open(path, O_RDONLY | O_CLOEXEC), GM_EOUTPUT, title, 0, NULL};
    size = spool.fd < 0 ? -1 : lseek(spool.fd, 0, SEEK_END);
    if (size < 0)
        status = gm_fail(GM_EOUTPUT, "%s: %s cannot be opened: %s", title, path, strerror(errno));
    if (!status)
        status = gm_host_alloc((size_t)(to - from) * sizeof(entry), &table);
    if (!status)
        status = gm_host_alloc((size_t)chunk_bytes(dataset), &buffer);
    if (!status) /* the table is the last thing in it */
        status = gm_bytes_read(&spool, size - (last - from) * (int64_t)sizeof(entry), table, (size_t)(to - from) * sizeof(entry));
    if (!status)
        status = place_chunks(set, dataset, &spool, table, from, to, base, buffer);
    gm_host_free(buffer);
    gm_host_free(table);
    if (spool.fd >= 0)
        close(spool.fd);
    return status;
}

int gm_pack_place(hid_t set, const gm_output_record *record, int index, const char *title)
{
    int64_t base = 0;
    int status = GM_OK;

    for (int i = 0; i < index; i++)
        base += count_chunks(&record->dataset[i]);
    for (int rank = 0; rank < ranks_of(record) && !status; rank++)
        status = place_share(set, record, index, rank, base, base + count_chunks(&record->dataset[index]), title);
    return status;
}

void gm_pack_discard(const gm_output_record *record)
{
    char path[GM_PATH_MAX];

    if (!record->raw[0])
        return;
    unlink(record->raw);
    for (int rank = 0; rank < ranks_of(record); rank++)
        if (snprintf(path, sizeof path, "%s.%d", record->raw, rank) < GM_PATH_MAX)
            unlink(path);
}
