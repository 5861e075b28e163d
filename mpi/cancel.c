#include "mpi/cancel.h"

#include "base/clock.h"
#include "base/status.h"
#include "base/stop.h"
#include "mpi/mpi_check.h"
#include "mpi/wait.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { TAG_CANCEL = 1 };

static struct {
    int rank, size;
    int sent;              /* this rank has notified the others */
    int received;          /* notifications received */
    MPI_Request *requests; /* of the notifications sent, [size]; those of this rank itself are null */
    double probed;         /* time of the last probe */
} cancel;

/* Seconds. On an oversubscribed host MPI yields the processor at each probe, and I/O threads may keep it for
 * milliseconds. */
static const double probe_interval = 0.002;

int gm_cancel_start(int rank, int size)
{
    cancel.rank = rank;
    cancel.size = size;
    cancel.requests = malloc((size_t)size * sizeof *cancel.requests); /* a rank without memory can notify as well */
    for (int r = 0; r < size && cancel.requests; r++)
        cancel.requests[r] = MPI_REQUEST_NULL;
    if (!cancel.requests)
        return gm_fail(GM_EDEVICE, "no memory for notifications among %d ranks", size);
    gm_stop_set_peers(gm_cancelled);
    return GM_OK;
}

void gm_cancel(void)
{
    if (cancel.sent || !cancel.requests || gm_cancelled()) /* that rank has notified all others */
        return;
    cancel.sent = 1;
    for (int r = 0; r < cancel.size; r++)
        if (r != cancel.rank)
            MPI_Isend(NULL, 0, MPI_BYTE, r, TAG_CANCEL, MPI_COMM_WORLD, &cancel.requests[r]);
}

int gm_cancel_is_sent(void)
{
    return cancel.sent;
}

int gm_cancelled(void)
{
    int found = 0;
    double now = gm_clock();
    if (cancel.size < 2 || now - cancel.probed < probe_interval)
        return cancel.received > 0;
    cancel.probed = now;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_CANCEL, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    if (found) {
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_CANCEL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        cancel.received++;
    }
    return cancel.received > 0;
}

void gm_cancel_complete(void)
{
    int total = 0;
    MPI_Allreduce(&cancel.sent, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (; cancel.received < total - cancel.sent; cancel.received++)
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_CANCEL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int r = 0; r < cancel.size && cancel.requests; r++)
        MPI_Wait(&cancel.requests[r], MPI_STATUS_IGNORE);
    cancel.sent = cancel.received = 0;
}

/* busy_s: seconds of looking again and again. */
static int wait_for(int code, MPI_Request *request, const char *call, double busy_s)
{
    const struct timespec nap = {.tv_nsec = 50000};
    double from = gm_clock();
    int done = 0;
    while (code == MPI_SUCCESS && !done) {
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done)
            break;
        if (gm_stop_asked())
            gm_cancel();
        if (gm_clock() - from > busy_s)
            nanosleep(&nap, NULL);
    }
    return gm_mpi_must(code, call);
}

int gm_mpi_wait(int code, MPI_Request *request, const char *call)
{
    return wait_for(code, request, call, INFINITY);
}

int gm_mpi_wait_idle(int code, MPI_Request *request, const char *call)
{
    return wait_for(code, request, call, 0.001);
}
