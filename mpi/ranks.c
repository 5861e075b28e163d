#include "mpi/ranks.h"

#include "base/log.h"
#include "base/stop.h"
#include "base/text/escape.h"
#include "mpi/launcher.h"
#include "mpi/mpi_check.h"
#include "mpi/wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* For a process that no launcher started Open MPI starts a daemon and looks for networks, unless it is told that the
 * process stays alone. All that stay alone share one folder below $TMPDIR, which fails where two make and remove it at
 * the same time; none is needed. Settings of the user remain. */
static void start_alone(void)
{
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
    setenv("OMPI_MCA_pml", "ob1", 0);
    setenv("OMPI_MCA_btl", "self", 0);
}

/* Finds the ranks that share this host, and the number of hosts. */
static int find_hosts(gm_ranks *ranks)
{
    MPI_Comm host = MPI_COMM_NULL;
    int status = gm_mpi_must(
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks->rank, MPI_INFO_NULL, &host),
        "MPI_Comm_split_type");
    if (status)
        return status;
    MPI_Comm_rank(host, &ranks->local_rank);
    MPI_Comm_size(host, &ranks->local_size);

    int first = ranks->local_rank == 0, before = 0;
    status = gm_mpi_must(MPI_Exscan(&first, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "MPI_Exscan");
    if (ranks->rank == 0)
        before = 0; /* undefined there */
    if (!status)
        status = gm_mpi_must(MPI_Bcast(&before, 1, MPI_INT, 0, host), "MPI_Bcast");
    ranks->host_index = before;
    if (!status)
        status = gm_mpi_must(MPI_Allreduce(&first, &ranks->hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
                             "MPI_Allreduce");
    MPI_Comm_free(&host);
    return status;
}

int gm_ranks_start_all(gm_ranks *ranks)
{
    memset(ranks, 0, sizeof *ranks);
    int provided;
    if (!gm_launcher_is_there())
        start_alone();
    int number = gm_launcher_rank(), started = gm_launcher_size();
    gm_stop_set_immediate(1, number == 0);
    int status = gm_mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    gm_stop_set_immediate(0, 0);
    gm_launcher_enter_step();
    gm_stdout_buffer();
    if (status)
        return status;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->size);
    char name[MPI_MAX_PROCESSOR_NAME], library[256];
    int length;
    MPI_Get_processor_name(name, &length);
    gm_escape_line(name, ranks->host, sizeof ranks->host);
    int prepared = gm_cancel_start(ranks->rank, ranks->size);
    /* Nanoseconds, of this thread and those that it starts. The default of 50 us lengthens each short wait by the time
     * of a copy, or of a look at a message. */
    prctl(PR_SET_TIMERSLACK, 1000UL);
    status = find_hosts(ranks);
    status = status ? status : prepared;
    if (!status && provided < MPI_THREAD_FUNNELED)
        status = gm_fail(GM_EMPI, "this MPI library does not support MPI_THREAD_FUNNELED");
    if (!status && ranks->size == 1 && started > 1) {
        status = gm_fail(GM_EMPI,
                         "%d processes were started, and each is alone for MPI: expected the mpirun of %s, or srun "
                         "--mpi=TYPE with a type that it knows (srun --mpi=list)",
                         started, gm_mpi_version(library));
        ranks->rank = number; /* one of them says so */
        return status;
    }
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

/* One number orders all outcomes: the code in the upper half, the rank, lower ones first, in the lower half. GM_EPEER
 * counts less than any other failure. */
static const int64_t rank_part = (int64_t)1 << 32;
enum { PEER = 1 };

/* The code goes with the message: that of the first failure, which callers may not have seen (from a callback of a
 * library) or have given a code of their own. */
static int64_t outcome_of(const gm_ranks *ranks, int status)
{
    gm_error error;
    gm_error_get(&error);
    if (status != GM_OK && status != GM_EPEER && error.code != GM_OK)
        status = error.code;
    return status == GM_OK      ? 0
           : status == GM_EPEER ? PEER
                                : ((int64_t)status + 1) * rank_part + (ranks->size - ranks->rank);
}

/* *worst gets the worst outcome of all ranks; notifications are completed if there were any. */
static void find_worst_all(const gm_ranks *ranks, int status, int64_t *worst)
{
    int64_t mine[2] = {outcome_of(ranks, status), gm_cancel_is_sent()}, most[2];
    MPI_Request request;
    gm_mpi_wait_idle(MPI_Iallreduce(mine, most, 2, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD, &request), &request,
                     "MPI_Iallreduce");
    if (most[0] || most[1])
        gm_cancel_complete();
    *worst = most[0];
}

/* Every rank takes the error record of the rank that owns the worst outcome. Returns the code. */
static int share_error_all(const gm_ranks *ranks, int64_t worst)
{
    static char agreed[GM_MESSAGE_MAX]; /* the last message: agreement on it once more does not name another rank */
    int code = (int)(worst / rank_part) - 1, owner = ranks->size - (int)(worst % rank_part);
    char text[GM_MESSAGE_MAX] = "";
    if (ranks->rank == owner) {
        gm_error error;
        gm_error_get(&error);
        if (error.code == GM_OK)
            snprintf(error.text, sizeof error.text, "%s", gm_status_meaning(code));
        if (strcmp(error.text, agreed) == 0)
            strcpy(text, agreed);
        else
            snprintf(text, sizeof text, "%.*s (rank %d on %s)",
                     (int)gm_escape_fit(error.text, GM_MESSAGE_MAX - GM_HOST_MAX - 32), error.text, ranks->rank,
                     ranks->host);
    }
    gm_mpi_must(MPI_Bcast(text, sizeof text, MPI_BYTE, owner, MPI_COMM_WORLD), "MPI_Bcast");
    strcpy(agreed, text);
    gm_error_clear();
    gm_fail(code, "%s", text);
    return code;
}

int gm_agree_late_all(const gm_ranks *ranks, int status)
{
    int64_t worst;
    find_worst_all(ranks, status, &worst);
    if (worst == PEER) { /* a rank that has heard a signal while it waited here */
        int own = gm_stop_status();
        find_worst_all(ranks, own ? own : status, &worst);
    }
    if (worst == PEER)
        return gm_fail(GM_EINTERNAL, "all ranks stopped but no error was recorded (rank %d on %s)", ranks->rank,
                       ranks->host);
    return worst ? share_error_all(ranks, worst) : GM_OK;
}

int gm_agree_all(const gm_ranks *ranks, int status)
{
    return gm_agree_late_all(ranks, status ? status : gm_stop_status());
}

/* Counts are ints in MPI: long messages are sent in parts. */
static const size_t part_bytes = (size_t)1 << 30;

int gm_broadcast_all(void *data, size_t bytes)
{
    MPI_Request request;
    int status = GM_OK;
    for (size_t at = 0; at < bytes && !status; at += part_bytes) {
        size_t part = bytes - at < part_bytes ? bytes - at : part_bytes;
        status = gm_mpi_wait(MPI_Ibcast((char *)data + at, (int)part, MPI_BYTE, 0, MPI_COMM_WORLD, &request), &request,
                             "MPI_Ibcast");
    }
    return status;
}

int gm_gather_all(const gm_ranks *ranks, const void *data, size_t bytes, void *all)
{
    MPI_Request request;
    if (bytes > part_bytes)
        return gm_fail(GM_EINTERNAL, "cannot gather %zu bytes from each of %d ranks: the limit is 1 GiB", bytes,
                       ranks->size);
    return gm_mpi_wait(MPI_Igather(data, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request),
                       &request, "MPI_Igather");
}

int gm_allgather_all(const gm_ranks *ranks, const void *data, size_t bytes, void *all)
{
    int status = gm_gather_all(ranks, data, bytes, all);
    return status ? status : gm_broadcast_all(all, (size_t)ranks->size * bytes);
}

int gm_min_all(int64_t *value)
{
    int64_t mine = *value;
    MPI_Request request;
    return gm_mpi_wait_idle(MPI_Iallreduce(&mine, value, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD, &request), &request,
                            "MPI_Iallreduce");
}

int gm_sum_all(int64_t *value)
{
    int64_t sum = 0;
    MPI_Request request;
    int status = gm_mpi_wait_idle(MPI_Iallreduce(value, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request),
                                  &request, "MPI_Iallreduce");
    *value = sum;
    return status;
}

/* Sums of `count` elements of `size` bytes, in calls of part_bytes at most. mine: MPI_IN_PLACE, or as many elements. */
static int sum_parts_all(const void *mine, void *sums, size_t count, size_t size, MPI_Datatype type)
{
    const size_t most = part_bytes / size;
    MPI_Request request;
    int status = GM_OK;
    for (size_t at = 0; at < count && !status; at += most) {
        int part = (int)(count - at < most ? count - at : most);
        const void *from = mine == MPI_IN_PLACE ? mine : (const char *)mine + at * size;
        status = gm_mpi_wait(
            MPI_Iallreduce(from, (char *)sums + at * size, part, type, MPI_SUM, MPI_COMM_WORLD, &request), &request,
            "MPI_Iallreduce");
    }
    return status;
}

int gm_sum_counts_all(uint64_t *counts, size_t count)
{
    return sum_parts_all(MPI_IN_PLACE, counts, count, sizeof *counts, MPI_UINT64_T);
}

int gm_sum_floats_all(const double *values, double *sums, size_t count)
{
    return sum_parts_all(values, sums, count, sizeof *values, MPI_DOUBLE);
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
    int status = gm_agree_all(ranks,
                              all ? GM_OK : gm_fail(GM_EDEVICE, "no memory for the list of %d ranks", ranks->size));
    if (!status)
        status = gm_mpi_must(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD),
                             "MPI_Allgather");
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
