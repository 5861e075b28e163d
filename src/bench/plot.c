/* Pictures of results, by gnuplot: a panel for each test, or for each group of rows that it names. Rates as bars, as
 * curves over the axis of a sweep, or as maps over two axes, with the limits that they are held against; readable in
 * black and white. */
#include "base/log.h"
#include "src/bench/bench.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PANEL_HEIGHT = 560, MARGIN = 220, BAR_WIDTH = 26, LEAST_WIDTH = 640, LEAST_POINTS = 3 };

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

static const char *panel_of(const gm_bench_row *row)
{
    return row->panel ? row->panel : "";
}

/* The rows of the panel of row `first`: up to the next one. */
static int end_of_panel(const gm_bench *bench, int first)
{
    const gm_bench_row *rows = bench->rows;
    int end = first;
    while (end < bench->row_count && strcmp(rows[end].test, rows[first].test) == 0 &&
           strcmp(panel_of(&rows[end]), panel_of(&rows[first])) == 0)
        end++;
    return end;
}

static int are_of_series(const gm_bench_row *a, const gm_bench_row *b)
{
    return a->cache == b->cache && strcmp(a->variant, b->variant) == 0;
}

/* Is row `at` the first of its series? */
static int begins_series(const gm_bench *bench, int first, int at)
{
    for (int i = first; i < at; i++)
        if (are_of_series(&bench->rows[i], &bench->rows[at]))
            return 0;
    return 1;
}

/* Curves are drawn where each row has a place on the axis, and a series enough of them. */
static int is_sweep(const gm_bench *bench, int first, int end)
{
    int most = 0;
    for (int i = first; i < end; i++) {
        int points = 0;
        if (bench->rows[i].x <= 0)
            return 0;
        for (int j = i; j < end; j++)
            points += are_of_series(&bench->rows[i], &bench->rows[j]);
        most = points > most ? points : most;
    }
    return most >= LEAST_POINTS;
}

/* A string of gnuplot's in double quotes. */
static void put_text(FILE *script, const char *text)
{
    for (; *text; text++)
        fputc(*text == '"' || *text == '\\' || *text == '\n' ? '\'' : *text, script);
}

/* x, label, rate, limit. */
static void put_row(FILE *script, const gm_bench_row *row)
{
    double limit = gm_bench_limit(row);
    fprintf(script, "%.17g \"", row->x);
    put_text(script, row->variant);
    fprintf(script, ", ");
    put_text(script, row->shape);
    fprintf(script, ", %s\"", gm_bench_cache_name(row->cache));
    fprintf(script, " %.9g", gm_bench_in_unit(&row->unit, gm_bench_rate(row)));
    fprintf(script, limit > 0 ? " %.9g\n" : " NaN\n", gm_bench_in_unit(&row->unit, limit));
}

static void put_bars(FILE *script, const gm_bench *bench, int first, int end)
{
    fprintf(script, "$rows%d << END\n", first);
    for (int i = first; i < end; i++)
        put_row(script, &bench->rows[i]);
    fprintf(script,
            "END\n"
            "unset logscale x\nset xlabel ''\nset format x '%%s'\nset xtics rotate by 90 right noenhanced\n"
            "set xrange [-0.7:%d.7]\n"
            "plot $rows%d using 0:3:xtic(2) with boxes lc rgb 'gray60' title 'rate', "
            "$rows%d using 0:4:(0.4) with xerrorbars pt 0 lw 2 lc rgb 'black' title 'limit'\n",
            end - first - 1, first, first);
}

static void put_curves(FILE *script, const gm_bench *bench, int first, int end)
{
    const char *comma = "";
    for (int i = first; i < end; i++) {
        if (!begins_series(bench, first, i))
            continue;
        fprintf(script, "$rows%d << END\n", i);
        for (int j = i; j < end; j++)
            if (are_of_series(&bench->rows[i], &bench->rows[j]))
                put_row(script, &bench->rows[j]);
        fprintf(script, "END\n");
    }
    fprintf(script, "set logscale x 2\nset xlabel \"");
    put_text(script, bench->rows[first].x_name);
    fprintf(script, "\"\nset format x '2^{%%L}'\nset xtics norotate enhanced\nset xrange [*:*]\nplot ");
    for (int i = first; i < end; i++) {
        if (!begins_series(bench, first, i))
            continue;
        fprintf(script, "%s$rows%d using 1:3 with linespoints lc rgb 'black' title \"", comma, i);
        put_text(script, bench->rows[i].variant);
        fprintf(script, ", %s\"", gm_bench_cache_name(bench->rows[i].cache));
        if (gm_bench_limit(&bench->rows[i]) > 0)
            fprintf(script, ", $rows%d using 1:4 with lines dt 3 lc rgb 'gray40' notitle", i);
        comma = ", ";
    }
    fputc('\n', script);
}

static void put_script(FILE *script, const gm_bench *bench)
{
    int panels = 0, most = 0;
    for (int first = 0, end; first < bench->row_count; first = end) {
        end = end_of_panel(bench, first);
        most = end - first > most && !is_sweep(bench, first, end) ? end - first : most;
        panels++;
    }
    int width = MARGIN + BAR_WIDTH * most;
    fprintf(script,
            "set terminal svg size %d,%d font 'sans-serif,11' background 'white'\nset encoding utf8\n"
            "set style fill solid border lt -1\nset boxwidth 0.7\nset yrange [0:*]\nset grid y\nset key above\n"
            "set multiplot layout %d,1\n",
            width > LEAST_WIDTH ? width : LEAST_WIDTH, PANEL_HEIGHT * panels, panels);
    for (int first = 0, end; first < bench->row_count; first = end) {
        end = end_of_panel(bench, first);
        fprintf(script, "set title \"bench %s, ", bench->rows[first].test);
        put_text(script, bench->job->info.name);
        fprintf(script, "\" noenhanced\nset ylabel '%s'\n", bench->rows[first].unit.name);
        if (is_sweep(bench, first, end))
            put_curves(script, bench, first, end);
        else
            put_bars(script, bench, first, end);
    }
    fprintf(script, "unset multiplot\n");
}

/* Copies the picture; its first line, the declaration of XML, becomes gm_bench_plot_kind. */
static int copy_picture(FILE *picture, FILE *to)
{
    int c;
    rewind(picture);
    while ((c = getc(picture)) != '\n' && c != EOF)
        ;
    fprintf(to, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- gpumem-run bench -->\n");
    while ((c = getc(picture)) != EOF)
        putc(c, to);
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
    if (!status) {
        put_script(script, bench);
        if (fflush(script) || fseek(script, 0, SEEK_SET) || !run_gnuplot(script, picture))
            status = gm_fail(GM_EOUTPUT, "%s: gnuplot failed", file->name);
    }
    if (!status)
        status = gm_text_publish(file, copy_picture(picture, file->stream));
    if (picture)
        fclose(picture);
    if (script)
        fclose(script);
    return status;
}
