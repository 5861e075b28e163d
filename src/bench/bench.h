/* bench.h - the harness of the tests of bench: timing, data, and a table of results. All ranks run the same tests, each
 * on its device; gm_bench_time(), gm_bench_time_by_clock() and gm_bench_add() are collective, and nothing else that a
 * test calls, but for mpi and exchange, which measure the ranks themselves, and the tests of teams (team.h). Functions
 * return a gm_status.
 *
 *   op.c        the operation: chooses the tests and runs them
 *   harness.c   opens and closes the harness; times cases until the times are steady
 *   ranks.c     ranks that measure at the same time, and their results
 *   team.c      ranks that measure as one: their work together, until the last of them has done its share
 *   sizes.c     buffer sizes, and the cache states to measure them in
 *   data.c      random data and transfers
 *   kinds.c     kinds of random matrices
 *   sample.c    the error of a product, at a sample of its elements
 *   row.c       a row of results: its rate and its limits
 *   ratios.c    rows of several shapes: means of the ratios to the rival
 *   table.c     rows of results: as a table, as JSON, as CSV
 *   compare.c   the results of two runs, side by side
 *   plot.c      rows of results as a picture, by gnuplot
 *   picture/    the script of a picture
 *   operations/ the tests of operations
 *   file/       the test of files
 *   lab/        the laboratory: tests of one property of the hardware each
 *   machine/    the tests of all devices of a machine
 *
 * To add a test: a source file with a function of type gm_bench_test, and its line in benches.def.
 */
#ifndef GM_SRC_BENCH_BENCH_H
#define GM_SRC_BENCH_BENCH_H

#include "kernels/bench/measure.h"
#include "src/job.h"

/* A case that touches as many times the cache replaces the contents of the cache. */
enum { GM_BENCH_SEVERAL = 4 };

enum { GM_BENCH_CASES = 8, GM_BENCH_TEXT = 48, GM_BENCH_STAGING = 64 << 20, GM_BENCH_SIZES = 16 };

/* The contents of the caches when a repetition starts: the data of the previous repetition, or none of the data. */
typedef enum gm_cache_state { GM_CACHE_WARM, GM_CACHE_COLD, GM_CACHE_STATES } gm_cache_state;

/* A cache state, and whether the caches must be flushed before each repetition to reach it. */
typedef struct gm_bench_cache {
    gm_cache_state state;
    int flush;
} gm_bench_cache;

/* The work to be timed. run enqueues one call of it and does not wait. */
typedef struct gm_bench_case {
    int (*run)(void *context, gm_queue *queue);
    void *context;
} gm_bench_case;

typedef struct gm_bench_timing {
    double median;   /* seconds of one call */
    double spread;   /* interquartile range over the median */
    int repetitions; /* all of them; median and spread are those of the later half, at least five */
    int calls;       /* in one repetition */
    int held;        /* 1: enqueued before the first one started, 0: the times include the launches */
} gm_bench_timing;

/* The unit in which a rate is printed: rate / scale; of a unit of time the seconds of one piece of work / scale. */
typedef struct gm_bench_unit {
    const char *name;
    double scale;
    int is_time;
} gm_bench_unit;
extern const gm_bench_unit gm_bench_unit_flops, gm_bench_unit_bytes; /* Tflop/s, GB/s */
extern const gm_bench_unit gm_bench_unit_ops, gm_bench_unit_calls;   /* Gop/s, thousands of calls a second */
extern const gm_bench_unit gm_bench_unit_latency;                    /* ns */

/* Is a unit of this name one of time? */
int gm_bench_unit_is_time(const char *name);

/* Kinds of random matrices. Integers are uniform or normal over the whole range of their type. */
typedef enum gm_bench_kind {
    GM_BENCH_UNIFORM, /* in [0, 1) */
    GM_BENCH_CENTRED, /* in [-1, 1) */
    GM_BENCH_NORMAL,
    GM_BENCH_SCALED, /* centred, times a random factor for each row of A and each column of B: elements of A B
                        from 1e-30 to 1e30 */
    GM_BENCH_HUGE,   /* centred, with an entry in each row that is 2^15 times as large */
    GM_BENCH_KINDS
} gm_bench_kind;

/* Errors of a result relative to |A| |B|; infinite, if an element is not finite. */
typedef struct gm_bench_errors {
    double max, mean;
} gm_bench_errors;

/* Published figures of the same work, in base units. rate 0: none. An error of -1: not published. */
typedef struct gm_bench_published {
    double rate, max_error, mean_error;
} gm_bench_published;

