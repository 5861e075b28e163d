#include "src/summary/times.h"

#include "base/log.h"
#include "base/size.h"
#include "src/summary/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "start", "open", ..., "work" */
static const char *row_name(int row)
{
    static const char *const others[] = {"start", "sync", "work"};
    return row < GM_PHASES ? gm_phase_name((gm_phase)row) : others[row - GM_PHASES];
}

static double seconds_of(const gm_rank_record *r, int row)
{
    double sum = 0;
    if (row < GM_PHASES)
        return r->times.seconds[row];
    if (row != GM_ROW_WORK)
        return row == GM_ROW_START ? r->init_s : r->sync_s;
    for (int phase = 0; phase < GM_PHASES; phase++)
        if (phase != GM_PHASE_OPEN && phase != GM_PHASE_EXCHANGE)
            sum += r->times.seconds[phase];
    return sum;
}

static gm_spread spread_of(const gm_rank_record *all, int ranks, int row)
{
    gm_spread s = {.least = seconds_of(&all[0], row), .most = seconds_of(&all[0], row)};
    double sum = 0;
    for (int r = 0; r < ranks; r++) {
        double seconds = seconds_of(&all[r], row);
        sum += seconds;
        s.least = seconds < s.least ? seconds : s.least;
        if (seconds > s.most) {
            s.most = seconds;
            s.rank = r;
        }
    }
    s.average = sum / ranks;
    return s;
}

static void find_limit(const gm_rank_record *all, gm_run_times *t)
{
    t->limit = GM_ROW_START;
    t->limit_rank = t->row[GM_ROW_START].rank;
    t->limit_s = t->row[GM_ROW_START].most;
    if (t->limit_s > t->wall + t->row[GM_ROW_SYNC].most)
        return;
    t->limit = 0;
    t->limit_rank = t->slowest;
    t->limit_s = seconds_of(&all[t->slowest], 0);
    for (int phase = 1; phase < GM_PHASES; phase++)
        if (seconds_of(&all[t->slowest], phase) > t->limit_s) {
            t->limit = phase;
            t->limit_s = seconds_of(&all[t->slowest], phase);
        }
    if (t->row[GM_ROW_SYNC].most > t->limit_s) { /* of the rank that flushes */
        t->limit = GM_ROW_SYNC;
        t->limit_rank = t->row[GM_ROW_SYNC].rank;
        t->limit_s = t->row[GM_ROW_SYNC].most;
    }
}

void gm_times_find(const gm_rank_record *all, int ranks, double wall, gm_run_times *t)
{
    *t = (gm_run_times){.ranks = ranks, .wall = wall};
    for (int row = 0; row < GM_ROWS; row++)
        t->row[row] = spread_of(all, ranks, row);
    for (int r = 0; r < ranks; r++) {
        t->flop += all[r].flop;
        t->bytes_read += (double)all[r].bytes_read;
        t->bytes_written += (double)all[r].bytes_written;
    }
    const gm_spread *work = &t->row[GM_ROW_WORK];
    t->slowest = work->rank;
    t->imbalance = work->average > 0 ? work->most / work->average : 1;
    find_limit(all, t);
}

/* --- The report --- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const gm_rank_record *all, int ranks, int row)
{
    double *seconds = gm_json_allocate((size_t)ranks * sizeof *seconds);
    for (int r = 0; seconds && r < ranks; r++)
        seconds[r] = seconds_of(&all[r], row);
    if (seconds)
        qsort(seconds, (size_t)ranks, sizeof *seconds, by_size);
    double median = seconds ? seconds[ranks / 2] : 0;
    free(seconds);
    return median;
}

static json_t *spread_json(const gm_run_times *t, const gm_rank_record *all, int row)
{
    const gm_spread *s = &t->row[row];
    return json_pack("{s:f, s:f, s:f, s:f, s:i}", "min", s->least, "median", median_of(all, t->ranks, row), "average",
                     s->average, "max", s->most, "slowest", s->rank);
}

void gm_times_report(const gm_run_times *t, const gm_rank_record *all, int has_ended_well, json_t *root)
{
    json_t *phases = json_object(), *work = spread_json(t, all, GM_ROW_WORK);
    for (int phase = 0; phase < GM_PHASES; phase++)
        json_object_set_new(phases, row_name(phase), spread_json(t, all, phase));
    json_object_set_new(root, "phases", phases);
    json_object_set_new(work, "imbalance", json_real(t->imbalance));
    json_object_set_new(root, "work", work);
    if (has_ended_well)
        json_object_set_new(
            root, "limit",
            json_pack("{s:s, s:f, s:i}", "phase", row_name(t->limit), "seconds", t->limit_s, "rank", t->limit_rank));
}

/* --- The table and the line --- */

static void say_row(const gm_run_times *t, int row)
{
    const gm_spread *s = &t->row[row];
    char share[16] = "-"; /* start and sync are not in the time of the run */
    if (s->most <= 0 && row != GM_ROW_WORK)
        return;
    if (row != GM_ROW_START && row != GM_ROW_SYNC && t->wall > 0)
        snprintf(share, sizeof share, "%.1f", 100 * s->average / t->wall);
    gm_detail("%-11s %9.3f %9.3f %9.3f %6d %7s", row_name(row), s->least, s->average, s->most, s->rank, share);
}

static void say_table(const gm_run_times *t, const gm_rank_record *all)
{
    gm_detail("%-11s %9s %9s %9s %6s %7s", "phase", "min s", "avg s", "max s", "rank", "% wall");
    say_row(t, GM_ROW_START);
    for (int phase = 0; phase < GM_PHASES; phase++)
        say_row(t, phase);
    say_row(t, GM_ROW_SYNC);
    say_row(t, GM_ROW_WORK);
    gm_detail("imbalance %.2f (work, max / avg), slowest rank %d on %s", t->imbalance, t->slowest,
              all[t->slowest].host);
}

/* "; start 0.310 s": what was not in the time of the run, unless the line has it already. */
static void append_seconds(const gm_run_times *t, int row, char *text, size_t room)
{
    size_t used = strlen(text);
    if (t->limit != row && t->row[row].most > 0)
        snprintf(text + used, room - used, "%s %s %.3f s", used ? "," : ";", row_name(row), t->row[row].most);
}

void gm_times_say(const gm_run_times *t, const gm_rank_record *all)
{
    char number[4][GM_SIZE_TEXT], read[64] = "", written[64] = "", flop[64] = "", of[32] = "", beside[64] = "";
    double bytes = t->bytes_read + t->bytes_written;
    say_table(t, all);
    if (t->bytes_read > 0 || bytes <= 0)
        snprintf(read, sizeof read, "%sB read", gm_si_format(t->bytes_read, number[0]));
    if (t->bytes_written > 0)
        snprintf(written, sizeof written, "%s%sB written", t->bytes_read > 0 ? ", " : "",
                 gm_si_format(t->bytes_written, number[1]));
    if (t->flop > 0 && t->wall > 0)
        snprintf(flop, sizeof flop, ", %sflop/s", gm_si_format(t->flop / t->wall, number[2]));
    if (t->ranks > 1)
        snprintf(of, sizeof of, " on rank %d", t->limit_rank);
    append_seconds(t, GM_ROW_START, beside, sizeof beside);
    append_seconds(t, GM_ROW_SYNC, beside, sizeof beside);
    gm_note("%s%s in %.3f s: %sB/s%s, limited by %s (%.3f s%s)%s", read, written, t->wall,
            gm_si_format(t->wall > 0 ? bytes / t->wall : 0, number[3]), flop, row_name(t->limit), t->limit_s, of,
            beside);
}
