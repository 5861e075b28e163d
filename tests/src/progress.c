/* The progress display: which rank shows it, when, and its text. */
#include "src/progress.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/capture.h"
#include "tests/tap.h"

/* text: the output to stderr, which is not a terminal here, of a run of three pieces that takes the given seconds. */
static void show(const char *how, const char *quiet, int rank, double seconds, char *text, size_t size)
{
    char *argv[] = {"gpumem-run", "info", "--progress", (char *)(size_t)how, (char *)(size_t)quiet, NULL};
    gm_options options;
    gm_ranks ranks = {.rank = rank, .size = 2};
    gm_progress progress;
    capture errors;
    if (gm_options_parse(quiet ? 5 : 4, argv, &options))
        exit(99);
    capture_start(&errors);
    gm_job job = {.options = &options, .ranks = &ranks};
    gm_progress_start(&progress, &job, "test", 3 << 20);
    for (int i = 1; i <= 3; i++) {
        progress.started -= seconds / 3;
        if (progress.shown > 0)
            progress.shown -= seconds / 3;
        gm_progress_add(&progress, 1 << 20);
    }
    gm_progress_end(&progress);
    capture_end(&errors, text, size);
}

static int count(const char *text, char what)
{
    int n = 0;
    for (; *text; text++)
        n += *text == what;
    return n;
}

int main(void)
{
    char text[4096];
    show("always", NULL, 0, 0.5, text, sizeof text);
    tap_ok(!*text, "always: nothing in the first second");
    show("always", NULL, 0, 6, text, sizeof text);
    tap_ok(count(text, '\r') == 4 && count(text, '\n') == 1 && strstr(text, "100 %, 3.00 MiB of 3.00 MiB"),
           "always: a bar");
    tap_ok(strstr(text, "\rtest [########................]  33 %, 1.00 MiB of 3.00 MiB") &&
               strstr(text, "0:00:04 left"),
           "the bar has a label, a share, numbers and the time left");
    show("auto", NULL, 0, 36, text, sizeof text);
    tap_ok(count(text, '\n') == 4 && !strchr(text, '\r') && strstr(text, "gpumem-run: test:  33 %"),
           "auto, no terminal: lines");
    show("auto", NULL, 0, 6, text, sizeof text);
    tap_ok(!*text, "auto, no terminal: nothing in the first ten seconds");
    show("never", NULL, 0, 60, text, sizeof text);
    tap_ok(!*text, "never: nothing");
    show("always", "-q", 0, 60, text, sizeof text);
    tap_ok(!*text, "quiet: nothing");
    show("always", NULL, 1, 60, text, sizeof text);
    tap_ok(!*text, "rank 1: nothing");
    return tap_done();
}