typedef struct gm_bench_row {
    const char *test;
    char variant[GM_BENCH_TEXT]; /* "fp32", "cuBLAS 13.0.2 fp32" */
    char kernel[GM_BENCH_TEXT];
    char shape[GM_BENCH_TEXT];
    gm_cache_state cache;
    gm_bench_timing timing;
    double work; /* flop or bytes of one call */
    gm_bench_unit unit;
    double computed; /* limit, work per second: from clock and width; 0: none */
    double measured; /* limit: the best that was measured in the same run for the same reads and writes; 0: none */
    const char *measured_of;     /* name of what reached `measured` */
    const char *panel;           /* of the picture: rows of a test that are drawn together; NULL: the test has one */
    double x, y;                 /* place on the axes of a sweep, of a map; 0: none */
    double z;                    /* what else a cell of a map is of; 0: nothing */
    const char *x_name, *y_name; /* names of the axes, with their units */
    const char *z_name;
    double rival; /* work per second of the library or call that a user would choose, in the same run; 0: this row is
                     the rival, or there is none */
    const char *rival_name;       /* NULL: not told */
    double max_error, mean_error; /* relative; -1: does not apply */
    int has_errors;               /* of each kind of data; max -1: the kind does not apply */
    gm_bench_errors errors[GM_BENCH_KINDS];
    int64_t leaf, tile; /* of the program's own product; 0: does not apply */
    int threads;        /* processor threads that move the bytes; 0: does not apply */
    int ranks; /* that measured it: timing.median is the median over them, or (team.h) of them together; 0: as many as
                  there are, gm_bench_add() finds their results */
    double rate_min, rate_max; /* of several ranks: their extreme rates, work per second */
    int slow_rank;
    char slow_host[GM_HOST_MAX];
    gm_bench_published published;
} gm_bench_row;

typedef struct gm_bench {
    gm_job *job;
    const char *test;     /* name of the test that runs */
    const char *argument; /* the word after its name; NULL if the test takes none */
    const gm_device_ops *ops;
    const gm_measure_ops *measure;
    gm_device *device;
    gm_queue *queue;
    gm_event **events;            /* pairs of start and end */
    double *seconds;              /* [GM_BENCH_CASES][repetitions] */
    int is_brief;                 /* all tests run, or many shapes: each in a short time */
    int has_loops;                /* a case launches more than a held queue takes: none is held */
    int is_alone;                 /* mpi, exchange: the ranks meet by themselves, and the rows are rank 0's */
    int has_failed;               /* all ranks know of a failure */
    int64_t cache_bytes;          /* size of the last-level cache of the device, the largest of all ranks' */
    int64_t device_cap, host_cap; /* bytes that a rank may allocate, the smallest of all ranks' */
    void *flush;                  /* device memory, zeros */
    size_t flush_bytes;
    void *staging; /* [GM_BENCH_STAGING] pinned; NULL on a device that addresses host memory */
    gm_bench_row *rows;
    int row_count, row_room;
    char **names; /* [name_count]: texts that rows point to */
    int name_count;
    gm_text_file json, csv, plot; /* of --json, --csv and --plot */
} gm_bench;

/* A test. GM_ECHECK if a result is wrong. */
typedef int gm_bench_test(gm_bench *bench);
#define GM_BENCH(name, function, argument, experiments, help) gm_bench_test function;
#include "src/bench/benches.def"
#undef GM_BENCH

/* Opens the harness on the device of the job; the caller closes it, also after a failure. */
int gm_bench_open_all(gm_job *job, gm_bench *bench);
void gm_bench_close(gm_bench *bench);

/* Notes that the device does not support the test that runs, and why (NULL: it has no code for it). Returns GM_OK, so
 * that the next test follows. */
int gm_bench_skip(const gm_bench *bench, const char *why);

/* Times up to GM_BENCH_CASES cases in turn, after one untimed call of each. flush: the caches are flushed before each
 * repetition. GM_ESTOPPED after a signal. Collective: all ranks begin together. */
int gm_bench_time(gm_bench *bench, const gm_bench_case *cases, int count, int flush, gm_bench_timing *timings);

/* The same by the clock of the host: a repetition is one call and the wait until its work is done, of warm data.
 * Collective. */
int gm_bench_time_by_clock(gm_bench *bench, const gm_bench_case *cases, int count, gm_bench_timing *timings);

/* Median and spread of the seconds of all repetitions, in the order in which they were made. */
void gm_bench_summarize(const double *seconds, int repetitions, gm_bench_timing *timing);

