/* pack.c - applies filters to the chunks in the scratch file, and stores them in the output.
 *
 * Chunks are numbered in the order of their elements, over all chunked datasets; each rank has a range of them. It
 * reads them from the scratch file, shuffles and compresses them and appends them to a file of its own, its spool, in
 * any order, followed by a table of their offsets. One rank then stores them by H5Dwrite_chunk in the order of their
 * numbers: the same file for any number of ranks and threads. */
#include "io/write/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/new_file.h"
#include "base/memory.h"
#include "base/range.h"
#include "base/size.h"
#include "base/status.h"
#include "base/stop.h"
#include "io/bytes.h"
#include "io/parallel_for.h"

/* A chunk in a spool. */
typedef struct entry {
    int64_t offset;
    uint32_t bytes, mask; /* mask: bit i: filter i was not applied */
} entry;

static int ranks_of(const gm_output_record *record)
{
    return record->ranks > 0 ? record->ranks : 1;
}

static int64_t count_chunks(const gm_output_dataset *dataset)
{
    int64_t count = dataset->chunked ? 1 : 0;
    for (int d = 0; d < dataset->rank && count; d++)
        count = gm_mul_sat(count, gm_ceil_div(dataset->dims[d], dataset->chunk[d]));
    return count;
}

static int64_t count_all(const gm_output_record *record)
{
    int64_t count = 0;
    for (int i = 0; i < record->datasets; i++)
        count = gm_add_sat(count, count_chunks(&record->dataset[i]));
    return count;
}

/* The first chunk of a rank; of rank `ranks`, their number. */
static int64_t first_of(const gm_output_record *record, int64_t chunks, int rank)
{
    return gm_range_split(chunks, 1, ranks_of(record), rank).begin;
}

static int64_t chunk_bytes(const gm_output_dataset *dataset)
{
    return gm_mul_sat((int64_t)gm_dtype_size(dataset->type), gm_product_sat(dataset->chunk, dataset->rank));
}

/* The first element of a chunk of a dataset. */
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
    if (snprintf(path, GM_PATH_MAX, "%s.%d", record->spool, rank) >= GM_PATH_MAX)
        return gm_fail(GM_EOUTPUT, "%s: the name is too long", record->file);
    return GM_OK;
}

/* The buffers of one thread. */
typedef struct packer {
    char *chunk, *other; /* chunk_bytes of the largest chunk each */
    struct libdeflate_compressor *compressor;
    int level; /* of the compressor */
} packer;

/* The chunks of one rank. */
typedef struct share {
    const gm_output_record *record;
    gm_bytes raw, spool;
    int64_t first, count;
    entry *table;        /* [count] */
    _Atomic int64_t end; /* of the spool */
    packer *packer;      /* [thread] */
} share;

/* Elements of a chunk, zeros past the edge of the dataset. */
static int read_chunk(const share *s, int index, int64_t number, char *chunk)
{
    const gm_output_dataset *dataset = &s->record->dataset[index];
    int64_t size = (int64_t)gm_dtype_size(dataset->type), stride = size, memory = size,
            offset = s->record->offset[index];
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

/* The first bytes of all elements, then the second ones, and so on, as libhdf5's filter. */
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

/* Applies the filters to p->chunk. A chunk that deflate does not make smaller is stored without it; the mask says so.
 */
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
        e->mask = dataset->shuffle ? 2 : 1; /* deflate follows shuffle */
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
    status = gm_stop_asked() ? gm_stop_status() : read_chunk(s, index, number, p->chunk);
    if (!status)
        status = filter(p, &s->record->dataset[index], s->record->file, &s->table[i]);
    if (status)
        return status;
    s->table[i].offset = atomic_fetch_add(&s->end, s->table[i].bytes);
    return gm_bytes_write(&s->spool, s->table[i].offset, p->chunk, s->table[i].bytes);
}

/* Bytes of the largest chunk of any dataset. */
static int64_t largest_chunk(const gm_output_record *record)
{
    int64_t bytes = 0;
    for (int i = 0; i < record->datasets; i++)
        if (record->dataset[i].chunked)
            bytes = gm_max(bytes, chunk_bytes(&record->dataset[i]));
    return bytes;
}

int64_t gm_output_pack_bytes(const gm_output_record *record, int ranks, int threads)
{
    int64_t count = gm_range_length(gm_range_split(count_all(record), 1, ranks, 0)); /* no rank has more */
    if (count == 0)
        return 0;
    return gm_add_sat(
        gm_add_sat(gm_mul_sat(count, sizeof(entry)), gm_mul_sat(largest_chunk(record), 2 * gm_min(threads, count))),
        2 * GM_ALLOC_OVERHEAD);
}

/* Allocates buffers for as many of the threads as memory allows, at least one. Returns their number; 0 after a message.
 */
static int make_packers(share *s, int threads, void **memory)
{
    int64_t bytes = largest_chunk(s->record), room;
    room = (gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST) - GM_ALLOC_OVERHEAD) / (2 * bytes);
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
        status = made ? gm_parallel_for(made, s->count, pack_chunk, s) : GM_EDEVICE;
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

int gm_output_is_packed(const gm_output_record *record)
{
    return count_all(record) > 0;
}

