/* worker.c - the side of the rank: starts the worker, hands it calls, takes their replies, and ends it when it must. */
#define _GNU_SOURCE
#include "io/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/stop.h"
#include "io/h5.h"
#include "io/worker_window.h"

enum { TICK_MS = 100 };

/* Seconds of the processor without progress after which a call is taken for one that never ends: a virtual dataset of
 * 100000 mappings takes libhdf5 more than ten, most of them for what it has read. */
static const double seconds_most = 120, allowed_per_second = 256 << 10;
static double seconds_least = 5;

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static struct {
    pid_t pid; /* 0: none */
    int fd;
    gm_worker_window *window; /* made once */
    int is_first;             /* started before MPI and threads */
    int is_lost;              /* the first one has ended: none may be forked any more */
} worker;

static int fail_start(int number)
{
    return gm_fail(GM_EDEVICE, "cannot start a process for libhdf5: %s", strerror(number));
}

/* Forks where no other thread is inside libhdf5, which the worker goes on with. */
static int fork_worker(int sockets[2])
{
    pid_t parent = getpid();
    int tied = syscall(SYS_gettid) == parent;
    gm_h5_lock();
    H5open();
    pid_t pid = fork();
    int number = errno;
    if (pid == 0) {
        gm_h5_unlock();
        close(sockets[0]);
        gm_worker_serve(sockets[1], worker.window, tied, parent);
    }
    gm_h5_unlock();
    close(sockets[1]);
    if (pid < 0) {
        close(sockets[0]);
        return fail_start(number);
    }
    worker.pid = pid;
    worker.fd = sockets[0];
    return GM_OK;
}

