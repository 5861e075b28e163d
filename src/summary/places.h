/* places.h - what info tells of the ranks of a job and of the devices that they see. */
#ifndef GM_SRC_SUMMARY_PLACES_H
#define GM_SRC_SUMMARY_PLACES_H

#include "base/device.h"
#include "mpi/bind.h"
#include "mpi/ranks.h"

/* The devices and processors of one rank. */
typedef struct gm_place {
    char host[GM_HOST_MAX];
    gm_binding binding;
    gm_device_info own; /* of several ranks: the device that this one computes on; kind "": there is none */
    double rate;        /* of exchange with the next rank, bytes per second; 0: unknown */
    int devices;
    gm_device_info *device; /* [devices]; those of other ranks follow the records of all */
} gm_place;

/* Prints the table of ranks, all: [size], and each device once, however many ranks see it. path: by which device memory
 * goes from rank to rank; "": none. */
void gm_places_print(const gm_place *all, int size, int hosts, const char *path);

#endif