int gm_output_pack(const gm_output_record *record, int rank, int threads)
{
    char path[GM_PATH_MAX];
    int64_t chunks = count_all(record), first = first_of(record, chunks, rank);
    share s = {.record = record, .first = first, .count = first_of(record, chunks, rank + 1) - first};
    if (s.count == 0)
        return GM_OK;
    int status = spool_path(record, rank, path);
    if (status)
        return status;
    unlink(path); /* of a first attempt; no link that someone has put there is followed */
    s.raw = (gm_bytes){.fd = gm_new_file_open(record->raw, O_RDONLY), .code = GM_EOUTPUT, .title = record->file};
    s.spool = (gm_bytes){.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666),
                         .code = GM_EOUTPUT,
                         .title = record->file};
    if (s.raw.fd < 0 || s.spool.fd < 0)
        status = gm_fail(GM_EOUTPUT, "%s: %s cannot be opened: %s", record->file, s.raw.fd < 0 ? record->raw : path,
                         strerror(errno));
    if (!status)
        status = pack_share(&s, threads);
    if (s.raw.fd >= 0)
        close(s.raw.fd);
    return gm_bytes_close(s.spool.fd, record->file, status);
}

/* The chunked dataset that gets its chunks. */
typedef struct placing {
    const gm_output_vfd *file;
    hid_t set;
    const gm_output_record *record;
    const gm_output_dataset *dataset;
    int64_t base, end; /* its chunks */
    const char *title;
} placing;

/* Stores chunks [from, to) of a spool. */
static int place_chunks(const placing *p, const gm_bytes *spool, const entry *table, int64_t from, int64_t to,
                        char *buffer)
{
    char reason[GM_H5_TEXT];
    hsize_t start[GM_RANK_MAX];
    int status = GM_OK;
    for (int64_t number = from; number < to && !status; number++, table++) {
        if (table->bytes > chunk_bytes(p->dataset))
            return gm_fail(GM_EOUTPUT, "%s: its compressed chunks are damaged", p->title);
        status = gm_stop_status();
        if (!status)
            status = gm_bytes_read(spool, table->offset, buffer, table->bytes);
        locate(p->dataset, number - p->base, start);
        if (!status && H5Dwrite_chunk(p->set, H5P_DEFAULT, table->mask, start, table->bytes, buffer) < 0)
            status = gm_fail(GM_EOUTPUT, "%s: writing chunks failed: %s", p->title, gm_h5_error(reason));
        if (!status)
            status = gm_output_vfd_status(p->file);
    }
    return status;
}

/* Stores the dataset's chunks that one rank has. */
static int place_share(const placing *p, int rank)
{
    int64_t chunks = count_all(p->record), first = first_of(p->record, chunks, rank),
            last = first_of(p->record, chunks, rank + 1);
    int64_t from = gm_max(first, p->base), to = gm_min(last, p->end);
    char path[GM_PATH_MAX];
    void *table = NULL, *buffer = NULL;
    if (from >= to)
        return GM_OK;
    int status = spool_path(p->record, rank, path);
    if (status)
        return status;
    gm_bytes spool = {.fd = gm_new_file_open(path, O_RDONLY), .code = GM_EOUTPUT, .title = p->title};
    off_t size = spool.fd < 0 ? -1 : lseek(spool.fd, 0, SEEK_END);
    if (size < 0)
        status = gm_fail(GM_EOUTPUT, "%s: %s cannot be opened: %s", p->title, path, strerror(errno));
    if (!status)
        status = gm_host_alloc((size_t)(to - from) * sizeof(entry), &table);
    if (!status)
        status = gm_host_alloc((size_t)chunk_bytes(p->dataset), &buffer);
    if (!status) /* the table is at its end */
        status = gm_bytes_read(&spool, size - (last - from) * (int64_t)sizeof(entry), table,
                               (size_t)(to - from) * sizeof(entry));
    if (!status)
        status = place_chunks(p, &spool, table, from, to, buffer);
    gm_host_free(buffer);
    gm_host_free(table);
    if (spool.fd >= 0)
        close(spool.fd);
    return status;
}

int gm_pack_place(const gm_output_vfd *file, hid_t set, const gm_output_record *record, int index, const char *title)
{
    placing p = {.file = file, .set = set, .record = record, .dataset = &record->dataset[index], .title = title};
    int status = GM_OK;
    for (int i = 0; i < index; i++)
        p.base += count_chunks(&record->dataset[i]);
    p.end = p.base + count_chunks(p.dataset);
    for (int rank = 0; rank < ranks_of(record) && !status; rank++)
        status = place_share(&p, rank);
    return status;
}

void gm_pack_drop_raw(gm_output_record *record)
{
    gm_new_file_discard(record->raw_descriptor, record->raw);
    record->raw_descriptor = -1;
    record->raw[0] = '\0';
}

void gm_pack_discard(gm_output_record *record)
{
    char path[GM_PATH_MAX];
    gm_pack_drop_raw(record);
    for (int rank = 0; rank < ranks_of(record) && record->spool[0]; rank++)
        if (snprintf(path, sizeof path, "%s.%d", record->spool, rank) < GM_PATH_MAX)
            unlink(path);
    record->spool[0] = '\0';
}
