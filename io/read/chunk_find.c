/* chunk_find.c - the place of a chunk, by H5Dread_chunk(). */
#include "io/read/chunk_find.h"

#include "base/status.h"
#include "io/h5.h"

/* Is the first element of the chunk read by H5Dread without a look at raw data: as the fill value, to place->fill? */
static int is_fill(hid_t set, hid_t space, gm_chunk_place *place)
{
    static const hsize_t ones[H5S_MAX_RANK] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    };
    gm_input_place read = {HADDR_UNDEF, 0};
    hid_t one = H5Screate(H5S_SCALAR),
          type = H5Dget_type(set); /* without conversion, which would take longer than the rest */
    gm_input_seek(&read);
    int ok = one >= 0 && type >= 0 && H5Tget_size(type) <= sizeof place->fill &&
             H5Sselect_hyperslab(space, H5S_SELECT_SET, place->offset, NULL, ones, NULL) >= 0 &&
             H5Dread(set, type, one, space, H5P_DEFAULT, place->fill) >= 0;
    gm_input_seek(NULL);
    gm_h5_close(type);
    gm_h5_close(one);
    return ok && read.address == HADDR_UNDEF;
}

/* A chunk of no bytes is found without a read: of a damaged file. Its address is 0 then. */
static int look(hid_t set, gm_chunk_place *place)
{
    char nothing;
    gm_input_seek(&place->at);
    int found = H5Dread_chunk(set, H5P_DEFAULT, place->offset, &place->filter_mask, &nothing) >= 0;
    gm_input_seek(NULL);
    if (found && place->at.address == HADDR_UNDEF)
        place->at.address = 0;
    return found;
}

static herr_t find_resource(unsigned n, const H5E_error2_t *entry, void *found)
{
    (void)n;
    *(int *)found |= entry->maj_num == H5E_RESOURCE;
    return 0;
}

/* Did the last call fail for want of memory? */
static int lacked_memory(void)
{
    int found = 0;
    return H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, find_resource, &found) < 0 || found;
}

int gm_chunk_find(hid_t set, hid_t space, const char *title, int rank, const int64_t *chunk, const int64_t *at,
                  gm_chunk_place *place)
{
    char reason[GM_H5_TEXT], coordinates[GM_COORDINATES_TEXT];
    *place = (gm_chunk_place){.at = {HADDR_UNDEF, 0}};
    for (int d = 0; d < rank; d++)
        place->offset[d] = (hsize_t)(at[d] * chunk[d]);
    if (look(set, place))
        return GM_OK;
    /* A chunk that was never written is an error to H5Dread_chunk(), and to H5Dget_chunk_storage_size() of 1.10.8 as
     * well, as a damaged file, a failed read and no memory are. Only the former has elements, and of no raw data. */
    place->at = (gm_input_place){HADDR_UNDEF, 0};
    place->filter_mask = 0;
    if (!lacked_memory() && is_fill(set, space, place) && !gm_input_has_error())
        return GM_OK;
    return gm_fail(GM_EINPUT, "%s: chunk %s: cannot be located, the file is damaged: %s", title,
                   gm_coordinates_format(rank, at, coordinates), gm_h5_error(reason));
}
