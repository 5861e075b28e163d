/* workers.h - I/O threads: a queue of jobs, done in order by as many threads as there are. */
#ifndef GM_SRC_WORKERS_H
#define GM_SRC_WORKERS_H

typedef struct gm_workers gm_workers;

/* Starts threads that call work(context, job) for each job given. GM_EINTERNAL when the system gives no thread. */
int gm_workers_open(int threads, void (*work)(void *context, int job), void *context, int most_jobs, gm_workers **workers);

/* Finishes the jobs given and ends the threads; takes NULL. */
void gm_workers_close(gm_workers *workers);

/* Puts a job (a number of the caller's) into the queue, to be done so many times, by as many threads as are free; at most most_jobs may be in it. */
void gm_workers_give(gm_workers *workers, int job, int times);

#endif
