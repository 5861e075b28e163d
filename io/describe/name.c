/* name.c - splits "file.h5:/group/name[100:200]". */
#include "io/describe/describe.h"

#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "base/text/escape.h"

static int is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The colon between file and dataset in text; NULL when text is a file alone. A colon may be part of either
 * name: the longest file that exists decides, else the last colon before a slash, else the last one. */
static char *find_colon(char *text)
{
    char *found = NULL;
    if (is_file(text))
        return NULL;
    for (char *at = text + strlen(text); at-- > text;) {
        if (*at != ':')
            continue;
        *at = '\0';
        if (is_file(text)) {
            *at = ':';
            return at;
        }
        *at = ':';
        if (!found || (at[1] == '/' && found[1] != '/'))
            found = at;
    }
    return found;
}

/* Does a bracket open that does not close? Others are a part of the name, as in "/x[0] it=0". */
static int is_open(const char *name)
{
    const char *last = strrchr(name, '[');
    return last && !strchr(last, ']');
}

/* The absolute form of a dataset's name: "group//name/" -> "/group/name". Returns 1 when it does not fit. */
static int make_absolute(const char *name, char *out)
{
    size_t used = 0;
    while (*name) {
        size_t length = strcspn(name, "/");
        if (length && !(length == 1 && *name == '.')) {
            if (used + length + 2 > GM_NAME_MAX)
                return 1;
            out[used++] = '/';
            memcpy(out + used, name, length);
            used += length;
        }
        name += length;
        name += *name == '/';
    }
    if (used == 0)
        out[used++] = '/';
    out[used] = '\0';
    return 0;
}

int gm_name_split(const char *text, char *file, char *dataset, char *selection)
{
    size_t length = strlen(text);
    dataset[0] = selection[0] = '\0';
    int shown = (int)gm_escape_fit(text, 60);
    if (length >= GM_PATH_MAX)
        return gm_fail(GM_EUSAGE, "%.*s...: the name is longer than %d bytes", shown, text, GM_PATH_MAX - 1);
    memcpy(file, text, length + 1);
    const char *bracket = length && text[length - 1] == ']' && !is_file(text) ? strrchr(text, '[') : NULL;
    if (bracket) {
        if (strlen(bracket) >= GM_NAME_MAX)
            return gm_fail(GM_EUSAGE, "%.*s...: the selection is longer than %d bytes", shown, text, GM_NAME_MAX - 1);
        memcpy(selection, bracket, strlen(bracket) + 1);
        file[bracket - text] = '\0';
    }
    char *colon = find_colon(file);
    if (colon) {
        if (!colon[1])
            return gm_fail(GM_EUSAGE, "%s: the name of a dataset is missing after the colon, expected FILE:DATASET",
                           text);
        if (!bracket && is_open(colon))
            return gm_fail(GM_EUSAGE,
                           "%s: the selection has no closing bracket; [] after it makes it a part of the name", text);
        if (make_absolute(colon + 1, dataset))
            return gm_fail(GM_EUSAGE, "%.*s...: the dataset's name is longer than %d bytes", shown, text,
                           GM_NAME_MAX - 1);
        *colon = '\0';
    }
    if (!file[0])
        return gm_fail(GM_EUSAGE, "\"%s\": the name of a file is missing, expected FILE[:DATASET[SELECTION]]", text);
    return GM_OK;
}
