/* Pictures of results: gnuplot runs a script (picture/) and writes SVG. */
#include "src/bench/picture/picture.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Runs gnuplot with a script, or with the option --version (script NULL). Returns whether it succeeded. */
static int run_gnuplot(FILE *script, FILE *picture)
{
    char *words[] = {"gnuplot", script ? NULL : "--version", NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int state = 0;
    if (posix_spawn_file_actions_init(&actions))
        return 0;
    int failed = script && posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
    failed = failed || posix_spawn_file_actions_adddup2(&actions, fileno(picture), STDOUT_FILENO) ||
             posix_spawnp(&child, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return 0;
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return 0;
    return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

/* Copies the picture without empty groups and indentation, half of it. Its first line, the declaration of XML, becomes
 * gm_bench_plot_kind. */
static int copy_picture(FILE *picture, FILE *to)
{
    char *line = NULL, *group = NULL; /* group: a line that opens one, which waits for the next line */
    size_t room = 0;
    rewind(picture);
    fprintf(to, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- gpumem-run bench -->\n");
    for (int at = 0; getline(&line, &room, picture) >= 0; at++) {
        const char *text = line + strspn(line, " \t\n");
        if (at == 0 || !*text)
            continue;
        int is_empty = group && strncmp(text, "</g>", 4) == 0;
        if (group && !is_empty)
            fputs(group, to);
        free(group);
        group = strncmp(text, "<g fill=\"none\"", 14) == 0 ? strdup(text) : NULL;
        if (!group)
            fputs(is_empty ? text + 4 + (text[4] == '\n') : text, to);
    }
    free(group);
    free(line);
    return ferror(picture) || ferror(to);
}

const char gm_bench_plot_kind[] = "<?xmlversion=\"1.0\"encoding=\"utf-8\"?><!--gpumem-runbench-->";

int gm_bench_plot_check(void)
{
    FILE *output = tmpfile();
    int good = output && run_gnuplot(NULL, output);
    if (output)
        fclose(output);
    return good ? GM_OK : gm_fail(GM_EOUTPUT, "--plot needs gnuplot, which does not start: is it installed?");
}

int gm_bench_plot_write(const gm_bench *bench, gm_text_file *file)
{
    FILE *script = tmpfile(), *picture = tmpfile();
    int status = GM_OK;
    if (!script || !picture)
        status = gm_fail(GM_EOUTPUT, "%s: no temporary file for gnuplot: %s", file->name, strerror(errno));
    else if (bench->row_count == 0)
        status = gm_fail(GM_EOUTPUT, "%s: there are no results to draw", file->name);
    if (!status)
        status = gm_picture_write(script, bench);
    if (!status && (fflush(script) || fseek(script, 0, SEEK_SET) || !run_gnuplot(script, picture)))
        status = gm_fail(GM_EOUTPUT, "%s: gnuplot failed", file->name);
    if (!status)
        status = gm_text_publish(file, copy_picture(picture, file->stream));
    if (picture)
        fclose(picture);
    if (script)
        fclose(script);
    return status;
}
