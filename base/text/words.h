/* words.h - a word of the command line as the number that it stands for. */
#ifndef GM_BASE_TEXT_WORDS_H
#define GM_BASE_TEXT_WORDS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The index of word among `count` words; -1: it is none of them. */
int gm_word_index(const char *const *words, int count, const char *word);

#ifdef __cplusplus
}
#endif
#endif
