/* text_file.h - a report or a table that is written to a file as a whole, or to standard output ("-"). */
#ifndef GM_BASE_FILE_TEXT_FILE_H
#define GM_BASE_FILE_TEXT_FILE_H

#include <stdio.h>

#include "base/file/file_list.h"
#include "base/file/path.h"

typedef struct gm_text_file {
    const char *name; /* lent; NULL: no file is wanted */
    const char *kind; /* how a file begins that this one may replace without force, white space aside; lent */
    FILE *stream;     /* to write to; NULL: not open */
    char temporary[GM_PATH_MAX];
    int fd, force;
    int exists;     /* a file of this name was there before */
    int is_checked; /* against the inputs */
} gm_text_file;

/* Opens the file before the work begins, or does nothing when name is NULL. It may replace a file of its own kind, with
 * force any regular file but one of HDF5. From "-" on, all else that is printed goes to standard error. GM_EOUTPUT;
 * GM_EUSAGE: a second "-". */
int gm_text_open(gm_text_file *t, const char *name, int force, const char *kind);

/* Is there a file that would be replaced? Then it has to be checked against the inputs before the work begins: */
int gm_text_is_at_stake(const gm_text_file *t);

/* Refuses to replace a file of the list, or to have the same name as another new file (may be NULL), and discards the
 * file then. GM_EOUTPUT. */
int gm_text_check(gm_text_file *t, const gm_file_list *list, const char *other);

/* May the file be published? Not in the place of one that gm_text_check() was not asked about, unless that is of its
 * own kind. */
int gm_text_may_publish(const gm_text_file *t);

/* Gives the file its name, unless writing has failed. Closes it. GM_EOUTPUT. */
int gm_text_publish(gm_text_file *t, int failed);

/* Closes it without a trace; harmless when it is not open. */
void gm_text_discard(gm_text_file *t);

#endif
