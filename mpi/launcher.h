/* launcher.h - what the environment tells of this process before MPI is started: the variables of mpirun, mpiexec and
 * srun. */
#ifndef GM_MPI_LAUNCHER_H
#define GM_MPI_LAUNCHER_H

/* Did a launcher start this process? A batch script of Slurm has SLURM_PROCID as well, and is none. */
int gm_launcher_is_there(void);

/* The rank; 0 without a launcher. For what one rank prints. */
int gm_launcher_rank(void);

/* The rank among those of this host: that of gm_ranks. 0 without a launcher, -1 where it cannot be told. */
int gm_launcher_local_rank(void);

/* The number of ranks that the launcher has started; 0 where it does not tell. */
int gm_launcher_size(void);

/* The only task of a step of Slurm, as a program in the shell of srun --pty, has no others to meet. Open MPI takes each
 * process of a step for a rank, and ends the program where Slurm does not serve it, or has served another one before:
 * the variables of the step are removed. Called before there are threads, and before MPI is started; afterwards the
 * number of the step comes back. */
void gm_launcher_leave_step(void);
void gm_launcher_enter_step(void);

#endif