/* Bytes that may still be allocated on the device. */
int64_t gm_bench_room(const gm_bench *bench);

/* --- Ranks --- */

/* Where ranks meet. */
typedef enum gm_bench_point { GM_BENCH_TIMES, GM_BENCH_ADDS, GM_BENCH_ENDS } gm_bench_point;

/* All ranks are at the same point, with this status: returns the agreed one. After a failure that all ranks know the
 * rank's own. Collective, unless is_alone. */
int gm_bench_meet_all(gm_bench *bench, gm_bench_point point, int status);

/* Gives all ranks the same limits, so that they choose the same sizes. Collective. */
int gm_bench_level_all(gm_bench *bench);

/* The results of all ranks, into the row of rank 0. Collective, likewise. */
int gm_bench_gather_all(gm_bench *bench, gm_bench_row *row);

/* --- Sizes --- */

/* The bytes of a buffer that a GPU would usually have, cut down on a processor to 64 MiB, and where all tests run to
 * 1 GiB and 16 MiB. */
int64_t gm_bench_wanted(const gm_bench *bench, int64_t usual);

/* Calls measure for each size: those of --shapes, which are rounded down to multiples of unit, else the given defaults,
 * else (NULL) one at which the speed of memory shows. GM_EUSAGE if --shapes is no list of up to GM_BENCH_SIZES sizes of
 * at least unit. */
int gm_bench_each_size(gm_bench *bench, int64_t unit, const int64_t *defaults, int count,
                       int (*measure)(gm_bench *bench, int64_t bytes));

/* The cache states in which a size can be measured: warm if all buffers, buffer_bytes, fit the cache; cold if a case
 * touches several times the cache (case_bytes) or the caches can be flushed. If all tests run on a processor one state.
 * Returns their number. */
int gm_bench_cache_states(const gm_bench *bench, int64_t buffer_bytes, int64_t case_bytes,
                          gm_bench_cache caches[GM_CACHE_STATES]);

/* --- Data --- */

/* dst: [rows][ld] on the device = uniform random numbers in [0, 1), or random bits for integer types: element i of the
 * dataset `key` in row-major order. */
int gm_bench_fill(gm_bench *bench, void *dst, gm_dtype type, int64_t rows, int64_t cols, int64_t ld, uint64_t key);

/* "uniform", ... */
const char *gm_bench_kind_name(gm_bench_kind kind);

/* Has the kind matrices of this type? */
int gm_bench_kind_applies(gm_bench_kind kind, gm_dtype type);

/* A random matrix of a kind that applies. by_columns: its columns are scaled, not its rows. */
typedef struct gm_bench_matrix {
    gm_dtype type;
    gm_bench_kind kind;
    int64_t cols;
    uint64_t key;
    int by_columns;
} gm_bench_matrix;

/* dst: [n] host memory = elements [col, col + n) of a row. */
void gm_bench_elements(const gm_bench_matrix *matrix, int64_t row, int64_t col, int64_t n, void *dst);

/* dst: [rows][ld] on the device = rows [first, first + rows) of the matrix. */
int gm_bench_fill_rows(gm_bench *bench, void *dst, const gm_bench_matrix *matrix, int64_t first, int64_t rows,
                       int64_t ld);

/* Copies bytes from pageable host memory to the device, or back, and waits for the copy. */
int gm_bench_upload(gm_bench *bench, void *dst, const void *src, size_t bytes);
int gm_bench_download(gm_bench *bench, void *dst, const void *src, size_t bytes);

/* Two buffers of device memory: src has random bits, dst nothing. */
typedef struct gm_bench_pair {
    gm_bench *bench;
    void *dst, *src; /* [size] */
    int64_t size;
    uint64_t key; /* of src: random U64 words */
} gm_bench_pair;

enum { GM_BENCH_PAIR_UNIT = 1 << 16 }; /* sizes are multiples */

/* The caller closes the pair, also after a failure. */
int gm_bench_pair_open(gm_bench *bench, int64_t size, gm_bench_pair *pair);
void gm_bench_pair_close(gm_bench_pair *pair);

/* dst: [bytes] host memory = the bytes of src from byte `from` on. */
void gm_bench_pair_source(const gm_bench_pair *pair, int64_t from, int64_t bytes, void *dst);

/* The factors of C = A B: rows [first, first + m) of the random matrix of one key, [first_b, first_b + k) of that of
 * the other. */
