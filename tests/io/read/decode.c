/* decode.c - chunks as libhdf5 stores them, decoded without it: filters in every order, filter masks, lengths, damage.
 */
#include <inttypes.h>
#include <libdeflate.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/size.h"
#include "io/describe/filters.h"
#include "io/read/decode.h"
#include "tests/io/each.h"

/* The longest element is 8 bytes. */
enum { CHUNK = 999, BYTES_MAX = CHUNK * 8, STORED_MAX = 2 * BYTES_MAX };

static char data[BYTES_MAX]; /* the elements of a chunk */
static char stored[STORED_MAX];

/* Buffers as long as they may be used, for valgrind and sanitizers. */
typedef struct bench {
    gm_pipeline pipeline;
    gm_decoder decoder;
    char *target;
    char why[GM_DECODE_WHY];
} bench;

static void bench_free(bench *b)
{
    libdeflate_free_decompressor(b->decoder.inflater);
    free(b->decoder.buffer[0]);
    free(b->decoder.buffer[1]);
    free(b->target);
}

static void bench_make(bench *b, const gm_pipeline *pipeline, size_t longest)
{
    size_t bytes = gm_decode_buffer_bytes(pipeline->bytes);
    *b = (bench){.pipeline = *pipeline, .decoder = {.inflater = libdeflate_alloc_decompressor()}};
    b->decoder.buffer[0] = malloc(longest > bytes ? longest : bytes);
    b->decoder.buffer[1] = malloc(bytes);
    b->target = malloc(pipeline->bytes);
}

/* Decodes bytes; returns 0 when the result is `want`, in the target if it is asked for. */
static int decode(bench *b, uint32_t filter_mask, const char *from, size_t bytes, int to_target, const char *want)
{
    const char *got = NULL;
    memcpy(b->decoder.buffer[0], from, bytes);
    memset(b->target, 0, b->pipeline.bytes);
    b->why[0] = '\0';
    if (gm_decode(&b->pipeline, filter_mask, &b->decoder, bytes, to_target ? b->target : NULL, &got, b->why))
        return 1;
    return (to_target && got != b->target) || memcmp(got, want, b->pipeline.bytes) != 0;
}

/* --- chunks made by libhdf5 --- */

static const hid_t *types(void)
{
    static hid_t list[4];
    list[0] = H5T_NATIVE_UINT8;
    list[1] = H5T_NATIVE_INT16;
    list[2] = H5T_NATIVE_INT32;
    list[3] = H5T_NATIVE_DOUBLE;
    return list;
}

static const gm_dtype dtypes[4] = {GM_DTYPE_U8, GM_DTYPE_I16, GM_DTYPE_I32, GM_DTYPE_F64};

/* A dataset of one chunk with filters: s, z, f for shuffle, deflate, fletcher32, in the order of writing; bit i of
 * left_out: filter i is omitted. Nothing is written when elements is NULL. */
static hid_t make_set(hid_t file, const char *name, hid_t type, const char *filters, uint32_t left_out,
                      const void *elements)
{
    const hsize_t dims[1] = {CHUNK};
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), set;
    H5Pset_chunk(plist, 1, dims);
    for (int i = 0; filters[i]; i++) {
        if (left_out >> i & 1)
            continue;
        if (filters[i] == 's')
            H5Pset_shuffle(plist);
        else if (filters[i] == 'z')
            H5Pset_deflate(plist, 6);
        else
            H5Pset_fletcher32(plist);
    }
    put_dataset(file, name, type, 1, dims, plist, type, elements);
    set = H5Dopen2(file, name, H5P_DEFAULT);
    H5Pclose(plist);
    return set;
}

/* The stored bytes of the only chunk of a dataset, to `stored`. Returns their number, 0 on failure. */
static size_t fetch(hid_t file, hid_t set)
{
    const hsize_t origin[1] = {0};
    uint32_t mask = 0;
    hsize_t bytes = 0;
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    if (H5Dget_chunk_storage_size(set, origin, &bytes) < 0 || bytes > STORED_MAX ||
        H5Dread_chunk(set, H5P_DEFAULT, origin, &mask, stored) < 0 || mask != 0)
        return 0;
    return (size_t)bytes;
}

