/* log.h - messages to a person, on stderr: "gpumem-run: note: ...". One line each. */
#ifndef GM_BASE_LOG_H
#define GM_BASE_LOG_H

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gm_level { GM_QUIET = -1, GM_NORMAL = 0, GM_VERBOSE = 1 } gm_level;

/* Fills the places of standard input, output and error that are closed, so that no file of ours gets what is printed;
 * printing fails there. Called before any file is opened. */
void gm_log_start(void);

/* speaking: whether this process prints (rank 0 does). At GM_QUIET notes are dropped; details appear at GM_VERBOSE
 * only. */
void gm_log_setup(int speaking, gm_level level);

/* With on, this process prints no notes and warnings: for work whose circumstances are reported in another way. Returns
 * the previous setting, to be restored. */
int gm_log_hush(int on);

/* Gives stdout its usual buffer, before anything is printed: MPI_Init of MPICH takes it away. */
void gm_stdout_buffer(void);

/* Ends the output on stdout. GM_EOUTPUT when it could not be written. */
int gm_stdout_flush(void);

void gm_error_print(const char *text); /* "gpumem-run: error: text", by any process */

/* "gpumem-run: warning: ..." at every level; "note: ..." but at GM_QUIET; "note: ..." at GM_VERBOSE. Only the process
 * that speaks prints them. */
void gm_warn(const char *format, ...) GM_PRINTF(1, 2);
void gm_note(const char *format, ...) GM_PRINTF(1, 2);
void gm_detail(const char *format, ...) GM_PRINTF(1, 2);

#ifdef __cplusplus
}
#endif
#endif
