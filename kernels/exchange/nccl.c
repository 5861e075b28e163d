/* The interface of NCCL below follows its manual (docs.nvidia.com/deeplearning/nccl). */
#include "kernels/exchange/nccl.h"

#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, IN_PROGRESS = 7, BYTES = 0 /* ncclInt8 */, FAILURE_TEXT = 256 };

typedef struct communicator *communicator;
typedef struct identity {
    char bytes[GM_NCCL_ID];
} identity;

/* ncclConfig_t as version 2.14, the first with one, has it: later versions take the rest from their defaults. */
typedef struct configuration {
    size_t size;
    unsigned magic, version;
    int blocking;
} configuration;
enum { LEAST_VERSION = 21400 };
static const unsigned magic = 0xcafebeef;

struct gm_nccl {
    const gm_device_ops *ops;
    gm_device *device;
    int rank, size, version;
    identity id;
    communicator communicator; /* NULL: none */

    /* The step that a thread does. */
    gm_nccl_step step;
    atomic_int is_busy, gives_up;
    int is_lost; /* a step has not ended: its thread may come back at any time */
    char failure[FAILURE_TEXT];

    int (*get_version)(int *);
    int (*get_unique_id)(identity *);
    int (*init)(communicator *, int, identity, int, configuration *);
    int (*send)(const void *, size_t, int, int, communicator, void *);
    int (*receive)(void *, size_t, int, int, communicator, void *);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*get_async_error)(communicator, int *);
    int (*abort)(communicator);
    int (*destroy)(communicator);
    const char *(*get_error_string)(int);
};

/* --- Steps, each on a thread of its own --- */

/* The search path of the loader first, then the usual folders of the toolkit. The library stays open: it has threads of
 * its own. */
static void *open_library(void)
{
    static const char *const names[] = {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2",
                                        "/usr/local/cuda/lib/libnccl.so.2"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void check(gm_nccl *n, int result, const char *call)
{
    if (result != SUCCESS && result != IN_PROGRESS && !n->failure[0])
        snprintf(n->failure, sizeof n->failure, "%s: %s", call, n->get_error_string(result));
}

static void load(gm_nccl *n)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"ncclGetVersion", &n->get_version},
        {"ncclGetUniqueId", &n->get_unique_id},
        {"ncclCommInitRankConfig", &n->init},
        {"ncclSend", &n->send},
        {"ncclRecv", &n->receive},
        {"ncclGroupStart", &n->group_start},
        {"ncclGroupEnd", &n->group_end},
        {"ncclCommGetAsyncError", &n->get_async_error},
        {"ncclCommAbort", &n->abort},
        {"ncclCommDestroy", &n->destroy},
        {"ncclGetErrorString", &n->get_error_string},
    };
    void *library = open_library();
    if (!library)
        snprintf(n->failure, sizeof n->failure, "libnccl.so.2 is not where the loader looks (LD_LIBRARY_PATH)");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && !n->failure[0]; i++) {
        void *function = dlsym(library, wanted[i].name);
        if (!function)
            snprintf(n->failure, sizeof n->failure, "libnccl.so.2 has no %s", wanted[i].name);
        *(void **)wanted[i].function = function; /* the conversion that POSIX gives for dlsym */
    }
    if (!n->failure[0])
        check(n, n->get_version(&n->version), "ncclGetVersion");
    if (!n->failure[0] && n->version < LEAST_VERSION)
        snprintf(n->failure, sizeof n->failure, "expected version 2.14 or later, found the number %d", n->version);
}

