#include "tests/capture.h"

#include <stdlib.h>
#include <unistd.h>

enum { HARD_ERROR = 99 }; /* of automake's test harness */

void capture_start(capture *c)
{
    fflush(stderr);
    c->file = tmpfile();
    c->saved = dup(STDERR_FILENO);
    if (!c->file || c->saved < 0 || dup2(fileno(c->file), STDERR_FILENO) < 0)
        exit(HARD_ERROR);
}

void capture_end(capture *c, char *text, size_t size)
{
    fflush(stderr);
    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    rewind(c->file);
    text[fread(text, 1, size - 1, c->file)] = '\0';
    fclose(c->file);
}
