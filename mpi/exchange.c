#include "mpi/exchange.h"

#include "base/status.h"
#include "mpi/mpi_check.h"

#include <mpi.h>
#include <stdlib.h>

enum { TAG_HEAD = 2, TAG_BODY = 3 };

/* Counts of MPI are ints: long messages go in parts. */
static const size_t part_bytes = (size_t)256 << 20;

static size_t part_at(size_t at, size_t bytes)
{
    return bytes - at < part_bytes ? bytes - at : part_bytes;
}

int gm_send(int to, const void *data, size_t bytes)
{
    int alive = data != NULL;
    int status = gm_mpi_check(MPI_Send(&alive, 1, MPI_INT, to, TAG_HEAD, MPI_COMM_WORLD), "MPI_Send");
    for (size_t at = 0; alive && !status && at < bytes; at += part_bytes)
        status = gm_mpi_check(
            MPI_Send((const char *)data + at, (int)part_at(at, bytes), MPI_BYTE, to, TAG_BODY, MPI_COMM_WORLD), "MPI_Send");
    return status;
}

/* A part that nobody wants is taken in whatever size it comes. */
static int receive_and_forget(int from)
{
    MPI_Message message;
    MPI_Status state;
    int count;
    int status = gm_mpi_check(MPI_Mprobe(from, TAG_BODY, MPI_COMM_WORLD, &message, &state), "MPI_Mprobe");
    if (status)
        return status;
    MPI_Get_count(&state, MPI_BYTE, &count);
    void *sink = malloc((size_t)count + 1);
    if (!sink)
        return gm_fail(GM_EDEVICE, "out of host memory: no %d bytes for a message", count);
    status = gm_mpi_check(MPI_Mrecv(sink, count, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    free(sink);
    return status;
}

int gm_receive(int from, void *data, size_t bytes)
{
    int alive;
    int status = gm_mpi_check(MPI_Recv(&alive, 1, MPI_INT, from, TAG_HEAD, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    if (status || !alive)
        return status ? status : GM_EPEER;
    for (size_t at = 0; !status && at < bytes; at += part_bytes)
        status = data ? gm_mpi_check(MPI_Recv((char *)data + at, (int)part_at(at, bytes), MPI_BYTE, from, TAG_BODY,
                                              MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                                     "MPI_Recv")
                      : receive_and_forget(from);
    return status;
}
