/* output_vfd.c - the file driver of outputs: the same bytes as by libhdf5's own driver, and with any call of it that
 * fails, the error comes at the end, nothing stays open and libhdf5 closes. The linker replaces pwrite(), pread(),
 * ftruncate() and malloc() by those below (-Wl,--wrap). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/describe/describe.h"
#include "io/write/output_vfd.h"
#include "mpi/ranks.h"
#include "tests/io/each.h"

enum { ALIGN_FROM = 256 * 1024, PAGE = 4096, LARGE = 5 << 18, SMALL = 100, SMALLS = 40, GROUPS = 60, TEXTS = 12 };

/* --- Calls that fail --- */

typedef enum call { WRITE, SHORT_WRITE, READ, TRUNCATE, CALLS } call;
static const char *const call_names[CALLS] = {"write", "short write", "read", "truncate"};

static int counted[CALLS];  /* calls so far */
static int fail_at[CALLS];  /* the number of the one that fails; 0: none */
static int fails_on;        /* those after it fail as well */
static int no_memory, hits; /* malloc() fails after the first failure; failures so far */

static int is_to_fail(call kind)
{
    int number = ++counted[kind];
    int fail = fail_at[kind] && (number == fail_at[kind] || (fails_on && number > fail_at[kind]));
    hits += fail;
    return fail;
}

ssize_t __real_pwrite(int fd, const void *data, size_t bytes, off_t offset);
ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
int __real_ftruncate(int fd, off_t size);
void *__real_malloc(size_t bytes);
ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset);
int __wrap_ftruncate(int fd, off_t size);
void *__wrap_malloc(size_t bytes);

ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    errno = ENOSPC;
    if (is_to_fail(WRITE))
        return -1;
    if (is_to_fail(SHORT_WRITE)) { /* some bytes, then none */
        fail_at[WRITE] = counted[WRITE] + 1;
        return __real_pwrite(fd, data, bytes / 2 + 1, offset);
    }
    return __real_pwrite(fd, data, bytes, offset);
}

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset)
{
    errno = EIO;
    return is_to_fail(READ) ? -1 : __real_pread(fd, data, bytes, offset);
}

int __wrap_ftruncate(int fd, off_t size)
{
    errno = EDQUOT;
    return is_to_fail(TRUNCATE) ? -1 : __real_ftruncate(fd, size);
}

void *__wrap_malloc(size_t bytes)
{
    return no_memory && hits ? NULL : __real_malloc(bytes);
}

static void heal(void)
{
    memset(counted, 0, sizeof counted);
    memset(fail_at, 0, sizeof fail_at);
    fails_on = no_memory = hits = 0;
}

/* --- A file of everything that outputs have, and more --- */

static char large[LARGE];

static int small_cache; /* so small that libhdf5 writes and reads again what it has just made */

static void shrink_cache(hid_t file)
{
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
    if (!small_cache)
        return;
    H5Fget_mdc_config(file, &config);
    config.set_initial_size = 1;
    config.initial_size = config.min_size = config.max_size = 4096;
    H5Fset_mdc_config(file, &config);
}

static int fill_new(hid_t file)
{
    const hsize_t whole = LARGE / 4, part[2] = {SMALLS * SMALL, 25}, chunk[2] = {SMALL, 25};
    hid_t links = H5Pcreate(H5P_LINK_CREATE), early = H5Pcreate(H5P_DATASET_CREATE),
          chunked = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &whole, NULL),
          plane = H5Screate_simple(2, part, NULL), set[4];
    char name[32];
    int ok = 1;
    H5Pset_create_intermediate_group(links, 1);
    H5Pset_alloc_time(early, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(early, H5D_FILL_TIME_NEVER);
    H5Pset_fill_time(chunked, H5D_FILL_TIME_NEVER);
    H5Pset_obj_track_times(early, 0); /* the clock may tick between two files that are compared */
    H5Pset_obj_track_times(chunked, 0);
    H5Pset_chunk(chunked, 2, chunk);
    set[0] = H5Dcreate2(file, "/deep/er/contiguous", H5T_NATIVE_FLOAT, space, links, early, H5P_DEFAULT);
    set[1] = H5Dcreate2(file, "/small", H5T_NATIVE_FLOAT, plane, links, chunked, H5P_DEFAULT);
    H5Pset_chunk(chunked, 1, &whole);
    set[2] = H5Dcreate2(file, "/large", H5T_NATIVE_FLOAT, space, links, chunked, H5P_DEFAULT);
    for (int i = 0; i < GROUPS && ok; i++) {
        snprintf(name, sizeof name, "/group %d", i);
        set[3] = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        ok = set[3] >= 0;
        if (ok)
            H5Gclose(set[3]);
    }
    set[3] = H5Dcreate2(file, "/last", H5T_NATIVE_FLOAT, space, links, early, H5P_DEFAULT); /* never written */
    for (int i = 0; i < 4; i++) {
        ok = ok && set[i] >= 0;
        gm_h5_close(set[i]);
    }
    gm_h5_close(plane);
    gm_h5_close(space);
    gm_h5_close(chunked);
    gm_h5_close(early);
    gm_h5_close(links);
    return ok;
}

