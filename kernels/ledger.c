#include "kernels/ledger.h"

#include <stdlib.h>

#include "base/status.h"

typedef struct gm_ledger_entry {
    struct gm_ledger_entry *next;
    gm_allocation of; /* its memory is NULL until gm_ledger_place() */
} entry;

int gm_ledger_charge(gm_ledger *ledger, size_t bytes)
{
    if (bytes > INT64_MAX)
        return gm_fail(GM_EDEVICE, "%zu bytes of memory: more than can be counted", bytes);
    entry *line = malloc(sizeof *line);
    if (line == NULL)
        return gm_fail(GM_EDEVICE, "no memory for a line of the ledger");
    int status = gm_memory_charge(ledger->account, (int64_t)bytes);
    if (status != GM_OK) {
        free(line);
        return status;
    }
    *line = (entry){ledger->first, {NULL, (int64_t)bytes, ++ledger->count}};
    ledger->first = line;
    return GM_OK;
}

void gm_ledger_place(gm_ledger *ledger, void *memory)
{
    ledger->first->of.memory = memory;
}

void gm_ledger_release(gm_ledger *ledger, void *memory)
{
    entry **link = &ledger->first;
    while (*link != NULL && (*link)->of.memory != memory)
        link = &(*link)->next;
    entry *line = *link;
    if (line != NULL) {
        *link = line->next;
        gm_memory_release(ledger->account, line->of.bytes);
        free(line);
    }
}

gm_allocation gm_ledger_find(const gm_ledger *ledger, const void *address)
{
    const char *at = address;
    for (const entry *line = ledger->first; line != NULL; line = line->next) {
        const char *begin = line->of.memory;
        if (begin != NULL && at >= begin && at < begin + line->of.bytes)
            return line->of;
    }
    return (gm_allocation){NULL, 0, 0};
}
