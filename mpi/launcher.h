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

#endif
