/* bench file - what a file gives and takes: every way of reading and of writing that there is here, on the way to the device as well, beside what memory and
 * links give in the same run.
 *
 * Cold is a read from an emptied page cache, and a write with its flush to the disk. A repetition ends after a moment even if the file does not: what counts is
 * bytes over seconds, and a time is that of all bytes at that rate. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "io/describe.h"
#include "io/trial.h"
#include "kernels/kernels.h"
#include "src/bench.h"
#include "src/budget.h"
#include "src/readers.h"
#include "src/stop.h"
#include "src/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REPETITIONS = 5, MOST_COUNTS = 12, PAGE = 4096, DEPTH_MORE = 3, LINK_SIZES = 5, HEATS = GM_COLD + 1 };
static const int64_t read_most = INT64_C(8) << 30, write_usual = INT64_C(1) << 30, flushed_most = INT64_C(256) << 20;
static const int64_t usual_piece = 16 << 20, least_piece = 64 << 10;
static const double moment = 0.4, first_pass = 10;
static const int64_t link_sizes[LINK_SIZES] = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};

typedef struct files {
    gm_bench *bench;
    gm_dataset dataset;
    char output[GM_PATH_MAX]; /* a name beside which new files are made */
    int64_t bytes, written;   /* to be read, to be written */
    int64_t piece;
    int counts, count[MOST_COUNTS]; /* numbers of threads: 1, 2, 4, ... all */
    char *slots;                    /* [all][piece] pinned */
    void *staging;                  /* a piece of device memory; NULL on a device that addresses host memory */
    double memory[MOST_COUNTS];     /* byte/s of memcpy by so many threads; 0: not measured */
    double link_in;                 /* byte/s of copies of a piece to the device */
    double rival[2][HEATS];         /* byte/s of what a user would call, reading and writing */
} files;

/* One measurement: bytes and seconds of a repetition. */
typedef int measure(void *context, int64_t *bytes, double *seconds);

typedef struct label {
    const char *what, *way;
    int threads;
    gm_heat heat;
    int64_t bytes;
    double limit, rival;
} label;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Repeats a measurement and adds its row. *rate (may be NULL): 0 when there is nothing to say. */
static int add_row(const files *f, const label *l, measure *run, void *context, double *rate)
{
    double seconds[REPETITIONS];
    int status = GM_OK;
    for (int i = 0; i < REPETITIONS && !status; i++) {
        int64_t bytes = 0;
        status = gm_stop_status();
        if (!status)
            status = run(context, &bytes, &seconds[i]);
        if (!status && bytes == 0)
            return GM_OK;
        seconds[i] *= status ? 0 : (double)l->bytes / (double)bytes;
    }
    if (status)
        return status;
    qsort(seconds, REPETITIONS, sizeof *seconds, by_size);
    gm_timing timing = {.median = seconds[2], .spread = (seconds[3] - seconds[1]) / seconds[2], .repetitions = REPETITIONS, .calls = 1};
    gm_bench_row row = {.test = "file", .heat = l->heat, .timing = timing, .work = (double)l->bytes, .unit = gm_unit_bytes, .limit = l->limit,
                        .rival = l->rival, .max_error = -1, .mean_error = -1, .threads = l->threads};
    char size[GM_SIZE_TEXT];
    snprintf(row.variant, sizeof row.variant, "%s %s x%d", l->what, l->way, l->threads);
    snprintf(row.kernel, sizeof row.kernel, "%s", l->way);
    snprintf(row.shape, sizeof row.shape, "%s", gm_size_format(l->bytes, size));
    if (rate)
        *rate = row.work / timing.median;
    return gm_bench_add(f->bench, &row);
}

/* --- Links --- */

typedef struct link_case {
    const files *files;
    int64_t bytes;
    int out;
} link_case;

static int run_link(void *context, gm_queue *queue)
{
    const link_case *c = context;
    const gm_device_ops *ops = c->files->bench->ops;
    size_t n = (size_t)c->bytes;
    return c->out ? ops->copy_out(queue, c->files->slots, n, c->files->staging, n, n, 1)
                  : ops->copy_in(queue, c->files->staging, n, c->files->slots, n, n, 1);
}