static int start(void)
{
    int sockets[2];
    if (worker.pid)
        return GM_OK;
    if (!worker.window) {
        void *shared = mmap(NULL, sizeof *worker.window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
            return fail_start(errno);
        worker.window = shared;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        return fail_start(errno);
    return fork_worker(sockets);
}

/* Ends the worker. Returns how it ended, as waitpid(); 0 when that is not known. */
static int end(void)
{
    int how = 0;
    close(worker.fd);
    kill(worker.pid, SIGKILL);
    while (waitpid(worker.pid, &how, 0) < 0)
        if (errno != EINTR) {
            how = 0;
            break;
        }
    worker.pid = 0;
    worker.is_lost = worker.is_first;
    return how;
}

void gm_worker_start(void)
{
    pthread_mutex_lock(&turn);
    int hushed = gm_error_hush(1); /* the first call tries again */
    worker.is_first = start() == GM_OK;
    gm_error_hush(hushed);
    pthread_mutex_unlock(&turn);
}

void gm_worker_stop(void)
{
    pthread_mutex_lock(&turn);
    if (worker.pid)
        end();
    worker.is_first = worker.is_lost = 0;
    pthread_mutex_unlock(&turn);
}

void gm_worker_patience(double seconds)
{
    seconds_least = seconds;
}

/* The worker has closed its end. */
static int fail_crash(const char *title)
{
    int how = end(), number = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    if (number == SIGKILL)
        return gm_fail(GM_EINPUT,
                       "%s: libhdf5 was killed while it read the file (signal 9), perhaps because memory ran out",
                       title);
    if (number)
        return gm_fail(GM_EINPUT, "%s: libhdf5 crashed while it read the file (signal %d, %s): the file is damaged",
                       title, number, strsignal(number));
    return gm_fail(GM_EINPUT, "%s: libhdf5 exited while it read the file: the file is damaged", title);
}

/* The time that the worker has spent since it was at work for sure. It is counted in ticks that the rank has waited: a
 * clock goes on while a batch system suspends the job. */
typedef struct spent {
    int ticks;
    double processor;
    uint64_t progress;
} spent;

static double processor_seconds(void)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(worker.pid, &clock) || clock_gettime(clock, &time))
        return 0;
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Does the worker still answer? A damaged file keeps the processor busy, and so does a walk over millions of chunks
 * that a selection with steps passes by; the storage does not: it may take as long as it likes. */
static int check_time(const char *title, spent *since)
{
    double processor = processor_seconds(), waited;
    double limit = seconds_least + (double)worker.window->allowed / allowed_per_second;
    uint64_t progress = worker.window->progress;
    if (limit > seconds_most)
        limit = seconds_most;
    if (progress != since->progress)
        *since = (spent){0, processor, progress};
    if (worker.window->waits)
        since->ticks = 0;
    waited = since->ticks * 1e-3 * TICK_MS;
    if (processor - since->processor <= limit && waited <= seconds_most)
        return GM_OK;
    end();
    return gm_fail(
        GM_EINPUT,
        "%s: libhdf5 does not answer after %.0f s: the file is damaged, or the selection spans too many chunks", title,
        waited);
}

/* Waits for the worker's next word. On failure there is no worker any more. */
static int hear(const char *title, spent *since, char *word)
{
    struct pollfd ready = {.fd = worker.fd, .events = POLLIN};
    for (;;) {
        int count = poll(&ready, 1, TICK_MS), status = GM_OK;
        ssize_t got = count > 0 ? recv(worker.fd, word, 1, 0) : -1;
        if (got == 1)
            return GM_OK;
        if (count > 0 && !(got < 0 && errno == EINTR))
            return fail_crash(title);
        if (count == 0) { /* a job that was stopped and goes on can leave a worker stopped that was being forked */
            since->ticks++;
            kill(worker.pid, SIGCONT);
        }
        if ((status = gm_stop_status()))
            end();
        else
            status = check_time(title, since);
        if (status)
            return status;
    }
}

static int say(const char *title, char word)
{
    while (send(worker.fd, &word, 1, MSG_NOSIGNAL) != 1)
        if (errno != EINTR)
            return fail_crash(title);
    return GM_OK;
}

/* The reply, word by word. Returns the status of the worker or of the sink. */
static int take_reply(const char *title, gm_worker_sink *sink, void *context)
{
    gm_worker_window *window = worker.window;
    spent since = {0, processor_seconds(), window->progress};
    int sunk = GM_OK, status;
    char word;
    for (;;) {
        status = hear(title, &since, &word);
        if (status)
            return status;
        if (word != GM_TURN_DATA)
            break;
        size_t bytes = window->bytes;
        if (bytes > sizeof window->data)
            return fail_crash(title);
        if (!sunk && sink)
            sunk = sink(context, window->data, bytes);
        since = (spent){0, processor_seconds(), window->progress};
        status = say(title, GM_TURN_DATA);
        if (status)
            return status;
    }
    gm_error error = window->error;
    status = window->status;
    error.text[sizeof error.text - 1] = '\0';
    if (status && error.code) /* the first failure, of which a library between may have made another */
        return gm_fail(error.code, "%s", error.text);
    return status ? status : sunk;
}

/* A call that took all memory, and failed for it, has left its worker without. */
static void replace_swollen(int status)
{
    if (status && worker.pid && worker.window->is_swollen && !worker.is_first)
        end();
}

static int ask(const char *title, gm_worker_call *call, const void *argument, size_t bytes, gm_worker_sink *sink,
               void *context)
{
    gm_worker_window *window = worker.window;
    window->call = call;
    window->bytes = bytes;
    window->allowed = 0;
    window->waits = 0;
    window->is_swollen = 0;
    if (bytes)
        memcpy(window->data, argument, bytes);
    int status = say(title, GM_TURN_CALL);
    if (!status)
        status = take_reply(title, sink, context);
    replace_swollen(status);
    return status;
}

/* A call of a call: its reply is in memory. */
static int stream_here(gm_worker_call *call, const void *argument, size_t bytes, gm_worker_sink *sink, void *context)
{
    void *reply;
    size_t length;
    int status = gm_worker_run_here(call, argument, bytes, &reply, &length);
    if (!status && reply)
        status = sink(context, reply, length);
    free(reply);
    return status;
}

int gm_worker_stream(const char *title, gm_worker_call *call, const void *argument, size_t bytes, gm_worker_sink *sink,
                     void *context)
{
    if (gm_worker_is_inside())
        return stream_here(call, argument, bytes, sink, context);
    if (bytes > GM_REPLY_PLACE)
        return gm_fail(GM_EINTERNAL, "%s: an argument of %zu bytes for a call of libhdf5", title, bytes);
    pthread_mutex_lock(&turn);
    int status = worker.is_lost
                     ? gm_fail(GM_EINPUT, "%s: cannot be read, as libhdf5 has crashed on another file before", title)
                     : start();
    if (!status)
        status = ask(title, call, argument, bytes, sink, context);
    pthread_mutex_unlock(&turn);
    return status;
}

/* A reply as a whole. */
typedef struct whole {
    char *data;
    size_t bytes, room;
} whole;

static int keep(void *context, const void *data, size_t bytes)
{
    whole *w = context;
    if (bytes > w->room - w->bytes) {
        size_t room = 2 * w->room + bytes;
        char *more = realloc(w->data, room);
        if (!more)
            return gm_fail(GM_EDEVICE, "no memory for a reply of %zu bytes", room);
        w->data = more;
        w->room = room;
    }
    memcpy(w->data + w->bytes, data, bytes);
    w->bytes += bytes;
    return GM_OK;
}

int gm_worker_run(const char *title, gm_worker_call *call, const void *argument, size_t bytes, void **result,
                  size_t *result_bytes)
{
    whole w = {NULL, 0, 0};
    int status = gm_worker_stream(title, call, argument, bytes, keep, &w);
    if (status || !result)
        free(w.data);
    if (status)
        w = (whole){NULL, 0, 0};
    if (result)
        *result = w.data;
    if (result_bytes)
        *result_bytes = w.bytes;
    return status;
}
