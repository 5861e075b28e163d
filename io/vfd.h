/* vfd.h - the part that the virtual file drivers of inputs and of outputs share. */
#ifndef GM_IO_VFD_H
#define GM_IO_VFD_H

#include "io/h5.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <sys/stat.h>

/* An open file of a driver. */
typedef struct gm_vfd {
    H5FD_t base; /* libhdf5's, first */
    dev_t device;
    ino_t inode;
    haddr_t end_allocated, end; /* as libhdf5 knows them */
} gm_vfd;

/* Callbacks of H5FD_class_t: cmp, get_eoa, set_eoa, get_eof. */
int gm_vfd_compare(const H5FD_t *a, const H5FD_t *b);
haddr_t gm_vfd_end_allocated(const H5FD_t *base, H5FD_mem_t type);
herr_t gm_vfd_set_end_allocated(H5FD_t *base, H5FD_mem_t type, haddr_t address);
haddr_t gm_vfd_end(const H5FD_t *base, H5FD_mem_t type);

#endif
