#include "mpi/exchange.h"

#include "base/status.h"
#include "mpi/mpi_check.h"
#include "mpi/wait.h"

#include <stdlib.h>

enum { TAG_STATUS = 2, TAG_DATA = 3, TAG_PIECE = 4 /* and those of other channels */ };

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

/* --- Pieces --- */

/* One request; a gm_requests * is an array of them. */
struct gm_requests {
    MPI_Request mpi;
    int tag;
    int is_receive, is_discarded;
    int is_unmatched; /* of a piece that is discarded: it has not come */
    int from;
    void *sink; /* of such a piece */
};

int gm_requests_open(int count, gm_channel channel, gm_requests **requests)
{
    *requests = calloc((size_t)count, sizeof **requests);
    for (int i = 0; *requests && i < count; i++)
        (*requests)[i].tag = TAG_PIECE + (int)channel;
    return *requests ? GM_OK : gm_fail(GM_EDEVICE, "no memory for %d messages between ranks", count);
}

void gm_requests_close(gm_requests *requests)
{
    free(requests);
}

/* A datatype of MPI and its count: counts are ints there. */
typedef struct layout {
    MPI_Datatype type;
    int count;
} layout;

static int make_layout(size_t pitch, size_t width, int64_t rows, layout *l)
{
    *l = (layout){.type = MPI_BYTE};
    if (width < 1 || rows < 1 || width > GM_PIECE_MOST || rows > (int64_t)(GM_PIECE_MOST / width))
        return gm_fail(GM_EINTERNAL, "a message of %lld x %zu bytes", (long long)rows, width);
    l->count = (int)((size_t)rows * width);
    if (rows == 1 || pitch == width)
        return GM_OK;
    l->count = 1;
    int code = MPI_Type_create_hvector((int)rows, (int)width, (MPI_Aint)pitch, MPI_BYTE, &l->type);
    if (code == MPI_SUCCESS)
        code = MPI_Type_commit(&l->type);
    return gm_mpi_must(code, "MPI_Type_create_hvector");
}

/* MPI keeps the type as long as a message needs it. */
static void free_layout(layout *l)
{
    if (l->type != MPI_BYTE)
        MPI_Type_free(&l->type);
}

int gm_send_start(gm_requests *requests, int at, int to, const void *data, size_t pitch, size_t width, int64_t rows)
{
    gm_requests *r = &requests[at];
    layout l = {MPI_BYTE, 0};
    int status = data ? make_layout(pitch, width, rows, &l) : GM_OK;
    *r = (gm_requests){.mpi = MPI_REQUEST_NULL, .tag = r->tag};
    if (!status)
        status = gm_mpi_must(MPI_Isend(data, l.count, l.type, to, r->tag, MPI_COMM_WORLD, &r->mpi), "MPI_Isend");
    free_layout(&l);
    return status;
}

int gm_receive_start(gm_requests *requests, int at, int from, void *data, size_t pitch, size_t width, int64_t rows)
{
    gm_requests *r = &requests[at];
    layout l;
    *r = (gm_requests){.mpi = MPI_REQUEST_NULL,
                       .tag = r->tag,
                       .is_receive = 1,
                       .is_discarded = !data,
                       .is_unmatched = !data,
                       .from = from};
    if (!data)
        return GM_OK;
    int status = make_layout(pitch, width, rows, &l);
    if (!status)
        status = gm_mpi_must(MPI_Irecv(data, l.count, l.type, from, r->tag, MPI_COMM_WORLD, &r->mpi), "MPI_Irecv");
    free_layout(&l);
    return status;
}

/* Receives a piece that is discarded, if it has come, into memory of its own; without memory MPI discards it, as
 * receive_and_discard() has it. */
static int match(gm_requests *r)
{
    MPI_Message message;
    MPI_Status state;
    int found = 0, count;
    int status = gm_mpi_must(MPI_Improbe(r->from, r->tag, MPI_COMM_WORLD, &found, &message, &state), "MPI_Improbe");
    if (status || !found)
        return status;
    r->is_unmatched = 0;
    MPI_Get_count(&state, MPI_BYTE, &count);
    r->sink = malloc((size_t)count + 1);
    if (r->sink)
        return gm_mpi_must(MPI_Imrecv(r->sink, count, MPI_BYTE, &message, &r->mpi), "MPI_Imrecv");
    MPI_Mrecv(NULL, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return GM_OK;
}

int gm_request_test(gm_requests *requests, int at, int *done)
{
    gm_requests *r = &requests[at];
    MPI_Status state;
    int count = 1;
    int status = r->is_unmatched ? match(r) : GM_OK;
    *done = 0;
    if (status || r->is_unmatched)
        return status;
    status = gm_mpi_must(MPI_Test(&r->mpi, done, &state), "MPI_Test");
    if (status || !*done)
        return status;
    free(r->sink);
    r->sink = NULL;
    if (r->is_receive && !r->is_discarded)
        MPI_Get_count(&state, MPI_BYTE, &count);
    return count == 0 ? GM_EPEER : GM_OK;
}
