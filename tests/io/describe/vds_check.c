/* vds_check.c - virtual datasets whose parts are missing, too small, patterns, or the dataset itself. */
#include <unistd.h>

#include "io/describe/describe.h"
#include "tests/io/each.h"

static gm_dataset record;
static const hsize_t shape[2] = {4, 3};

static void add_part(hid_t plist, hid_t space, hsize_t row, const char *file, const char *name)
{
    const hsize_t start[2] = {row, 0}, count[2] = {2, 3};
    hid_t part = H5Screate_simple(2, count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    H5Pset_virtual(plist, space, file, name, part);
    H5Sclose(part);
}

/* A virtual dataset of two parts, the second one as named. */
static void make_virtual(hid_t file, const char *name, const char *second_file, const char *second_name)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, shape, NULL), set;
    add_part(plist, space, 0, ".", "/here");
    add_part(plist, space, 2, second_file, second_name);
    H5Sselect_all(space);
    set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(plist);
}

/* One whose parts are named by their number. */
static void make_pattern(hid_t file)
{
    const hsize_t dims[2] = {2, 3}, most[2] = {H5S_UNLIMITED, 3}, start[2] = {0, 0}, step[2] = {2, 3},
                  count[2] = {H5S_UNLIMITED, 1};
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, dims, most),
          part = H5Screate_simple(2, dims, NULL), set;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, step, count, dims);
    H5Pset_virtual(plist, space, "part%b.h5", "/there", part);
    H5Sselect_all(space);
    set = H5Dcreate2(file, "/pattern", H5T_NATIVE_INT, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Dclose(set);
    H5Sclose(part);
    H5Sclose(space);
    H5Pclose(plist);
}

static void check_virtual(void)
{
    hid_t file = make_file("virtual.h5"), part = make_file("part.h5");
    const hsize_t two[2] = {2, 3}, one[2] = {1, 3};
    put_dataset(file, "/here", H5T_NATIVE_INT, 2, two, H5P_DEFAULT, H5T_NATIVE_INT, (int[6]){1, 2, 3, 4, 5, 6});
    put_dataset(part, "/there", H5T_NATIVE_INT, 2, two, H5P_DEFAULT, H5T_NATIVE_INT, (int[6]){7, 8, 9, 10, 11, 12});
    put_dataset(part, "/short", H5T_NATIVE_INT, 2, one, H5P_DEFAULT, H5T_NATIVE_INT, (int[3]){7, 8, 9});
    make_virtual(file, "/good", "part.h5", "/there");
    make_virtual(file, "/nested", ".", "/inner");
    make_virtual(file, "/no_file", "absent.h5", "/there");
    make_virtual(file, "/no_set", "part.h5", "/absent");
    make_virtual(file, "/small", "part.h5", "/short");
    make_virtual(file, "/loop", ".", "/loop");
    make_pattern(file);
    make_virtual(file, "/inner", "part.h5", "/absent");
    H5Fclose(file);
    H5Fclose(part);
    succeeds(gm_describe(own("virtual.h5:/good"), NULL, &record), "a virtual dataset");
    tap_ok(record.layout == GM_VIRTUAL && !record.direct, "is virtual");
    fails(gm_describe(own("virtual.h5:/no_file"), NULL, &record), GM_EINPUT,
          "its part absent.h5:/there is missing: no such file", "part");
    fails(gm_describe(own("virtual.h5:/no_set"), NULL, &record), GM_EINPUT, "part.h5:/absent is missing", "part");
    fails(gm_describe(own("virtual.h5:/small"), NULL, &record), GM_EINPUT,
          "part.h5:/short has the shape 1x3, and all of it is mapped to 2x3", "part");
    succeeds(gm_describe(own("virtual.h5:/pattern"), NULL, &record), "a pattern of parts");
    tap_ok(record.dims[0] == 0, "of which there are none");
    fails(gm_describe(own("virtual.h5:/nested"), NULL, &record), GM_EINPUT, "part.h5:/absent is missing",
          "part of a part");
    fails(gm_describe(own("virtual.h5:/loop"), NULL, &record), GM_EINPUT, "deep", "a virtual dataset of itself");
    tap_ok(symlink("virtual.h5", own("linked.h5")) == 0 && gm_describe(own("linked.h5:/good"), NULL, &record) == GM_OK,
           "parts are found through a symbolic link");
}

int main(void)
{
    hsize_t ids;
    int before;
    H5Fclose(make_file("first.h5"));
    ids = open_ids();
    before = open_files();
    check_virtual();
    tap_ok(open_ids() == ids, "no HDF5 object is left open");
    tap_ok(open_files() == before, "no file is left open");
    return tap_done();
}
