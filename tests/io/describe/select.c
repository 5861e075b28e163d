/* select.c - selections in text, the shapes of records, and the boxes of a matrix. */
#include <inttypes.h>

#include "base/size.h"
#include "io/box.h"
#include "io/describe/describe.h"
#include "io/describe/select.h"
#include "tests/io/each.h"

static gm_dataset record;

static int take(int rank, const int64_t *dims, const char *text)
{
    memset(&record, 0, sizeof record);
    strcpy(record.file, "f.h5");
    strcpy(record.name, "/d");
    record.rank = rank;
    for (int d = 0; d < rank; d++)
        record.dims[d] = dims[d];
    return gm_select(&record, text);
}

static void check_good(void)
{
    static const int64_t dims[3] = {10, 20, 30};
    static const struct {
        const char *text;
        int64_t start[3], step[3], count[3];
        int view_rank;
    } good[] = {
        {"", {0, 0, 0}, {1, 1, 1}, {10, 20, 30}, 3},
        {"[]", {0, 0, 0}, {1, 1, 1}, {10, 20, 30}, 3},
        {"[:]", {0, 0, 0}, {1, 1, 1}, {10, 20, 30}, 3},
        {"[:,:,:]", {0, 0, 0}, {1, 1, 1}, {10, 20, 30}, 3},
        {"[2:5,:,::2]", {2, 0, 0}, {1, 1, 2}, {3, 20, 15}, 3},
        {"[ 2 : 5 , 1 ]", {2, 1, 0}, {1, 1, 1}, {3, 1, 30}, 2},
        {"[-1]", {9, 0, 0}, {1, 1, 1}, {1, 20, 30}, 2},
        {"[-10,-20,-30]", {0, 0, 0}, {1, 1, 1}, {1, 1, 1}, 0},
        {"[-3:,:-19,5:-5:7]", {7, 0, 5}, {1, 1, 7}, {3, 1, 3}, 3},
        {"[3:3]", {3, 0, 0}, {1, 1, 1}, {0, 20, 30}, 3},
        {"[5:999]", {5, 0, 0}, {1, 1, 1}, {5, 20, 30}, 3},
        {"[99:]", {10, 0, 0}, {1, 1, 1}, {0, 20, 30}, 3},
        {"[:-99]", {0, 0, 0}, {1, 1, 1}, {0, 20, 30}, 3},
        {"[-99:4]", {0, 0, 0}, {1, 1, 1}, {4, 20, 30}, 3},
        {"[::9999999999999999999999]", {0, 0, 0}, {10, 1, 1}, {1, 20, 30}, 3},
        {"[0:9223372036854775807,+3]", {0, 3, 0}, {1, 1, 1}, {10, 1, 30}, 2},
        {"[::3]", {0, 0, 0}, {3, 1, 1}, {4, 20, 30}, 3},
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int ok = take(3, dims, good[i].text) == GM_OK && record.view_rank == good[i].view_rank;
        for (int d = 0; d < 3; d++)
            ok = ok && record.selection.start[d] == good[i].start[d] && record.selection.step[d] == good[i].step[d] &&
                 record.selection.count[d] == good[i].count[d];
        ok = ok && strcmp(record.selected, good[i].text) == 0;
        tap_ok(ok, "selection \"%s\"", good[i].text);
    }
}

