/* filters.h - the filters of a chunked dataset: known ones as a pipeline that io/read/decode.h undoes. Internal to io/;
 * the caller holds the lock of h5.h. */
#ifndef GM_IO_DESCRIBE_FILTERS_H
#define GM_IO_DESCRIBE_FILTERS_H

#include "io/dataset.h"
#include "io/h5.h"

typedef enum gm_filter_kind { GM_FILTER_DEFLATE, GM_FILTER_SHUFFLE, GM_FILTER_FLETCHER32 } gm_filter_kind;

typedef struct gm_filter {
    gm_filter_kind kind;
    size_t unit; /* shuffle: bytes of an element */
} gm_filter;

enum { GM_FILTERS_MAX = 8 };

/* The filters of chunks of `bytes` bytes, in the order of writing. At most one deflate. */
typedef struct gm_pipeline {
    int count;
    gm_filter filter[GM_FILTERS_MAX];
    size_t bytes;
} gm_pipeline;

/* The number of filters of a dataset (plist: its creation property list). GM_EINPUT for one that is not installed. */
int gm_filters_check(hid_t plist, const char *title, int *count);

/* Do the parameters of the filters fit the type in the file and the chunk? libhdf5 refuses some that do not, and reads
 * beyond its buffers by others. GM_EINPUT. */
int gm_filters_check_parameters(hid_t plist, const char *title, hid_t type);

/* The filter of this index; H5Z_FILTER_ERROR where it cannot be read. */
H5Z_filter_t gm_filters_id(hid_t plist, int index);

/* May this libhdf5 refuse valid chunks of a dataset, by a fault of its own? */
int gm_filters_refuse_valid(hid_t set);

/* The filters of a chunked dataset (plist: its creation property list) whose rank, chunk and type are known. Returns
 * whether a pipeline holds them all. */
int gm_filters_pipeline(hid_t plist, const gm_dataset *record, gm_pipeline *pipeline);

/* ", deflate 4, shuffle": the filters in words, cut to room bytes. */
void gm_filters_format(hid_t plist, char *text, size_t room);

#endif
