/* words.h - a word of the command line as the number that it stands for; the words of a list. */
#ifndef GM_BASE_TEXT_WORDS_H
#define GM_BASE_TEXT_WORDS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The index of word among `count` words; -1: it is none of them. */
int gm_word_index(const char *const *words, int count, const char *word);

/* The next word of a list: copied to word, cut to room bytes. *list, at first the whole text, becomes what follows the
 * separator, and NULL after the last word; a text without separators is one word. Returns 0 if the word was cut. */
int gm_word_next(const char **list, char separator, char *word, size_t room);

#ifdef __cplusplus
}
#endif
#endif
