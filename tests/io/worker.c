/* worker.c - calls in the worker: arguments and replies of any size, and every way in which a call does not come back.
 */
#include "io/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop.h"
#include "io/worker_window.h"
#include "tests/io/each.h"

/* --- Calls --- */

/* Replies so many bytes, each of a value that follows from its place, in pieces of growing size. */
static int count_up(const void *argument, size_t bytes, gm_reply *reply)
{
    size_t total = *(const size_t *)argument, piece = 1, done = 0;
    char *data = malloc(total + 1);
    int status = data && bytes == sizeof total ? GM_OK : GM_EINTERNAL;
    for (size_t i = 0; i < total; i++)
        data[i] = (char)(i % 251);
    for (; done < total && !status; done += piece, piece *= 3) {
        piece = piece < total - done ? piece : total - done;
        status = gm_reply_add(reply, data + done, piece);
    }
    free(data);
    return status;
}

static int echo(const void *argument, size_t bytes, gm_reply *reply)
{
    return gm_reply_add(reply, argument, bytes);
}

static int add_state(const void *argument, size_t bytes, gm_reply *reply)
{
    static int sum;
    (void)bytes;
    sum += *(const int *)argument;
    return gm_reply_add(reply, &sum, sizeof sum);
}

static int fail_late(const void *argument, size_t bytes, gm_reply *reply)
{
    gm_reply_add(reply, argument, bytes);
    return gm_fail(GM_EUSAGE, "%s: it says \\n no", (const char *)argument);
}

static int crash(const void *argument, size_t bytes, gm_reply *reply)
{
    (void)bytes, (void)reply;
    raise(*(const int *)argument);
    return GM_OK;
}

static int leave(const void *argument, size_t bytes, gm_reply *reply)
{
    (void)argument, (void)bytes, (void)reply;
    _exit(0);
}

static int loop(const void *argument, size_t bytes, gm_reply *reply)
{
    (void)argument, (void)bytes, (void)reply;
    for (volatile int i = 0;; i++)
        ;
    return GM_OK;
}

/* Four seconds of the processor. */
static int work_hard(const void *argument, size_t bytes, gm_reply *reply)
{
    struct timespec at = {0, 0};
    (void)argument, (void)bytes, (void)reply;
    while (at.tv_sec < 4) {
        gm_worker_progress();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    }
    return GM_OK;
}

static int wait_long(const void *argument, size_t bytes, gm_reply *reply)
{
    (void)argument, (void)bytes, (void)reply;
    usleep(2500000);
    return GM_OK;
}

static int stop_itself(const void *argument, size_t bytes, gm_reply *reply)
{
    (void)argument, (void)bytes, (void)reply;
    raise(SIGSTOP);
    return GM_OK;
}

/* Takes memory of the given size. */
static int swell(const void *argument, size_t bytes, gm_reply *reply)
{
    int64_t wanted = *(const int64_t *)argument;
    void *memory = malloc((size_t)wanted);
    (void)bytes;
    if (!memory)
        return gm_fail(GM_EINPUT, "memory allocation failed");
    int status = gm_reply_add(reply, "", 1);
    free(memory);
    return status;
}

static int swell_with_leave(const void *argument, size_t bytes, gm_reply *reply)
{
    gm_worker_need_chunk(*(const int64_t *)argument, INT64_MAX);
    return swell(argument, bytes, reply);
}

static int nest(const void *argument, size_t bytes, gm_reply *reply)
{
    void *found;
    size_t length;
    int status = gm_worker_run("nested", echo, argument, bytes, &found, &length);
    if (!status)
        status = gm_reply_add(reply, found, length);
    free(found);
    return status;
}

/* Checks the standard streams and the signals of the process. */
static int look(const void *argument, size_t bytes, gm_reply *reply)
{
    struct stat nothing, st;
    int odd = stat("/dev/null", &nothing) != 0;
    (void)argument, (void)bytes;
    for (int fd = 0; fd <= 2; fd++)
        odd += fstat(fd, &st) || st.st_rdev != nothing.st_rdev;
    for (int i = 0; i < 3; i++)
        raise((int[]){SIGTERM, SIGINT, SIGUSR2}[i]);
    return gm_reply_add(reply, &odd, sizeof odd);
}

/* --- Tests --- */

static int take(void *context, const void *data, size_t bytes)
{
    size_t *taken = context;
    for (size_t i = 0; i < bytes; i++)
        if (((const char *)data)[i] != (char)((*taken + i) % 251))
            return gm_fail(GM_EINTERNAL, "byte %zu is wrong", *taken + i);
    *taken += bytes;
    return GM_OK;
}

