/* virtual_make.c - the files that tests/io/read/virtual.c reads. */
#include "tests/io/read/virtual_make.h"

#include "tests/io/each.h"

/* Every part has elements of its own; the elements that libhdf5 reads are expected. */
static void put_part(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims, hid_t plist)
{
    static int next;
    int32_t data[4 * ROWS * COLS];
    for (int i = 0; i < 4 * ROWS * COLS; i++)
        data[i] = next++;
    put_dataset(file, name, type, rank, dims, plist, H5T_NATIVE_INT32, data);
}

/* p0.h5 ... p3.h5, each with datasets of every kind. */
static void make_parts(void)
{
    static const hsize_t flat[2] = {ROWS, COLS}, deep[3] = {ROWS, 5, 2}, chunk[2] = {5, COLS};
    char name[32];
    for (int i = 0; i < 4; i++) {
        hid_t file, chunked = H5Pcreate(H5P_DATASET_CREATE), outside = H5Pcreate(H5P_DATASET_CREATE),
                    compact = H5Pcreate(H5P_DATASET_CREATE);
        snprintf(name, sizeof name, "p%d.h5", i);
        file = make_file(name);
        H5Pset_chunk(chunked, 2, chunk);
        H5Pset_external(outside, own("outside.raw"), 0, H5F_UNLIMITED);
        H5Pset_layout(compact, H5D_COMPACT);
        put_part(file, "/i", H5T_STD_I32LE, 2, flat, H5P_DEFAULT);
        put_part(file, "/big", H5T_STD_I32BE, 2, flat, H5P_DEFAULT);
        put_part(file, "/short", H5T_STD_I16LE, 2, flat, H5P_DEFAULT);
        put_part(file, "/unsigned", H5T_STD_U32LE, 2, flat, H5P_DEFAULT);
        put_part(file, "/float", H5T_IEEE_F32LE, 2, flat, H5P_DEFAULT);
        put_part(file, "/line", H5T_STD_I32LE, 1, flat, H5P_DEFAULT);
        put_part(file, "/deep", H5T_STD_I32LE, 3, deep, H5P_DEFAULT);
        put_part(file, "/plane", H5T_STD_I32LE, 2, &deep[1], H5P_DEFAULT);
        put_part(file, "/chunked", H5T_STD_I32LE, 2, flat, chunked);
        put_part(file, "/outside", H5T_STD_I32LE, 2, flat, outside);
        put_part(file, "/compact", H5T_STD_I32LE, 2, flat, compact);
        put_dataset(file, "/late", H5T_STD_I32LE, 2, flat, H5P_DEFAULT, H5T_NATIVE_INT32, NULL);
        H5Lcreate_external("p3.h5", "/i", file, "/link", H5P_DEFAULT, H5P_DEFAULT);
        H5Pclose(compact);
        H5Pclose(outside);
        H5Pclose(chunked);
        H5Fclose(file);
    }
}

/* Rows of one side of a mapping. */
typedef struct rows {
    hsize_t start, step, count, block;
} rows;

/* A virtual dataset that is being made. */
typedef struct maker {
    hid_t plist, type;
    int rank;
    hsize_t dims[3];
    hsize_t first, columns; /* selected columns of two dimensions; 0: all */
    int part_rank;
} maker;

static maker begin(hid_t type, int rank, hsize_t n, const hsize_t *inner)
{
    maker m = {H5Pcreate(H5P_DATASET_CREATE), type, rank, {n}, 0, 0, rank};
    H5Pset_fill_value(m.plist, H5T_NATIVE_INT32, &(int32_t){-5});
    for (int d = 1; d < rank; d++)
        m.dims[d] = inner[d - 1];
    return m;
}

static void select_rows(hid_t space, const maker *m, int rank, const hsize_t *dims, const rows *r)
{
    hsize_t start[3] = {r->start, 0, 0}, step[3] = {r->step, 1, 1}, count[3] = {r->count, 1, 1},
            block[3] = {r->block, rank > 1 ? dims[1] : 1, rank > 2 ? dims[2] : 1};
    if (m->columns) {
        start[1] = m->first;
        block[1] = m->columns;
    }
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, step, count, block);
}

/* Rows `to` are rows `from` of a part. */
static void map(const maker *m, rows to, const char *file, const char *name, rows from)
{
    hid_t whole = H5Screate_simple(m->rank, m->dims, NULL), part;
    hsize_t dims[3] = {ROWS, m->dims[1], m->dims[2]};
    select_rows(whole, m, m->rank, m->dims, &to);
    part = H5Screate_simple(m->part_rank, dims, NULL);
    select_rows(part, m, m->part_rank, dims, &from);
    if (H5Pset_virtual(m->plist, whole, file, name, part) < 0)
        printf("Bail out! %s:%s cannot be mapped\n", file, name);
    H5Sclose(part);
    H5Sclose(whole);
}