static int write_texts(hid_t set)
{
    hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1);
    const char *text = large;
    char name[32];
    int ok = 1;
    H5Tset_size(type, H5T_VARIABLE);
    for (int i = 0; i < TEXTS && ok; i++) {
        snprintf(name, sizeof name, "text %d", i);
        text = large + LARGE - 1 - (i % 4 == 3 ? 60 * 1024 : 1000 * i);
        hid_t id = H5Acreate2(set, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        ok = id >= 0 && H5Awrite(id, type, &text) >= 0;
        if (id >= 0)
            ok = H5Aclose(id) >= 0 && ok;
    }
    ok = ok && H5Adelete(set, "text 5") >= 0;
    H5Tclose(type);
    H5Sclose(space);
    return ok;
}

static int fill_again(hid_t file, const gm_output_vfd *by)
{
    hsize_t at[2] = {0, 0};
    hid_t small = H5Dopen2(file, "/small", H5P_DEFAULT), whole = H5Dopen2(file, "/large", H5P_DEFAULT);
    int ok = small >= 0 && whole >= 0;
    for (; at[0] < SMALLS * SMALL && ok; at[0] += SMALL)
        ok = H5Dwrite_chunk(small, H5P_DEFAULT, 0, at, SMALL * 25 * 4, large + at[0]) >= 0 &&
             !(by && gm_output_vfd_status(by));
    at[0] = 0;
    ok = ok && H5Dwrite_chunk(whole, H5P_DEFAULT, 0, at, LARGE, large) >= 0 && write_texts(small) && write_texts(whole);
    gm_h5_close(small);
    gm_h5_close(whole);
    return ok;
}

