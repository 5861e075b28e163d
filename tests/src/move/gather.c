/* gather: wanted rows are sorted and packed, plans hold their budgets, and a slow device with memory of its own gives
 * the output of the processor. */
#include "src/move/gather.h"
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/src/slow_device.h"
#include "tests/tap.h"

#include "base/log.h"
#include "base/random.h"
#include "base/size.h"

#include <unistd.h>

static gm_ranks ranks;

static int64_t draw(uint64_t *state, int64_t most)
{
    return (int64_t)(gm_random_mix(*state += GM_RANDOM_STEP) % (uint64_t)most);
}

/* --- Sorting and packing --- */

enum { ENTRIES = 5000 };

/* Faults of the cut of sorted entries into pieces: each row lies where its distance to the one before says. */
static int faults_of_pieces(const gm_gather_entry *e, int64_t count, int64_t most, int64_t room, int64_t gap)
{
    int faults = 0;
    for (int64_t at = 0, rows, n; at < count; at += n) {
        n = gm_gather_cut(e + at, count - at, most, room, gap, &rows);
        int64_t slot = -1;
        if (n < 1 || n > most || rows > room)
            return 1;
        for (int64_t k = at; k < at + n; k++) {
            int joins;
            int64_t last = slot;
            slot = gm_gather_pack(&e[k] - (k > at), &e[k], slot, gap, &joins);
            if (k == at)
                faults += slot != 0 || joins;
            else if (e[k].row - e[k - 1].row <= gap + 1)
                faults += !joins || slot - last != e[k].row - e[k - 1].row;
            else
                faults += joins || slot != last + 1;
        }
        faults += slot + 1 != rows;
    }
    return faults;
}

static void test_sort(void)
{
    static const int64_t extents[] = {1, 2, 2048, 2049, 100000, INT64_C(1) << 40, INT64_MAX};
    static gm_gather_entry memory[2][ENTRIES];
    uint64_t state = 3;
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
        gm_gather_entry *e = memory[0], *spare = memory[1];
        int faults = 0;
        for (int64_t k = 0; k < ENTRIES; k++)
            e[k] = (gm_gather_entry){draw(&state, extents[i]), k};
        int status = gm_gather_sort(&e, &spare, ENTRIES, extents[i]);
        char seen[ENTRIES] = {0};
        for (int64_t k = 0; k < ENTRIES; k++) {
            faults += seen[e[k].place]++ != 0;
            faults += k > 0 && (e[k].row < e[k - 1].row || (e[k].row == e[k - 1].row && e[k].place < e[k - 1].place));
        }
        for (int64_t gap = 0; gap < 40; gap += 13)
            for (int64_t most = 1; most < 10000; most *= 9)
                for (int64_t room = 1; room < 10000; room *= 7)
                    faults += faults_of_pieces(e, ENTRIES, most, room, gap);
        tap_ok(!status && !faults, "rows below %lld: sorted, and cut into pieces: %d faults", (long long)extents[i],
               faults);
    }
}

/* --- Plans --- */

static gm_gather_case random_case(uint64_t *state)
{
    static const int sizes[] = {1, 2, 4, 8};
    gm_gather_case c = {.indices = 1 + (int)draw(state, 2), .size = sizes[draw(state, 4)]};
    gm_dataset *d = c.input;
    for (int i = 0; i < c.indices; i++)
        c.index_size[i] = sizes[draw(state, 4)];
    c.positions = draw(state, 10) ? 1 + draw(state, INT64_C(1) << draw(state, 30)) : draw(state, 4);
    c.rows = 1 + draw(state, INT64_C(1) << draw(state, 30));
    c.columns = draw(state, 10) ? 1 + draw(state, INT64_C(1) << draw(state, 28)) : draw(state, 2);
    d->rank = d->view_rank = 2;
    d->dims[0] = d->view[0] = c.rows;
    d->dims[1] = d->view[1] = c.columns;
    for (int k = 0; k < 2; k++)
        d->selection.step[k] = 1;
    return c;
}

static int faults_of_plan(const gm_gather_case *c, const gm_gather_plan *p, const gm_ring_budget *b)
{
    int64_t slot = p->ring.slot, words = p->pieces * 8, raw = p->raw_at[c->indices - 1];
    int faults = p->ring.host_bytes > b->host || p->ring.device_bytes > b->device || p->pieces < 1 || p->part < 1;
    faults += p->raw_at[0] < 8 || raw + p->pieces * c->index_size[c->indices - 1] > p->rows_at;
    faults += c->indices > 1 && p->raw_at[0] + p->pieces * c->index_size[0] > raw;
    faults += p->rows_at + words > (p->held ? p->out_at : slot);
    if (p->held)
        return faults + (p->out_at + p->pieces * p->part * c->size > slot || p->load < 1 || p->load * c->size > slot) +
               (p->pieces > 1 && p->part != c->columns);
    faults += p->entries < 1 || p->room < 1 || p->block < 1 || p->block_columns < 1;
    faults += p->place_at < p->entries * 8 || p->data_at < p->place_at + p->entries * 8;
    faults += p->data_at + p->room * p->part * c->size > slot;
    faults += p->room > 1 && p->part < gm_range_length(p->columns);
    return faults + (p->block > 1 && p->block_columns < gm_range_length(p->columns));
}