/* One row is all of a part with the other dimensions. */
static void map_plane(const maker *m, hsize_t row, const char *file)
{
    hid_t whole = H5Screate_simple(m->rank, m->dims, NULL), part = H5Screate_simple(2, &m->dims[1], NULL);
    select_rows(whole, m, m->rank, m->dims, &(rows){row, 1, 1, 1});
    H5Pset_virtual(m->plist, whole, file, "/plane", part);
    H5Sclose(part);
    H5Sclose(whole);
}

static void end(hid_t file, const char *name, maker *m)
{
    put_dataset(file, name, m->type, m->rank, m->dims, m->plist, H5T_NATIVE_INT32, NULL);
    H5Pclose(m->plist);
}

static const hsize_t flat[1] = {COLS}, deep[2] = {5, 2};
const char *const stripe_parts[4] = {"p0.h5", "p1.h5", "p2.h5", "p3.h5"};

/* As the program's own output in parts: stripes of 3 rows in turn, the last one short. */
static void add_stripes(hid_t file, const char *name, const char *source, hid_t type, int rank, const hsize_t *inner)
{
    maker m = begin(type, rank, 31, inner);
    for (hsize_t part = 0; part < 4; part++) {
        hsize_t full = 10 / 4 + (part < 10 % 4);
        map(&m, (rows){3 * part, 12, full, 3}, stripe_parts[part], source, (rows){0, 1, 1, 3 * full});
    }
    map(&m, (rows){30, 1, 1, 1}, stripe_parts[2], source, (rows){6, 1, 1, 1});
    end(file, name, &m);
}

/* Two halves, the second one as told. */
static void add_halves(hid_t file, const char *name, const char *second_file, const char *second, rows to)
{
    maker m = begin(H5T_STD_I32LE, 2, 2 * ROWS, flat);
    map(&m, (rows){0, 1, 1, ROWS}, "p0.h5", "/i", (rows){0, 1, 1, ROWS});
    map(&m, to, second_file, second, (rows){0, 1, 1, to.count * to.block});
    end(file, name, &m);
}

static void make_striped(hid_t file)
{
    static const int order[10] = {7, 2, 9, 0, 4, 4, 1, 8, 3, 5};
    const hsize_t one = 1;
    maker m;
    add_stripes(file, "/stripes", "/i", H5T_STD_I32LE, 2, flat);
    add_stripes(file, "/swapped", "/big", H5T_STD_I32BE, 2, flat);
    add_stripes(file, "/half", "/short", H5T_STD_I16LE, 2, flat);
    add_stripes(file, "/line", "/line", H5T_STD_I32LE, 1, NULL);
    add_stripes(file, "/deep", "/deep", H5T_STD_I32LE, 3, deep);

    m = begin(H5T_STD_I32LE, 2, 10, flat);
    for (hsize_t i = 0; i < 10; i++)
        map(&m, (rows){i, 1, 1, 1}, stripe_parts[i % 3], "/i", (rows){(hsize_t)order[i], 1, 1, 1});
    end(file, "/shuffled", &m);
    m = begin(H5T_STD_I32LE, 2, 12, flat); /* backwards in the file, and every second row of a part */
    map(&m, (rows){5, 1, 1, 7}, "p1.h5", "/i", (rows){1, 3, 7, 1});
    map(&m, (rows){0, 1, 5, 1}, "p0.h5", "/i", (rows){3, 2, 5, 1});
    end(file, "/every", &m);
    m = begin(H5T_STD_I32LE, 2, 24, flat); /* blocks of 4 rows from blocks of 6 */
    map(&m, (rows){0, 8, 3, 4}, "p2.h5", "/i", (rows){0, 9, 2, 6});
    map(&m, (rows){4, 8, 3, 4}, "p2.h5", "/i", (rows){6, 9, 2, 6});
    end(file, "/torn", &m);
    m = begin(H5T_STD_I32LE, 3, 4, deep);
    for (hsize_t i = 0; i < 4; i++)
        map_plane(&m, i, stripe_parts[3 - i]);
    end(file, "/planes", &m);
    m = begin(H5T_STD_I32LE, 2, ROWS, &one); /* one column of a line */
    m.part_rank = 1;
    map(&m, (rows){0, 1, 1, ROWS}, "p0.h5", "/line", (rows){0, 1, 1, ROWS});
    end(file, "/column", &m);
    add_halves(file, "/end", "end.h5", "/i", (rows){ROWS, 1, 1, ROWS});
    add_halves(file, "/halves", "p1.h5", "/i", (rows){ROWS, 1, 1, ROWS});
    put_part(file, "/here", H5T_STD_I32LE, 2, (hsize_t[2]){ROWS, COLS}, H5P_DEFAULT);
    add_halves(file, "/own", ".", "/here", (rows){ROWS, 1, 1, ROWS});
}

