/* Leftovers: the words of owners, the names of temporary files, the folder of parts and whom it belongs to. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/file/folder.h"
#include "base/file/leftover.h"
#include "base/file/new_file.h"
#include "tests/base/file/each.h"

/* A process that has ended and was waited for; its word of an owner. */
static void word_of_dead(char *word)
{
    int pair[2];
    if (pipe(pair))
        return;
    pid_t child = fork();
    if (child == 0) {
        gm_owner_word(word);
        _exit(write(pair[1], word, GM_OWNER_TEXT) != GM_OWNER_TEXT);
    }
    if (read(pair[0], word, GM_OWNER_TEXT) != GM_OWNER_TEXT)
        word[0] = '\0';
    waitpid(child, NULL, 0);
    close(pair[0]);
    close(pair[1]);
}

static void check_owners(const char *dead)
{
    char word[GM_OWNER_TEXT], other[GM_OWNER_TEXT];
    long process;
    gm_owner_word(word);
    tap_ok(gm_owner_find(word, 0, &process) == GM_OWNER_ALIVE && process == (long)getpid(), "this process runs");
    snprintf(other, sizeof other, "%.*s%lx", (int)strlen(word) - 1, word,
             (unsigned long)(word[strlen(word) - 1] != '1'));
    tap_ok(gm_owner_find(other, 0, &process) == GM_OWNER_DEAD, "one that had its number before has ended");
    tap_ok(gm_owner_find(dead, 0, &process) == GM_OWNER_DEAD && process > 0, "one that is gone has ended");
    snprintf(other, sizeof other, "%s", word);
    other[0] = other[0] == '0' ? '1' : '0';
    tap_ok(gm_owner_find(other, 0, &process) == GM_OWNER_ELSEWHERE, "another host");
    snprintf(other, sizeof other, "%s", word);
    other[9] = other[9] == '0' ? '1' : '0';
    tap_ok(gm_owner_find(other, 1, &process) == GM_OWNER_DEAD, "an earlier boot, and a file of that time");
    tap_ok(gm_owner_find(other, time(NULL), &process) == GM_OWNER_ELSEWHERE, "another boot, and a new file");
    static const char *const bad[] = {
        "", "1-2-3", "nonsense", "00000000-00000000--3-1", "00000000-00000000-0-1", "00000000-00000000-1-1x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        tap_ok(gm_owner_find(bad[i], 0, &process) == GM_OWNER_ELSEWHERE && process == 0, "no word: '%s'", bad[i]);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    char name[64];
    snprintf(name, sizeof name, "/proc/%ld/stat", (long)child);
    kill(child, SIGKILL);
    snprintf(other, sizeof other, "%.18s%ld", word, (long)child);
    struct timespec moment = {0, 100 * 1000 * 1000};
    nanosleep(&moment, NULL);
    strcat(other, "-0");
    tap_ok(gm_owner_find(other, 0, &process) == GM_OWNER_DEAD, "one of which only the exit code is left has ended");
    waitpid(child, NULL, 0);
}

/* A job that Slurm has queued again, on a host that does not matter. */
static void check_batch_jobs(void)
{
    static const struct {
        const char *cluster, *job, *count;
        gm_owner then;
        const char *name;
    } now[] = {
        {"c", "77", "1", GM_OWNER_DEAD, "the next start"},       {"c", "77", "12", GM_OWNER_DEAD, "a later start"},
        {"c", "77", NULL, GM_OWNER_ELSEWHERE, "the same start"}, {"c", "78", "1", GM_OWNER_ELSEWHERE, "another job"},
        {"d", "77", "1", GM_OWNER_ELSEWHERE, "another cluster"}, {"c", NULL, "1", GM_OWNER_ELSEWHERE, "no job"}};
    char word[GM_OWNER_TEXT], bad[GM_OWNER_TEXT + 8];
    long process;
    setenv("SLURM_CLUSTER_NAME", "c", 1);
    setenv("SLURM_JOB_ID", "77", 1);
    gm_owner_word(word);
    tap_ok(gm_owner_find(word, time(NULL), &process) == GM_OWNER_ALIVE, "this process, in a batch job: %s", word);
    word[0] = word[0] == '0' ? '1' : '0';
    for (size_t i = 0; i < sizeof now / sizeof now[0]; i++) {
        setenv("SLURM_CLUSTER_NAME", now[i].cluster, 1);
        now[i].job ? setenv("SLURM_JOB_ID", now[i].job, 1) : unsetenv("SLURM_JOB_ID");
        now[i].count ? setenv("SLURM_RESTART_COUNT", now[i].count, 1) : unsetenv("SLURM_RESTART_COUNT");
        tap_ok(gm_owner_find(word, time(NULL), &process) == now[i].then && process == (long)getpid(),
               "another host, seen from %s", now[i].name);
    }
    snprintf(bad, sizeof bad, "%s-1", word);
    tap_ok(gm_owner_find(bad, 0, &process) == GM_OWNER_ELSEWHERE && process == 0, "no word: '%s'", bad);
    *strrchr(word, '-') = '\0';
    tap_ok(gm_owner_find(word, 0, &process) == GM_OWNER_ELSEWHERE && process == 0, "no word: '%s'", word);
    unsetenv("SLURM_RESTART_COUNT");
    unsetenv("SLURM_CLUSTER_NAME");
}

typedef struct seen {
    int count, folders, dead, alive;
    int64_t bytes;
    char last[GM_PATH_MAX], stem[GM_STEM_MAX];
} seen;

static int see(void *context, const gm_leftover *found)
{
    seen *s = context;
    s->count++;
    s->folders += found->is_folder;
    s->dead += found->owner == GM_OWNER_DEAD;
    s->alive += found->owner == GM_OWNER_ALIVE;
    s->bytes += found->bytes;
    strcpy(s->last, found->path);
    strcpy(s->stem, found->stem);
    return GM_OK;
}

static seen look(const char *file)
{
    seen s = {0};
    says(gm_leftovers_each(".", file, see, &s), GM_OK, "", "a folder is listed");
    return s;
}

static void check_files(const char *dead)
{
    char path[GM_PATH_MAX], name[GM_PATH_MAX], longer[256], stem[GM_STEM_MAX], again[GM_STEM_MAX];
    memset(longer, 'n', sizeof longer);
    longer[250] = '\0';
    tap_ok(look(NULL).count == 0, "an empty folder");
    tap_ok(gm_leftover_name("out.h5", "tmp", path) && strncmp(path, ".out.h5.gpumem-", 15) == 0, "a name: %s", path);
    put(path, "x");
    seen s = look(NULL);
    tap_ok(s.count == 1 && s.alive == 1 && strcmp(s.stem, "out.h5") == 0, "a file of this process");
    snprintf(name, sizeof name, ".a.gpumem-b.h5.gpumem-%s-0123456789ab.spool.3", dead);
    put(name, "x");
    tap_ok(look("a.gpumem-b.h5").dead == 1 && look("b.h5").count == 0 && look("dir/out.h5").count == 1,
           "those of one output");
    snprintf(name, sizeof name, ".out.h5.gpumem-%s-0123456789a.tmp", dead);
    put(name, "x");
    put(".out.h5.gpumem-", "x");
    put("out.h5.gpumem-1", "x");
    tap_ok(look("out.h5").count == 1, "other names are nobody's");
    gm_leftovers_clean("a.gpumem-b.h5");
    gm_leftovers_clean("out.h5");
    s = look(NULL);
    tap_ok(s.count == 1 && s.alive == 1, "only what an ended process left is removed");
    gm_path_stem(longer, stem);
    gm_path_stem(stem, again);
    tap_ok(gm_leftover_name(longer, "spool", path) && strlen(path) < 250 && strcmp(stem, again) == 0,
           "a long name fits");
    put(path, "x");
    tap_ok(look(longer).count == 1, "and is found");
    says(gm_leftovers_each("absent", NULL, see, &s), GM_EOUTPUT, "absent: cannot be listed", "no folder");
}

static void check_folder(void)
{
    char folder[GM_PATH_MAX], part[GM_PATH_MAX + 32], temporary[GM_PATH_MAX], replaced[GM_PATH_MAX];
    says(gm_folder_make("parted.h5", folder), GM_OK, "", "a folder for parts");
    tap_ok(strncmp(folder, "parted.h5.parts-", 16) == 0 && gm_folder_is_of(folder, "dir/parted.h5") &&
               !gm_folder_is_of(folder, "parted.h") && !gm_folder_is_of(folder, "other.h5") &&
               !gm_folder_is_of("parted.h5.parts-0123456789a", "parted.h5") &&
               !gm_folder_is_of("parted.h5.parts-0123456789ag", "parted.h5") && !gm_folder_is_of("", "") &&
               !gm_folder_is_of("a/parted.h5.parts-0123456789ab", "parted.h5"),
           "its name says whose it is: %s", folder);
    snprintf(part, sizeof part, "%s/part-00.h5", folder);
    put(part, "x");
    seen s = look("parted.h5");
    tap_ok(s.count == 1 && s.folders == 1 && s.alive == 1 && s.bytes > 0, "it is of this process");

    int fd = gm_new_file_create("parted.h5", "tmp", 1, temporary);
    gm_folder_commit(folder, fd, temporary);
    tap_ok(look("parted.h5").folders == 1, "before its output has a name");
    says(gm_new_file_publish("parted.h5", fd, temporary, 0, replaced), GM_OK, "", "the output");
    gm_new_file_discard(fd, "");
    tap_ok(look("parted.h5").folders == 0, "a run that ends now leaves it to the output");
    tap_ok(!gm_folder_has_other_master(folder, "parted.h5"), "which has no other link");
    rename("parted.h5", "moved.h5");
    tap_ok(look("parted.h5").folders == 0, "also when that was moved");
    gm_folder_keep(folder);
    tap_ok(count(folder, "") == 1 && look("parted.h5").folders == 0, "only parts are left in it");
    tap_ok(link("moved.h5", "linked.h5") == 0 && gm_folder_has_other_master(folder, "moved.h5"), "another link");
    gm_folder_remove(folder);
    tap_ok(access(folder, F_OK) != 0 && count(".", ".parted") == 0, "removed");
    gm_folder_remove(folder);
    gm_folder_remove("");

    gm_folder_make("parted.h5", folder);
    snprintf(part, sizeof part, "%s/part-1.h5", folder); /* not one of ours */
    put(part, "x");
    gm_folder_remove(folder);
    tap_ok(holds(part, "x"), "a file of someone else stays where it is");
    says(gm_folder_make("absent/parted.h5", folder), GM_EOUTPUT, "No such file", "no folder to make it in");
    tap_ok(!folder[0], "and no name");
}

int main(void)
{
    char dead[GM_OWNER_TEXT] = "";
    enter();
    unsetenv("SLURM_JOB_ID");
    word_of_dead(dead);
    check_owners(dead);
    check_batch_jobs();
    check_files(dead);
    check_folder();
    return tap_done();
}
