#include "src/progress.h"

#include "base/clock.h"
#include "base/size.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SILENT, LINES, BAR };
static const double first_delay = 1;                          /* seconds; a shorter run shows nothing */
static const double interval[] = {[LINES] = 10, [BAR] = 0.2}; /* seconds between updates */

void gm_progress_start(gm_progress *progress, const gm_job *job, const char *label, int64_t total)
{
    const gm_options *o = job->options;
    int always = strcmp(o->progress, "always") == 0, never = strcmp(o->progress, "never") == 0;
    *progress = (gm_progress){.total = total, .started = gm_clock(), .label = label};
    if (job->ranks->rank == 0 && !o->quiet && !never)
        progress->mode = always || isatty(STDERR_FILENO) ? BAR : LINES;
}

/* "45 %, 1.20 GiB of 2.60 GiB, 850.00 MiB/s, 0:00:02 left" */
static void print_numbers(const gm_progress *p, double seconds, double share)
{
    char done[GM_SIZE_TEXT], total[GM_SIZE_TEXT], rate[GM_SIZE_TEXT];
    fprintf(stderr, "%3.0f %%, %s of %s, %s/s", 100 * share, gm_size_format(p->done, done),
            gm_size_format(p->total, total), gm_size_format((int64_t)((double)p->done / seconds), rate));
    int64_t left = share > 0 ? (int64_t)(seconds / share - seconds + 0.5) : 0;
    if (p->done < p->total && share > 0)
        fprintf(stderr, ", %lld:%02d:%02d left", (long long)(left / 3600), (int)(left / 60 % 60), (int)(left % 60));
}

static void show(gm_progress *p, double now)
{
    enum { WIDTH = 24 };
    double share = p->total > 0 ? (double)gm_min(p->done, p->total) / (double)p->total : 1;
    if (p->mode == BAR) {
        int full = (int)(share * WIDTH);
        fprintf(stderr, "\r%s [%.*s%.*s] ", p->label, full, "########################", WIDTH - full,
                "........................");
        print_numbers(p, now - p->started, share);
        fprintf(stderr, "\033[K"); /* erases the rest of a longer line */
    } else {
        fprintf(stderr, "gpumem-run: %s: ", p->label);
        print_numbers(p, now - p->started, share);
        fprintf(stderr, "\n");
    }
    fflush(stderr);
    p->shown = now;
}

void gm_progress_add(void *context, int64_t bytes)
{
    gm_progress *p = context;
    p->done += bytes;
    if (p->mode == SILENT)
        return;
    double now = gm_clock(), since = now - (p->shown > 0 ? p->shown : p->started);
    if (now - p->started >= first_delay && since >= interval[p->mode])
        show(p, now);
}

void gm_progress_end(gm_progress *progress)
{
    if (progress->shown > 0) {
        show(progress, gm_clock());
        if (progress->mode == BAR)
            fprintf(stderr, "\n");
    }
    progress->mode = SILENT;
}
