#include "mpi/ranks.h"

#include "base/clock.h"
#include "mpi/mpi_check.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_CANCEL = 1 };

static struct {
    int sent;              /* this rank has told the others */
    int heard;             /* notices received */
    MPI_Request *requests; /* of the notices sent */
    int count;
    double looked;         /* when MPI was asked last */
} cancel;

/* Seconds. With more ranks than it thinks fit, MPI gives the processor away at each question: many a reader would have it then for milliseconds. */
static const double look_again = 0.002;

int gm_mpi_check(int code, const char *call)
{
    if (code == MPI_SUCCESS)
        return GM_OK;
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length;
    MPI_Error_string(code, text, &length);
    return gm_fail(GM_EMPI, "%s: %s", call, text);
}

int gm_ranks_peek(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value)
            return atoi(value);
    }
    return 0;
}

/* Which ranks share this host, and how many hosts there are. */
static int find_hosts(gm_ranks *ranks)
{
    MPI_Comm host = MPI_COMM_NULL;
    int status = gm_mpi_check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks->rank, MPI_INFO_NULL, &host),
                              "MPI_Comm_split_type");
    if (status)
        return status;
    MPI_Comm_rank(host, &ranks->local_rank);
    MPI_Comm_size(host, &ranks->local_size);

    int first = ranks->local_rank == 0, before = 0;
    status = gm_mpi_check(MPI_Exscan(&first, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "MPI_Exscan");
    if (ranks->rank == 0)
        before = 0; /* undefined there */
    if (!status)
        status = gm_mpi_check(MPI_Bcast(&before, 1, MPI_INT, 0, host), "MPI_Bcast");
    ranks->host_index = before;
    if (!status)
        status = gm_mpi_check(MPI_Allreduce(&first, &ranks->hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
    MPI_Comm_free(&host);
    return status;
}

int gm_ranks_start_all(gm_ranks *ranks)
{
    memset(ranks, 0, sizeof *ranks);
    int provided;
    int status = gm_mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    if (status)
        return status;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->size);
    char name[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(name, &length);
    snprintf(ranks->host, sizeof ranks->host, "%s", name);
    status = find_hosts(ranks);
    if (!status && provided < MPI_THREAD_FUNNELED)
        status = gm_fail(GM_EMPI, "this MPI has no support for threads (MPI_THREAD_FUNNELED)");
    return gm_agree_all(ranks, status);
}

void gm_ranks_end_all(void)
{
    MPI_Finalize();
}

void gm_ranks_abort(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
    _Exit(code);
}

void gm_cancel(const gm_ranks *ranks)
{
    if (cancel.sent)
        return;
    cancel.sent = 1;
    cancel.requests = malloc((size_t)ranks->size * sizeof *cancel.requests);
    if (!cancel.requests)
        gm_ranks_abort(GM_EINTERNAL);
    for (int r = 0; r < ranks->size; r++)
        if (r != ranks->rank)
            MPI_Isend(NULL, 0, MPI_BYTE, r, TAG_CANCEL, MPI_COMM_WORLD, &cancel.requests[cancel.count++]);
}

int gm_cancelled(void)
{
    int found = 0;
    double now = gm_clock();
    if (now - cancel.looked < look_again)
        return cancel.heard > 0;
    cancel.looked = now;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_CANCEL, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    if (found) {
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_CANCEL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        cancel.heard++;
    }
    return cancel.heard > 0;
}

/* Every notice sent is received, so that none is left for a later run or for MPI_Finalize. */
static void settle_cancel(void)
{
    int total = 0;
    MPI_Allreduce(&cancel.sent, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (; cancel.heard < total - cancel.sent; cancel.heard++)
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_CANCEL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(cancel.count, cancel.requests, MPI_STATUSES_IGNORE);
    free(cancel.requests);
    memset(&cancel, 0, sizeof cancel);
}

int gm_agree_all(const gm_ranks *ranks, int status)
{
    /* One number orders all outcomes: the code above, the lower rank below; a peer's failure counts less than any of its own. */
    int64_t rank_part = (int64_t)1 << 32, worst;
    int64_t mine = status == GM_OK     ? 0
                   : status == GM_EPEER ? 1
                                        : ((int64_t)status + 1) * rank_part + (ranks->size - ranks->rank);
    if (MPI_Allreduce(&mine, &worst, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS)
        gm_ranks_abort(GM_EMPI);
    if (worst == 0)
        return GM_OK;
    settle_cancel();
    if (worst == 1) {
        gm_fail(GM_EINTERNAL, "ranks left together, but none knows why (rank %d on %s)", ranks->rank, ranks->host);
        return GM_EINTERNAL;
    }

    static char settled[GM_MESSAGE_MAX]; /* a failure that was agreed on before keeps the place where it happened */
    int code = (int)(worst / rank_part) - 1, owner = ranks->size - (int)(worst % rank_part);
    char text[GM_MESSAGE_MAX] = "";
    if (ranks->rank == owner) {
        gm_error error;
        gm_error_get(&error);
        if (error.code == GM_OK)
            snprintf(error.text, sizeof error.text, "%s", gm_status_meaning(code));
        if (strcmp(error.text, settled) == 0)
            strcpy(text, settled);
        else
            snprintf(text, sizeof text, "%.*s (rank %d on %s)", GM_MESSAGE_MAX - GM_HOST_MAX - 32, error.text, ranks->rank, ranks->host);
    }
    if (MPI_Bcast(text, sizeof text, MPI_BYTE, owner, MPI_COMM_WORLD) != MPI_SUCCESS)
        gm_ranks_abort(GM_EMPI);
    strcpy(settled, text);
    gm_error_clear();
    gm_fail(code, "%s", text);
    return code;
}

/* Counts of MPI are ints: long messages go in parts of 1 GiB. */
static const size_t part_bytes = (size_t)1 << 30;

int gm_broadcast_all(void *data, size_t bytes)
{
    int status = GM_OK;
    for (size_t at = 0; at < bytes && !status; at += part_bytes) {
        size_t part = bytes - at < part_bytes ? bytes - at : part_bytes;
        status = gm_mpi_check(MPI_Bcast((char *)data + at, (int)part, MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
    }
    return status;
}

int gm_gather_all(const gm_ranks *ranks, const void *data, size_t bytes, void *all)
{
    if (bytes > part_bytes)
        return gm_fail(GM_EINTERNAL, "a record of %zu bytes of %d ranks is too large to be gathered", bytes, ranks->size);
    return gm_mpi_check(MPI_Gather(data, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Gather");
}

int gm_least_all(int64_t *value)
{
    int64_t mine = *value;
    return gm_mpi_check(MPI_Allreduce(&mine, value, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
}

int gm_sum_all(int64_t *value)
{
    int64_t sum = 0;
    int status = gm_mpi_check(MPI_Allreduce(value, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
    *value = sum;
    return status;
}

int gm_peers_all(const gm_ranks *ranks, const char *key, int *count, int *index)
{
    typedef struct peer {
        int host;
        char key[GM_KEY_MAX];
    } peer;
    peer mine = {.host = ranks->host_index};
    snprintf(mine.key, sizeof mine.key, "%s", key);
    peer *all = calloc((size_t)ranks->size, sizeof *all);
    int status = gm_agree_all(ranks, all ? GM_OK : gm_fail(GM_EINTERNAL, "no memory for %d ranks", ranks->size));
    if (!status)
        status = gm_mpi_check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD), "MPI_Allgather");
    *count = *index = 0;
    for (int r = 0; r < ranks->size && !status; r++)
        if (memcmp(&all[r], &mine, sizeof mine) == 0) {
            *count += 1;
            *index += r < ranks->rank;
        }
    free(all);
    return status;
}

char *gm_mpi_version(char *text)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    snprintf(text, 256, "%.*s", (int)strcspn(library, ",\n"), library);
    return text;
}