/* The pipeline of a dataset. Returns whether all of it is known. */
static int get_pipeline(hid_t set, gm_dtype type, gm_pipeline *pipeline)
{
    gm_dataset record = {.type = type, .rank = 1, .chunk = {CHUNK}};
    hid_t plist = H5Dget_create_plist(set);
    int known = gm_filters_pipeline(plist, &record, pipeline);
    H5Pclose(plist);
    return known;
}

/* Does libhdf5 read the elements as they were written? */
static int reads_back(hid_t set, hid_t type, size_t bytes)
{
    static char back[BYTES_MAX];
    return H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0 && memcmp(back, data, bytes) == 0;
}

static const char *const orders[] = {"",   "s",  "z",   "f",   "sz",  "zs",  "sf",  "fs",
                                     "zf", "fz", "szf", "sfz", "zsf", "zfs", "fsz", "fzs"};
enum { ORDERS = sizeof orders / sizeof orders[0] };

static void check_orders(void)
{
    hid_t file = make_file("orders.h5");
    for (int t = 0; t < 4; t++) {
        int wrong = 0;
        for (int i = 0; i < ORDERS; i++) {
            char name[32];
            gm_pipeline pipeline;
            hid_t set;
            size_t bytes;
            bench b;
            snprintf(name, sizeof name, "/%d_%s", t, orders[i]);
            set = make_set(file, name, types()[t], orders[i], 0, data);
            bytes = fetch(file, set);
            if (bytes == 0 || !get_pipeline(set, dtypes[t], &pipeline)) {
                tap_diag("%s cannot be made", name);
                wrong++;
            } else {
                bench_make(&b, &pipeline, bytes);
                for (int to_target = 0; to_target < 2; to_target++) {
                    if (decode(&b, 0, stored, bytes, to_target, data)) {
                        tap_diag("%s: %s", name, b.why);
                        wrong++;
                    }
                }
                wrong += bytes > gm_decode_buffer_bytes(pipeline.bytes);
                bench_free(&b);
            }
            H5Dclose(set);
        }
        tap_ok(wrong == 0, "filters in every order, elements of %zu bytes", gm_dtype_size(dtypes[t]));
    }
    H5Fclose(file);
}

/* A chunk with some filters left out is the chunk of a dataset that has only the others: both libhdf5 and gm_decode()
 * must read it by its mask. (In libhdf5 1.10 an open dataset does not see a new mask.) */
static void check_masks(void)
{
    hid_t file = make_file("masks.h5");
    const hsize_t origin[1] = {0};
    const size_t bytes = CHUNK * 4;
    int wrong = 0, chunks = 0;
    for (int i = 1; i < ORDERS; i++) {
        for (uint32_t mask = 0; mask < 1u << strlen(orders[i]); mask++) {
            char name[32];
            gm_pipeline pipeline;
            hid_t less, all;
            size_t length;
            int written;
            bench b;
            snprintf(name, sizeof name, "/less_%s_%u", orders[i], mask);
            less = make_set(file, name, H5T_NATIVE_INT32, orders[i], mask, data);
            snprintf(name, sizeof name, "/all_%s_%u", orders[i], mask);
            all = make_set(file, name, H5T_NATIVE_INT32, orders[i], 0, NULL);
            length = fetch(file, less);
            written = length > 0 && H5Dwrite_chunk(all, H5P_DEFAULT, mask, origin, length, stored) >= 0;
            H5Dclose(all);
            all = H5Dopen2(file, name, H5P_DEFAULT);
            if (!written || !reads_back(all, H5T_NATIVE_INT32, bytes) || !get_pipeline(all, GM_DTYPE_I32, &pipeline)) {
                tap_diag("%s cannot be made", name);
                wrong++;
            } else {
                bench_make(&b, &pipeline, length);
                for (int to_target = 0; to_target < 2; to_target++, chunks++) {
                    if (decode(&b, mask, stored, length, to_target, data)) {
                        tap_diag("%s: %s", name, b.why);
                        wrong++;
                    }
                }
                wrong += gm_decode_is_plain(&pipeline, mask) != (mask == (1u << pipeline.count) - 1);
                bench_free(&b);
            }
            H5Dclose(all);
            H5Dclose(less);
        }
    }
    H5Fclose(file);
    tap_ok(wrong == 0 && chunks > 100, "every filter mask, as libhdf5 reads it (%d chunks)", chunks);
}

