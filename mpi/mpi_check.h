/* mpi_check.h - the check of every MPI call in this folder. */
#ifndef GM_MPI_MPI_CHECK_H
#define GM_MPI_MPI_CHECK_H

/* code: the return code of an MPI call. GM_OK, or GM_EMPI with a message that names the call. */
int gm_mpi_check(int code, const char *call);

/* The same for a call that other ranks take part in: they would wait for this one, so a failure is printed and ends all
 * ranks at once. */
int gm_mpi_must(int code, const char *call);

#endif