static int refuse(void *context, const void *data, size_t bytes)
{
    (void)data, (void)bytes;
    ++*(int *)context;
    return gm_fail(GM_EOUTPUT, "refused");
}

static void check_replies(void)
{
    static const size_t sizes[] = {0, 1, 4095, GM_REPLY_PLACE - 1, GM_REPLY_PLACE, GM_REPLY_PLACE + 1, 40 << 20};
    char *argument = malloc(GM_REPLY_PLACE + 1);
    void *found;
    size_t bytes, taken;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        taken = 0;
        int status = gm_worker_stream("reply", count_up, &sizes[i], sizeof sizes[i], take, &taken);
        tap_ok(status == GM_OK && taken == sizes[i], "a stream of %zu bytes", sizes[i]);
        status = gm_worker_run("reply", count_up, &sizes[i], sizeof sizes[i], &found, &bytes);
        taken = 0;
        tap_ok(status == GM_OK && bytes == sizes[i] && (bytes == 0) == !found &&
                   (!found || !take(&taken, found, bytes)),
               "a reply of %zu bytes", sizes[i]);
        free(found);
    }
    memset(argument, 'x', GM_REPLY_PLACE + 1);
    int status = gm_worker_run("argument", echo, argument, GM_REPLY_PLACE, &found, &bytes);
    tap_ok(!status && bytes == GM_REPLY_PLACE && memcmp(found, argument, bytes) == 0,
           "an argument of the largest size");
    free(found);
    fails(gm_worker_run("argument", echo, argument, GM_REPLY_PLACE + 1, NULL, NULL), GM_EINTERNAL, "an argument of",
          "a larger one");
    free(argument);
    int times = 0;
    fails(gm_worker_stream("sink", count_up, &sizes[6], sizeof sizes[6], refuse, &times), GM_EOUTPUT, "refused",
          "a sink that fails");
    tap_ok(times == 1, "is not called again");
    fails(gm_worker_run("late", fail_late, "file.h5", 8, &found, &bytes), GM_EUSAGE, "file.h5: it says \\n no",
          "a call that fails");
    tap_ok(!found && !bytes, "has no reply");
    status = gm_worker_run("nested", nest, "abc", 4, &found, &bytes);
    tap_ok(!status && bytes == 4 && strcmp(found, "abc") == 0, "a call in a call");
    free(found);
    status = gm_worker_run("look", look, NULL, 0, &found, &bytes);
    tap_ok(!status && bytes == sizeof(int) && *(int *)found == 0, "no terminal, and no signals of the rank");
    free(found);
}

static int state(int add)
{
    void *found;
    int sum = gm_worker_run("state", add_state, &add, sizeof add, &found, NULL) ? -1 : *(int *)found;
    free(found);
    return sum;
}

static void check_crashes(void)
{
    char wanted[128];
    tap_ok(state(5) == 5 && state(2) == 7, "a worker remembers");
    for (int i = 0; i < 4; i++) {
        int number = (int[]){SIGSEGV, SIGABRT, SIGFPE, SIGBUS}[i];
        snprintf(wanted, sizeof wanted,
                 "d.h5: libhdf5 crashed while it read the file (signal %d, %s): the file is damaged", number,
                 strsignal(number));
        fails(gm_worker_run("d.h5", crash, &number, sizeof number, NULL, NULL), GM_EINPUT, wanted, "a crash");
    }
    fails(gm_worker_run("d.h5", crash, &(int){SIGKILL}, sizeof(int), NULL, NULL), GM_EINPUT, "d.h5: libhdf5 was killed",
          "SIGKILL");
    fails(gm_worker_run("d.h5", leave, NULL, 0, NULL, NULL), GM_EINPUT, "d.h5: libhdf5 exited while it read the file",
          "an exit");
    tap_ok(state(5) == 5, "another worker begins anew");
    gm_worker_stop();
    gm_worker_stop();
    tap_ok(state(3) == 3, "and one after a stop");
    gm_worker_stop();
    gm_worker_start();
    tap_ok(state(3) == 3, "one that was started first");
    fails(gm_worker_run("d.h5", crash, &(int){SIGSEGV}, sizeof(int), NULL, NULL), GM_EINPUT, "crashed", "crashes");
    fails(gm_worker_run("e.h5", echo, "", 1, NULL, NULL), GM_EINPUT, "e.h5: cannot be read, as libhdf5 has crashed",
          "is not replaced");
    gm_worker_stop();
    tap_ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no process is left");
}

