#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static int speaks = 1;
static gm_level level_now = GM_NORMAL;

void gm_log_setup(int speaking, gm_level level)
{
    speaks = speaking;
    level_now = level;
}

void gm_error_print(const char *text)
{
    fprintf(stderr, "gpumem-run: error: %s\n", text);
}

static void say(const char *kind, gm_level least, const char *format, va_list args)
{
    if (!speaks || level_now < least)
        return;
    char text[GM_MESSAGE_MAX];
    vsnprintf(text, sizeof text, format, args);
    fprintf(stderr, "gpumem-run: %s: %s\n", kind, text);
}

#define SPEAKER(name, kind, least)                                                                                           \
    void name(const char *format, ...)                                                                                       \
    {                                                                                                                        \
        va_list args;                                                                                                        \
        va_start(args, format);                                                                                              \
        say(kind, least, format, args);                                                                                      \
        va_end(args);                                                                                                        \
    }
SPEAKER(gm_warn, "warning", GM_QUIET)
SPEAKER(gm_note, "note", GM_NORMAL)
SPEAKER(gm_detail, "note", GM_VERBOSE)
