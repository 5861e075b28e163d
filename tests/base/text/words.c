/* Words of the command line, the numbers that they stand for, and lists of them. */
#include "base/text/words.h"
#include "tests/tap.h"

#include <string.h>

static int is_next(const char **list, const char *expected)
{
    char word[4];
    return gm_word_next(list, ',', word, sizeof word) && strcmp(word, expected) == 0;
}

static void split(void)
{
    const char *list = "abc,,d,", *one = "", *large = "abcd,e";
    char word[4];
    tap_ok(is_next(&list, "abc") && is_next(&list, "") && is_next(&list, "d") && list, "the words of a list, in order");
    tap_ok(is_next(&list, "") && !list, "an empty word after the last separator; then no more");
    tap_ok(is_next(&one, "") && !one, "an empty list is one empty word");
    tap_ok(!gm_word_next(&large, ',', word, sizeof word) && strcmp(word, "abc") == 0, "a word that is too long is cut");
    tap_ok(is_next(&large, "e") && !large, "the word after it is whole");
}

int main(void)
{
    static const char *const words[] = {"row", "column"};
    tap_ok(gm_word_index(words, 2, "row") == 0 && gm_word_index(words, 2, "column") == 1, "the index of a word");
    tap_ok(gm_word_index(words, 2, "rows") == -1 && gm_word_index(words, 2, "") == -1, "-1 for any other word");
    tap_ok(gm_word_index(words, 1, "column") == -1, "no word after the last one is looked at");
    split();
    return tap_done();
}
