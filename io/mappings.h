/* mappings.h - the parts of a virtual dataset: which there are, and in which files. Internal to io/; the caller holds the lock of h5.h. */
#ifndef GM_IO_MAPPINGS_H
#define GM_IO_MAPPINGS_H

#include "io/dataset.h"
#include "io/h5.h"

/* Where some elements of a virtual dataset come from. */
typedef struct gm_mapping {
    char file[GM_PATH_MAX]; /* as the dataset names it; "." for its own */
    char path[GM_PATH_MAX]; /* where that is; "" where there is none */
    char name[GM_NAME_MAX]; /* of the part in it */
    hid_t from, to;         /* selections in the part and in the virtual dataset */
} gm_mapping;

/* Calls visit for each mapping of an open dataset, in the order of the file; none when it is not virtual. map is good until visit returns. A
 * status other than GM_OK ends the walk and is returned. GM_EINPUT for names that are patterns or too long, and for damage. title names the dataset. */
typedef int gm_mapping_visit(void *context, hid_t set, const gm_mapping *map);
int gm_mappings_visit(hid_t set, const char *title, gm_mapping_visit *visit, void *context);

/* Opens the file of a part of set; the caller closes it. GM_EINPUT, naming the part; *file is H5I_INVALID_HID then. */
int gm_mapping_open(hid_t set, const gm_mapping *map, const char *title, hid_t *file);

#endif