/* Deflate makes noise longer; libhdf5 stores it all the same. */
static void check_noise(void)
{
    hid_t file = make_file("noise.h5"), set;
    gm_pipeline pipeline = {0};
    char saved[BYTES_MAX];
    size_t bytes;
    bench b;
    memcpy(saved, data, sizeof data);
    for (size_t i = 0; i < BYTES_MAX; i++)
        data[i] = (char)gm_random_bits(7, i);
    set = make_set(file, "/noise", H5T_NATIVE_DOUBLE, "szf", 0, data);
    bytes = fetch(file, set);
    tap_ok(bytes > BYTES_MAX && bytes <= gm_decode_buffer_bytes(BYTES_MAX) &&
               get_pipeline(set, GM_DTYPE_F64, &pipeline),
           "a deflated chunk that is longer than its elements fits a buffer");
    bench_make(&b, &pipeline, bytes);
    tap_ok(decode(&b, 0, stored, bytes, 1, data) == 0 && decode(&b, 0, stored, bytes, 0, data) == 0,
           "and is decoded: %s", b.why);
    bench_free(&b);
    H5Dclose(set);
    H5Fclose(file);
    memcpy(data, saved, sizeof data);
}

/* --- damage --- */

/* Every bit of a chunk inverted, and the chunk cut at every length: a checksum, of zlib or fletcher32, fails or the
 * elements are the same. (Some bits at the end of a deflate stream have no meaning.) */
static void check_damage(void)
{
    static const char *const with_sum[] = {"z", "f", "sz", "szf", "fzs", "zsf"};
    hid_t file = make_file("damage.h5");
    for (size_t i = 0; i < sizeof with_sum / sizeof with_sum[0]; i++) {
        hid_t set = make_set(file, with_sum[i], H5T_NATIVE_UINT8, with_sum[i], 0, data);
        size_t bytes = fetch(file, set), unnoticed = 0, cut = 0;
        gm_pipeline pipeline = {0};
        bench b;
        get_pipeline(set, GM_DTYPE_U8, &pipeline);
        bench_make(&b, &pipeline, bytes);
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            stored[bit / 8] ^= (char)(1 << bit % 8);
            unnoticed += decode(&b, 0, stored, bytes, (int)(bit % 2), data) && b.why[0] == '\0';
            stored[bit / 8] ^= (char)(1 << bit % 8);
        }
        for (size_t length = 0; length < bytes; length++)
            cut += decode(&b, 0, stored, length, (int)(length % 2), data) == 0;
        tap_ok(bytes > 0 && unnoticed == 0, "%s: no inverted bit makes wrong elements", with_sum[i]);
        tap_ok(bytes > 0 && cut == 0, "%s: a chunk that is cut is noticed", with_sum[i]);
        bench_free(&b);
        H5Dclose(set);
    }
    H5Fclose(file);
}

static void refuses(bench *b, size_t bytes, const char *reason)
{
    int refused = decode(b, 0, stored, bytes, 0, data);
    tap_ok(refused && strstr(b->why, reason), "refused: %s", b->why);
}

/* Chunks that are sound, but of another length than the dataset's. */
static void check_lengths(void)
{
    hid_t file = make_file("lengths.h5"), set = make_set(file, "/z", H5T_NATIVE_UINT8, "z", 0, data);
    size_t bytes = fetch(file, set);
    gm_pipeline pipeline = {0};
    bench b;
    get_pipeline(set, GM_DTYPE_U8, &pipeline);
    pipeline.bytes = CHUNK + 1;
    bench_make(&b, &pipeline, bytes);
    refuses(&b, bytes, "inflates to less than a chunk");
    bench_free(&b);
    pipeline.bytes = CHUNK - 1;
    bench_make(&b, &pipeline, bytes);
    refuses(&b, bytes, "inflates to more than a chunk");
    bench_free(&b);
    pipeline.bytes = CHUNK;
    bench_make(&b, &pipeline, bytes);
    stored[0] ^= 1;
    refuses(&b, bytes, "does not inflate");
    stored[0] ^= 1;
    refuses(&b, 0, "does not inflate");
    bench_free(&b);
    bench_make(&b, &(gm_pipeline){1, {{GM_FILTER_SHUFFLE, 4}}, 12}, 16);
    refuses(&b, 16, "holds 16 bytes, expected 12");
    refuses(&b, 8, "holds 8 bytes, expected 12");
    bench_free(&b);
    bench_make(&b, &(gm_pipeline){1, {{GM_FILTER_FLETCHER32, 1}}, 3}, 8);
    refuses(&b, 3, "holds 3 bytes, expected a checksum");
    bench_free(&b);
    H5Dclose(set);
    H5Fclose(file);
}

