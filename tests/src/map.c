/* Work that is a range of elements: shares of ranks and pieces of shares, by the rules of src/map.h. */
#include "base/random.h"
#include "base/size.h"
#include "src/map.h"
#include "src/operation.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES_MOST = 4096, PLANS = 400 };

static gm_ranks alone;

/* Pieces of one rank, in their order. */
static struct {
    gm_range piece[PIECES_MOST];
    int count;
    int64_t misplaced; /* elements that are not where they were read to */
} seen;

/* Marks what is read with the number of its element. */
static int read_elements(void *context, const gm_piece *piece, gm_range part, void *host)
{
    const gm_run *run = context;
    int64_t begin = piece->col, end = piece->col + piece->cols;
    (void)part;
    for (int64_t i = begin; i < end; i++)
        memset((char *)host + (i - begin) * run->shape.map.in, (int)(i & 127), (size_t)run->shape.map.in);
    memset((char *)host + run->out_at, 255, (size_t)(piece->cols * run->shape.map.out));
    return GM_OK;
}

static int record(void *context, const gm_piece *piece, const gm_slot_memory *slot, gm_queue *queue)
{
    const gm_run *run = context;
    const unsigned char *in = slot->device;
    (void)queue;
    for (int64_t i = 0; i < piece->cols * run->shape.map.in; i++)
        seen.misplaced += in[i] != ((piece->col + i / run->shape.map.in) & 127);
    if (seen.count < PIECES_MOST)
        seen.piece[seen.count] = (gm_range){piece->col, piece->col + piece->cols};
    seen.count++;
    return GM_OK;
}

static int write_nothing(void *context, const gm_piece *piece, gm_range part, const void *host)
{
    (void)context;
    (void)piece;
    (void)part;
    (void)host;
    return GM_OK;
}

/* Is a piece whole units of the largest size that begins where it begins and fits, inside one unit of the size before;
 * or the end of a share, which cuts a unit of the last size? */
static int is_right(const gm_map *map, int64_t most, gm_range piece, int64_t end)
{
    int64_t length = gm_range_length(piece);
    if (length < 1 || length > most || piece.end > end)
        return 0;
    for (int i = 0; i < GM_MAP_UNITS && map->unit[i]; i++) {
        int64_t unit = map->unit[i], before = i ? map->unit[i - 1] : 0;
        if (piece.begin % unit || gm_min(most, end - piece.begin) < unit)
            continue;
        return length % unit == 0 && (!before || piece.begin / before == (piece.end - 1) / before);
    }
    return piece.end == end;
}

/* Plans and runs one rank's share. Returns the faults found; *expected: the first element of the share, then of the
 * next one. */
static int faults_of_rank(gm_job *job, const gm_operation *operation, const gm_map *map, int64_t *expected)
{
    gm_run run = {.job = job, .operation = operation, .shape.map = *map, .threads = 1};
    gm_ring_budget budget = {.host = INT64_MAX / 4, .device = INT64_MAX / 4, .unified = 1, .threads = 1}, need;
    int faults = gm_map_plan(&run, &budget, &need) != GM_OK;
    int64_t at = run.range.begin, end = run.range.end;
    faults += at != *expected || (at % gm_max(map->share, 1) != 0 && at != map->elements);
    faults += gm_mul_sat(run.piece, map->in) > run.out_at || run.out_at + run.piece * map->out > run.ring.slot;
    seen.count = 0;
    faults += gm_map_prepare(&run) || gm_map_run_all(&run);
    for (int i = 0; i < seen.count && i < PIECES_MOST; i++) {
        faults += seen.piece[i].begin != at || !is_right(map, run.piece, seen.piece[i], end);
        at = seen.piece[i].end;
    }
    faults += seen.count <= PIECES_MOST && at != end;
    *expected = end;
    gm_run_close(&run);
    return faults;
}

