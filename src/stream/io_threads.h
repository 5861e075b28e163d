/* io_threads.h - the pool of I/O threads: a queue of jobs, which are started in order. */
#ifndef GM_SRC_STREAM_IO_THREADS_H
#define GM_SRC_STREAM_IO_THREADS_H

typedef struct gm_io_threads gm_io_threads;

/* Does a job on a thread of the pool. thread: its number in the pool, from 0. */
typedef void gm_io_threads_work(void *context, int thread, int job);

/* Starts a pool of threads that call work() for each job submitted; the queue has room for max_jobs. If not all threads
 * can be created, the pool has fewer; GM_EDEVICE when there is no memory or none can be created. */
int gm_io_threads_open(int threads, gm_io_threads_work *work, void *context, int max_jobs, gm_io_threads **out);

/* Completes all jobs submitted, then ends the threads. Takes NULL. */
void gm_io_threads_close(gm_io_threads *pool);

/* Enqueues a job, a number of the caller's, to be called `times` times (at least 1), by as many threads as are free. At
 * most max_jobs may be in the queue; a job leaves it when its last call begins. */
void gm_io_threads_submit(gm_io_threads *pool, int job, int times);

#endif
