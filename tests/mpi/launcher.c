/* The local rank that a launcher's environment tells: of mpirun, mpiexec and srun, alone and one inside the other. */
#include "mpi/launcher.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_LOCAL_RANK",
                                    "PMIX_RANK",
                                    "PMIX_NAMESPACE",
                                    "PMI_RANK",
                                    "PMI_SIZE",
                                    "MPI_LOCALRANKID",
                                    "SLURM_PROCID",
                                    "SLURM_LOCALID",
                                    "SLURM_STEP_NUM_TASKS",
                                    "SLURM_STEP_ID",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "PMIX_SERVER_URI41",
                                    "PMI_A_NAME_OF_MORE_THAN_SIXTY_THREE_CHARACTERS_THAT_NO_LAUNCHER_HAS"};

static const struct {
    const char *what, *environment;
    int is_there, rank, local;
} cases[] = {
    {"nobody", "", 0, 0, 0},
    {"a batch script of Slurm", "SLURM_PROCID=0 SLURM_LOCALID=0", 0, 0, 0},
    {"srun without MPI: each process is alone", "SLURM_PROCID=3 SLURM_LOCALID=3 SLURM_STEP_NUM_TASKS=4", 0, 3, 0},
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=5", 1, 5, 1},
    {"mpirun under Slurm: its daemon's variables do not count",
     "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=1 PMIX_NAMESPACE=4711 SLURM_PROCID=1 "
     "SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=2",
     1, 1, 1},
    {"a server of PMIx that is not srun's, under Slurm",
     "PMIX_RANK=1 PMIX_NAMESPACE=prterun-host-4711@1 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=2", 1, 1, -1},
    {"srun with PMIx",
     "PMIX_RANK=6 PMIX_NAMESPACE=slurm.pmix.4711.0 SLURM_PROCID=6 SLURM_LOCALID=2 SLURM_STEP_NUM_TASKS=8", 1, 6, 2},
    {"srun with PMI-2", "PMI_RANK=6 PMI_SIZE=8 SLURM_PROCID=6 SLURM_LOCALID=2 SLURM_STEP_NUM_TASKS=8", 1, 6, 2},
    {"mpiexec by PMI under Slurm, another number",
     "PMI_RANK=6 PMI_SIZE=8 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=8", 1, 6, -1},
    {"mpiexec by PMI under Slurm, the same number by chance",
     "PMI_RANK=1 PMI_SIZE=8 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=2", 1, 1, -1},
    {"Hydra", "PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1", 1, 5, 1},
    {"Hydra under Slurm",
     "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=2", 1, 1, 1},
    {"PMIx that tells nothing more", "PMIX_RANK=2", 1, 2, -1},
    {"a local rank that is no number", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=x", 1, 0, -1},
    {"one that is empty", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=", 1, 0, -1},
    {"one that is negative", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=-1", 1, 0, -1},
    {"one with more behind it", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=1,2", 1, 0, -1},
    {"one that is too large", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=99999999999999999999", 1, 0, -1},
    {"srun with PMIx and no local number", "PMIX_RANK=1 PMIX_NAMESPACE=slurm.pmix.1.0 SLURM_PROCID=1", 1, 1, -1},
};

static const struct {
    const char *what, *environment;
    int size, leaves;
} steps[] = {
    {"nobody", "", 0, 0},
    {"mpirun", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4", 4, 0},
    {"mpirun of one rank under Slurm",
     "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1", 1, 0},
    {"Hydra", "PMI_RANK=1 PMI_SIZE=3", 3, 0},
    {"Hydra under Slurm", "PMI_RANK=1 PMI_SIZE=3 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1", 3, 0},
    {"another server of PMIx under Slurm",
     "PMIX_RANK=1 PMIX_NAMESPACE=prterun-host-4711@1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1", 0, 0},
    {"srun", "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2", 2, 0},
    {"srun of one task", "SLURM_STEP_ID=3 SLURM_STEP_NUM_TASKS=1", 1, 1},
    {"srun of one task, PMIx",
     "PMIX_RANK=0 PMIX_NAMESPACE=slurm.pmix.4711.0 PMIX_SERVER_URI41=x SLURM_STEP_ID=3 SLURM_STEP_NUM_TASKS=1", 1, 1},
    {"srun of one task, PMI-2",
     "PMI_A_NAME_OF_MORE_THAN_SIXTY_THREE_CHARACTERS_THAT_NO_LAUNCHER_HAS=x PMI_RANK=0 PMI_SIZE=1 SLURM_STEP_ID=3 "
     "SLURM_STEP_NUM_TASKS=1",
     1, 1},
    {"a batch script", "SLURM_PROCID=0 SLURM_LOCALID=0", 0, 0},
};

static void set_environment(const char *words)
{
    char text[512];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        *value = '\0';
        setenv(word, value + 1, 1);
    }
}

/* The step that is left and entered again. */
static void check_step(int i)
{
    static const char *const ranks[] = {"PMIX_RANK", "PMIX_NAMESPACE", "PMIX_SERVER_URI41", "PMI_RANK", "PMI_SIZE"};
    set_environment(steps[i].environment);
    int size = gm_launcher_size(), was_in = getenv("SLURM_STEP_ID") != NULL, are_there = 0;
    gm_launcher_leave_step();
    int left = was_in && !getenv("SLURM_STEP_ID");
    for (size_t k = 0; k < sizeof ranks / sizeof ranks[0]; k++)
        are_there += left && getenv(ranks[k]) != NULL;
    gm_launcher_enter_step();
    int is_in = getenv("SLURM_STEP_ID") != NULL;
    set_environment("");
    tap_ok(size == steps[i].size && left == steps[i].leaves && !are_there && is_in == was_in,
           "%s: %d ranks, step left: %d", steps[i].what, size, left);
}

int main(void)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        check_step((int)i);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_environment(cases[i].environment);
        int there = gm_launcher_is_there(), rank = gm_launcher_rank(), local = gm_launcher_local_rank();
        set_environment(""); /* tap.h looks at it, too */
        tap_ok(there == cases[i].is_there && rank == cases[i].rank && local == cases[i].local,
               "%s: launched %d, rank %d, local rank %d", cases[i].what, there, rank, local);
    }
    return tap_done();
}
