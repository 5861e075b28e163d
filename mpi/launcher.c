#define _GNU_SOURCE /* environ */
#include "mpi/launcher.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_set(const char *name)
{
    return getenv(name) != NULL;
}

/* The number that a variable holds, and nothing else; -1 without one. */
static long number_of(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (!text || *text < '0' || *text > '9')
        return -1;
    long value = strtol(text, &end, 10);
    return *end || value > INT_MAX ? -1 : value;
}

int gm_launcher_is_there(void)
{
    return is_set("OMPI_COMM_WORLD_RANK") || is_set("PMIX_RANK") || is_set("PMI_RANK");
}

int gm_launcher_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value)
            return atoi(value);
    }
    return 0;
}

/* Is a namespace of PMIx, PMIX_NAMESPACE, that of srun's server? */
static int is_of_srun(const char *space)
{
    return strncmp(space, "slurm.", 6) == 0;
}

/* Is this process a task of srun? A process that mpirun starts under Slurm has the variables of mpirun's daemon, which
 * is one: they are the process's own if srun serves it as PMIx server, or if its number and count of tasks are those of
 * PMI. */
static int is_task(void)
{
    const char *space = getenv("PMIX_NAMESPACE");
    if (space)
        return is_of_srun(space);
    return number_of("PMI_RANK") >= 0 && number_of("PMI_RANK") == number_of("SLURM_PROCID") &&
           number_of("PMI_SIZE") >= 1 && number_of("PMI_SIZE") == number_of("SLURM_STEP_NUM_TASKS");
}

int gm_launcher_local_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"};
    if (!gm_launcher_is_there())
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_set(names[i]))
            return (int)number_of(names[i]);
    return is_task() ? (int)number_of("SLURM_LOCALID") : -1;
}

/* Are the variables of Slurm's step those of this process, and not of the daemon of another launcher? */
static int is_in_step(void)
{
    const char *space = getenv("PMIX_NAMESPACE");
    return is_set("SLURM_STEP_ID") && !is_set("OMPI_COMM_WORLD_RANK") && (!space || is_of_srun(space));
}

int gm_launcher_size(void)
{
    long size = number_of("OMPI_COMM_WORLD_SIZE");
    if (size < 0)
        size = number_of("PMI_SIZE");
    if (size < 0 && is_in_step())
        size = number_of("SLURM_STEP_NUM_TASKS");
    return size > 0 ? (int)size : 0;
}

static char step[32]; /* the number of the step that was left; "": none */

void gm_launcher_leave_step(void)
{
    if (!is_in_step() || gm_launcher_size() != 1)
        return;
    snprintf(step, sizeof step, "%s", getenv("SLURM_STEP_ID"));
    unsetenv("SLURM_STEP_ID");
    for (size_t i = 0; environ[i];) {
        char name[64];
        const char *here = environ[i];
        if (strncmp(here, "PMI", 3) == 0 && sscanf(here, "%63[^=]=", name) == 1)
            unsetenv(name);
        i += environ[i] == here; /* else the next one is in its place */
    }
}

void gm_launcher_enter_step(void)
{
    if (step[0])
        setenv("SLURM_STEP_ID", step, 1);
    step[0] = '\0';
}
