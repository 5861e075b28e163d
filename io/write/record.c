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
    return gm_mul_sat((int64_t)gm_dtype_size(dataset->type), gm_product_sat(dataset->dims, dataset->rank));
}

int64_t gm_record_columns(const gm_output_dataset *dataset)
{
    return gm_product_sat(dataset->dims + 1, dataset->rank - 1);
}

hid_t gm_record_type(const gm_output_dataset *dataset)
{
    H5T_order_t order = dataset->big_endian ? H5T_ORDER_BE : H5T_ORDER_LE;
    hid_t type = H5Tcopy(gm_h5_type(dataset->type));
    return gm_h5_ready(type, type >= 0 && H5Tset_order(type, order) >= 0);
}