typedef struct gm_bench_factors {
    gm_dtype type;
    gm_bench_kind kind;
    int64_t first, first_b, m, n, k;
    uint64_t key_a, key_b;
} gm_bench_factors;

gm_bench_matrix gm_bench_factor_a(const gm_bench_factors *factors);
gm_bench_matrix gm_bench_factor_b(const gm_bench_factors *factors);

/* The elements of C that are checked, and their values. */
typedef struct gm_bench_sample {
    int64_t m, n, k, rows, cols;
    int64_t *row, *col; /* [rows], [cols]: ascending */
    double *exact;      /* [rows][cols] */
    double *scale;      /* [rows][cols]: of |A| |B|; NULL: exact, as no element is negative */
} gm_bench_sample;

/* A sample summed in long double. If whole, all elements up to 1024 x 1024; of a larger C, or where all tests run, the
 * elements in both a sampled row and a sampled column, one row and one column of each of 64 equal parts. The caller
 * frees the sample, also after a failure. */
int gm_bench_sample_make(gm_bench *bench, const gm_bench_factors *factors, int whole, gm_bench_sample *sample);

/* All elements of sampled rows, one of each of 64 equal parts, on a processor of 8, summed in float64 on the device: at
 * the cost of a read of B for each of them. b: [k][ld] on the device, B. Likewise. */
int gm_bench_sample_rows(gm_bench *bench, const gm_bench_factors *factors, const void *b, int64_t ld,
                         gm_bench_sample *sample);
void gm_bench_sample_free(gm_bench_sample *sample);

/* c: [m][ld] on the device. */
int gm_bench_sample_compare(gm_bench *bench, const gm_bench_sample *sample, const void *c, gm_dtype type, int64_t ld,
                            double *max_error, double *mean_error);

/* --- Results --- */

/* A row of the test that runs, in bytes per second, without a shape; fields that do not apply to every test are set to
 * say so. */
gm_bench_row gm_bench_row_make(const gm_bench *bench, const char *variant, const char *kernel, gm_cache_state cache,
                               const gm_bench_timing *timing);

/* The computed limit of memory for data in this cache state, bytes per second; 0: none. */
double gm_bench_memory_limit(const gm_bench *bench, gm_cache_state cache);

/* The limit that the rate of a row is held against: the measured one, if there is one, else the computed one. */
double gm_bench_limit(const gm_bench_row *row);

/* The origin of that limit: "plain read", "computed", "-". */
const char *gm_bench_limit_name(const gm_bench_row *row);

/* GM_ECHECK if a rate exceeds its computed limit: the benchmark measures wrongly. */
int gm_bench_check_limits(const gm_bench *bench);

/* Appends a copy of a row, its texts included, and prints it on standard output of rank 0. GM_EOUTPUT. Collective, but
 * for a row that has its ranks. */
int gm_bench_add(gm_bench *bench, const gm_bench_row *row);

/* Appends a row, whose texts are copied. Rank 0. GM_EDEVICE. */
int gm_bench_keep(gm_bench *bench, const gm_bench_row *row);

/* Work per second. */
double gm_bench_rate(const gm_bench_row *row);

/* A rate in a unit: as it is printed. */
double gm_bench_in_unit(const gm_bench_unit *unit, double rate);

const char *gm_bench_cache_name(gm_cache_state cache);

/* The files of --json, --csv and --plot: opened before anything is measured, checked against the files that the tests
 * read (gm_text_check(), that of --report as well), written at the end. GM_EOUTPUT, GM_EUSAGE. */
int gm_bench_files_open(gm_bench *bench);
int gm_bench_files_check(gm_bench *bench, const gm_file_list *sources);
int gm_bench_files_write(gm_bench *bench);
void gm_bench_files_close(gm_bench *bench);

/* The picture of --plot, by gnuplot, and how such a file begins (gm_text_open). GM_EOUTPUT, also where there is no
 * gnuplot. */
extern const char gm_bench_plot_kind[];
int gm_bench_plot_check(void);
int gm_bench_plot_write(const gm_bench *bench, gm_text_file *file);

/* Draws results of --json into the picture of --plot: those of the named tests, or (count 0) all. Rank 0. GM_EINPUT,
 * GM_EOUTPUT. */
int gm_bench_draw(gm_bench *bench, const char *file, const char *const *tests, int count);

/* Prints the change of each rate between two files of --json, and a verdict. *slower: the number of rates that became
 * less, beyond the noise. GM_EINPUT, GM_EOUTPUT. */
int gm_bench_compare(const char *old_file, const char *new_file, int *slower);

#endif
