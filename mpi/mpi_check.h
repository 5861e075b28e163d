/* mpi_check.h - how this room checks a call of MPI. */
#ifndef GM_MPI_MPI_CHECK_H
#define GM_MPI_MPI_CHECK_H

/* GM_OK, or GM_EMPI with a message naming the call. code is what the call returned. */
int gm_mpi_check(int code, const char *call);

#endif
