/* capture.h - the text that this process writes to standard error. The test ends with 99 where no file can be made. */
#ifndef GM_TESTS_CAPTURE_H
#define GM_TESTS_CAPTURE_H

#include <stddef.h>
#include <stdio.h>

typedef struct {
    FILE *file;
    int saved; /* the descriptor of standard error before */
} capture;

/* Sends standard error to a file without a name. */
void capture_start(capture *c);

/* Restores standard error. text: what has been written since, at most size - 1 bytes, with a terminating zero. */
void capture_end(capture *c, char *text, size_t size);

#endif
