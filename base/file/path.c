#include "base/file/path.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/text/hash.h"

enum { STEM_CUT = 160, STEM_LONGEST = STEM_CUT + 17 }; /* the stem of a stem is the same */

char *gm_path_folder(const char *path, char *folder)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 1;
    if (length >= GM_PATH_MAX)
        length = GM_PATH_MAX - 1;
    memcpy(folder, slash ? path : ".", length);
    if (slash == path)
        folder[length++] = '/';
    folder[length] = '\0';
    return folder;
}

const char *gm_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *gm_path_stem(const char *path, char *stem)
{
    const char *base = gm_path_base(path);
    if (strlen(base) <= STEM_LONGEST)
        strcpy(stem, base);
    else
        snprintf(stem, GM_STEM_MAX, "%.*s~%016" PRIx64, STEM_CUT, base, gm_hash_text(GM_HASH_START, base));
    return stem;
}

int gm_path_same(const char *a, const char *b)
{
    char folder[GM_PATH_MAX];
    struct stat first, second;
    return strcmp(gm_path_base(a), gm_path_base(b)) == 0 && stat(gm_path_folder(a, folder), &first) == 0 &&
           stat(gm_path_folder(b, folder), &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

uint64_t gm_path_id(void)
{
    static atomic_uint calls;
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = ((uint64_t)(gm_clock() * 1e9) << 8) + atomic_fetch_add(&calls, 1);
    return random & UINT64_C(0xffffffffffff);
}
