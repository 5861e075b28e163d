/* virtual_make.h - virtual datasets of every kind, made by libhdf5 in the test's folder. */
#ifndef GM_TESTS_IO_READ_VIRTUAL_MAKE_H
#define GM_TESTS_IO_READ_VIRTUAL_MAKE_H

enum { ROWS = 24, COLS = 10 }; /* of a part; columns are 5 x 2 where there are three dimensions */

extern const char *const stripe_parts[4]; /* the files of the parts, in turn */

/* rows.h5, with a dataset for each kind of mapping; the parts; and end.h5, of which a part lies last in the file. */
void make_virtual_files(void);

/* many.h5: /more has a row of each of `files` files. */
void make_many_parts(int files);

#endif
