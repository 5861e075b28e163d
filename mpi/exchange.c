#include "mpi/exchange.h"

#include "base/status.h"
#include "mpi/mpi_check.h"
#include "mpi/wait.h"

#include <stdlib.h>

enum { TAG_STATUS = 2, TAG_DATA = 3 };

/* Counts are ints in MPI: long messages are sent in parts. */
static const size_t part_bytes = (size_t)256 << 20;

static size_t part_size(size_t at, size_t bytes)
{
    return bytes - at < part_bytes ? bytes - at : part_bytes;
}

static int send(int to, int tag, const void *data, size_t bytes)
{
    MPI_Request request;
    return gm_mpi_wait(MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request), &request, "MPI_Isend");
}

static int receive(int from, int tag, void *data, size_t bytes)
{
    MPI_Request request;
    return gm_mpi_wait(MPI_Irecv(data, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request), &request,
                       "MPI_Irecv");
}

int gm_send(int to, const void *data, size_t bytes)
{
    int ok = data != NULL;
    int status = send(to, TAG_STATUS, &ok, sizeof ok);
    for (size_t at = 0; ok && !status && at < bytes; at += part_bytes)
        status = send(to, TAG_DATA, (const char *)data + at, part_size(at, bytes));
    return status;
}

/* Receives one part of a message, whatever its size, and discards it. Without memory for it MPI discards it: the sender
 * must not wait for a receive, and the receive fails only on this rank, which has failed already. */
static int receive_and_discard(int from)
{
    MPI_Message message;
    MPI_Status state;
    int count;
    int status = gm_mpi_must(MPI_Mprobe(from, TAG_DATA, MPI_COMM_WORLD, &message, &state), "MPI_Mprobe");
    if (status)
        return status;
    MPI_Get_count(&state, MPI_BYTE, &count);
    void *sink = malloc((size_t)count + 1);
    int code = MPI_Mrecv(sink, sink ? count : 0, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    if (sink)
        status = gm_mpi_must(code, "MPI_Mrecv");
    free(sink);
    return status;
}

int gm_receive(int from, void *data, size_t bytes)
{
    int ok;
    int status = receive(from, TAG_STATUS, &ok, sizeof ok);
    if (status || !ok)
        return status ? status : GM_EPEER;
    for (size_t at = 0; !status && at < bytes; at += part_bytes)
        status = data ? receive(from, TAG_DATA, (char *)data + at, part_size(at, bytes)) : receive_and_discard(from);
    return status;
}
