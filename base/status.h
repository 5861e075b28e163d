/* status.h - what every function of the program returns, and the one error record of a process.
 *
 * A function returns an int: GM_OK or one of the codes below, which are the exit codes of the program as well.
 * The first to detect an error writes the message with gm_fail(); everyone above passes the code on. */
#ifndef GM_BASE_STATUS_H
#define GM_BASE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum gm_status {
#define GM_STATUS(id, code, meaning) id = code,
#include "base/status.def"
#undef GM_STATUS
};

enum { GM_MESSAGE_MAX = 1536 }; /* bytes of a message, the final NUL included */

typedef struct gm_error {
    int code; /* GM_OK when nothing was recorded */
    char text[GM_MESSAGE_MAX];
} gm_error;

#ifdef __GNUC__
#define GM_PRINTF(format, first) __attribute__((__format__(__printf__, format, first)))
#else
#define GM_PRINTF(text, first)
#endif

/* Records code and message unless an error is recorded already (the first one is the cause). Thread-safe. Returns code. */
int gm_fail(int code, const char *format, ...) GM_PRINTF(2, 3);

/* Copies the record out: code GM_OK when there is none. Thread-safe. */
void gm_error_get(gm_error *error);

/* Forgets the record: for a caller who has dealt with the error. */
void gm_error_clear(void);

/* With on, what fails in this thread is not recorded: for a caller who can do without, while other threads may fail in earnest. Returns what it
 * was before, to be set again. */
int gm_error_hush(int on);

/* "input (missing, not HDF5, ...)": the meaning of an exit code, for --help and the manual; NULL for no code of ours. */
const char *gm_status_meaning(int code);

#ifdef __cplusplus
}
#endif
#endif
