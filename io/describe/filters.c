/* filters.c - the filters of a chunked dataset. */
#include "io/describe/filters.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

typedef struct filter {
    H5Z_filter_t id;
    char name[80];
    size_t parameters;
    unsigned value[16];
} filter;

static int get_filter(hid_t plist, unsigned index, filter *out)
{
    unsigned flags;
    size_t count = sizeof out->value / sizeof *out->value;
    memset(out, 0, sizeof *out);
    out->id = H5Pget_filter2(plist, index, &flags, &count, out->value, sizeof out->name, out->name, NULL);
    out->name[sizeof out->name - 1] = '\0';
    out->parameters = count;
    return out->id >= 0;
}

static void filter_words(const filter *it, char *text, size_t room)
{
    static const struct {
        H5Z_filter_t id;
        const char *word;
    } known[] = {{H5Z_FILTER_SHUFFLE, "shuffle"},
                 {H5Z_FILTER_FLETCHER32, "fletcher32"},
                 {H5Z_FILTER_SZIP, "szip"},
                 {H5Z_FILTER_NBIT, "nbit"},
                 {H5Z_FILTER_SCALEOFFSET, "scaleoffset"}};

    if (it->id == H5Z_FILTER_DEFLATE) {
        snprintf(text, room, "deflate %u", it->value[0]);
        return;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].id == it->id) {
            snprintf(text, room, "%s", known[i].word);
            return;
        }
    }
    snprintf(text, room, "%s (filter %d%s)", it->name[0] ? it->name : "unnamed", (int)it->id,
             H5Zfilter_avail(it->id) > 0 ? "" : ", not installed");
}

void gm_filters_format(hid_t plist, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < H5Pget_nfilters(plist) && used < room; i++) {
        filter it;
        if (!get_filter(plist, (unsigned)i, &it))
            break;
        used += (size_t)snprintf(text + used, room - used, ", ");
        if (used < room) {
            filter_words(&it, text + used, room - used);
            used += strlen(text + used);
        }
    }
}

int gm_filters_check(hid_t plist, const char *title, int *count)
{
    *count = H5Pget_nfilters(plist);
    for (int i = 0; i < *count; i++) {
        filter it;
        if (!get_filter(plist, (unsigned)i, &it))
            return gm_fail(GM_EINPUT, "%s: its filters cannot be read, the file is damaged", title);
        if (H5Zfilter_avail(it.id) <= 0)
            return gm_fail(GM_EINPUT, "%s: needs the HDF5 filter %d (%s), which is not installed: see HDF5_PLUGIN_PATH",
                           title, (int)it.id, it.name[0] ? it.name : "unnamed");
    }
    return GM_OK;
}

/* Elements of a chunk; 0 when there are none, and of more than a filter counts. */
static unsigned chunk_elements(hid_t plist)
{
    hsize_t chunk[H5S_MAX_RANK], elements = 1;
    int rank = H5Pget_layout(plist) == H5D_CHUNKED ? H5Pget_chunk(plist, H5S_MAX_RANK, chunk) : 0;
    for (int d = 0; d < rank; d++)
        elements = elements && chunk[d] <= UINT32_MAX / elements ? elements * chunk[d] : 0;
    return rank > 0 ? (unsigned)elements : 0;
}

/* A value of a filter that the type or the chunk gives. */
typedef struct rule {
    H5Z_filter_t id;
    unsigned parameter, value;
    const char *what;
} rule;

static int check_rules(const filter *it, const rule *rules, size_t count, const char *title)
{
    for (size_t i = 0; i < count; i++) {
        const rule *r = &rules[i];
        if (r->id == it->id && (it->parameters <= r->parameter || it->value[r->parameter] != r->value))
            return gm_fail(GM_EINPUT, "%s: the %s of its filter %s is %u, expected %u: the file is damaged", title,
                           r->what, it->name[0] ? it->name : "unnamed", it->value[r->parameter], r->value);
    }
    return GM_OK;
}