static void test_plans(void)
{
    enum { CASES = 3000 };
    uint64_t state = 11;
    int faults = 0, held = 0, refused = 0;
    for (int i = 0; i < CASES; i++) {
        gm_gather_case c = random_case(&state);
        gm_ring_budget b = {.host = draw(&state, INT64_C(1) << (10 + draw(&state, 30))), .threads = 1}, need;
        gm_ring_request request = {.piece = draw(&state, 3) ? 0 : 1 + draw(&state, 1 << 20), .depth = draw(&state, 4)};
        gm_gather_plan p;
        int size = 1 + (int)draw(&state, 5);
        b.unified = (int)draw(&state, 2);
        b.device = b.unified ? b.host : draw(&state, INT64_C(1) << (10 + draw(&state, 30)));
        b.threads += (int)draw(&state, 9);
        int64_t elements = 0;
        for (int rank = 0; rank < size; rank++) {
            need = b;
            if (gm_gather_plan_make(&c, &request, &b, size, rank, &p, &need)) {
                refused++;
                faults += need.host <= b.host && need.device <= b.device;
                need.host = need.device = gm_max(need.host, need.device);
                gm_ring_budget enough = need;
                if (gm_gather_plan_make(&c, &request, &enough, size, rank, &p, &need))
                    faults += enough.host >= need.host && enough.device >= need.device;
                else
                    faults += faults_of_plan(&c, &p, &enough);
            } else {
                faults += faults_of_plan(&c, &p, &b);
            }
            held += p.held;
            elements += gm_range_length(p.positions) * gm_range_length(p.columns);
        }
        faults += elements != c.positions * c.columns;
    }
    tap_ok(!faults && held > CASES / 10 && refused > CASES / 10, "%d plans, %d held, %d refused: %d faults", CASES,
           held, refused, faults);
}

/* Rows of 2560 bytes: six of them between two wanted ones are read as well. */
static void test_bytes(void)
{
    enum { ROW = 2560, INDEX = 8 };
    const gm_gather_case c = {
        .indices = 1, .index_size = {INDEX}, .positions = 1000, .rows = 1000000, .columns = 640, .size = 4};
    const gm_range all = {0, 640}, none = {0, 0};
    gm_gather_plan p = {.block = 1000000, .block_columns = 640, .part = 640};
    int64_t read, written, most = c.rows * ROW;
    gm_gather_bytes(&c, &p, (gm_range){0, 30}, all, &read, &written);
    tap_ok(read >= 30 * (ROW + INDEX) && read < 31 * (ROW + INDEX) && written == 30 * ROW, "few rows: %lld",
           (long long)read);
    gm_gather_bytes(&c, &p, (gm_range){0, 1000000}, all, &read, &written);
    tap_ok(read > most * 0.99 && read <= most + 1000000 * INDEX, "many rows: nearly all: %lld", (long long)read);
    gm_gather_bytes(&c, &p, (gm_range){0, 1000000}, none, &read, &written);
    tap_ok(read == 1000000 * INDEX && written == 0, "no columns: indices alone");
    p.block = 500000;
    gm_gather_bytes(&c, &p, (gm_range){0, 1000000}, none, &read, &written);
    tap_ok(read == 2 * 1000000 * INDEX, "of two blocks, twice");
    p.held = 1;
    gm_gather_bytes(&c, &p, (gm_range){0, 30}, all, &read, &written);
    tap_ok(read == most + 30 * INDEX, "held data are read once, all of them");
}

/* --- A device with memory of its own --- */

static void make_slow(gm_job *job)
{
    job->ops = slow_device_ops(job->ops);
}

static void test_slow(void)
{
    static const char *const lines[] = {"gather s.h5 --index i.h5", "gather s.h5 --index i.h5 --index2 j.h5",
                                        "gather s.h5 --index i.h5:/images[0,0]",
                                        "gather s.h5 --index i.h5:/images[0,0,0]"};
    static const char *const caps[] = {"", "--piece 3000", "--device-memory 150K --host-memory 400K",
                                       "--device-memory 60K --piece 6000 --depth 2",
                                       "--device-memory 100K --host-memory 200K --piece 400"};
    int made = !command_run_all(&ranks, NULL, "gen stack s.h5 --frames 10 --height 21 --width 37 --no-sync");
    made = made &&
           !command_run_all(&ranks, NULL, "gen stack i.h5 --size 7 --type u16 --distribution integers --no-sync");
    made = made && !command_run_all(&ranks, NULL,
                                    "gen stack j.h5 --size 7 --type i64 --seed 9 --big-endian --distribution integers "
                                    "--no-sync");
    tap_ok(made, "inputs are made");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (size_t k = 0; k < sizeof caps / sizeof *caps; k++) {
            const char *options = "--force --no-sync --threads 3 --device cpu";
            int status = command_run_all(&ranks, NULL, "%s -o good.h5 %s", lines[i], options);
            if (!status)
                status = command_run_all(&ranks, make_slow, "%s -o slow.h5 %s %s", lines[i], options, caps[k]);
            if (!status)
                status = command_run_all(&ranks, NULL, "compare slow.h5 good.h5 --device cpu");
            gm_error error;
            gm_error_get(&error);
            tap_ok(status == GM_OK, "a slow device: %s %s: %s", lines[i], caps[k], error.text);
            gm_error_clear();
            unlink("good.h5");
            unlink("slow.h5");
        }
    int status = command_run_all(&ranks, make_slow,
                                 "gather s.h5:/images[:9] --index i.h5 -o slow.h5 --threads 3 --device cpu");
    gm_error error;
    gm_error_get(&error);
    tap_ok(status == GM_EINPUT, "a slow device, an index of 9: %s", error.text);
}

int main(void)
{
    if (gm_ranks_start_all(&ranks) || folder_enter_all(&ranks))
        return 1;
    gm_log_setup(1, GM_QUIET);
    test_sort();
    test_plans();
    test_bytes();
    test_slow();
    tap_ok(folder_leave_all(&ranks, "s.h5 i.h5 j.h5"), "no other files are left");
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
