/* reads.h - the files that a dataset is read from. */
#ifndef GM_IO_DESCRIBE_READS_H
#define GM_IO_DESCRIBE_READS_H

#include "base/file/file_list.h"

/* Adds to the list: the file of a dataset, those that external links lead through, its external storage, the sources of
 * a virtual dataset, and so on for each of them. name: absolute, "" for all datasets of the file. file is lent until
 * the list is freed. GM_EINPUT, GM_EDEVICE. */
int gm_reads_add(const char *file, const char *name, gm_file_list *list);

#endif