int gm_filters_check_parameters(hid_t plist, const char *title, hid_t type)
{
    enum { DEFLATE_MOST = 9, NBIT_NUMBER = 1 };
    unsigned bytes = (unsigned)H5Tget_size(type), elements = chunk_elements(plist);
    const rule rules[] = {{H5Z_FILTER_SHUFFLE, 0, bytes, "element size"},
                          {H5Z_FILTER_SCALEOFFSET, 2, elements, "number of elements"},
                          {H5Z_FILTER_SCALEOFFSET, 4, bytes, "element size"},
                          {H5Z_FILTER_NBIT, 1, H5Tget_precision(type) == 8 * (size_t)bytes, "mark of whole elements"},
                          {H5Z_FILTER_NBIT, 2, elements, "number of elements"},
                          {H5Z_FILTER_NBIT, 3, NBIT_NUMBER, "class"},
                          {H5Z_FILTER_NBIT, 4, bytes, "element size"},
                          {H5Z_FILTER_NBIT, 6, (unsigned)H5Tget_precision(type), "precision"},
                          {H5Z_FILTER_NBIT, 7, (unsigned)H5Tget_offset(type), "offset"}};
    int status = GM_OK;
    for (int i = 0, count = H5Pget_nfilters(plist); i < count && !status; i++) {
        filter it;
        if (!get_filter(plist, (unsigned)i, &it))
            return gm_fail(GM_EINPUT, "%s: its filters cannot be read, the file is damaged", title);
        if (it.id == H5Z_FILTER_DEFLATE && (it.parameters != 1 || it.value[0] > DEFLATE_MOST))
            return gm_fail(GM_EINPUT, "%s: its deflate filter has level %u, expected 0 to %d: the file is damaged",
                           title, it.value[0], DEFLATE_MOST);
        status = check_rules(&it, rules, sizeof rules / sizeof *rules, title);
    }
    return status;
}

H5Z_filter_t gm_filters_id(hid_t plist, int index)
{
    filter it;
    return get_filter(plist, (unsigned)index, &it) ? it.id : H5Z_FILTER_ERROR;
}

/* HDF5 1.14.5 and 1.14.6 refuse a chunk of scaleoffset whose elements need all bits of their type:
 * github.com/HDFGroup/hdf5/issues/5861. */
int gm_filters_refuse_valid(hid_t set)
{
    unsigned major, minor, release;
    hid_t plist = H5Dget_create_plist(set);
    int is_scaled = 0;
    for (int i = 0; i < H5Pget_nfilters(plist); i++)
        is_scaled |= gm_filters_id(plist, i) == H5Z_FILTER_SCALEOFFSET;
    gm_h5_close(plist);
    return is_scaled && H5get_libversion(&major, &minor, &release) >= 0 && major == 1 && minor == 14 &&
           (release == 5 || release == 6);
}

int gm_filters_pipeline(hid_t plist, const gm_dataset *record, gm_pipeline *pipeline)
{
    static const struct {
        H5Z_filter_t id;
        gm_filter_kind kind;
        size_t parameters;
    } known[] = {{H5Z_FILTER_DEFLATE, GM_FILTER_DEFLATE, 1},
                 {H5Z_FILTER_SHUFFLE, GM_FILTER_SHUFFLE, 1},
                 {H5Z_FILTER_FLETCHER32, GM_FILTER_FLETCHER32, 0}};
    int64_t bytes = gm_dataset_chunk_bytes(record);
    int deflates = 0;

    *pipeline = (gm_pipeline){.count = H5Pget_nfilters(plist)};
    pipeline->bytes = (size_t)bytes;
    if (pipeline->count < 0 || pipeline->count > GM_FILTERS_MAX || bytes > UINT32_MAX)
        return 0;
    for (int i = 0; i < pipeline->count; i++) {
        size_t k = 0;
        filter it;
        if (!get_filter(plist, (unsigned)i, &it))
            return 0;
        while (k < sizeof known / sizeof known[0] && known[k].id != it.id)
            k++;
        if (k == sizeof known / sizeof known[0] || it.parameters != known[k].parameters)
            return 0;
        if (it.id == H5Z_FILTER_SHUFFLE && it.value[0] != gm_dtype_size(record->type))
            return 0;
        pipeline->filter[i] = (gm_filter){known[k].kind, it.value[0]};
        deflates += it.id == H5Z_FILTER_DEFLATE;
    }
    return deflates <= 1;
}
