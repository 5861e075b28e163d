/* Words of the command line, and the numbers that they stand for. */
#include "base/text/words.h"
#include "tests/tap.h"

int main(void)
{
    static const char *const words[] = {"row", "column"};
    tap_ok(gm_word_index(words, 2, "row") == 0 && gm_word_index(words, 2, "column") == 1, "the index of a word");
    tap_ok(gm_word_index(words, 2, "rows") == -1 && gm_word_index(words, 2, "") == -1, "-1 for any other word");
    tap_ok(gm_word_index(words, 1, "column") == -1, "no word after the last one is looked at");
    return tap_done();
}