static void make_other(hid_t file)
{
    const rows second = {ROWS, 1, 1, ROWS};
    maker m;
    add_halves(file, "/gap", "p1.h5", "/i", (rows){ROWS, 1, 1, ROWS - 1});
    add_halves(file, "/hole", "p1.h5", "/i", (rows){ROWS + 1, 1, 1, ROWS - 1});
    add_halves(file, "/overlap", "p1.h5", "/i", (rows){ROWS - 1, 2, ROWS / 2, 1});
    add_halves(file, "/chunked", "p1.h5", "/chunked", second);
    add_halves(file, "/order", "p1.h5", "/big", second);
    add_halves(file, "/narrow", "p1.h5", "/short", second);
    add_halves(file, "/sign", "p1.h5", "/unsigned", second);
    add_halves(file, "/float", "p1.h5", "/float", second);
    add_halves(file, "/outside", "p1.h5", "/outside", second);
    add_halves(file, "/compact", "p1.h5", "/compact", second);
    add_halves(file, "/late", "p1.h5", "/late", second);
    add_halves(file, "/link", "p1.h5", "/link", second);
    add_halves(file, "/nested", "rows.h5", "/halves", second);
    m = begin(H5T_STD_I32LE, 2, ROWS, flat);
    for (hsize_t half = 0; half < 2; half++) {
        m.first = half * 5;
        m.columns = 5;
        map(&m, (rows){0, 1, 1, ROWS}, stripe_parts[half], "/i", (rows){0, 1, 1, ROWS});
    }
    end(file, "/columns", &m);
    m = begin(H5T_STD_I32BE, 2, ROWS, flat); /* of the other order of bytes, over the usual one */
    map(&m, (rows){0, 1, 1, ROWS}, "p0.h5", "/i", (rows){0, 1, 1, ROWS});
    end(file, "/over", &m);
}

/* Everything of rows 0 and 3, which is no regular selection. */
static void make_irregular(hid_t file)
{
    maker m = begin(H5T_STD_I32LE, 2, 10, flat);
    hid_t whole = H5Screate_simple(2, m.dims, NULL), part = H5Screate_simple(2, (hsize_t[2]){ROWS, COLS}, NULL);
    const hsize_t row[2] = {1, COLS};
    for (hsize_t i = 0; i < 10; i += i ? 3 : 1)
        H5Sselect_hyperslab(whole, i ? H5S_SELECT_OR : H5S_SELECT_SET, (hsize_t[2]){i, 0}, NULL, row, NULL);
    H5Sselect_hyperslab(part, H5S_SELECT_SET, (hsize_t[2]){0, 0}, NULL, (hsize_t[2]){4, COLS}, NULL);
    H5Pset_virtual(m.plist, whole, "p0.h5", "/i", part);
    H5Sclose(part);
    H5Sclose(whole);
    end(file, "/irregular", &m);
}

static void make_unlimited(hid_t file)
{
    maker m = begin(H5T_STD_I32LE, 2, ROWS, flat);
    const hsize_t most[2] = {H5S_UNLIMITED, COLS}, start[2] = {0, 0}, count[2] = {H5S_UNLIMITED, 1},
                  block[2] = {1, COLS};
    hid_t whole = H5Screate_simple(2, m.dims, most), part = H5Screate_simple(2, m.dims, most), set;
    H5Sselect_hyperslab(whole, H5S_SELECT_SET, start, NULL, count, block);
    H5Sselect_hyperslab(part, H5S_SELECT_SET, start, NULL, count, block);
    H5Pset_virtual(m.plist, whole, "p0.h5", "/chunked", part);
    H5Sselect_all(whole);
    set = H5Dcreate2(file, "/unlimited", m.type, whole, H5P_DEFAULT, m.plist, H5P_DEFAULT);
    H5Dclose(set);
    H5Sclose(part);
    H5Sclose(whole);
    H5Pclose(m.plist);
}

void make_virtual_files(void)
{
    hid_t file;
    make_parts();
    file = make_file("end.h5");
    put_part(file, "/i", H5T_STD_I32LE, 2, (hsize_t[2]){ROWS, COLS}, H5P_DEFAULT); /* last in the file */
    H5Fclose(file);
    file = make_file("rows.h5");
    make_striped(file);
    make_other(file);
    make_irregular(file);
    make_unlimited(file);
    H5Fclose(file);
}

void make_many_parts(int files)
{
    const hsize_t one[2] = {1, COLS};
    char name[32];
    hid_t file;
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "many%d.h5", i);
        file = make_file(name);
        put_part(file, "/i", H5T_STD_I32LE, 2, one, H5P_DEFAULT);
        H5Fclose(file);
    }
    file = make_file("many.h5");
    maker m = begin(H5T_STD_I32LE, 2, (hsize_t)files, flat);
    for (hsize_t i = 0; i < m.dims[0]; i++) {
        snprintf(name, sizeof name, "many%d.h5", (int)i);
        map(&m, (rows){i, 1, 1, 1}, name, "/i", (rows){0, 1, 1, 1});
    }
    end(file, "/more", &m);
    H5Fclose(file);
}
