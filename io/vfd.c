#include "io/vfd.h"

int gm_vfd_compare(const H5FD_t *a, const H5FD_t *b)
{
    const gm_vfd *x = (const gm_vfd *)a, *y = (const gm_vfd *)b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

haddr_t gm_vfd_end_allocated(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const gm_vfd *)base)->end_allocated;
}

herr_t gm_vfd_set_end_allocated(H5FD_t *base, H5FD_mem_t type, haddr_t address)
{
    (void)type;
    ((gm_vfd *)base)->end_allocated = address;
    return 0;
}

haddr_t gm_vfd_end(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const gm_vfd *)base)->end;
}
