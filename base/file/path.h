/* path.h - the parts of a path, and names that nobody guesses. */
#ifndef GM_BASE_FILE_PATH_H
#define GM_BASE_FILE_PATH_H

#include <stdint.h>

enum { GM_PATH_MAX = 4096, GM_STEM_MAX = 192 };

/* The folder of a path, "." for a bare name. folder has room for GM_PATH_MAX bytes. Returns folder. */
char *gm_path_folder(const char *path, char *folder);

/* The name of a path in its folder: a pointer into it. */
const char *gm_path_base(const char *path);

/* The name of a path in its folder, as the names of its temporary files and of the folder of its parts begin; a long
 * one is cut and ends with a hash of the whole. stem has room for GM_STEM_MAX bytes. Returns stem. */
char *gm_path_stem(const char *path, char *stem);

/* Do two paths name the same entry of a folder, whether it exists or not? */
int gm_path_same(const char *a, const char *b);

/* 48 random bits for a unique name. */
uint64_t gm_path_id(void);

#endif
