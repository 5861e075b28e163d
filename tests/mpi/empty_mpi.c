/* empty_mpi.c - an MPI program that does nothing, not a test: tests/cli/startup.t compares the program's start-up time
 * with that of this one. */
#include <mpi.h>

int main(int argc, char **argv)
{
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return 1;
    return MPI_Finalize() != MPI_SUCCESS;
}
