/* bytes.c - checked pread and pwrite. */
#include "io/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "io/cold.h"

static const size_t request_max = (size_t)1 << 30; /* Linux moves at most 2 GiB - 4 KiB at once */

static int check_range(const gm_bytes *file, int64_t offset, size_t bytes)
{
    if (offset < 0 || bytes > (size_t)(INT64_MAX - offset))
        return gm_fail(file->code, "%s: %zu bytes at offset %" PRId64 " exceed the largest file offset", file->title,
                       bytes, offset);
    return GM_OK;
}

static int read_plain(const gm_bytes *file, int fd, int64_t offset, void *dst, size_t bytes)
{
    char *to = dst;
    int status = GM_OK;
    while (!status && bytes) {
        ssize_t got = pread(fd, to, bytes < request_max ? bytes : request_max, offset);
        if (got > 0) {
            to += got;
            offset += got;
            bytes -= (size_t)got;
        } else if (got == 0) {
            status = gm_fail(file->code,
                             "%s: the file ends before byte %" PRId64
                             ", expected %zu bytes more: it is damaged or truncated",
                             file->title, offset, bytes);
        } else if (errno != EINTR) {
            status = gm_fail(file->code, "%s: reading %zu bytes at offset %" PRId64 " failed: %s", file->title, bytes,
                             offset, strerror(errno));
        }
    }
    return status;
}

