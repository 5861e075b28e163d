/* Text of any bytes: escaped for a line, for JSON and as words of bash; cut at characters and escapes. */
#include "base/text/escape.h"
#include "base/log.h"
#include "tests/capture.h"
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
    {"back\\slash", "back\\\\slash", "back\\slash", "'back\\slash'"},
    {"a\nb\tc\rd", "a\\nb\\tc\\rd", "a\nb\tc\rd", "$'a\\nb\\tc\\rd'"},
    {"\\n\\x1b\033\\", "\\\\n\\\\x1b\\x1b\\\\", "\\n\\x1b\033\\", "$'\\\\n\\\\x1b\\x1b\\\\'"},
    {"'\\\n", "'\\\\\\n", "'\\\n", "$'\\'\\\\\\n'"},
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
        char *line = gm_escape_line_copy(cases[i].text), *utf8 = gm_escape_utf8_copy(cases[i].text);
        char *words[] = {"x", (char *)cases[i].text}, *quoted = gm_escape_words(2, words);
        tap_ok(strcmp(line, cases[i].line) == 0, "as a line: %s", line);
        tap_ok(strcmp(utf8, cases[i].utf8) == 0, "as UTF-8: %s", cases[i].line);
        tap_ok(strncmp(quoted, "x ", 2) == 0 && strcmp(quoted + 2, cases[i].word) == 0, "as a word: %s", quoted);
        free(line);
        free(utf8);
        free(quoted);
    }
}

/* Whatever the size, what is left is a beginning of the whole, in characters and escapes of it. */
static void test_cuts(void)
{
    static const char text[] = "a\xc3\xa9\n\xe2\x82\xac\xff\\\xf0\x9f\x98\x80";
    static const size_t ends[] = {0, 1, 3, 5, 8, 12, 14, 18};   /* of "aé\n€\xff\\😀", escaped */
    static const size_t raw_ends[] = {0, 1, 3, 4, 7, 8, 9, 13}; /* as it is */
    char whole[64], out[64];
    int good = 1, fits = 1;
    gm_escape_line(text, whole, sizeof whole);
    for (size_t room = 1; room <= 19; room++) {
        size_t end = 0, raw_end = 0, i = 0;
        for (; i < sizeof ends / sizeof ends[0]; i++) {
            end = ends[i] < room ? ends[i] : end;
            raw_end = raw_ends[i] < room ? raw_ends[i] : raw_end;
        }
        gm_escape_line(text, out, room);
        good &= strlen(out) == end && strncmp(out, whole, end) == 0;
        fits &= gm_escape_fit(text, room - 1) == raw_end;
        fits &= gm_escape_cut(text, out, room) == out && strlen(out) == raw_end && strncmp(out, text, raw_end) == 0;
    }
    tap_ok(good, "cut between characters and escapes");
    tap_ok(fits, "gm_escape_fit and gm_escape_cut: cut between characters");
    tap_ok(gm_escape_fit("abc", 3) == 3 && gm_escape_fit("abc", 9) == 3 && gm_escape_fit("", 0) == 0, "text that fits");
    tap_ok(gm_escape_columns("a\xc3\xa9\xe2\x82\xac\\x1b") == 7, "columns");
}

/* A message as it is printed: to line. */
static void print(const char *text, int is_error, char *line, size_t room)
{
    capture c;
    capture_start(&c);
    if (is_error)
        gm_error_print(text);
    else
        gm_warn("%s", text);
    capture_end(&c, line, room);
}

static void test_messages(void)
{
    gm_error error;
    char name[GM_MESSAGE_MAX + 8], line[GM_ESCAPED * GM_MESSAGE_MAX + 64];
    gm_fail(GM_EINPUT, "%s: is \xff\n", "a\nb\033\\n");
    gm_error_get(&error);
    gm_error_clear();
    tap_ok(strcmp(error.text, "a\nb\033\\n: is \xff\n") == 0, "the record of an error has names as they are");
    gm_fail(GM_EINPUT, "its part %s", error.text);
    gm_error_get(&error);
    gm_error_clear();
    print(error.text, 1, line, sizeof line);
    tap_ok(strcmp(line, "gpumem-run: error: its part a\\nb\\x1b\\\\n: is \\xff\\n\n") == 0,
           "it is printed as one line, escaped once: %s", line);
    print("a\nb\033\\n", 0, line, sizeof line);
    tap_ok(strcmp(line, "gpumem-run: warning: a\\nb\\x1b\\\\n\n") == 0, "and so is a warning: %s", line);
    for (int shift = 0; shift < 4; shift++) {
        memset(name, 'x', sizeof name);
        for (size_t i = (size_t)shift; i + 3 < sizeof name; i += 3)
            memcpy(name + i, "\xe2\x82\xac", 3);
        name[sizeof name - 1] = '\0';
        gm_fail(GM_EINPUT, "%s", name);
        gm_error_get(&error);
        size_t length = strlen(error.text);
        tap_ok(length > GM_MESSAGE_MAX - 5 && (unsigned char)error.text[length - 1] == 0xac,
               "a long message ends with a character");
        gm_error_clear();
    }
    memset(name, '\033', sizeof name);
    memcpy(name + GM_MESSAGE_MAX - 4, "end", 4);
    print(name, 1, line, sizeof line);
    tap_ok(strlen(line) == strlen("gpumem-run: error: end\n") + (size_t)4 * (GM_MESSAGE_MAX - 4) &&
               strcmp(line + strlen(line) - 8, "\\x1bend\n") == 0,
           "a message of control characters is printed to its end");
}

int main(void)
{
    test_cases();
    test_cuts();
    test_messages();
    return tap_done();
}
