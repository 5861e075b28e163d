#define _GNU_SOURCE /* environ */
#include "src/start/environment.h"

#include <stdlib.h>
#include <unistd.h>

/* An array of this many pointers is a mapping of its own (M_MMAP_THRESHOLD), and setenv() makes it as small as it needs
 * to be with its next variable: by whole pages at its end, so that it stays where it is. The rest of the last page is
 * room to grow. */
enum { LARGE = 1 << 15, ROOM = 400 };

/* Set, as the C library takes an array for its own when it adds a variable, and removed again. */
static const char passing[] = "GPUMEM_PASSING";

void gm_environment_settle(void)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    char **own = environ, **large = count > 0 && count < ROOM ? malloc((LARGE + 1) * sizeof *large) : NULL;
    if (!large)
        return;
    for (size_t i = 0; i < LARGE; i++)
        large[i] = i < count ? own[i] : own[0];
    large[LARGE] = NULL;
    environ = large;
    if (setenv(passing, "", 1) || environ == large)
        environ = own;
    else
        environ[count] = NULL;
    free(large);
}
