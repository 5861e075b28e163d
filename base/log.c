#include "base/log.h"

#include "base/text/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int speaks = 1, hushed;
static gm_level level_now = GM_NORMAL;

void gm_log_start(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) /* the lowest number that is free is the next one that opens */
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void gm_log_setup(int speaking, gm_level level)
{
    speaks = speaking;
    level_now = level;
}

int gm_log_hush(int on)
{
    int before = hushed;
    hushed = on;
    return before;
}

void gm_stdout_buffer(void)
{
    static char buffer[BUFSIZ]; /* without one, glibc keeps that of a stream without buffer, which is one byte long */
    setvbuf(stdout, buffer, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof buffer);
}

int gm_stdout_flush(void)
{
    errno = EIO; /* what remains of a failure before */
    return fflush(stdout) || ferror(stdout) ? gm_fail(GM_EOUTPUT, "standard output: %s", strerror(errno)) : GM_OK;
}

/* One line, whatever a name or a library put into the text. */
static void print(const char *kind, const char *text)
{
    char line[GM_ESCAPED * GM_MESSAGE_MAX];
    fprintf(stderr, "gpumem-run: %s: %s\n", kind, gm_escape_line(text, line, sizeof line));
}

void gm_error_print(const char *text)
{
    print("error", text);
}

static void say(const char *kind, gm_level least, const char *format, va_list args)
{
    if (!speaks || hushed || level_now < least)
        return;
    char text[GM_MESSAGE_MAX];
    print(kind, gm_message_format(text, format, args));
}

#define SPEAKER(name, kind, least)      \
    void name(const char *format, ...)  \
    {                                   \
        va_list args;                   \
        va_start(args, format);         \
        say(kind, least, format, args); \
        va_end(args);                   \
    }
SPEAKER(gm_warn, "warning", GM_QUIET)
SPEAKER(gm_note, "note", GM_NORMAL)
SPEAKER(gm_detail, "note", GM_VERBOSE)
