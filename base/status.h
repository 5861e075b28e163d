/* status.h - the return value of every function of the program, and the one error record of a process.
 *
 * A function returns an int: GM_OK or one of the codes below, which are the exit codes of the program as well.
 * The first to detect an error writes the message with gm_fail(); its callers pass the code on. */
#ifndef GM_BASE_STATUS_H
#define GM_BASE_STATUS_H

#include <stdarg.h>

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
    int code;                  /* GM_OK when nothing was recorded */
    char text[GM_MESSAGE_MAX]; /* names in it have any bytes: escaped where it is printed (base/text/escape.h) */
} gm_error;

#ifdef __GNUC__
#define GM_PRINTF(format, first) __attribute__((__format__(__printf__, format, first)))
#else
#define GM_PRINTF(text, first)
#endif

/* Writes a message to text [GM_MESSAGE_MAX], cut to that size between characters. Returns text. */
char *gm_message_format(char *text, const char *format, va_list args) GM_PRINTF(2, 0);

/* Records code and message unless an error is recorded already (the first one is the cause). Thread-safe. Returns code.
 */
int gm_fail(int code, const char *format, ...) GM_PRINTF(2, 3);

/* Copies the record out: code GM_OK when there is none. Thread-safe. */
void gm_error_get(gm_error *error);

/* Clears the record: for a caller that has handled the error. */
void gm_error_clear(void);

/* With on, failures in this thread are not recorded: for an attempt that may fail. Returns the previous setting, to be
 * restored. */
int gm_error_hush(int on);

/* "input (missing, not HDF5, ...)": the meaning of an exit code, for --help and the manual; NULL for another code. */
const char *gm_status_meaning(int code);

#ifdef __cplusplus
}
#endif
#endif
