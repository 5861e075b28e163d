/* New files: names that are refused, published and discarded, with and without a name of their own, never over another
 * file without force; a folder that cannot be flushed; text files that replace their like. */
#include "base/file/file_list.h"
#include "base/file/new_file.h"
#include "base/file/text_file.h"
#include "tests/base/file/each.h"

static int is_short(const char *file)
{
    return holds(file, "short");
}

static void check_names(void)
{
    put("there", "text");
    put("short", "short");
    mkdir("folder", 0777);
    tap_ok(symlink("there", "link") == 0 && symlink("nowhere", "dangling") == 0 && mkfifo("fifo", 0600) == 0,
           "names to try");
    says(gm_new_file_check("new", 0, NULL), GM_OK, "", "a new name");
    says(gm_new_file_check("there", 0, NULL), GM_EOUTPUT, "exists already, expected a new name or --force", "a file");
    says(gm_new_file_check("there", 1, NULL), GM_OK, "", "a file, with force");
    says(gm_new_file_check("short", 0, is_short), GM_OK, "", "a file that may be replaced");
    says(gm_new_file_check("there", 0, is_short), GM_EOUTPUT, "exists already", "one that may not");
    for (int force = 0; force < 2; force++) {
        says(gm_new_file_check("link", force, is_short), GM_EOUTPUT, "symbolic link", "a link");
        says(gm_new_file_check("dangling", force, NULL), GM_EOUTPUT, "symbolic link", "a dangling link");
        says(gm_new_file_check("fifo", force, is_short), GM_EOUTPUT, "not a regular file", "a FIFO");
        says(gm_new_file_check("/dev/null", force, is_short), GM_EOUTPUT, "not a regular file", "a device");
        says(gm_new_file_check("folder", force, NULL), GM_EOUTPUT, "is a folder", "a folder");
        says(gm_new_file_check("folder/", force, NULL), GM_EOUTPUT, "name of a folder", "a slash at the end");
        says(gm_new_file_check("absent/x", force, NULL), GM_EOUTPUT, "does not exist", "a missing folder");
        says(gm_new_file_check("", force, NULL), GM_EUSAGE, "empty", "no name");
    }
}

/* Creates, writes, publishes. */
static int make(const char *file, const char *text, int nameless, int force, char *replaced)
{
    char temporary[GM_PATH_MAX];
    int fd = gm_new_file_create(file, "tmp", nameless, temporary);
    int again = fd < 0 ? -1 : gm_new_file_open(temporary, O_RDWR);
    int wrote = again >= 0 && write(again, text, strlen(text)) == (ssize_t)strlen(text);
    if (again >= 0)
        close(again);
    if (!wrote)
        return -1;
    int status = gm_new_file_publish(file, fd, temporary, force, replaced);
    gm_new_file_discard(fd, status ? temporary : "");
    return status;
}

static void check_publish(int nameless)
{
    const char *how = nameless ? "nameless" : "named";
    char replaced[GM_PATH_MAX], temporary[GM_PATH_MAX];
    struct stat st;
    mode_t mask = umask(027);
    says(make("made", "one", nameless, 0, replaced), GM_OK, "", "published");
    umask(mask);
    tap_ok(holds("made", "one") && !replaced[0] && stat("made", &st) == 0 && (st.st_mode & 07777) == 0640 &&
               st.st_nlink == 1,
           "%s: complete, with the permissions of a new file", how);
    says(make("made", "two", nameless, 0, replaced), GM_EOUTPUT, "created by another process", "not over a file");
    tap_ok(holds("made", "one") && count(".", ".made") == 0, "%s: which stays, and no temporary file", how);
    says(make("made", "two", nameless, 1, replaced), GM_OK, "", "over a file by force");
    tap_ok(holds("made", "two") && holds(replaced, "one") && count(".", ".made") == 1, "%s: what was replaced is named",
           how);
    unlink(replaced);
    says(make("fresh", "one", nameless, 1, replaced), GM_OK, "", "by force where nothing is");
    tap_ok(holds("fresh", "one") && !replaced[0] && count(".", ".fresh") == 0, "%s: replaces nothing", how);
    unlink("fresh");
    says(make("folder", "one", nameless, 1, replaced), GM_EOUTPUT, "folder", "not over a folder that came meanwhile");
    says(make("link", "one", nameless, 1, replaced), GM_EOUTPUT, "link", "nor over a link");
    tap_ok(stat("folder", &st) == 0 && S_ISDIR(st.st_mode) && lstat("link", &st) == 0 && S_ISLNK(st.st_mode) &&
               holds("there", "text") && count(".", ".") == 0,
           "%s: both stay, and no temporary file", how);
    int fd = gm_new_file_create("given_up", "tmp", nameless, temporary);
    tap_ok(fd >= 0 && count(".", ".given_up.gpumem-") == gm_new_file_has_name(temporary), "%s: created", how);
    gm_new_file_discard(fd, temporary);
    tap_ok(count(".", ".given_up") == 0, "%s: discarded", how);
    unlink("made");
}

