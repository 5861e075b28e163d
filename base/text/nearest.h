/* nearest.h - the name that a mistyped word was meant to be. */
#ifndef GM_BASE_TEXT_NEAREST_H
#define GM_BASE_TEXT_NEAREST_H

#ifdef __cplusplus
extern "C" {
#endif

/* The first of the nearest of `count` names, name(0) ... name(count - 1): by letters that are missing, surplus,
 * replaced, or swapped with their neighbour, at most one for each three letters of the word. NULL: none is so near. */
const char *gm_nearest(const char *word, const char *(*name)(int index), int count);

#ifdef __cplusplus
}
#endif
#endif
