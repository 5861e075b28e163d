/* external.h - the files of a dataset's external storage. Internal to io/; the caller holds the lock of h5.h. */
#ifndef GM_IO_DESCRIBE_EXTERNAL_H
#define GM_IO_DESCRIBE_EXTERNAL_H

#include "io/h5.h"

/* The location of file i of a dataset's external storage, to path [GM_PATH_MAX], as libhdf5 finds it; the part of the
 * dataset in it begins at *offset and is *bytes long at most. GM_EINPUT. plist: the dataset's creation property list.
 */
int gm_external_get(hid_t set, hid_t plist, int i, const char *title, char *path, int64_t *offset, int64_t *bytes);

/* Checks that the files of external storage are long enough: where they end, libhdf5 reads zeros. GM_EINPUT. */
int gm_external_check(hid_t set, hid_t plist, const char *title);

#endif
