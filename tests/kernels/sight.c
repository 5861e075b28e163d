/* The GPU that a rank has in sight: lists of CUDA_VISIBLE_DEVICES, GPUs that the system lists, and what is unclear. */
#define _GNU_SOURCE /* nftw() */
#include "kernels/sight.h"
#include "tests/tap.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define A "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
#define B "GPU-8932f937-d72c-4106-c12f-20bd9faed9f7"

static const struct {
    const char *what, *visible;
    int gpus, rank;
    const char *value; /* NULL: all stay in sight */
} cases[] = {
    {"first of four", NULL, 4, 0, "0"},
    {"last of four", NULL, 4, 3, "3"},
    {"more ranks than GPUs", NULL, 4, 5, "1"},
    {"one GPU is in sight anyway", NULL, 1, 3, NULL},
    {"no folder of the driver", NULL, 0, 0, NULL},
    {"MIG, MPS, files that are missing", NULL, GM_SIGHT_LEAVE, 0, NULL},
    {"local rank unknown", NULL, 4, -1, NULL},
    {"a list", "2,3", 4, 1, "3"},
    {"a list in another order", "3,0,2", 4, 0, "3"},
    {"a list, more ranks than entries", "2,3", 4, 4, "2"},
    {"a list, number of GPUs unknown", "0,1,2,3", 0, 2, "2"},
    {"a list of one", "2", 4, 1, NULL},
    {"a list, MIG or MPS", "0,1", GM_SIGHT_LEAVE, 1, NULL},
    {"a list, local rank unknown", "0,1", 4, -1, NULL},
    {"a number beyond the GPUs, where CUDA ends the list", "0,4", 4, 0, NULL},
    {"an empty list: no GPU", "", 4, 0, NULL},
    {"-1: no GPU", "-1", 4, 0, NULL},
    {"-1 ends a list", "0,-1,1", 4, 2, NULL},
    {"spaces", "0, 1", 4, 1, NULL},
    {"a space", " ", 4, 1, NULL},
    {"an empty entry", "0,,1", 4, 1, NULL},
    {"a comma at the end", "0,1,", 4, 1, NULL},
    {"a repetition, which CUDA refuses", "0,1,0", 4, 1, NULL},
    {"leading zeros", "00,1", 4, 0, NULL},
    {"a sign", "+0,1", 4, 0, NULL},
    {"hexadecimal", "0x1,2", 4, 0, NULL},
    {"words", "all", 4, 0, NULL},
    {"NoDevFiles, as some batch systems write", "NoDevFiles", 4, 0, NULL},
    {"a number that is too large", "0,99999999999999999999", 0, 1, NULL},
    {"UUIDs", A "," B, 4, 1, B},
    {"UUIDs, more ranks than entries", A "," B, 4, 2, A},
    {"the same UUID in other letters", A ",GPU-8932F937-d72c-4106-c12f-20bd9faed9f6", 4, 1, NULL},
    {"one UUID", A, 4, 1, NULL},
    {"beginnings of UUIDs", "GPU-8932,GPU-9000", 4, 1, NULL},
    {"a UUID with another letter", A ",GPU-8932f937-d72c-4106-c12f-20bd9faed9fg", 4, 0, NULL},
    {"a UUID with a space", A ", " B, 4, 0, NULL},
    {"a number and a UUID", "0," B, 4, 1, NULL},
    {"MIG", "MIG-8932f937-d72c-4106-c12f-20bd9faed9f6,MIG-8932f937-d72c-4106-c12f-20bd9faed9f7", 4, 1, NULL},
    {"MIG of a GPU", "MIG-" A "/1/0,MIG-" A "/2/0", 4, 1, NULL},
};