/* A file is open while it is read: there may be thousands. */
static int read_extent(const gm_bytes *file, const gm_extent *extent, int64_t at, void *dst, size_t bytes)
{
    int fd = open(extent->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return gm_fail(file->code, "%s: %s cannot be opened: %s", file->title, extent->path, strerror(errno));
    int status = read_plain(file, fd, extent->offset + at, dst, bytes);
    close(fd);
    return status;
}

static int read_extents(const gm_bytes *file, int64_t offset, char *dst, size_t bytes)
{
    int status = GM_OK;
    for (int i = 0; i < file->extents && bytes && !status; i++) {
        const gm_extent *extent = &file->extent[i];
        if (offset < extent->bytes) {
            size_t part = (size_t)gm_min((int64_t)bytes, extent->bytes - offset);
            status = read_extent(file, extent, offset, dst, part);
            dst += part;
            bytes -= part;
        }
        offset = gm_max(offset - extent->bytes, 0);
    }
    return status || !bytes
               ? status
               : gm_fail(file->code, "%s: its external storage ends %zu bytes too early", file->title, bytes);
}

int gm_bytes_read(const gm_bytes *file, int64_t offset, void *dst, size_t bytes)
{
    int status = check_range(file, offset, bytes);
    size_t from, to;
    if (!status && file->extents)
        return read_extents(file, offset, dst, bytes);
    if (status || !file->cold || bytes < GM_COLD_MIN_BYTES)
        return status ? status : read_plain(file, file->fd, offset, dst, bytes);
    gm_cold_turn turn = gm_cold_read(file->cold, offset, dst, bytes, &from, &to);
    if (turn.rest < 0)
        turn.rest = file->fd;
    status = read_plain(file, turn.rest, offset, dst, from);
    if (!status)
        status = read_plain(file, turn.rest, offset + (int64_t)to, (char *)dst + to, bytes - to);
    gm_cold_done(file->cold, turn, bytes);
    return status;
}

static int fail_write(const gm_bytes *file, int64_t offset, size_t bytes, const char *why)
{
    char needed[GM_SIZE_TEXT];
    return gm_fail(file->code, "%s: writing %zu bytes at offset %" PRId64 " failed: %s%s%s", file->title, bytes, offset,
                   why, file->needed ? ", expected room for " : "",
                   file->needed ? gm_size_format(file->needed, needed) : "");
}

int gm_bytes_write(const gm_bytes *file, int64_t offset, const void *src, size_t bytes)
{
    const char *from = src;
    int status = check_range(file, offset, bytes);
    while (!status && bytes) {
        ssize_t put = pwrite(file->fd, from, bytes < request_max ? bytes : request_max, offset);
        if (put > 0) {
            from += put;
            offset += put;
            bytes -= (size_t)put;
        } else if (put == 0 || errno != EINTR) {
            status = fail_write(file, offset, bytes, put == 0 ? "no bytes were written" : strerror(errno));
        }
    }
    return status;
}

int gm_bytes_close(int fd, const char *title, int status)
{
    if (fd >= 0 && close(fd) && errno != EINTR && !status)
        status = gm_fail(GM_EOUTPUT, "%s: closing failed: %s", title, strerror(errno));
    return status;
}

/* Up to about this distance, reading the bytes between two elements is cheaper than one more request. */
enum { NEAR = 16 * 1024, WINDOW = 256 * 1024 };

/* dst[i * memory] = src[i * file], unit bytes each. */
static void pick(char *dst, const char *src, const gm_stride *line, int64_t count, size_t unit)
{
#define PICK(bytes)                                                      \
    case bytes:                                                          \
        for (int64_t i = 0; i < count; i++)                              \
            memcpy(dst + i * line->memory, src + i * line->file, bytes); \
        break
    switch (unit) { /* a constant size compiles to one move */
        PICK(1);
        PICK(2);
        PICK(4);
        PICK(8);
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(dst + i * line->memory, src + i * line->file, unit);
    }
#undef PICK
}

/* The source of strided elements: memory, or else a file, through the window if there is one. */
typedef struct source {
    const char *memory;
    const gm_bytes *file;
    char *window;
} source;

/* Reads the units of one line: one by one when they are far apart, else together with the bytes between them. */
static int read_line(const source *from, int64_t offset, const gm_stride *line, size_t unit, char *dst)
{
    int64_t at_once = from->window ? (WINDOW - (int64_t)unit) / line->file + 1 : 1;
    int status = GM_OK;
    if (from->memory) {
        pick(dst, from->memory + offset, line, line->count, unit);
        return GM_OK;
    }
    for (int64_t i = 0; i < line->count && !status; i += at_once) {
        int64_t count = gm_min(at_once, line->count - i), at = offset + i * line->file;
        if (!from->window) {
            status = gm_bytes_read(from->file, at, dst + i * line->memory, unit);
        } else {
            status = gm_bytes_read(from->file, at, from->window, (size_t)((count - 1) * line->file) + unit);
            if (!status)
                pick(dst + i * line->memory, from->window, line, count, unit);
        }
    }
    return status;
}

/* Merges dimensions that continue each other. out[0] is dense: its count is in bytes. out is innermost first. Returns
 * the number. */
static int merge(const gm_stride *dims, int rank, size_t size, gm_stride *out)
{
    int n = 0;
    out[0] = (gm_stride){(int64_t)size, 1, 1};
    for (int d = rank - 1; d >= 0; d--) {
        gm_stride *last = &out[n];
        if (dims[d].count == 1)
            continue;
        if (dims[d].file == last->count * last->file && dims[d].memory == last->count * last->memory)
            last->count *= dims[d].count;
        else
            out[++n] = dims[d];
    }
    return n + 1;
}

static int walk(source *from, int64_t offset, const gm_stride *dims, int rank, size_t size, char *to)
{
    gm_stride merged[GM_STRIDES_MAX], line = {1, 1, 1};
    int64_t index[GM_STRIDES_MAX] = {0};
    int status = GM_OK, n;
    for (int d = 0; d < rank; d++)
        if (dims[d].count == 0)
            return GM_OK;
    n = merge(dims, rank, size, merged);
    size_t unit = (size_t)merged[0].count;
    if (n > 1)
        line = merged[1];
    if (!from->memory && line.count > 1 && line.file <= NEAR && !(from->window = malloc(WINDOW)))
        return gm_fail(GM_EDEVICE, "%s: no memory for a buffer of %d bytes", from->file->title, WINDOW);
    for (int d = 0; d < n && !status;) {
        status = read_line(from, offset, &line, unit, to);
        for (d = 2; d < n; d++) { /* the next line: an odometer over the outer dimensions */
            offset += merged[d].file;
            to += merged[d].memory;
            if (++index[d] < merged[d].count)
                break;
            offset -= merged[d].count * merged[d].file;
            to -= merged[d].count * merged[d].memory;
            index[d] = 0;
        }
    }
    free(from->window);
    return status;
}

int gm_bytes_gather(const gm_bytes *file, int64_t offset, const gm_stride *dims, int rank, size_t size, void *dst)
{
    return walk(&(source){.file = file}, offset, dims, rank, size, dst);
}

void gm_bytes_copy(const void *src, const gm_stride *dims, int rank, size_t size, void *dst)
{
    walk(&(source){.memory = src}, 0, dims, rank, size, dst);
}

int64_t gm_bytes_run(const gm_stride *dims, int rank, size_t size)
{
    gm_stride merged[GM_STRIDES_MAX];
    merge(dims, rank, size, merged);
    return merged[0].count;
}
