#include "src/summary/json.h"

#include "base/status.h"
#include "base/text/escape.h"

#include <stdatomic.h>
#include <stdlib.h>

/* jansson leaves out what it has no memory for. */
static atomic_int lacking;

void *gm_json_allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        atomic_store(&lacking, 1);
    return memory;
}

void gm_json_start(void)
{
    json_set_alloc_funcs(gm_json_allocate, free);
}

int gm_json_memory(void)
{
    return atomic_load(&lacking) ? gm_fail(GM_EDEVICE, "no memory for the report or the attributes of the output")
                                 : GM_OK;
}

json_t *gm_json_text(const char *text)
{
    char *copy = gm_escape_utf8_copy(text);
    json_t *string = copy ? json_string(copy) : NULL;
    if (!copy)
        atomic_store(&lacking, 1);
    free(copy);
    return string;
}

json_t *gm_json_text_or_null(const char *text)
{
    return text[0] ? gm_json_text(text) : json_null();
}

json_t *gm_json_number_or_null(int64_t number)
{
    return number >= 0 ? json_integer((json_int_t)number) : json_null();
}