static void check_bad(void)
{
    static const int64_t dims[2] = {10, 20};
    static const struct {
        const char *text;
        int code;
        const char *part;
    } bad[] = {
        {"[10]", GM_EINPUT, "f.h5:/d[10]: index 10 is outside dimension 0, which has 10 elements"},
        {"[-11]", GM_EINPUT, "index -11 is outside dimension 0"},
        {"[:,20]", GM_EINPUT, "index 20 is outside dimension 1"},
        {"[5:4]", GM_EINPUT, "runs backwards"},
        {"[-1:-2]", GM_EINPUT, "runs backwards"},
        {"[1,2,3]", GM_EINPUT, "shape (10, 20)"},
        {"[::0]", GM_EUSAGE, "step 0"},
        {"[::-1]", GM_EUSAGE, "step -1"},
        {"[a]", GM_EUSAGE, "malformed selection at \"a]\""},
        {"[1:2:3:4]", GM_EUSAGE, "malformed"},
        {"[1,]", GM_EUSAGE, "malformed"},
        {"[,1]", GM_EUSAGE, "malformed"},
        {"[1", GM_EUSAGE, "malformed"},
        {"[1.5]", GM_EUSAGE, "malformed"},
        {"[...]", GM_EUSAGE, "malformed"},
        {"[1 2]", GM_EUSAGE, "malformed"},
        {"[1][2]", GM_EUSAGE, "follows the selection"},
        {"1]", GM_EUSAGE, "begins with"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        fails(take(2, dims, bad[i].text), bad[i].code, bad[i].part, bad[i].text);
    fails(take(0, NULL, "[0]"), GM_EINPUT, "shape ()", "an index into a scalar");
}

/* Of a dimension of 2^62 + 10 elements, which one of single bytes can have. */
static void check_far(void)
{
    static const int64_t dims[1] = {(INT64_C(1) << 62) + 10};
    static const struct {
        const char *text;
        int64_t from_end, step, count;
    } far[] = {
        {"[4611686018427387909]", 5, 1, 1},
        {"[-4611686018427387914]", (INT64_C(1) << 62) + 10, 1, 1},
        {"[4611686018427387905:4611686018427387910]", 9, 1, 5},
        {"[4611686018427387905::4]", 9, 4, 3},
        {"[4611686018427387905::9223372036854775807]", 9, (INT64_C(1) << 62) + 10, 1},
    };
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++)
        tap_ok(take(1, dims, far[i].text) == GM_OK && record.selection.start[0] == dims[0] - far[i].from_end &&
                   record.selection.step[0] == far[i].step && record.selection.count[0] == far[i].count,
               "selection \"%s\" of 2^62 + 10", far[i].text);
    fails(take(1, dims, "[4611686018427387914]"), GM_EINPUT, "index 4611686018427387914 is outside", "the end");
    fails(take(1, dims, "[99999999999999999999]"), GM_EINPUT, "d[99999999999999999999]: index", "beyond 64 bits");
}

static void check_record(void)
{
    static const int64_t dims[3] = {10, 20, 30}, none[2] = {0, 5};
    char title[GM_PATH_MAX];
    int64_t rows, cols;
    take(3, dims, "[2:4,:,3]");
    gm_dataset_matrix(&record, &rows, &cols);
    tap_ok(rows == 2 && cols == 20 && gm_dataset_elements(&record) == 40, "matrix of a selection");
    tap_ok(strcmp(gm_dataset_title(&record, title), "f.h5:/d[2:4,:,3]") == 0, "title of a selection");
    take(3, dims, "[2]");
    gm_dataset_matrix(&record, &rows, &cols);
    tap_ok(rows == 20 && cols == 30, "a dropped first dimension");
    take(0, NULL, "");
    gm_dataset_matrix(&record, &rows, &cols);
    tap_ok(rows == 1 && cols == 1 && gm_dataset_elements(&record) == 1, "a scalar is 1 x 1");
    take(1, dims, "");
    gm_dataset_matrix(&record, &rows, &cols);
    tap_ok(rows == 10 && cols == 1, "a vector is n x 1");
    take(2, none, "");
    gm_dataset_matrix(&record, &rows, &cols);
    tap_ok(rows == 0 && cols == 5 && gm_dataset_elements(&record) == 0, "nothing is 0 x 5");
    fails(take(2, none, "[0]"), GM_EINPUT, "which has 0 elements", "an index into nothing");
}

/* Every column of a matrix is in one box exactly, at its place. */
static void check_boxes(const char *text)
{
    static const int64_t dims[4] = {3, 4, 5, 6};
    int64_t rows, cols, wrong = 0, most = 0;
    take(4, dims, text);
    gm_dataset_matrix(&record, &rows, &cols);
    for (int64_t from = 0; from < cols; from++) {
        for (int64_t end = from + 1; end <= cols; end++) {
            int64_t boxes = 0;
            gm_box box;
            for (int64_t at = from; at < end; at += box.columns, boxes++) {
                int64_t elements = 1, flat = 0, column = at;
                gm_box_next(&record, 0, 1, at, end, &box);
                for (int d = 0; d < 4; d++)
                    elements *= box.count[d];
                /* the box's corner is the element that column at names */
                for (int v = record.view_rank - 1, d = 3; d >= 0; d--) {
                    int64_t index;
                    if (record.selection.dropped[d])
                        continue;
                    index = v > 0 ? column % record.view[v] : 0;
                    column = v > 0 ? column / record.view[v] : column;
                    v--;
                    flat += box.start[d] != record.selection.start[d] + index * record.selection.step[d];
                }
                wrong += flat != 0 || elements != box.columns || box.columns < 1 || at + box.columns > end;
            }
            most = gm_max(most, boxes);
        }
    }
    tap_ok(wrong == 0 && most <= 2 * record.view_rank - 1,
           "boxes of \"%s\": %" PRId64 " x %" PRId64 ", at most %" PRId64, text, rows, cols, most);
}

static void check_split(void)
{
    static const struct {
        const char *text, *file, *dataset, *selection;
    } good[] = {
        {"f.h5", "f.h5", "", ""},
        {"f.h5:/g/d", "f.h5", "/g/d", ""},
        {"f.h5:g//d/", "f.h5", "/g/d", ""},
        {"f.h5:/d[1:2,:]", "f.h5", "/d", "[1:2,:]"},
        {"f.h5[1]", "f.h5", "", "[1]"},
        {"f.h5:/", "f.h5", "/", ""},
        {"./a:b/f.h5:/x:y", "./a:b/f.h5", "/x:y", ""},
        {"f.h5:/d[1][:]", "f.h5", "/d[1]", "[:]"},
        {"f.h5:/x[0] it=0", "f.h5", "/x[0] it=0", ""},
        {"f.h5:/x[0] it=0[3]", "f.h5", "/x[0] it=0", "[3]"},
        {"f.h5:/g[1]/d", "f.h5", "/g[1]/d", ""},
        {"f.h5:/d[1[]", "f.h5", "/d[1", "[]"},
    };
    static const struct {
        const char *text, *part;
    } bad[] = {{"", "name of a file is missing"},
               {":/d", "name of a file is missing"},
               {"f.h5:", "name of a dataset is missing"},
               {"f.h5:/d[1", "closing bracket"}};
    char file[GM_PATH_MAX], dataset[GM_NAME_MAX], selection[GM_NAME_MAX], *odd;
    FILE *made;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        tap_ok(gm_name_split(good[i].text, file, dataset, selection) == GM_OK && !strcmp(file, good[i].file) &&
                   !strcmp(dataset, good[i].dataset) && !strcmp(selection, good[i].selection),
               "split \"%s\": %s %s %s", good[i].text, file, dataset, selection);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        fails(gm_name_split(bad[i].text, file, dataset, selection), GM_EUSAGE, bad[i].part, bad[i].text);
    odd = own("odd:/name[1].h5[0]");
    tap_ok(gm_name_split(odd, file, dataset, selection) == GM_OK && selection[0],
           "an odd name without a file is taken apart");
    odd = own("odd:name[0]");
    made = fopen(odd, "w");
    if (made)
        fclose(made);
    tap_ok(gm_name_split(odd, file, dataset, selection) == GM_OK && !strcmp(file, odd) && !dataset[0] && !selection[0],
           "a file of an odd name is a bare file");
    strcat(odd, ":/x:/y[2]");
    tap_ok(gm_name_split(odd, file, dataset, selection) == GM_OK && !strcmp(dataset, "/x:/y") &&
               !strcmp(selection, "[2]"),
           "and its dataset is found");
    remove(file);
}

int main(void)
{
    check_good();
    check_bad();
    check_far();
    check_record();
    check_boxes("");
    check_boxes("[:,1:3,::2,2:]");
    check_boxes("[1]");
    check_boxes("[:,1,:,3]");
    check_boxes("[:,1,2,3]");
    check_split();
    return tap_done();
}
