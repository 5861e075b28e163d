/* stop.h - the signals USR2, TERM and INT ask the program to stop. A second one ends it at once, with exit code 75, if
 * it comes two seconds after the first or later: timeout(1) and mpirun send each signal twice. */
#ifndef GM_BASE_STOP_H
#define GM_BASE_STOP_H

/* Installs the handlers, and ignores XFSZ. Called by the main thread before any library starts. */
void gm_stop_install(void);

/* is_immediate: until the next call a signal ends the process at once, with exit code 75: for libraries that take long
 * to start and cannot be interrupted, while nothing has been made. speaks: with a message. */
void gm_stop_set_immediate(int is_immediate, int speaks);

/* Has a signal asked the program to stop? For any thread. */
int gm_stop_asked(void);

/* GM_OK; GM_ESTOPPED, with a message, after a signal; GM_EPEER when another rank has failed or stopped, which the main
 * thread alone learns, or, on any other thread, when the run is abandoned. For loops that take long. */
int gm_stop_status(void);

/* 1: the run of this rank has failed: threads that work ahead of it, or wait for its output, end soon. 0: another run
 * begins. */
void gm_stop_abandon(int is_abandoned);

/* How gm_stop_status() asks for the other ranks: on the thread that calls this one, and in its process. */
void gm_stop_set_peers(int (*cancelled)(void));

/* The result is complete: later signals are ignored. */
void gm_stop_end(void);

#endif
