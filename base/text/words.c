#include "base/text/words.h"

#include <string.h>

int gm_word_index(const char *const *words, int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}
