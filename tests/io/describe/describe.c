/* describe.c - descriptions of files: types, layouts, links, and every error of a name. */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/types/dtype.h"
#include "io/describe/describe.h"
#include "io/worker.h"
#include "tests/io/each.h"

static gm_dataset record;
static const hsize_t shape[2] = {4, 3};

static void check_types(void)
{
    hid_t file = make_file("types.h5");
    int wrong = 0;
    char name[32];
    for (gm_dtype t = 0; t < GM_DTYPES; t++) {
        hid_t swapped = gm_h5_type_swapped(t);
        snprintf(name, sizeof name, "/native/%s", gm_dtype_name(t));
        put_dataset(file, name, gm_h5_type(t), 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){0});
        snprintf(name, sizeof name, "/swapped/%s", gm_dtype_name(t));
        put_dataset(file, name, swapped, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){0});
        H5Tclose(swapped);
    }
    H5Fclose(file);
    for (gm_dtype t = 0; t < GM_DTYPES; t++) {
        for (int swap = 0; swap < 2; swap++) {
            snprintf(name, sizeof name, "types.h5:/%s/%s", swap ? "swapped" : "native", gm_dtype_name(t));
            if (gm_describe(own(name), NULL, &record) || record.type != t || !record.direct || record.offset <= 0 ||
                record.swap != (swap && gm_dtype_size(t) > 1) || record.rank != 2 || record.view[1] != 3 ||
                record.layout != GM_CONTIGUOUS || strcmp(record.data_file, own("types.h5")) != 0) {
                wrong++;
                tap_diag("%s: type %d swap %d direct %d", name, (int)record.type, record.swap, record.direct);
            }
        }
    }
    tap_ok(wrong == 0, "every numeric type in both orders of bytes, contiguous, is direct");
}

static void check_odd_numbers(void)
{
    static const struct {
        const char *name;
        gm_dtype type;
        int swap; /* of as many bytes, big-endian */
    } want[] = {{"/i24", GM_DTYPE_I32, 0},  {"/u12", GM_DTYPE_U16, 1},  {"/i40", GM_DTYPE_I64, 0},
                {"/e6m9", GM_DTYPE_F32, 0}, {"/e8b1", GM_DTYPE_F64, 0}, {"/b300", GM_DTYPE_F64, 0},
                {"/f24", GM_DTYPE_F32, 0},  {"/pad", GM_DTYPE_I32, 0}};
    hid_t file = make_file("odd.h5"), type;

    type = H5Tcopy(H5T_STD_I32LE);
    H5Tset_precision(type, 24);
    put_dataset(file, "/i24", type, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){-5});
    H5Tset_size(type, 3);
    put_dataset(file, "/pad", type, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){-5});
    H5Tclose(type);
    type = H5Tcopy(H5T_STD_U16BE);
    H5Tset_precision(type, 12);
    put_dataset(file, "/u12", type, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){5});
    H5Tclose(type);
    type = H5Tcopy(H5T_STD_I64LE);
    H5Tset_precision(type, 40);
    put_dataset(file, "/i40", type, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){-5});
    H5Tclose(type);
    type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 15, 9, 6, 0, 9); /* neither of the floats of 16 bits */
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 31);
    put_dataset(file, "/e6m9", type, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){5});
    H5Tset_fields(type, 15, 7, 8, 0, 7); /* the fields of bfloat16, another bias */
    H5Tset_ebias(type, 126);
    put_dataset(file, "/e8b1", type, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){5});
    H5Tclose(type);
    type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_ebias(type, 300); /* down to 2^-322 */
    put_dataset(file, "/b300", type, 2, shape, H5P_DEFAULT, H5T_NATIVE_DOUBLE, (double[12]){0x1p-200});
    H5Tclose(type);
    type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 23, 16, 7, 0, 16);
    H5Tset_size(type, 3);
    H5Tset_ebias(type, 63);
    put_dataset(file, "/f24", type, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){5});
    H5Tclose(type);
    H5Fclose(file);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        int status = gm_describe(own_text("odd.h5:", want[i].name), NULL, &record);
        tap_ok(status == GM_OK && record.type == want[i].type && !record.direct && record.swap == want[i].swap,
               "%s reads as %s by conversion", want[i].name, gm_dtype_name(want[i].type));
    }
}

