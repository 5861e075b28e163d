/* The array of the environment stays where it is while variables are added. */
#define _GNU_SOURCE /* environ */
#include "src/start/environment.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ADDED = 100 };

static int count(void)
{
    int n = 0;
    while (environ[n])
        n++;
    return n;
}

/* Does the allocator leave a large block where it is when it shrinks and grows? That of sanitizers and of valgrind
 * does not. */
static int stays(void)
{
    char *block = malloc(1 << 18), *place = block;
    for (size_t bytes = 400; block && block == place && bytes < 1200; bytes += 8) {
        char *next = realloc(block, bytes);
        block = next ? next : block;
    }
    int same = block && block == place;
    free(block);
    return same;
}

int main(void)
{
    char name[32], value[32];
    int can_stay = stays();
    setenv("GM_TEST_BEFORE", "here", 1);
    int before = count();
    gm_environment_settle();
    tap_ok(count() == before, "no variable more, %d", before);
    tap_ok(getenv("GM_TEST_BEFORE") && strcmp(getenv("GM_TEST_BEFORE"), "here") == 0 && getenv("PATH"),
           "variables keep their values");

    char **place = environ, *fragment[ADDED];
    int moves = 0, wrong = 0;
    for (int i = 0; i < ADDED; i++) {
        snprintf(name, sizeof name, "GM_TEST_%d", i);
        snprintf(value, sizeof value, "%d", i);
        setenv(name, value, 1);
        fragment[i] = malloc(64); /* what else a library allocates meanwhile */
        moves += environ != place;
        place = environ;
    }
    if (!can_stay)
        tap_skip("the allocator moves what it makes smaller", "%d variables more", ADDED);
    else
        tap_ok(moves == 0, "%d variables more leave the array where it is: %d moves", ADDED, moves);
    for (int i = 0; i < ADDED; i++) {
        snprintf(name, sizeof name, "GM_TEST_%d", i);
        const char *text = getenv(name);
        wrong += !text || atoi(text) != i;
        free(fragment[i]);
    }
    tap_ok(wrong == 0, "and are there");
    unsetenv("GM_TEST_7");
    tap_ok(!getenv("GM_TEST_7") && getenv("GM_TEST_8"), "one can be removed");

    gm_environment_settle();
    tap_ok(getenv("GM_TEST_8") && getenv("GM_TEST_BEFORE"), "once more is no harm");
    clearenv();
    gm_environment_settle();
    tap_ok(setenv("GM_TEST_0", "1", 1) == 0 && getenv("GM_TEST_0"), "nor without any variable");
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "GM_TEST_%d", i);
        setenv(name, "", 1);
    }
    gm_environment_settle();
    tap_ok(count() == 1000, "nor with very many");
    return tap_done();
}
