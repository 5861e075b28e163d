#include "mpi/mpi_check.h"

#include "base/log.h"
#include "base/status.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int gm_mpi_check(int code, const char *call)
{
    if (code == MPI_SUCCESS)
        return GM_OK;
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length;
    MPI_Error_string(code, text, &length);
    return gm_fail(GM_EMPI, "%s: %s", call, text);
}

int gm_mpi_must(int code, const char *call)
{
    if (gm_mpi_check(code, call) == GM_OK)
        return GM_OK;
    gm_error error;
    char host[MPI_MAX_PROCESSOR_NAME] = "?", text[GM_MESSAGE_MAX];
    int rank = 0, length;
    gm_error_get(&error);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_processor_name(host, &length);
    snprintf(text, sizeof text, "%.*s (rank %d on %s)", GM_MESSAGE_MAX - MPI_MAX_PROCESSOR_NAME - 32, error.text, rank,
             host);
    gm_error_print(text);
    MPI_Abort(MPI_COMM_WORLD, GM_EMPI);
    _Exit(GM_EMPI);
}