/* Datasets of types that are not numeric, and the messages. */
static void check_refused_types(void)
{
    enum { TYPES = 13 };
    static const char *const said[TYPES] = {"type string",
                                            "type fixed-length string",
                                            "type complex number",
                                            "type compound of 1 field",
                                            "type boolean",
                                            "type enumeration",
                                            "type bit field",
                                            "type opaque",
                                            "type reference",
                                            "variable-length sequence of int32",
                                            "array of float64",
                                            "type float",
                                            "type time"};
    hid_t file = make_file("refused.h5"), types[TYPES];
    const hsize_t three = 3;
    signed char value = 0;
    char name[32];

    types[0] = H5Tcopy(H5T_C_S1);
    H5Tset_size(types[0], H5T_VARIABLE);
    types[1] = H5Tcopy(H5T_C_S1);
    H5Tset_size(types[1], 8);
    types[2] = H5Tcreate(H5T_COMPOUND, 16);
    H5Tinsert(types[2], "r", 0, H5T_NATIVE_DOUBLE);
    H5Tinsert(types[2], "i", 8, H5T_NATIVE_DOUBLE);
    types[3] = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(types[3], "x", 0, H5T_NATIVE_DOUBLE);
    types[4] = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(types[4], "FALSE", &value);
    value = 1;
    H5Tenum_insert(types[4], "TRUE", &value);
    types[5] = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(types[5], "ONE", &value);
    types[6] = H5Tcopy(H5T_NATIVE_B8);
    types[7] = H5Tcreate(H5T_OPAQUE, 4);
    types[8] = H5Tcopy(H5T_STD_REF_OBJ);
    types[9] = H5Tvlen_create(H5T_NATIVE_INT);
    types[10] = H5Tarray_create2(H5T_NATIVE_DOUBLE, 1, &three);
    types[11] = H5Tcopy(H5T_NATIVE_LDOUBLE);
    types[12] = H5Tcopy(H5T_UNIX_D32LE);
    for (int i = 0; i < TYPES; i++) {
        snprintf(name, sizeof name, "/t%d", i);
        put_dataset(file, name, types[i], 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, NULL);
        H5Tclose(types[i]);
    }
    H5Fclose(file);
    for (int i = 0; i < TYPES; i++) {
        snprintf(name, sizeof name, "refused.h5:/t%d", i);
        fails(gm_describe(own(name), NULL, &record), GM_EINPUT, said[i], "refused");
    }
    fails(gm_describe(own("refused.h5"), NULL, &record), GM_EINPUT, "no numeric dataset; it holds /t0, ",
          "a file without numbers");
    fails(gm_describe(own("refused.h5:/x"), NULL, &record), GM_EINPUT, "/t5, /t6 and 3 more", "a long list is cut");
}

static void write_bytes(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(own(name), "wb");
    if (!file || fwrite(bytes, 1, count, file) != count)
        printf("Bail out! %s cannot be written\n", name);
    if (file)
        fclose(file);
}

static void check_files(void)
{
    char *path;
    fails(gm_describe(own("absent.h5:/d"), NULL, &record), GM_EINPUT, "absent.h5: no such file", "missing");
    fails(gm_describe(own(":/d"), NULL, &record), GM_EINPUT, "is a folder", "folder");
    write_bytes("text.h5", "hello, world\n", 13);
    fails(gm_describe(own("text.h5:/d"), NULL, &record), GM_EINPUT, "text.h5: is not an HDF5 file", "text");
    write_bytes("empty.h5", "", 0);
    fails(gm_describe(own("empty.h5"), NULL, &record), GM_EINPUT, "is empty", "empty file");
    if (mkfifo(own("fifo"), 0600) == 0)
        fails(gm_describe(own("fifo:/d"), NULL, &record), GM_EINPUT, "not a regular file", "fifo");
    path = own("types.h5");
    tap_ok(truncate(path, 3000) == 0, "types.h5 is cut");
    fails(gm_describe(own("types.h5:/native/f32"), NULL, &record), GM_EINPUT, "truncated file", "cut file");
    tap_ok(truncate(path, 100000) == 0, "types.h5 is filled up with zeros");
    fails(gm_describe(own("types.h5:/native/f32"), NULL, &record), GM_EINPUT, "damaged", "damaged file");
    if (geteuid() == 0) {
        tap_skip("root may read everything", "a file without permission");
    } else {
        chmod(own("text.h5"), 0);
        fails(gm_describe(own("text.h5"), NULL, &record), GM_EINPUT, "Permission denied", "a file without permission");
    }
}

