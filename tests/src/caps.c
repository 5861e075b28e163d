/* Caps that are too small: an operation is refused with the numbers of the caps that do, and runs with them. */
#include "base/log.h"
#include "kernels/kernels.h"
#include "mpi/ranks.h"
#include "tests/src/command.h"
#include "tests/folder.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT = 256 };

static gm_ranks ranks;
static const char *kind;

static const char *const commands[] = {
    "matmul m.h5 -o out.h5",
    "matmul m.h5:/A m.h5:/A --transpose b -o out.h5",
    "matmul m.h5 --add m.h5:/A --beta 2 -o out.h5",
    "reduce s.h5",
    "reduce s.h5 --axis 0 -o out.h5",
    "reduce s.h5 --axis 1 -o out.h5",
    "reduce s.h5 --axis frame -o out.h5",
    "reduce s.h5 --axis vector -o out.h5",
    "reduce z.h5:/images --axis pixel -o out.h5",
    "normalize s.h5 -o out.h5",
    "normalize s.h5 --per frame --method zscore -o out.h5",
    "normalize s.h5 --per pixel --type f64 -o out.h5",
    "normalize s.h5 --method percentile -o out.h5",
    "normalize s.h5 --method percentile --per frame -o out.h5",
    "normalize s.h5 --method scale --sub 1 -o out.h5",
    "normalize s.h5 --method flatfield --flat s.h5:/images[0:3] --dark s.h5:/images[5] -o out.h5",
    "flip s.h5 --axis 0 -o out.h5",
    "flip z.h5 --axis 1 -o out.h5",
    "flip s.h5 --axis 2 -o out.h5",
    "transpose s.h5 -o out.h5",
    "transpose z.h5 --axes 0,2 -o out.h5",
    "gather s.h5 --index i.h5 -o out.h5",
    "gather z.h5 --index i.h5 --index2 i.h5 -o out.h5",
    "gen stack out.h5 --frames 9 --height 67 --width 101",
    "gen matrices out.h5 --size 300",
    "compare s.h5 s.h5",
    "compare z.h5 s.h5",
};

/* Products in which two ranks work: left to itself the program takes one of them. */
static const char *const shared[] = {
    "matmul m.h5 --grid 2x1x1 -o out.h5",
    "matmul m.h5:/A m.h5:/A --transpose b --grid 1x2x1 -o out.h5",
    "matmul m.h5 --add m.h5:/A --beta 2 --grid 1x1x2 -o out.h5",
};

/* Caps that a message asks for, as options: "--host-memory N --device-memory M"; empty: none. */
static void read_caps(const char *message, char *caps)
{
    const char *number = strstr(message, "expected at least "), *name = message;
    size_t length = 0;
    *caps = '\0';
    while (number && (name = strstr(name, "--")) && name < number) {
        number += strcspn(number, "0123456789");
        length += (size_t)snprintf(caps + length, TEXT - length, " %.*s %lld", (int)strcspn(name, " "), name,
                                   strtoll(number, NULL, 10));
        name++;
        number = strstr(number, ") and ");
    }
}

/* The options of a line, in pairs with their values, that others do not give: appended to those. */
static void add_options(const char *line, char *others)
{
    char name[32], value[32];
    for (int length; sscanf(line, "%31s %31s%n", name, value, &length) == 2; line += length)
        if (!strstr(others, name))
            snprintf(others + strlen(others), TEXT, " %s %s", name, value);
}

static int run(const char *command, const char *caps, gm_error *error)
{
    const char *output = strstr(command, "out.h5") ? "--force --no-sync" : "";
    int status = command_run_all(&ranks, NULL, "%s --device %s --threads 2 %s %s", command, kind, output, caps);
    gm_error_get(error);
    gm_error_clear();
    return status;
}

static void test_command(const char *command)
{
    static const char *const small[] = {"--host-memory 1K",
                                        "--host-memory 20K --device-memory 10K",
                                        "--host-memory 300K --depth 3 --piece 150K",
                                        "--device-memory 1K",
                                        "--host-memory 40K",
                                        "--host-memory 1M --device-memory 2K"};
    const size_t most = sizeof small / sizeof *small, few = 3; /* under valgrind: each kind of memory, and slots */
    const size_t count = getenv("GPUMEM_TEST_MEMCHECK") ? few : most;
    for (size_t i = 0; i < count; i++) {
        gm_error error;
        char caps[TEXT], all[2 * TEXT];
        int status = run(command, small[i], &error);
        if (i == 0)
            tap_ok(status == GM_EDEVICE, "%s: %s %s is refused (status %d)", kind, command, small[i], status);
        if (status == GM_OK)
            continue;
        read_caps(error.text, caps);
        strcpy(all, caps);
        add_options(small[i], all);
        int second = *caps ? run(command, all, &error) : status;
        tap_ok(second == GM_OK, "%s: %s %s is refused, with%s it runs", kind, command, small[i], caps);
        if (second)
            tap_diag("%s", error.text);
    }
}

int main(void)
{
    const char *only = getenv("GPUMEM_TEST_DEVICE");
    gm_error error;
    if (gm_ranks_start_all(&ranks))
        return 1;
    gm_log_setup(ranks.rank == 0, GM_QUIET);
    if (folder_enter_all(&ranks))
        return 1;
    kind = "cpu";
    tap_ok(run("gen stack i.h5 --size 9 --type u8 --distribution integers", "", &error) == GM_OK &&
               run("gen stack s.h5 --frames 10 --height 67 --width 101", "", &error) == GM_OK &&
               run("gen stack z.h5 --frames 10 --height 67 --width 101 --chunk 1,50,101 --deflate 1", "", &error) ==
                   GM_OK &&
               run("gen matrices m.h5 --size 300", "", &error) == GM_OK,
           "inputs are made");
    for (int k = 0; gm_device_kinds[k]; k++) {
        int count = 0;
        int64_t least;
        kind = gm_device_kinds[k]->kind;
        if (only && *only && strcmp(only, kind) != 0)
            continue;
        if (gm_device_kinds[k]->count(&count))
            count = 0;
        least = count;
        if (gm_min_all(&least) || least == 0) {
            tap_skip(gm_device_kinds[k]->absence() ? gm_device_kinds[k]->absence() : "other ranks have none", "%s",
                     kind);
            continue;
        }
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
            test_command(commands[i]);
        for (size_t i = 0; i < sizeof shared / sizeof *shared && ranks.size == 2; i++)
            test_command(shared[i]);
    }
    tap_ok(folder_leave_all(&ranks, "s.h5 z.h5 i.h5 m.h5 out.h5"), "no other files are left");
    int code = tap_done();
    gm_ranks_end_all();
    return code;
}
