/* environment.h - a place for the environment where it stays while threads read it. */
#ifndef GM_SRC_START_ENVIRONMENT_H
#define GM_SRC_START_ENVIRONMENT_H

/* From now on setenv() and putenv() leave the array of the environment where it is: the C library moves it as it grows
 * (glibc before 2.41), also while another thread looks for a variable in it. MPI_Init sets variables, and CUDA looks
 * for some when it starts. Called while no other thread looks at it. Without memory, or with an environment of more
 * than some hundred variables, all stays as it is: no failure. */
void gm_environment_settle(void);

#endif