/* Names with brackets: "FILE:DATASET" as text, the name and the selection that it means. */
static void check_brackets(void)
{
    static const struct {
        const char *text, *name, *selection;
    } cases[] = {
        {"x[0] it=0", "/x[0] it=0", ""}, {"x[0] it=0[1]", "/x[0] it=0", "[1]"},   {"grid[0]", "/grid[0]", ""},
        {"grid[0][]", "/grid[0]", "[]"}, {"grid[0][1,:]", "/grid[0]", "[1,:]"},   {"both[0]", "/both", "[0]"},
        {"both[0][]", "/both[0]", "[]"}, {"group[1]/d[2]", "/group[1]/d", "[2]"}, {"open[[]", "/open[", "[]"},
    };
    static const char *const names[] = {"/x[0] it=0", "/grid[0]", "/both", "/both[0]", "/group[1]/d", "/open["};
    hid_t file = make_file("brackets.h5");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        put_dataset(file, names[i], H5T_NATIVE_FLOAT, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){0});
    H5Fclose(file);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        tap_ok(gm_describe(own_text("brackets.h5:", cases[i].text), NULL, &record) == GM_OK &&
                   strcmp(record.name, cases[i].name) == 0 && strcmp(record.selected, cases[i].selection) == 0,
               "%s: %s, %s", cases[i].text, record.name, record.selected);
    fails(gm_describe(own("brackets.h5:/none[0]"), NULL, &record), GM_EINPUT, "/none[0]: no such dataset", "neither");
}

