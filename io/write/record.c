/* record.c - properties of an output record. */
#include "io/write/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file/new_file.h"
#include "base/size.h"
#include "base/status.h"

int gm_record_has_scratch(const gm_output_record *record)
{
    return record->raw[0] != '\0';
}

int gm_record_reopen(const gm_output_record *record)
{
    int fd = gm_new_file_open(record->temporary, O_RDWR);
    if (fd < 0)
        gm_fail(GM_EOUTPUT, "%s: cannot be opened again: %s", record->file, strerror(errno));
    return fd;
}

int64_t gm_record_bytes(const gm_output_dataset *dataset)
{
    int64_t bytes = (int64_t)gm_dtype_size(dataset->type);
    for (int d = 0; d < dataset->rank; d++)
        if (dataset->dims[d] == 0)
            return 0;
    for (int d = 0; d < dataset->rank; d++)
        bytes = gm_mul_sat(bytes, dataset->dims[d]);
    return bytes;
}

int64_t gm_record_columns(const gm_output_dataset *dataset)
{
    int64_t columns = 1;
    for (int d = 1; d < dataset->rank; d++)
        columns = gm_mul_sat(columns, dataset->dims[d]);
    return columns;
}

hid_t gm_record_type(const gm_output_dataset *dataset)
{
    H5T_order_t order = dataset->big_endian ? H5T_ORDER_BE : H5T_ORDER_LE;
    hid_t type = H5Tcopy(gm_h5_type(dataset->type));
    return gm_h5_ready(type, type >= 0 && H5Tset_order(type, order) >= 0);
}