static void identify(gm_nccl *n)
{
    check(n, n->get_unique_id(&n->id), "ncclGetUniqueId");
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* The communicator is there, though not ready, as soon as the call returns: who gives up can abort it. */
static void wait_until_ready(gm_nccl *n, const char *call)
{
    int state = IN_PROGRESS;
    while (state == IN_PROGRESS && !n->failure[0] && !atomic_load(&n->gives_up)) {
        check(n, n->get_async_error(n->communicator, &state), "ncclCommGetAsyncError");
        check(n, state, call);
        if (state == IN_PROGRESS)
            rest();
    }
}

static void connect(gm_nccl *n)
{
    configuration c = {sizeof c, magic, LEAST_VERSION, 0};
    if (n->ops->attach(n->device)) {
        snprintf(n->failure, sizeof n->failure, "the GPU cannot be used by a second thread");
        return;
    }
    check(n, n->init(&n->communicator, n->size, n->id, n->rank, &c), "ncclCommInitRankConfig");
    if (n->communicator)
        wait_until_ready(n, "ncclCommInitRankConfig");
}

static void end(gm_nccl *n, int (*how)(communicator), const char *call)
{
    communicator c = n->communicator;
    n->communicator = NULL;
    if (c && !n->ops->attach(n->device))
        check(n, how(c), call);
}

static void abort_it(gm_nccl *n)
{
    end(n, n->abort, "ncclCommAbort");
}

static void destroy(gm_nccl *n)
{
    end(n, n->destroy, "ncclCommDestroy");
}

static const struct {
    void (*run)(gm_nccl *nccl);
    const char *name;
    int hears, code;
} steps[] = {[GM_NCCL_LOAD] = {load, "opening the library", 1, GM_EDEVICE},
             [GM_NCCL_IDENTIFY] = {identify, "making an identity", 1, GM_EMPI},
             [GM_NCCL_CONNECT] = {connect, "making a communicator", 1, GM_EMPI},
             [GM_NCCL_ABORT] = {abort_it, "aborting a communicator", 0, GM_EMPI},
             [GM_NCCL_DESTROY] = {destroy, "ending a communicator", 0, GM_EMPI}};

static void *run(void *argument)
{
    gm_nccl *n = argument;
    gm_error_hush(1); /* the main thread reports */
    steps[n->step].run(n);
    atomic_store(&n->is_busy, 0);
    return NULL;
}

/* --- The main thread --- */

static int start(gm_nccl *n, gm_nccl_step step)
{
    pthread_t thread;
    n->step = step;
    n->failure[0] = '\0';
    atomic_store(&n->gives_up, 0);
    atomic_store(&n->is_busy, 1);
    if (gm_thread_start(&thread, run, n)) {
        atomic_store(&n->is_busy, 0);
        return gm_fail(GM_EDEVICE, "NCCL: cannot start a thread for %s", steps[step].name);
    }
    pthread_detach(thread);
    return GM_OK;
}

/* A step that is given up gets a little time to end by itself. */
int gm_nccl_do(gm_nccl *n, gm_nccl_step step, double seconds)
{
    const double grace = 1;
    if (n->is_lost)
        return gm_fail(GM_EMPI, "NCCL: %s: an earlier call has not ended", steps[step].name);
    double from = gm_clock(), given_up = 0;
    int status = start(n, step);
    while (atomic_load(&n->is_busy)) {
        rest();
        double now = gm_clock();
        if (!status && steps[step].hears)
            status = gm_stop_status();
        if (!status && now - from > seconds)
            status = gm_fail(GM_EMPI, "NCCL: %s takes more than %g s", steps[step].name, seconds);
        if (status && given_up == 0) {
            given_up = now;
            atomic_store(&n->gives_up, 1);
        }
        if (status && now - given_up > grace) {
            n->is_lost = 1;
            return status;
        }
    }
    return status || !n->failure[0] ? status : gm_fail(steps[step].code, "NCCL: %s", n->failure);
}

/* NVLink multicast (NVLS) is of no use to messages, and systems where it is half set up hang in it. */
int gm_nccl_open(const gm_device_ops *ops, gm_device *device, int rank, int size, gm_nccl **nccl)
{
    *nccl = calloc(1, sizeof **nccl);
    if (!*nccl)
        return gm_fail(GM_EDEVICE, "no memory for NCCL");
    (*nccl)->ops = ops;
    (*nccl)->device = device;
    (*nccl)->rank = rank;
    (*nccl)->size = size;
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    return GM_OK;
}

void gm_nccl_close(gm_nccl *n)
{
    if (n && !n->is_lost)
        free(n);
}

int gm_nccl_version(const gm_nccl *n)
{
    return n->version;
}

char *gm_nccl_version_format(int version, char text[GM_NCCL_VERSION_TEXT])
{
    snprintf(text, GM_NCCL_VERSION_TEXT, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return text;
}

char *gm_nccl_id(gm_nccl *n)
{
    return n->id.bytes;
}

static int checked(const gm_nccl *n, int result, const char *call)
{
    return result == SUCCESS || result == IN_PROGRESS
               ? GM_OK
               : gm_fail(GM_EMPI, "NCCL: %s: %s", call, n->get_error_string(result));
}

int gm_nccl_put(gm_nccl *n, void *stream, const gm_nccl_message *messages, int count)
{
    int status = checked(n, n->group_start(), "ncclGroupStart");
    if (status)
        return status;
    for (int i = 0; i < count && !status; i++) {
        const gm_nccl_message *m = &messages[i];
        status = m->is_receive
                     ? checked(n, n->receive(m->memory, m->bytes, BYTES, m->peer, n->communicator, stream), "ncclRecv")
                     : checked(n, n->send(m->memory, m->bytes, BYTES, m->peer, n->communicator, stream), "ncclSend");
    }
    int ended = checked(n, n->group_end(), "ncclGroupEnd");
    return status ? status : ended;
}

int gm_nccl_poll(gm_nccl *n, int *ready)
{
    int state = SUCCESS;
    int status = checked(n, n->get_async_error(n->communicator, &state), "ncclCommGetAsyncError");
    *ready = !status && state == SUCCESS;
    return status ? status : checked(n, state, "an exchange");
}
