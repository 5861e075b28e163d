/* escape.h - text from outside (names of files, datasets, types and hosts, words of the command line, messages of
 * libraries), which may hold any bytes, on its way to a terminal, into JSON or into an attribute.
 *
 * A byte is escaped as \xHH, with two digits in lower case; \n, \t and \r stand for newline, tab and return. In a line
 * \\ stands for a backslash: each escape says what it was. So text is escaped once, where it is printed: messages of
 * errors and names are passed on as they are. */
#ifndef GM_BASE_TEXT_ESCAPE_H
#define GM_BASE_TEXT_ESCAPE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GM_ESCAPED = 4 }; /* bytes that one byte becomes at most */

/* For a message or a table: escapes all that would end a line or act on a terminal: control characters (C0, DEL, C1),
 * line separators (U+2028, U+2029), changes of direction (U+202A to U+202E, U+2066 to U+2069), bytes that are not
 * UTF-8, and backslashes. out has room bytes, at least 1; text that is longer is cut, not inside a character or an
 * escape. Returns out.
 */
char *gm_escape_line(const char *text, char *out, size_t room);

/* The same in memory of the right size, which the caller frees; NULL: no memory. */
char *gm_escape_line_copy(const char *text);

/* For JSON and attributes, which hold any UTF-8: escapes the bytes that are not UTF-8 alone, no backslash. The caller
 * frees it; NULL: no memory. */
char *gm_escape_utf8_copy(const char *text);

/* The length of text, or of its longest beginning of at most `most` bytes that does not end inside a character. */
size_t gm_escape_fit(const char *text, size_t most);

/* Copies text to out, of room bytes, at least 1, cut as gm_escape_fit() does. Returns out. */
char *gm_escape_cut(const char *text, char *out, size_t room);

/* Columns that UTF-8 text takes on a terminal, a column for each character. */
int gm_escape_columns(const char *text);

/* "gpumem-run reduce 'a b.h5' $'c\nd.h5'": words as bash reads them back, quoted where it needs that; control
 * characters and bytes that are not UTF-8 in the form $'\xHH'. The result is UTF-8; the caller frees it. NULL: no
 * memory. */
char *gm_escape_words(int count, char *const *words);

#ifdef __cplusplus
}
#endif
#endif
