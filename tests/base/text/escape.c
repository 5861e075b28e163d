/* Text of any bytes: escaped for a line, for JSON and as words of bash; cut at characters and escapes. */
#include "base/text/escape.h"
#include "base/log.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text, *line, *utf8, *word;
} cases[] = {
    {"", "", "", "''"},
    {"a/b-1.h5", "a/b-1.h5", "a/b-1.h5", "a/b-1.h5"},
    {"a b", "a b", "a b", "'a b'"},
    {"it's", "it's", "it's", "'it'\\''s'"},
    {"back\\slash", "back\\slash", "back\\slash", "'back\\slash'"},
    {"a\nb\tc\rd", "a\\nb\\tc\\rd", "a\nb\tc\rd", "$'a\\nb\\tc\\rd'"},
    {"'\\\n", "'\\\\n", "'\\\n", "$'\\'\\\\\\n'"},
    {"\033[31m\001\177", "\\x1b[31m\\x01\\x7f", "\033[31m\001\177", "$'\\x1b[31m\\x01\\x7f'"},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
     "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "'\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'"},
    {"\xff\xc3", "\\xff\\xc3", "\\xff\\xc3", "$'\\xff\\xc3'"},
    {"\xc2\x85\xc2\xa0", "\\xc2\\x85\xc2\xa0", "\xc2\x85\xc2\xa0", "$'\\xc2\\x85\xc2\xa0'"},
    {"\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa5", "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xe2\\x81\\xa6\xe2\x81\xa5",
     "\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa5",
     "$'\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xe2\\x81\\xa6\xe2\x81\xa5'"},
    {"\xc0\xaf\xe0\x80\x80\xed\xa0\x80\xf4\x90\x80\x80", "\\xc0\\xaf\\xe0\\x80\\x80\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80",
     "\\xc0\\xaf\\xe0\\x80\\x80\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80",
     "$'\\xc0\\xaf\\xe0\\x80\\x80\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80'"},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static void test_cases(void)
{
    for (int i = 0; i < CASES; i++) {
        char *line = gm_escape_line_copy(cases[i].text), *twice = gm_escape_line_copy(line),
             *utf8 = gm_escape_utf8_copy(cases[i].text);
        char *words[] = {"x", (char *)cases[i].text}, *quoted = gm_escape_words(2, words);
        tap_ok(strcmp(line, cases[i].line) == 0, "as a line: %s", line);
        tap_ok(strcmp(line, twice) == 0, "once more changes nothing");
        tap_ok(strcmp(utf8, cases[i].utf8) == 0, "as UTF-8: %s", cases[i].line);
        tap_ok(strncmp(quoted, "x ", 2) == 0 && strcmp(quoted + 2, cases[i].word) == 0, "as a word: %s", quoted);
        free(line);
        free(twice);
        free(utf8);
        free(quoted);
    }
}

/* Whatever the size, what is left is a beginning of the whole, in characters and escapes of it. */
static void test_cuts(void)
{
    static const char text[] = "a\xc3\xa9\n\xe2\x82\xac\xff\xf0\x9f\x98\x80";
    static const size_t ends[] = {0, 1, 3, 5, 8, 12, 16}; /* of "aé\n€\xff😀", escaped */
    char whole[64], out[64];
    int good = 1, fits = 1;
    gm_escape_line(text, whole, sizeof whole);
    for (size_t room = 1; room <= 17; room++) {
        size_t end = 0, i = 0;
        for (; i < sizeof ends / sizeof ends[0] && ends[i] < room; i++)
            end = ends[i];
        gm_escape_line(text, out, room);
        good &= strlen(out) == end && strncmp(out, whole, end) == 0;
        fits &= gm_escape_fit(whole, room - 1) == end;
    }
    tap_ok(good, "cut between characters and escapes");
    tap_ok(fits, "gm_escape_fit: the same cuts");
    tap_ok(gm_escape_fit("abc", 3) == 3 && gm_escape_fit("abc", 9) == 3 && gm_escape_fit("", 0) == 0, "text that fits");
    tap_ok(gm_escape_columns("a\xc3\xa9\xe2\x82\xac\\x1b") == 7, "columns");
}

static void test_messages(void)
{
    gm_error error;
    char name[GM_MESSAGE_MAX + 8];
    gm_fail(GM_EINPUT, "%s: is \xff\n", "a\nb\033");
    gm_error_get(&error);
    tap_ok(strcmp(error.text, "a\\nb\\x1b: is \\xff\\n") == 0, "a message is one line: %s", error.text);
    gm_error_clear();
    for (int shift = 0; shift < 4; shift++) {
        memset(name, 'x', sizeof name);
        for (size_t i = (size_t)shift; i + 3 < sizeof name; i += 3)
            memcpy(name + i, "\xe2\x82\xac", 3);
        name[sizeof name - 1] = '\0';
        gm_fail(GM_EINPUT, "%s", name);
        gm_error_get(&error);
        size_t length = strlen(error.text);
        tap_ok(length > GM_MESSAGE_MAX - 5 && !strchr(error.text, '\\') &&
                   (unsigned char)error.text[length - 1] == 0xac,
               "a long message ends with a character");
        gm_error_clear();
    }
    memset(name, '\033', sizeof name);
    name[sizeof name - 1] = '\0';
    gm_fail(GM_EINPUT, "%s", name);
    gm_error_get(&error);
    size_t length = strlen(error.text);
    tap_ok(length % 4 == 0 && strcmp(error.text + length - 4, "\\x1b") == 0, "or with an escape");
    gm_error_clear();
}

int main(void)
{
    test_cases();
    test_cuts();
    test_messages();
    return tap_done();
}
