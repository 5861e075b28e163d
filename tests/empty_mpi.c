/* empty_mpi.c - an MPI program that does nothing: what tests/cli/startup.t holds the program's start-up against. No test itself. */
#include <mpi.h>

int main(int argc, char **argv)
{
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return 1;
    return MPI_Finalize() != MPI_SUCCESS;
}
