/* Mistyped words, and the names that they were meant to be. */
#include "base/text/nearest.h"
#include "tests/tap.h"

#include <string.h>

static const char *const names[] = {
    "matmul", "reduce", "normalize", "flip", "gather", "info", "a-name-of-more-letters-than-there-is-room-for"};

static const char *name(int index)
{
    return names[index];
}

int main(void)
{
    static const struct {
        const char *word, *nearest;
    } cases[] = {{"matmul", "matmul"},
                 {"matmull", "matmul"},
                 {"atmul", "matmul"},
                 {"mtamul", "matmul"},
                 {"matnul", "matmul"},
                 {"normalise", "normalize"},
                 {"nromalise", "normalize"},
                 {"filp", "flip"},
                 {"ifno", "info"},
                 {"fo", NULL},
                 {"", NULL},
                 {"multiply", NULL},
                 {"Reduction", NULL},
                 {"a-name-of-more-letters-than-there-is-room-for", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *found = gm_nearest(cases[i].word, name, sizeof names / sizeof names[0]);
        tap_ok(found == cases[i].nearest || (found && cases[i].nearest && strcmp(found, cases[i].nearest) == 0),
               "'%s': %s", cases[i].word, found ? found : "none");
    }
    return tap_done();
}