static void check_limits(void)
{
    const int64_t much = INT64_C(1200) << 20, little = INT64_C(700) << 20;
    double began = gm_clock(), spent;
    gm_worker_patience(1.5);
    fails(gm_worker_run("d.h5", loop, NULL, 0, NULL, NULL), GM_EINPUT, "d.h5: libhdf5 does not answer after", "a loop");
    spent = gm_clock() - began;
    tap_ok(spent >= 1.5, "is ended in time");
    tap_diag("after %.1f s", spent);
    succeeds(gm_worker_run("d.h5", work_hard, NULL, 0, NULL, NULL), "a long call that tells of its progress");
    succeeds(gm_worker_run("d.h5", wait_long, NULL, 0, NULL, NULL), "a wait for slow storage");
    succeeds(gm_worker_run("d.h5", stop_itself, NULL, 0, NULL, NULL), "a worker that was stopped goes on");
    gm_worker_patience(5);
    if (getenv("GPUMEM_TEST_MEMCHECK")) {
        tap_skip("valgrind has limits of its own", "memory");
        return;
    }
    succeeds(gm_worker_run("d.h5", swell, &little, sizeof little, NULL, NULL), "700 MiB");
    fails(gm_worker_run("d.h5", swell, &much, sizeof much, NULL, NULL), GM_EINPUT, "memory allocation failed",
          "1200 MiB");
    succeeds(gm_worker_run("d.h5", swell_with_leave, &much, sizeof much, NULL, NULL), "1200 MiB that a file needs");
    gm_worker_stop();
}

enum { THREADS = 4, TURNS = 50 };

static void *run_some(void *context)
{
    int *wrong = context;
    for (int i = 0; i < TURNS; i++) {
        char text[32] = "";
        void *found;
        size_t bytes;
        snprintf(text, sizeof text, "%p %d", context, i);
        if (gm_worker_run("thread", echo, text, sizeof text, &found, &bytes) || bytes != sizeof text ||
            memcmp(found, text, bytes) != 0)
            ++*wrong;
        free(found);
    }
    return NULL;
}

static void check_threads(void)
{
    pthread_t thread[THREADS];
    int wrong[THREADS] = {0}, sum = 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, run_some, &wrong[i]))
            return;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        sum += wrong[i];
    }
    tap_ok(sum == 0, "%d threads, %d calls each", THREADS, TURNS);
    gm_worker_stop();
}

/* Tells who it is, and goes on for ever. */
static int loop_openly(const void *argument, size_t bytes, gm_reply *reply)
{
    **(volatile pid_t *const *)argument = getpid();
    return loop(argument, bytes, reply);
}

/* A rank that is killed while its worker is busy takes the worker with it. */
static void check_orphan(void)
{
    pid_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), rank = fork();
    int gone = 0;
    if (rank == 0) {
        gm_worker_run("orphan", loop_openly, &shared, sizeof shared, NULL, NULL);
        _exit(1);
    }
    for (int i = 0; i < 6000 && !*(volatile pid_t *)shared; i++)
        usleep(10000);
    kill(rank, SIGKILL);
    waitpid(rank, NULL, 0);
    for (int i = 0; i < 300 && !gone; i++) {
        usleep(10000);
        gone = *shared && kill(*shared, 0) != 0;
    }
    if (!gone) { /* a process that nobody waits for stays as a zombie */
        char name[64], line[256] = "";
        snprintf(name, sizeof name, "/proc/%d/stat", (int)*shared);
        FILE *file = fopen(name, "r");
        gone = !file || !fgets(line, sizeof line, file) || strstr(line, ") Z ");
        if (file)
            fclose(file);
    }
    tap_ok(*shared && gone, "the worker ends with its rank");
    munmap(shared, 4096);
}

static void *signal_soon(void *context)
{
    (void)context;
    usleep(300000);
    kill(getpid(), SIGTERM);
    return NULL;
}

static void check_stop(void)
{
    pthread_t thread;
    double began = gm_clock();
    gm_stop_install();
    if (pthread_create(&thread, NULL, signal_soon, NULL))
        return;
    fails(gm_worker_run("d.h5", loop, NULL, 0, NULL, NULL), GM_ESTOPPED, "stopped by signal 15", "a signal");
    tap_ok(gm_clock() - began < 5, "is heard soon");
    pthread_join(thread, NULL);
    gm_stop_end();
    succeeds(gm_worker_run("d.h5", echo, "", 1, NULL, NULL), "a call after it");
    gm_worker_stop();
}

int main(void)
{
    check_replies();
    check_crashes();
    check_limits();
    check_threads();
    check_orphan();
    check_stop();
    return tap_done();
}