static void check_names(void)
{
    hid_t file = make_file("names.h5"), other, null_space, set;
    hid_t text = H5Tcopy(H5T_C_S1);
    gm_error error;
    put_dataset(file, "/g/a", H5T_NATIVE_FLOAT, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){0});
    put_dataset(file, "/g/title", text, 0, NULL, H5P_DEFAULT, text, "x");
    H5Lcreate_hard(file, "/g/a", file, "/alias", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/g/a", file, "/soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    succeeds(gm_describe(own("names.h5"), NULL, &record), "one dataset of three names is the only one");
    tap_ok(record.rank == 2 && record.direct, "and it is described");
    succeeds(gm_describe(own("names.h5"), "/g/a", &record), "a preferred name");
    tap_ok(strcmp(record.name, "/g/a") == 0, "is taken");
    succeeds(gm_describe(own("names.h5:soft[1]"), NULL, &record), "by a soft link, with a selection");
    tap_ok(record.view_rank == 1 && record.view[0] == 3 && record.dims[0] == 4, "the selection counts");
    fails(gm_describe(own("names.h5:/g/x"), NULL, &record), GM_EINPUT,
          "/g/x: no such dataset; it holds /alias, /g/a, /g/title, /soft", "missing dataset");
    fails(gm_describe(own("names.h5:/x/y"), NULL, &record), GM_EINPUT, "no such dataset", "missing group");
    fails(gm_describe(own("names.h5:/g"), NULL, &record), GM_EINPUT,
          "is a group, expected a dataset; it holds /g/a, /g/title", "group");
    fails(gm_describe(own("names.h5:/"), NULL, &record), GM_EINPUT, "is a group", "root");
    fails(gm_describe(own("names.h5:/g/a[7]"), NULL, &record), GM_EINPUT, "index 7 is outside", "index");
    fails(gm_describe(own("names.h5:/g/title"), NULL, &record), GM_EINPUT, "fixed-length string", "string");
    check_brackets();

    file = H5Fopen(own("names.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    put_dataset(file, "/b", H5T_NATIVE_FLOAT, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){0});
    put_dataset(file, "/scalar", H5T_NATIVE_DOUBLE, 0, NULL, H5P_DEFAULT, H5T_NATIVE_INT, (int[1]){7});
    null_space = H5Screate(H5S_NULL);
    set = H5Dcreate2(file, "/null", H5T_NATIVE_INT, null_space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(set);
    H5Sclose(null_space);
    H5Tcommit2(file, "/type", text, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Tclose(text);
    H5Lcreate_soft("/nowhere", file, "/dangling", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/deep/d", file, "/outside", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("gone.h5", "/d", file, "/gone", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    other = make_file("other.h5");
    put_dataset(other, "/first", H5T_NATIVE_INT, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){0});
    put_dataset(other, "/deep/d", H5T_NATIVE_INT, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT, (int[12]){0});
    H5Fclose(other);
    int status = gm_describe(own("names.h5"), "/A", &record);
    gm_error_get(&error);
    gm_error_clear();
    tap_ok(status == GM_EINPUT &&
               strstr(error.text, "several numeric datasets, expected FILE:DATASET to name one; it ") &&
               !strstr(error.text, "/g/title") && !strstr(error.text, "/dangling"),
           "a bare file of several, which are listed: %s", error.text);
    fails(gm_describe(own("names.h5:/null"), NULL, &record), GM_EINPUT, "null dataspace", "null");
    fails(gm_describe(own("names.h5:/type"), NULL, &record), GM_EINPUT, "is a named type", "named type");
    fails(gm_describe(own("names.h5:/dangling"), NULL, &record), GM_EINPUT, "is a link to a dataset that is missing",
          "dangling link");
    fails(gm_describe(own("names.h5:/gone"), NULL, &record), GM_EINPUT, "gone.h5", "a link to a missing file");
    succeeds(gm_describe(own("names.h5:/outside"), NULL, &record), "an external link");
    tap_ok(record.direct && strstr(record.data_file, "other.h5") && strstr(record.file, "names.h5"),
           "leads to the other file's data");
    succeeds(gm_describe(own("names.h5:/scalar"), NULL, &record), "a scalar");
    tap_ok(record.rank == 0 && gm_dataset_elements(&record) == 1 && record.direct, "has rank 0 and one element");
}

static void check_layouts(void)
{
    hid_t file = make_file("layouts.h5"), plist = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[2] = {2, 3}, none[2] = {0, 5};
    int data[12] = {0};
    put_dataset(file, "/late", H5T_NATIVE_INT, 2, shape, plist, H5T_NATIVE_INT, NULL);
    put_dataset(file, "/none", H5T_NATIVE_INT, 2, none, plist, H5T_NATIVE_INT, NULL);
    H5Pset_layout(plist, H5D_COMPACT);
    put_dataset(file, "/compact", H5T_STD_I32BE, 2, shape, plist, H5T_NATIVE_INT, data);
    H5Pset_chunk(plist, 2, chunk);
    H5Pset_shuffle(plist);
    H5Pset_deflate(plist, 4);
    put_dataset(file, "/chunked", H5T_STD_U16BE, 2, shape, plist, H5T_NATIVE_INT, data);
    H5Pclose(plist);
    plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(plist, own("outside.bin"), 0, 48);
    put_dataset(file, "/external", H5T_NATIVE_INT, 2, shape, plist, H5T_NATIVE_INT, NULL);
    H5Pclose(plist);
    H5Fclose(file);
    succeeds(gm_describe(own("layouts.h5:/late"), NULL, &record), "never written");
    tap_ok(!record.direct && record.layout == GM_CONTIGUOUS, "is not direct");
    succeeds(gm_describe(own("layouts.h5:/none"), NULL, &record), "no elements");
    tap_ok(gm_dataset_elements(&record) == 0, "count 0");
    succeeds(gm_describe(own("layouts.h5:/compact"), NULL, &record), "compact");
    tap_ok(!record.direct && record.swap && record.layout == GM_COMPACT && record.type == GM_DTYPE_I32,
           "is read in its own order of bytes");
    succeeds(gm_describe(own("layouts.h5:/chunked"), NULL, &record), "chunked");
    tap_ok(record.layout == GM_CHUNKED && record.filters == 2 && record.chunk[0] == 2 && record.chunk[1] == 3 &&
               !record.direct,
           "with its chunks and filters");
    fails(gm_describe(own("layouts.h5:/external"), NULL, &record), GM_EINPUT, "outside.bin: No such file",
          "missing external storage");
    write_bytes("outside.bin", data, 40);
    fails(gm_describe(own("layouts.h5:/external"), NULL, &record), GM_EINPUT, "ends at byte 40, expected 48",
          "cut external storage");
    write_bytes("outside.bin", data, 48);
    succeeds(gm_describe(own("layouts.h5:/external"), NULL, &record), "external storage");
    tap_ok(!record.direct && record.layout == GM_CONTIGUOUS, "is not direct");
}

static int print_entry(void *context, const gm_listing *entry)
{
    char *text = context;
    size_t used = strlen(text);
    snprintf(text + used, 4096 - used, "%s|%s|%s|%s|%d\n", entry->name, entry->type, entry->shape, entry->storage,
             entry->numeric);
    return GM_OK;
}

static int stop(void *context, const gm_listing *entry)
{
    (void)entry;
    ++*(int *)context;
    return GM_ESTOPPED;
}

static void check_list(void)
{
    char text[4096] = "", version[32];
    int visits = 0;
    succeeds(gm_list(own("layouts.h5"), print_entry, text), "a list");
    tap_ok(!strcmp(text, "/chunked|uint16 big-endian|4x3|chunked 2x3, shuffle, deflate 4|1\n"
                         "/compact|int32 big-endian|4x3|compact|1\n"
                         "/external|int32|4x3|external|1\n"
                         "/late|int32|4x3|contiguous|1\n"
                         "/none|int32|0x5|contiguous|1\n"),
           "in words");
    text[0] = '\0';
    succeeds(gm_list(own("names.h5"), print_entry, text), "a list with links");
    tap_ok(strstr(text, "/g/title|fixed-length string|scalar|contiguous|0\n") &&
               strstr(text, "/gone|unreadable|-||0\n") == NULL && strstr(text, "/gone|unreadable|-|") &&
               strstr(text, "/outside|int32|4x3|contiguous|1\n"),
           "says why something cannot be read");
    tap_ok(gm_list(own("names.h5"), stop, &visits) == GM_ESTOPPED && visits == 1, "a visitor ends the walk");
    fails(gm_list(own("text.h5"), print_entry, text), GM_EINPUT, "not an HDF5 file", "a list of a text");
    tap_ok(strchr(gm_hdf5_version(version), '.') != NULL, "HDF5 %s", version);
}

static void check_real(void)
{
    char text[GM_PATH_MAX + 64], list[4096] = "", *path = real_file("tooth.h5");
    if (!path) {
        tap_skip("the real files are not here", "real files");
        return;
    }
    snprintf(text, sizeof text, "%s:/exchange/data", path);
    succeeds(gm_describe(text, NULL, &record), "tooth");
    tap_ok(record.direct && record.type == GM_DTYPE_F32 && record.dims[0] == 181, "is 181 frames of f32");
    snprintf(text, sizeof text, "%s:/exchange/title", path);
    fails(gm_describe(text, NULL, &record), GM_EINPUT, "string", "title");
    fails(gm_describe(path, NULL, &record), GM_EINPUT, "/exchange/data", "tooth alone");
    succeeds(gm_describe(real_file("diad_k11_imaging.h5"), NULL, &record), "the only dataset of the detector's file");
    tap_ok(record.layout == GM_CHUNKED && record.chunk[1] == 22 && record.type == GM_DTYPE_U16, "is chunked");
    path = real_file("bigendian_i32.h5");
    succeeds(gm_list(path, print_entry, list), "a list with a filter that is not installed");
    tap_ok(strstr(list, "/dataset0|int32 big-endian|5000|contiguous|1") != NULL, "in words");
    snprintf(text, sizeof text, "%s:/dataset0", path);
    succeeds(gm_describe(text, NULL, &record), "big-endian");
    tap_ok(record.swap && record.type == GM_DTYPE_I32, "is swapped");
}

/* A dataset whose filter is there while it is written, and then no more. */
static size_t pass_on(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *room, void **buffer)
{
    (void)flags, (void)count, (void)values, (void)room, (void)buffer;
    return bytes;
}

static void check_filter(void)
{
    static const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, 300, 1, 1, "nothing much", NULL, NULL, pass_on};
    hid_t file = make_file("filter.h5"), plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Zregister(&filter);
    H5Pset_chunk(plist, 2, shape);
    H5Pset_filter(plist, 300, 0, 0, NULL);
    put_dataset(file, "/d", H5T_NATIVE_INT, 2, shape, plist, H5T_NATIVE_INT, (int[12]){0});
    H5Pclose(plist);
    H5Fclose(file);
    gm_worker_stop(); /* another one knows the filter */
    succeeds(gm_describe(own("filter.h5"), NULL, &record), "a filter that is there");
    H5Zunregister(300);
    gm_worker_stop();
    fails(gm_describe(own("filter.h5"), NULL, &record), GM_EINPUT, "filter 300 (nothing much), which is not installed",
          "filter");
}

int main(void)
{
    hsize_t ids;
    int before;
    gm_h5_lock(); /* prepares the library */
    for (gm_dtype t = 0; t < GM_DTYPES; t++)
        gm_h5_type(t);
    gm_h5_unlock();
    H5Fclose(make_file("first.h5"));
    ids = open_ids();
    before = open_files();
    check_types();
    check_odd_numbers();
    check_refused_types();
    check_files();
    check_names();
    check_layouts();
    check_list();
    check_real();
    check_filter();
    tap_ok(open_ids() == ids, "no HDF5 object is left open");
    if (open_ids() != ids)
        tap_diag("%d more", (int)(open_ids() - ids));
    tap_ok(open_files() == before, "no file is left open");
    return tap_done();
}