static int open_new(const char *name)
{
    return open(own(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

/* By the driver: created, closed, opened again. Returns the status; *refused: libhdf5 has returned an error. */
static int make_by(int fd, int *refused)
{
    gm_output_vfd *file;
    int status = gm_output_vfd_create(fd, "made.h5", &file);
    *refused = status != GM_OK;
    if (file) {
        shrink_cache(gm_output_vfd_id(file));
        *refused = !fill_new(gm_output_vfd_id(file));
    }
    status = gm_output_vfd_close(file, status);
    if (status)
        return status;
    status = gm_output_vfd_open(fd, "made.h5", &file);
    if (file) {
        shrink_cache(gm_output_vfd_id(file));
        *refused = *refused || !fill_again(gm_output_vfd_id(file), file);
    }
    return gm_output_vfd_close(file, status);
}

static void make_plain(const char *name)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_sec2(access);
    H5Pset_alignment(access, ALIGN_FROM, PAGE);
    hid_t file = H5Fcreate(own(name), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    shrink_cache(file);
    tap_ok(fill_new(file) && H5Fclose(file) >= 0, "made by libhdf5's own driver");
    H5Pclose(access);
    file = gm_h5_open_as(own(name), H5F_ACC_RDWR);
    shrink_cache(file);
    tap_ok(fill_again(file, NULL) && H5Fclose(file) >= 0, "and opened again");
}

/* --- Tests --- */

static ssize_t open_objects(void)
{
    return H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL);
}

static int64_t size_of(const char *name)
{
    struct stat st;
    return stat(own(name), &st) ? -1 : (int64_t)st.st_size;
}

/* Space that is allocated and never written reads as zeros in both. */
static int is_same(const char *one, const char *two)
{
    FILE *a = fopen(own(one), "rb"), *b = fopen(own(two), "rb");
    int c = 0, same = a && b;
    while (same && c != EOF) {
        c = getc(a);
        same = c == getc(b);
    }
    fclose(a);
    fclose(b);
    return same;
}

static int calls_made[CALLS];

static void check_bytes(void)
{
    int refused, fd = open_new("made.h5");
    const char *cache = small_cache ? "small cache" : "usual cache";
    make_plain("plain.h5");
    heal();
    tap_ok(make_by(fd, &refused) == GM_OK && !refused, "made by the driver of outputs, %s", cache);
    memcpy(calls_made, counted, sizeof counted);
    if (getenv("GPUMEM_TEST_MEMCHECK"))
        tap_skip("libhdf5 writes memory that valgrind fills in its own way", "%s: the same bytes", cache);
    else
        tap_ok(is_same("made.h5", "plain.h5"), "%s: the same %lld bytes", cache, (long long)size_of("made.h5"));
    for (call kind = 0; kind < CALLS; kind++)
        tap_ok(calls_made[kind] > 0, "%s: %d calls of %s", cache, calls_made[kind], call_names[kind]);
    close(fd);
}

/* A file that held something else. */
static void check_old_bytes(void)
{
    int refused, fd = open_new("made.h5"), written = __real_pwrite(fd, large, LARGE, LARGE) == LARGE;
    heal();
    tap_ok(written && make_by(fd, &refused) == GM_OK && !refused && size_of("made.h5") == size_of("plain.h5"),
           "a file that held others");
    close(fd);
}

/* The fault of one round, or NULL. A failure that was hit is reported once, with its message. */
static const char *round_fault(int fd, const char *expected)
{
    int refused, files = open_files();
    ssize_t objects = open_objects();
    gm_error error;
    gm_error_clear();
    int status = make_by(fd, &refused);
    gm_error_get(&error);
    gm_error_clear();
    if (open_objects() != objects)
        return "an object of libhdf5 stays open";
    if (open_files() != files)
        return "a file stays open";
    if (!hits)
        return status || refused ? "an error without a failure" : NULL;
    return status != GM_EOUTPUT ? "no error" : !strstr(error.text, expected) ? "another message" : NULL;
}

/* Fails each call in turn: forms 0: once; 1: from then on; 2: without memory as well. Returns the number of faults. */
static int fail_each(call kind, int forms, int *rounds)
{
    const char *const expected[CALLS] = {"made.h5: writing", "made.h5: writing", "made.h5: reading", "made.h5: cannot"};
    int faults = 0, step = calls_made[kind] > 40 && getenv("GPUMEM_TEST_MEMCHECK") ? 23 : 1;
    for (int at = 1; at <= calls_made[kind]; at += step) {
        for (int form = 0; form < forms; form++) {
            int fd = open_new("made.h5");
            heal();
            fail_at[kind] = at;
            fails_on = form > 0;
            no_memory = form > 1;
            const char *fault = round_fault(fd, expected[kind]);
            if (fault || !hits) {
                faults++;
                tap_diag("%s %d of %d, form %d: %s", call_names[kind], at, calls_made[kind], form,
                         fault ? fault : "the call is not made");
            }
            close(fd);
            *rounds += 1;
        }
    }
    heal();
    return faults;
}

/* libhdf5 leaves an object open that it must read again, and cannot: with a small cache only writes may fail here. */
static void check_failures(void)
{
    for (call kind = 0; kind < CALLS; kind++) {
        if (small_cache && kind == READ)
            continue;
        int rounds = 0, faults = fail_each(kind, small_cache ? 2 : 3, &rounds);
        tap_ok(faults == 0, "%s: %d rounds with a %s that fails: the error comes, and nothing stays open",
               small_cache ? "small cache" : "usual cache", rounds, call_names[kind]);
    }
}

/* In a process of its own: libhdf5 cannot read again what it wrote, closing fails and a file stays open. The end of MPI
 * must not touch it. */
static void leave_open(void)
{
    gm_ranks ranks;
    int rounds = 0;
    gm_hdf5_start();
    if (gm_ranks_start_all(&ranks))
        _exit(2);
    fclose(stdout);
    small_cache = 1;
    calls_made[READ] = 23;
    calls_made[WRITE] = 180;
    fail_each(READ, 3, &rounds);
    fail_each(WRITE, 3, &rounds);
    int left = open_objects() > 0;
    gm_ranks_end_all();
    exit(left ? 0 : 3);
}

static void check_left_open(void)
{
    const char *what = "files that libhdf5 could not close, and the end of MPI";
    int how = 0;
    if (getenv("GPUMEM_TEST_MEMCHECK")) {
        tap_skip("libhdf5 leaves its memory too", "%s", what);
        return;
    }
    pid_t child = fork();
    if (child == 0)
        leave_open();
    tap_ok(child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0, "%s", what);
    if (how)
        tap_diag("status %x", (unsigned)how);
}

/* A limit on the size of files: the first size that suffices is that of the file. */
static void check_limits(void)
{
    struct rlimit old, limit;
    int64_t size = size_of("plain.h5"), step = getenv("GPUMEM_TEST_MEMCHECK") ? 200000 : 80009;
    int rounds = 0, faults = 0;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    for (int64_t most = 1; most < size + 2 * step; most += step, rounds++) {
        int fd = open_new("made.h5");
        heal();
        limit.rlim_cur = (rlim_t)most;
        setrlimit(RLIMIT_FSIZE, &limit);
        hits = most < size; /* for round_fault() */
        const char *fault = round_fault(fd, "File too large");
        setrlimit(RLIMIT_FSIZE, &old);
        faults += fault != NULL;
        if (fault)
            tap_diag("limit %lld of %lld: %s", (long long)most, (long long)size, fault);
        close(fd);
    }
    tap_ok(faults == 0, "%d limits on the size of a file", rounds);
}

/* The file is cut while it is open. */
static void check_cut(void)
{
    int rounds = 0, faults = 0, noticed = 0;
    int64_t size = size_of("plain.h5"), step = getenv("GPUMEM_TEST_MEMCHECK") ? 100000 : 60013;
    for (int64_t left = 1; left < size; left += step, rounds++) {
        int refused, fd = open_new("made.h5");
        gm_output_vfd *file;
        ssize_t objects = open_objects();
        heal();
        make_by(fd, &refused);
        int status = gm_output_vfd_open(fd, "made.h5", &file);
        int cut = __real_ftruncate(fd, left);
        refused = file ? !fill_again(gm_output_vfd_id(file), file) : 1;
        status = gm_output_vfd_close(file, status);
        faults += cut || open_objects() != objects;
        noticed += status == GM_EOUTPUT;
        gm_error_clear();
        close(fd);
    }
    tap_ok(faults == 0 && noticed > 0, "%d files that were cut while they were open, %d where libhdf5 read", rounds,
           noticed);
}

/* Descriptors that cannot be used as they should. */
static void check_descriptors(void)
{
    static const int ways[] = {O_RDONLY, O_WRONLY};
    gm_output_vfd *file;
    for (int i = 0; i < 2; i++) {
        int refused, fd = open(own("plain.h5"), ways[i]);
        tap_ok(make_by(fd, &refused) == GM_EOUTPUT, "created by a descriptor for %s only", i ? "writing" : "reading");
        close(fd);
        gm_error_clear();
        make_plain("plain.h5");
    }
    fails(gm_output_vfd_create(-1, "none.h5", &file), GM_EOUTPUT, "none.h5: its size", "no descriptor");
    tap_ok(gm_output_vfd_close(file, GM_ECHECK) == GM_ECHECK, "no file to close");
    int fd = open_new("none.h5");
    tap_ok(__real_pwrite(fd, large, PAGE, 0) == PAGE, "a file of text");
    fails(gm_output_vfd_open(fd, "none.h5", &file), GM_EOUTPUT, "none.h5: cannot be opened again", "no HDF5 file");
    close(fd);
}

/* Objects that the caller leaves open are closed with the file. */
static void check_strong(void)
{
    int fd = open_new("left.h5");
    gm_output_vfd *file;
    ssize_t objects = open_objects();
    tap_ok(gm_output_vfd_create(fd, "left.h5", &file) == GM_OK, "a file");
    hid_t group = H5Gcreate2(gm_output_vfd_id(file), "/left", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    succeeds(gm_output_vfd_close(file, GM_OK), "closed with a group that is open");
    tap_ok(group >= 0 && open_objects() == objects, "and closes it");
    close(fd);
}

int main(void)
{
    for (int i = 0; i < LARGE - 1; i++)
        large[i] = (char)('a' + i * 7 % 26);
    check_left_open();
    H5Fclose(make_file("first.h5"));
    int before = open_files();
    for (small_cache = 1; small_cache >= 0; small_cache--) {
        check_bytes();
        check_failures();
    }
    small_cache = 0;
    check_old_bytes();
    check_limits();
    check_cut();
    check_descriptors();
    check_strong();
    tap_ok(open_files() == before, "no file is left open");
    tap_ok(open_objects() == 0 && H5close() >= 0, "libhdf5 ends");
    return tap_done();
}
