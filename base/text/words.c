#include "base/text/words.h"

#include <stdio.h>
#include <string.h>

int gm_word_index(const char *const *words, int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

int gm_word_next(const char **list, char separator, char *word, size_t room)
{
    const char separators[] = {separator, '\0'};
    size_t length = strcspn(*list, separators);
    snprintf(word, room, "%.*s", (int)(length < room ? length : room), *list);
    *list = (*list)[length] ? *list + length + 1 : NULL;
    return length < room;
}
