/* worker_process.c - the side of the worker: serves calls, one after the other. */
#define _GNU_SOURCE
#include "io/worker_window.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/size.h"
#include "io/h5.h"
#include "io/input_vfd.h"

static gm_worker_window *window;
static int channel;

/* Of a call in this process, to memory; of one from outside, through the window. */
struct gm_reply {
    char *data;
    size_t bytes, room;
    int is_outside;
};

/* A worker that cannot talk to its rank has none. It goes without exit handlers, and without a check for leaks. */
static _Noreturn void end(void)
{
    kill(getpid(), SIGKILL);
    _exit(0);
}

static void say(char turn)
{
    while (send(channel, &turn, 1, MSG_NOSIGNAL) != 1)
        if (errno != EINTR)
            end();
}

static void expect(char turn)
{
    char got;
    ssize_t n;
    while ((n = recv(channel, &got, 1, 0)) < 0 && errno == EINTR)
        ;
    if (n != 1 || got != turn)
        end();
}

/* The rank takes what is in the window. */
static void hand_over(gm_reply *reply)
{
    window->bytes = reply->bytes;
    reply->bytes = 0;
    if (window->bytes == 0)
        return;
    say(GM_TURN_DATA);
    expect(GM_TURN_DATA);
}

static int grow(gm_reply *reply, size_t bytes)
{
    size_t room = 2 * reply->room + bytes;
    char *more = realloc(reply->data, room);
    if (!more)
        return gm_fail(GM_EDEVICE, "no memory for a reply of %zu bytes", room);
    reply->data = more;
    reply->room = room;
    return GM_OK;
}

int gm_reply_place(gm_reply *reply, size_t bytes, void **data)
{
    *data = NULL;
    if (bytes > GM_REPLY_PLACE)
        return gm_fail(GM_EINTERNAL, "no place for a reply of %zu bytes at once", bytes);
    if (bytes > reply->room - reply->bytes) {
        int status = GM_OK;
        if (reply->is_outside)
            hand_over(reply);
        else
            status = grow(reply, bytes);
        if (status)
            return status;
    }
    *data = reply->data + reply->bytes;
    reply->bytes += bytes;
    return GM_OK;
}

int gm_reply_add(gm_reply *reply, const void *data, size_t bytes)
{
    int status = GM_OK;
    for (size_t done = 0, part; done < bytes && !status; done += part) {
        void *to;
        part = (size_t)gm_min((int64_t)(bytes - done), GM_REPLY_PLACE);
        status = gm_reply_place(reply, part, &to);
        if (!status)
            memcpy(to, (const char *)data + done, part);
    }
    return status;
}

int gm_worker_run_here(gm_worker_call *call, const void *argument, size_t bytes, void **result, size_t *result_bytes)
{
    gm_reply reply = {NULL, 0, 0, 0};
    int status = call(argument, bytes, &reply);
    if (status || !result)
        free(reply.data);
    if (status)
        reply = (gm_reply){NULL, 0, 0, 0};
    if (result)
        *result = reply.data;
    if (result_bytes)
        *result_bytes = reply.bytes;
    return status;
}

/* Signals, terminal and limits of a process that only the rank may end. */
static void settle(int tied, pid_t parent)
{
    static const int ignored[] = {SIGTERM, SIGINT, SIGUSR2, SIGPIPE};
    static const int usual[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}; /* MPI prints about them */
    if (tied)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (tied && getppid() != parent)
        end();
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        signal(usual[i], SIG_DFL);
    prctl(PR_SET_DUMPABLE, 0); /* no core: a limit of 0 does not hold where a program takes them */
    /* mpirun waits until nobody has the output of a rank open. */
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2 && nothing >= 0; fd++)
        dup2(nothing, fd);
    if (nothing > 2)
        close(nothing);
}

/* The reply takes the place of the argument. */
static int run_call(gm_reply *reply)
{
    size_t bytes = window->bytes;
    void *argument = malloc(bytes + 1);
    if (!argument)
        return gm_fail(GM_EDEVICE, "no memory for a call of libhdf5");
    memcpy(argument, window->data, bytes);
    gm_h5_lock();
    int status = window->call(argument, bytes, reply);
    gm_h5_unlock();
    free(argument);
    return status;
}

static void serve_call(void)
{
    gm_reply reply = {window->data, 0, sizeof window->data, 1};
    gm_error_clear();
    gm_input_error_clear();
    int status = run_call(&reply);
    if (gm_input_has_error()) {
        gm_error_clear();
        status = gm_input_fail();
    }
    if (!status)
        hand_over(&reply);
    window->status = status;
    window->is_swollen = status && gm_worker_is_swollen();
    gm_error_get(&window->error);
    say(GM_TURN_END);
}

_Noreturn void gm_worker_serve(int fd, gm_worker_window *shared, int tied, pid_t parent)
{
    window = shared;
    channel = fd;
    settle(tied, parent);
    gm_worker_enter(shared);
    gm_error_hush(0);
    for (;;) {
        expect(GM_TURN_CALL);
        serve_call();
    }
}
