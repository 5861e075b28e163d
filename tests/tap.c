/* tap.c - results of tests in TAP. */
#include "tests/tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 1024 };

static int tests, failures;

/* The number of the rank by the launcher of Open MPI, of MPICH, or another; NULL for a program started without one. */
static const char *rank_name(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    const char *rank = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !rank; i++)
        rank = getenv(names[i]);
    return rank;
}

/* Does this process speak TAP? Rank 0 does, and a program started without mpirun. */
static int speaks(void)
{
    const char *rank = rank_name();
    return !rank || strcmp(rank, "0") == 0;
}

/* Appends text to line; a line break or a '#' of its own would be read as TAP. */
static void append(char line[LINE_BYTES], const char *text)
{
    size_t used = strlen(line);

    for (; *text && used + 3 < LINE_BYTES; text++) {
        if (*text == '#')
            line[used++] = '\\';
        line[used++] = *text == '\n' ? ' ' : *text;
    }
    line[used] = '\0';
}

/* Writes a line at once (the ranks share stderr) and at once (a crash in the next test must not take it along). */
static void put(FILE *out, const char *line)
{
    fprintf(out, "%s\n", line);
    fflush(out);
}

/* directive: " # SKIP ", " # TODO " or NULL for neither. */
static void report(int ok, const char *directive, const char *why, const char *format, va_list arguments)
{
    char text[LINE_BYTES], line[LINE_BYTES];
    int counts = !ok && !directive;

    tests++;
    failures += counts;
    vsnprintf(text, sizeof text, format, arguments);
    snprintf(line, sizeof line, "%s %d - ", ok ? "ok" : "not ok", tests);
    append(line, text);
    if (directive) {
        strncat(line, directive, sizeof line - strlen(line) - 1);
        append(line, why);
    }
    if (speaks())
        put(stdout, line);
    else if (counts)
        tap_diag("rank %s: %s", rank_name(), line);
}

void tap_ok(int ok, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    report(ok, NULL, NULL, format, arguments);
    va_end(arguments);
}

void tap_skip(const char *why, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    report(1, " # SKIP ", why, format, arguments);
    va_end(arguments);
}

void tap_todo(const char *why, int ok, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    report(ok, " # TODO ", why, format, arguments);
    va_end(arguments);
}

void tap_diag(const char *format, ...)
{
    char line[LINE_BYTES] = "# ";
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line + 2, sizeof line - 2, format, arguments);
    va_end(arguments);
    put(speaks() ? stdout : stderr, line);
}

int tap_done(void)
{
    if (speaks()) {
        printf("1..%d\n", tests);
        if (failures)
            printf("# %d of %d failed\n", failures, tests);
        fflush(stdout);
    }
    return failures != 0;
}
