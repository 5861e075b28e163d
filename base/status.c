#include "base/status.h"

#include "base/text/escape.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gm_error record;
static _Thread_local int hushed;

char *gm_message_format(char *text, const char *format, va_list args)
{
    char whole[GM_MESSAGE_MAX + 4]; /* of a text that is cut, all of the character at the cut */
    vsnprintf(whole, sizeof whole, format, args);
    whole[gm_escape_fit(whole, GM_MESSAGE_MAX - 1)] = '\0';
    return strcpy(text, whole);
}

int gm_fail(int code, const char *format, ...)
{
    if (hushed)
        return code;
    pthread_mutex_lock(&lock);
    if (record.code == GM_OK) {
        va_list args;
        va_start(args, format);
        gm_message_format(record.text, format, args);
        va_end(args);
        record.code = code;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

void gm_error_get(gm_error *error)
{
    pthread_mutex_lock(&lock);
    *error = record;
    pthread_mutex_unlock(&lock);
}

void gm_error_clear(void)
{
    pthread_mutex_lock(&lock);
    memset(&record, 0, sizeof record);
    pthread_mutex_unlock(&lock);
}

int gm_error_hush(int on)
{
    int before = hushed;
    hushed = on;
    return before;
}

const char *gm_status_meaning(int code)
{
    static const struct {
        int code;
        const char *meaning;
    } table[] = {
#define GM_STATUS(id, code, meaning) {code, meaning},
#include "base/status.def"
#undef GM_STATUS
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].code == code && code != GM_EPEER)
            return table[i].meaning;
    return NULL;
}