static void test_choice(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gm_sight_entry entry = "";
        int position = -1, chosen = gm_sight_choose(cases[i].visible, cases[i].gpus, cases[i].rank, entry, &position);
        tap_ok(cases[i].value ? chosen && strcmp(entry, cases[i].value) == 0 : !chosen, "%s: %s", cases[i].what,
               chosen ? entry : "all stay in sight");
    }
    char many[4096] = "0";
    for (int i = 1; i < 300; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",%d", i);
    gm_sight_entry entry;
    int position;
    tap_ok(gm_sight_choose(many, 300, 299, entry, &position) && strcmp(entry, "299") == 0 && position == 299,
           "a list of 300 GPUs");
    snprintf(many + strlen(many), sizeof many - strlen(many), ",7");
    tap_ok(!gm_sight_choose(many, 300, 299, entry, &position), "a repetition at its end");
    memset(many, 'G', 200);
    many[200] = '\0';
    tap_ok(!gm_sight_choose(many, 0, 1, entry, &position), "an entry that is too long");
    tap_ok(gm_sight_choose(A "," B, 4, 1, entry, &position) && position == 1, "the place in the list is told");
}

static void test_number(void)
{
    tap_ok(gm_sight_number(NULL, 2) == 2, "without a list the number is CUDA's");
    tap_ok(gm_sight_number("2,3", 1) == 3, "with a list of numbers it is the entry");
    tap_ok(gm_sight_number("3", 0) == 3, "also of one");
    tap_ok(gm_sight_number(A "," B, 1) == 1, "with UUIDs it is the place");
    tap_ok(gm_sight_number("2,3", 2) == 2 && gm_sight_number("x", 1) == 1, "with another list it is CUDA's");
}

/* --- A host --- */

static char root[] = "sight.XXXXXX";

static void make(const char *path)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s", root, path);
    for (char *slash = strchr(text + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(text, 0700);
        *slash = '/';
    }
    FILE *file = fopen(text, "w");
    if (file)
        fclose(file);
}

static void drop(const char *path)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s", root, path);
    unlink(text);
}

static int remove_one(const char *path, const struct stat *state, int kind, struct FTW *at)
{
    (void)state;
    (void)kind;
    (void)at;
    return remove(path);
}

static void expect(int wanted, const char *what)
{
    int found = gm_sight_count(root);
    tap_ok(found == wanted, "%s: %d", what, found);
}

static void test_count(void)
{
    if (!mkdtemp(root)) {
        tap_ok(0, "a folder can be made");
        return;
    }
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    expect(0, "no driver");
    make("/dev/nvidiactl");
    make("/dev/nvidia-uvm");
    make("/dev/nvidia0");
    expect(0, "no folder of GPUs");
    make("/proc/driver/nvidia/gpus/0000:1b:00.0/information");
    expect(1, "one GPU");
    make("/proc/driver/nvidia/gpus/0000:4c:00.0/information");
    expect(GM_SIGHT_LEAVE, "two GPUs, one device file");
    make("/dev/nvidia1");
    expect(2, "two GPUs");
    make("/dev/nvidia10");
    expect(GM_SIGHT_LEAVE, "more device files than GPUs");
    drop("/dev/nvidia10");
    make("/proc/driver/nvidia/capabilities/gpu0/mig/config");
    expect(2, "GPUs that could be cut into parts");
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/run/mps", 1);
    expect(GM_SIGHT_LEAVE, "MPS by the environment");
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    make("/tmp/nvidia-mps/control");
    expect(GM_SIGHT_LEAVE, "MPS by its file");
    drop("/tmp/nvidia-mps/control");
    make("/proc/driver/nvidia/capabilities/gpu0/mig/gi3/access");
    expect(GM_SIGHT_LEAVE, "MIG");
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void test_job(void)
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID"};
    enum { NAMES = sizeof names / sizeof names[0] };
    for (int i = 0; i < NAMES; i++)
        unsetenv(names[i]);
    tap_ok(!gm_sight_is_job(), "no batch system");
    for (int i = 0; i < NAMES; i++) {
        setenv(names[i], "1", 1);
        tap_ok(gm_sight_is_job(), "a batch system: %s", names[i]);
        unsetenv(names[i]);
    }
}

int main(void)
{
    test_choice();
    test_number();
    test_count();
    test_job();
    return tap_done();
}