/* Of all ranks: the shares cover the range. */
static int faults_of_plan(gm_job *job, const gm_map *map, int64_t piece, int size)
{
    const gm_operation operation = {.program = {.read = read_elements, .compute = record, .write = write_nothing}};
    gm_options options = *job->options;
    gm_job mine = *job;
    int64_t expected = 0;
    int faults = 0;
    options.piece = piece;
    options.depth = 2;
    mine.options = &options;
    for (int rank = 0; rank < size; rank++) {
        gm_ranks ranks = alone;
        ranks.rank = rank;
        ranks.size = size;
        mine.ranks = &ranks;
        faults += faults_of_rank(&mine, &operation, map, &expected);
    }
    return faults + (expected != map->elements);
}

static int64_t draw(uint64_t *state, int64_t most)
{
    return (int64_t)(gm_random_mix(*state += GM_RANDOM_STEP) % (uint64_t)most);
}

/* Each unit is a multiple of the next one; the first may be the range, whatever the next one is. */
static gm_map random_map(uint64_t *state)
{
    gm_map map = {.in = draw(state, 9), .out = draw(state, 9)};
    int units = 1 + (int)draw(state, GM_MAP_UNITS);
    int64_t last = draw(state, 2) ? 1 : 1 + draw(state, 7), unit = last;
    for (int i = units - 1; i >= 0; i--) {
        map.unit[i] = unit;
        unit *= 1 + draw(state, 9);
    }
    map.in += map.in + map.out == 0;
    map.elements = draw(state, 8) ? draw(state, 900) + map.unit[0] * draw(state, 4) : draw(state, 5);
    if (units > 1 && map.elements > map.unit[1] && draw(state, 3) == 0)
        map.unit[0] = map.elements;
    map.share = draw(state, 2) ? map.unit[units - 1 - draw(state, units)] : last * (1 + draw(state, 20));
    return map;
}

static void test_random(gm_job *job)
{
    uint64_t state = 7;
    int faults = 0;
    for (int plan = 0; plan < PLANS; plan++) {
        gm_map map = random_map(&state);
        int64_t piece = 1 + draw(&state, 3000);
        int size = 1 + (int)draw(&state, 5), found = faults_of_plan(job, &map, piece, size);
        if (found)
            tap_diag("%lld elements in shares of %lld, units %lld %lld %lld %lld, %lld + %lld bytes each, --piece "
                     "%lld, %d ranks: %d faults",
                     (long long)map.elements, (long long)map.share, (long long)map.unit[0], (long long)map.unit[1],
                     (long long)map.unit[2], (long long)map.unit[3], (long long)map.in, (long long)map.out,
                     (long long)piece, size, found);
        faults += found;
    }
    tap_ok(faults == 0, "%d random plans: every share in pieces of whole units", PLANS);
}

static void test_known(gm_job *job)
{
    gm_map matrices = {.elements = 5 * 60, .share = 60, .unit = {60, 6, 1}, .in = 2, .out = 2};
    static const struct {
        int64_t bytes, first, pieces;
    } known[] = {{1200 + 600, 300, 1}, {700, 120, 3}, {256 + 120, 60, 5}, {256, 60, 5},
                 {200, 48, 10},        {60, 12, 25},  {20, 5, 100}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int faults = faults_of_plan(job, &matrices, known[i].bytes, 1);
        tap_ok(!faults && gm_range_length(seen.piece[0]) == known[i].first && seen.count == known[i].pieces,
               "5 matrices of 10 x 6 in pieces of %lld bytes: %lld elements first, %d pieces",
               (long long)known[i].bytes, (long long)gm_range_length(seen.piece[0]), seen.count);
    }
}

int main(void)
{
    char *argv[] = {"gpumem-run", "flip", "none.h5", "--device", "cpu", "--threads", "1", NULL};
    gm_options options;
    gm_job job = {.argc = 7, .argv = argv, .options = &options, .ranks = &alone};
    if (gm_ranks_start_all(&alone) || gm_options_parse(7, argv, &options) || gm_job_open_device_all(&job, 1))
        return 1;
    test_known(&job);
    test_random(&job);
    tap_ok(seen.misplaced == 0, "elements are where they were read to");
    gm_job_close_device(&job);
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