static int measure_links(files *f)
{
    int status = GM_OK;
    for (int i = 0; i <= LINK_SIZES && f->staging && !status; i++) {
        int64_t bytes = i < LINK_SIZES ? link_sizes[i] : f->piece;
        int is_known = i == LINK_SIZES && f->piece == link_sizes[LINK_SIZES - 1];
        if (bytes > f->piece || is_known)
            continue;
        link_case cases[2] = {{f, bytes, 0}, {f, bytes, 1}};
        gm_subject subjects[2] = {{run_link, &cases[0]}, {run_link, &cases[1]}};
        gm_timing timings[2];
        status = gm_bench_time(f->bench, subjects, 2, GM_WARM, timings);
        for (int out = 0; out < 2 && !status; out++) {
            gm_bench_row row = {.test = "file", .heat = GM_WARM, .timing = timings[out], .work = (double)bytes, .unit = gm_unit_bytes,
                                .max_error = -1, .mean_error = -1};
            char size[GM_SIZE_TEXT];
            snprintf(row.variant, sizeof row.variant, "copy %s device", out ? "from" : "to");
            snprintf(row.kernel, sizeof row.kernel, out ? "device to host" : "host to device");
            snprintf(row.shape, sizeof row.shape, "%s", gm_size_format(bytes, size));
            if (!out && bytes == f->piece)
                f->link_in = row.work / timings[0].median;
            status = gm_bench_add(f->bench, &row);
        }
    }
    return status;
}

/* --- Reading --- */

typedef struct reading {
    const files *files;
    gm_trial *trial;
    int threads;
    gm_heat heat;
    gm_stream *stream; /* NULL: to slots without a ring */
    int together; /* pieces of the trial that a slot of the ring holds, read by as many threads */
    int64_t next, done;
    double end;
} reading;

/* The first pieces of the trial in a slot, which follow each other there. */
static int64_t bytes_of(const reading *r, const gm_piece *piece, int64_t count)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < count; i++)
        bytes += gm_trial_piece_bytes(r->trial, piece->row + i);
    return bytes;
}

static int next_piece(void *context, gm_piece *piece, int *more)
{
    reading *r = context;
    *more = r->next < gm_trial_pieces(r->trial) && gm_clock() < r->end;
    if (!*more)
        return GM_OK;
    *piece = (gm_piece){.row = r->next, .rows = gm_min(r->together, gm_trial_pieces(r->trial) - r->next), .stages = GM_STAGE_READ};
    if (r->files->staging)
        piece->stages |= GM_STAGE_TO_DEVICE;
    piece->readers = r->together;
    piece->bytes = bytes_of(r, piece, piece->rows);
    r->next += piece->rows;
    r->done += piece->bytes;
    return GM_OK;
}

static int read_slot(void *context, const gm_piece *piece, gm_share share, void *host)
{
    reading *r = context;
    int status = GM_OK;
    int64_t at, end;
    for (gm_share_cut(share, 0, piece->rows, 1, &at, &end); at < end && !status; at++)
        status = gm_trial_read(r->trial, piece->row + at, (char *)host + bytes_of(r, piece, at));
    return status;
}

static int slot_to_device(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *in)
{
    reading *r = context;
    size_t n = (size_t)piece->bytes;
    return r->files->bench->ops->copy_in(in, slot->device, n, slot->host, n, n, 1);
}

static int run_ring(reading *r, int64_t *bytes, double *seconds)
{
    gm_program program = {.context = r, .next = next_piece, .read = read_slot, .to_device = slot_to_device};
    gm_phase_times times = {0};
    double from = gm_clock();
    r->next = r->done = 0;
    r->end = from + moment;
    int status = gm_stream_run(r->stream, &program, &times);
    *seconds = gm_clock() - from;
    *bytes = r->done;
    return status;
}

static int run_read(void *context, int64_t *bytes, double *seconds)
{
    reading *r = context;
    if (r->heat == GM_COLD)
        gm_trial_forget(&r->files->dataset);
    return r->stream ? run_ring(r, bytes, seconds) : gm_trial_run(r->trial, r->threads, r->files->slots, moment, bytes, seconds);
}

