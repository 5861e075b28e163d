#include "tests/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[4096];

int folder_enter_all(const gm_ranks *ranks)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/gpumem-test-XXXXXX", temporary ? temporary : "/tmp");
    int made = ranks->rank > 0 || mkdtemp(folder);
    int status = gm_agree_all(ranks, made ? GM_OK : gm_fail(GM_EOUTPUT, "no folder for the test"));
    if (!status)
        status = gm_broadcast_all(folder, sizeof folder);
    if (!status && chdir(folder))
        status = gm_fail(GM_EOUTPUT, "%s: no change to it", folder);
    return gm_agree_all(ranks, status);
}

static int remove_files(const char *files)
{
    char names[256], command[sizeof folder + 16];
    if (!files) {
        snprintf(command, sizeof command, "rm -r '%s'", folder);
        return system(command) == 0;
    }
    snprintf(names, sizeof names, "%s", files);
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " "))
        unlink(name);
    return rmdir(folder) == 0;
}

int folder_leave_all(const gm_ranks *ranks, const char *files)
{
    gm_agree_all(ranks, GM_OK);
    return ranks->rank > 0 || remove_files(files);
}