static void check_flush(void)
{
    mkdir("private", 0777);
    put("private/file", "");
    says(gm_new_file_flush_folder("private/file"), GM_OK, "", "a folder is flushed");
    chmod("private", 0300);
    if (geteuid() == 0 && seteuid(65534))
        tap_diag("root stays root");
    says(gm_new_file_flush_folder("private/file"), GM_OK, "", "one that cannot be read is a warning");
    if (getuid() == 0 && seteuid(0))
        tap_diag("root stays away");
}

static void check_probe(void)
{
    gm_file_probe probe, other;
    int fd = gm_file_probe_make(&probe);
    tap_ok(fd >= 0 && gm_file_probe_try(&probe), "this process opens its own descriptors");
    other = probe;
    other.id++;
    tap_ok(!gm_file_probe_try(&other), "the same name of another process is told apart");
    if (fd >= 0)
        close(fd);
    tap_ok(!gm_file_probe_try(&probe), "nothing is there");
}

static const char kind[] = "{\"schema\":\"x.";

static void check_text(void)
{
    static const char report[] = "{ \"schema\" : \"x.1\" }\n";
    gm_text_file t;
    gm_file_list list = {0};
    struct stat st;
    says(gm_text_open(&t, NULL, 0, kind), GM_OK, "", "no text file");
    tap_ok(!t.stream && !gm_text_is_at_stake(&t), "nothing is open");
    for (int i = 0; i < 2; i++) {
        says(gm_text_open(&t, "report", 0, kind), GM_OK, "", i ? "over its like" : "a new one");
        tap_ok(gm_text_is_at_stake(&t) == i && gm_text_may_publish(&t), "may be published");
        fputs(report, t.stream);
        says(gm_text_publish(&t, 0), GM_OK, "", "is published");
        tap_ok(holds("report", report) && count(".", ".report") == 0, "is whole");
    }
    put("report", "{\"schema\":\"x.1\"} and more");
    says(gm_text_open(&t, "report", 0, kind), GM_EOUTPUT, "exists already", "not what goes on otherwise");
    put("report", "x{\"schema\":\"x.1\"}");
    says(gm_text_open(&t, "report", 0, kind), GM_EOUTPUT, "exists already", "not what begins otherwise");
    says(gm_text_open(&t, "report", 1, kind), GM_OK, "", "over another file by force");
    tap_ok(!gm_text_may_publish(&t), "not before it was checked against the inputs");
    stat("report", &st);
    gm_file_list_begin(&list, "input.h5");
    gm_file_list_add(&list, GM_FILE_EXTERNAL, st.st_dev, st.st_ino);
    says(gm_text_check(&t, &list, NULL), GM_EOUTPUT, "report: is the external storage of an input (input.h5)",
         "not over what an input is read from");
    tap_ok(!t.stream && count(".", ".report") == 0, "and it is discarded");
    gm_file_list_free(&list);
    gm_text_open(&t, "report", 1, kind);
    says(gm_text_check(&t, &list, "./report"), GM_EOUTPUT, "another new file", "not with the name of another new file");
    gm_text_open(&t, "report", 1, kind);
    says(gm_text_check(&t, &list, "folder/report"), GM_OK, "", "in another folder");
    tap_ok(gm_text_may_publish(&t), "then it may");
    errno = ENOSPC;
    says(gm_text_publish(&t, 1), GM_EOUTPUT, "No space left", "after a failed write");
    tap_ok(holds("report", "x{\"schema\":\"x.1\"}") && count(".", ".report") == 0, "the old file stays");
    put("block", "");
    if (truncate("block", 512) == 0) {
        FILE *file = fopen("block", "a");
        fputs("\211HDF\r\n\032\n", file);
        fclose(file);
    }
    says(gm_text_open(&t, "block", 1, kind), GM_EOUTPUT, "HDF5 file", "never over an HDF5 file");
}

int main(void)
{
    enter();
    check_names();
    check_publish(0);
    check_publish(1);
    check_flush();
    check_probe();
    check_text();
    return tap_done();
}