/* One way with the count-th number of threads. ring: through the streaming ring, to the device if it has memory of its own. */
static int measure_read(files *f, gm_read_way way, int count, gm_heat heat, int ring)
{
    reading r = {.files = f, .threads = f->count[count], .heat = heat};
    gm_job *job = f->bench->job;
    double rate = 0;
    int64_t units = f->dataset.layout == GM_CHUNKED ? 1 : f->piece / PAGE; /* as operations do: a chunk is one thread's */
    r.together = ring ? gm_readers_count(&f->dataset, f->piece, units, r.threads) : 1;
    int status = gm_trial_open(&f->dataset, way, f->bytes, f->piece / r.together / PAGE * PAGE, &r.trial);
    if (status || !r.trial || gm_trial_bytes(r.trial) == 0)
        goto out;
    if (ring) {
        gm_stream_setup setup = {.ops = f->bench->ops, .device = f->bench->device, .ranks = job->ranks, .piece = f->piece,
                                 .depth = gm_ceil_div(r.threads, r.together) + DEPTH_MORE, .threads = r.threads};
        status = gm_stream_open(&setup, &r.stream);
    }
    label l = {.what = way == GM_READ_MEMORY ? "memory" : !ring ? "read" : f->staging ? "device" : "ring", .way = gm_read_way_name(way),
               .threads = r.threads, .heat = heat, .bytes = gm_trial_bytes(r.trial), .rival = way == GM_READ_MEMORY ? 0 : f->rival[0][heat]};
    if (heat == GM_WARM && way != GM_READ_MEMORY && way != GM_READ_DIRECT)
        l.limit = ring && f->staging ? f->link_in : f->memory[count];
    if (!status)
        status = add_row(f, &l, run_read, &r, &rate);
    if (status == GM_EINPUT && way == GM_READ_DIRECT) { /* some file systems open what they then do not read */
        gm_error_clear();
        gm_note("bench file: O_DIRECT does not work with %s", f->dataset.data_file);
        status = GM_OK;
    }
    if (way == GM_READ_MEMORY)
        f->memory[count] = rate;
    if (way == GM_READ_HDF5)
        f->rival[0][heat] = rate;
out:
    gm_stream_close(r.stream);
    gm_trial_close(r.trial);
    return status;
}

/* The rival first, then each way by one thread and by all, pread by the numbers between as well. */
static int measure_reads(files *f, gm_heat heat)
{
    static const gm_read_way order[] = {GM_READ_PREAD, GM_READ_MMAP, GM_READ_DIRECT, GM_READ_READER};
    int status = measure_read(f, GM_READ_HDF5, 0, heat, 0);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        for (int c = 0; c < f->counts && !status; c++)
            if (c == 0 || c == f->counts - 1 || order[i] == GM_READ_PREAD)
                status = measure_read(f, order[i], c, heat, 0);
    for (int c = 0; c < f->counts && !status; c++)
        if (c == 0 || c == f->counts - 1)
            status = measure_read(f, GM_READ_READER, c, heat, 1);
    return status;
}

/* Brings the bytes into the page cache, and gives up the rest of a file that takes too long. */
static int warm_up(files *f)
{
    gm_trial *trial;
    int64_t bytes;
    double seconds;
    int status = gm_trial_open(&f->dataset, GM_READ_PREAD, f->bytes, f->piece, &trial);
    if (!status && trial) {
        status = gm_trial_run(trial, f->count[f->counts - 1], f->slots, first_pass, &bytes, &seconds);
        f->bytes = status || bytes == gm_trial_bytes(trial) ? f->bytes : gm_max(bytes, f->piece);
    }
    gm_trial_close(trial);
    return status;
}

/* --- Writing --- */

typedef struct writing {
    const files *files;
    gm_write_trial trial;
} writing;

static int run_write(void *context, int64_t *bytes, double *seconds)
{
    writing *w = context;
    double rate = gm_trial_write(w->files->output, &w->trial);
    *bytes = rate > 0 ? w->trial.blocks * (int64_t)w->trial.block_bytes : 0;
    *seconds = rate > 0 ? (double)*bytes / rate : 0;
    return GM_OK;
}

static int measure_write(files *f, gm_way way, int count, int parts, gm_heat heat)
{
    int64_t total = heat == GM_COLD ? gm_min(f->written, flushed_most) : f->written, block = gm_min(f->piece, gm_ceil_div(total, PAGE) * PAGE);
    int threads = (int)gm_min(f->count[count], GM_TRIAL_THREADS);
    writing w = {f, {.way = way, .files = parts ? threads : 1, .threads = threads, .blocks = gm_max(gm_ceil_div(total, block), 1),
                     .block_bytes = (size_t)block, .data = f->slots, .stride = (size_t)f->piece, .limit = moment, .sync = heat == GM_COLD}};
    label l = {.what = "write", .way = parts ? "parts" : gm_way_name(way), .threads = threads, .heat = heat, .bytes = w.trial.blocks * block,
               .limit = heat == GM_WARM ? f->memory[count] : 0, .rival = f->rival[1][heat]};
    double rate = 0;
    int status = add_row(f, &l, run_write, &w, &rate);
    if (!status && rate == 0)
        gm_note("bench file: writing in the way '%s' is not possible beside %s", l.way, f->output);
    if (way == GM_WAY_PLAIN && count == 0 && !parts)
        f->rival[1][heat] = rate;
    return status;
}

