#include "tests/src/command.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MOST = 48, LINE_MAX_BYTES = 2048 };

static int run_all(gm_job *job, const gm_options *options, command_setup *setup)
{
    int cpu_only = gm_operation_device(options) == GM_DEVICE_CPU;
    int status = gm_job_open_device_all(job, cpu_only);
    if (!status && setup)
        setup(job);
    if (!status)
        status = gm_operation_run_all(job);
    gm_job_close_device(job);
    gm_report_clear(&job->report);
    return status;
}

int command_run_all(const gm_ranks *ranks, command_setup *setup, const char *format, ...)
{
    char line[LINE_MAX_BYTES], *argv[WORDS_MOST + 1] = {"gpumem-run"};
    gm_options options;
    va_list arguments;
    int argc = 1;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *word = strtok(line, " "); word && argc < WORDS_MOST; word = strtok(NULL, " "))
        argv[argc++] = word;
    gm_error_clear();
    fflush(stdout);
    int out = dup(1), null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    close(null);
    gm_job job = {.argc = argc, .argv = argv, .options = &options, .ranks = ranks};
    int status = gm_agree_all(ranks, gm_options_parse(argc, argv, &options));
    if (!status)
        status = run_all(&job, &options, setup);
    fflush(stdout);
    dup2(out, 1);
    close(out);
    return status;
}

int command_same_data(const char *a, const char *b, size_t bytes)
{
    char *x = malloc(bytes), *y = malloc(bytes);
    int fa = open(a, O_RDONLY), fb = open(b, O_RDONLY);
    int same = fa >= 0 && fb >= 0 && pread(fa, x, bytes, 4096) == (ssize_t)bytes &&
               pread(fb, y, bytes, 4096) == (ssize_t)bytes && memcmp(x, y, bytes) == 0;
    close(fa);
    close(fb);
    free(x);
    free(y);
    return same;
}