/* --- rules --- */

static void check_by_hand(void)
{
    const gm_pipeline shuffle = {1, {{GM_FILTER_SHUFFLE, 3}}, 8}, sum = {1, {{GM_FILTER_FLETCHER32, 1}}, 3};
    bench b;
    bench_make(&b, &shuffle, 8);
    tap_ok(decode(&b, 0, "adbecfxy", 8, 0, "abcdefxy") == 0 && decode(&b, 0, "adbecfxy", 8, 1, "abcdefxy") == 0,
           "shuffle of 3 bytes, and of two that are left over");
    tap_ok(decode(&b, 1, "adbecfxy", 8, 0, "adbecfxy") == 0, "shuffle left out");
    bench_free(&b);
    /* 0x0102 + 0x0300 = 0x0402; 0x0102 + 0x0402 = 0x0504 */
    bench_make(&b, &sum, 7);
    tap_ok(decode(&b, 0, "\1\2\3\2\4\4\5", 7, 0, "\1\2\3") == 0, "fletcher32 of an odd number of bytes");
    tap_ok(decode(&b, 0, "\1\2\3\4\2\5\4", 7, 0, "\1\2\3") == 0, "fletcher32 with the bytes of HDF5 before 1.6.3");
    tap_ok(decode(&b, 0, "\1\2\7\2\4\4\5", 7, 0, "\1\2\7") && strstr(b.why, "checksum is wrong"),
           "a wrong checksum: %s", b.why);
    bench_free(&b);
}

static void check_pipelines(void)
{
    const hsize_t dims[1] = {CHUNK};
    gm_dataset record = {.type = GM_DTYPE_I32, .rank = 1, .chunk = {CHUNK}};
    gm_pipeline pipeline;
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 1, dims);
    tap_ok(gm_filters_pipeline(plist, &record, &pipeline) && pipeline.count == 0 && gm_decode_buffers(&pipeline) == 1 &&
               gm_decode_is_plain(&pipeline, 0) && pipeline.bytes == CHUNK * 4,
           "no filter: one buffer");
    H5Pset_fletcher32(plist);
    tap_ok(gm_filters_pipeline(plist, &record, &pipeline) && pipeline.count == 1 && gm_decode_buffers(&pipeline) == 1 &&
               !gm_decode_is_plain(&pipeline, 0) && gm_decode_is_plain(&pipeline, 1),
           "a checksum: one buffer");
    H5Pset_deflate(plist, 1);
    tap_ok(gm_filters_pipeline(plist, &record, &pipeline) && gm_decode_buffers(&pipeline) == 2, "deflate: two buffers");
    H5Pset_scaleoffset(plist, H5Z_SO_INT, 0);
    tap_ok(!gm_filters_pipeline(plist, &record, &pipeline), "another filter is not known");
    H5Pclose(plist);

    plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 1, dims);
    H5Pset_deflate(plist, 1);
    H5Pset_deflate(plist, 1);
    tap_ok(!gm_filters_pipeline(plist, &record, &pipeline), "deflate twice is not known");
    record.chunk[0] = INT64_C(1) << 30;
    tap_ok(!gm_filters_pipeline(plist, &record, &pipeline), "nor are chunks of 4 GiB");
    H5Pclose(plist);
}

int main(void)
{
    for (size_t i = 0; i < BYTES_MAX; i++) /* it can be compressed, but not to nothing */
        data[i] = (char)(i % 8 < 6 ? i / 64 : gm_random_bits(1, i));
    check_by_hand();
    check_orders();
    check_masks();
    check_noise();
    check_damage();
    check_lengths();
    check_pipelines();
    return tap_done();
}