static int measure_writes(files *f, gm_heat heat)
{
    int status = GM_OK, last = f->counts - 1;
    for (gm_way way = GM_WAY_PLAIN; way < GM_WAYS && !status; way++) {
        status = measure_write(f, way, 0, 0, heat);
        if (!status && last > 0)
            status = measure_write(f, way, last, 0, heat);
    }
    return status || last == 0 ? status : measure_write(f, GM_WAY_PLAIN, last, 1, heat);
}

/* --- All of it --- */

/* Where new files go: beside the one that is read, or where -o says: a folder, or a name in one. */
static int find_output(files *f)
{
    const char *asked = f->bench->job->options->output;
    char path[GM_PATH_MAX + 32];
    struct stat st;
    int is_folder = asked && stat(asked, &st) == 0 && S_ISDIR(st.st_mode);
    if (snprintf(f->output, sizeof f->output, "%s%s", asked ? asked : f->dataset.file, is_folder ? "/bench" : "") >= (int)sizeof f->output)
        return gm_fail(GM_EOUTPUT, "--output: its name is too long");
    snprintf(path, sizeof path, "%s.%ld.try", f->output, (long)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return gm_fail(GM_EOUTPUT, "%s: no file can be made in its folder: %s; expected a folder for new files, which -o can name", f->output,
                       strerror(errno));
    close(fd);
    unlink(path);
    return GM_OK;
}

static int find_sizes(files *f)
{
    const gm_options *o = f->bench->job->options;
    int64_t size = (int64_t)gm_dtype_size(f->dataset.type), available = gm_budget_available() / 2, room = gm_memory_cap(GM_HOST) - gm_memory_used(GM_HOST);
    int threads = f->bench->job->threads;
    f->written = gm_min(write_usual, available);
    if (o->shapes && (gm_size_parse(o->shapes, &f->written) || f->written < 1))
        return gm_fail(GM_EUSAGE, "--shapes '%s': bench file expected a size to write, such as 256M", o->shapes);
    f->bytes = gm_min(gm_min(gm_mul_sat(gm_dataset_elements(&f->dataset), size), read_most), available);
    for (f->counts = 0; f->counts < MOST_COUNTS - 1 && 1 << f->counts < threads; f->counts++)
        f->count[f->counts] = 1 << f->counts;
    f->count[f->counts++] = threads;
    f->piece = o->piece ? gm_max(o->piece / PAGE, 1) * PAGE : usual_piece;
    while (!o->piece && f->piece > least_piece && f->piece * (2 * threads + DEPTH_MORE + 1) > room / 2)
        f->piece /= 2;
    return gm_dataset_elements(&f->dataset) > 0 ? GM_OK : gm_fail(GM_EINPUT, "%s: has no elements, expected some to read", f->dataset.file);
}

static int allocate(files *f)
{
    const gm_device_ops *ops = f->bench->ops;
    size_t bytes = (size_t)(f->count[f->counts - 1] * f->piece);
    void *slots = NULL;
    int status = ops->pin(f->bench->device, bytes, &slots);
    f->slots = slots;
    if (!status) /* new files of zeros could be compressed away */
        gm_cpu_random(slots, GM_U64, 0, GM_DISTRIBUTION_UNIFORM, gm_random_key(1, 0), 0, (int64_t)(bytes / 8));
    if (!status && !ops->unified)
        status = ops->alloc(f->bench->device, (size_t)f->piece, &f->staging);
    return status;
}

static int measure_all(files *f)
{
    int status = measure_links(f);
    for (int c = 0; c < f->counts && !status; c++)
        status = measure_read(f, GM_READ_MEMORY, c, GM_WARM, 0);
    if (!status)
        status = warm_up(f);
    if (!status)
        status = measure_reads(f, GM_WARM);
    if (!status && gm_trial_forget(&f->dataset))
        status = measure_reads(f, GM_COLD);
    else if (!status)
        gm_note("bench file: nothing is read cold: the page cache does not let go of %s, or does not show it", f->dataset.file);
    if (!status)
        status = measure_writes(f, GM_WARM);
    return status ? status : measure_writes(f, GM_COLD);
}

int gm_bench_file(gm_bench *bench)
{
    files *f = calloc(1, sizeof *f);
    if (!f)
        return gm_fail(GM_EINTERNAL, "no memory for bench file");
    f->bench = bench;
    int status = gm_describe(bench->file, NULL, &f->dataset);
    if (!status)
        status = find_output(f);
    if (!status)
        status = find_sizes(f);
    if (!status)
        status = allocate(f);
    if (!status)
        status = measure_all(f);
    bench->ops->free(bench->device, f->staging);
    bench->ops->unpin(bench->device, f->slots);
    free(f);
    return status;
}
