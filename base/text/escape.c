#include "base/text/escape.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 character at text and its code; 0 where there is none: a stray or overlong byte sequence, half of
 * a surrogate pair, a code beyond Unicode. */
static size_t decode(const unsigned char *text, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* [bytes of the character] */
    size_t length = *text < 0x80             ? 1
                    : (*text & 0xe0) == 0xc0 ? 2
                    : (*text & 0xf0) == 0xe0 ? 3
                    : (*text & 0xf8) == 0xf0 ? 4
                                             : 0;
    *code = length < 2 ? *text : *text & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) /* the end of the text as well */
            return 0;
        *code = *code << 6 | (text[i] & 0x3f);
    }
    return length && *code >= least[length] && *code <= 0x10ffff && (*code < 0xd800 || *code > 0xdfff) ? length : 0;
}

/* Does a character end a line, or act on a terminal? */
static int is_control(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0, 0x1f}, {0x7f, 0x9f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return 1;
    return 0;
}

/* Writes the escape of a byte; returns its length. */
static size_t put_byte(unsigned char byte, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const char *named = byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : byte == '\r' ? "\\r" : NULL;
    if (named) {
        memcpy(out, named, 2);
        return 2;
    }
    memcpy(out, "\\x", 2);
    out[2] = digits[byte >> 4];
    out[3] = digits[byte & 15];
    return GM_ESCAPED;
}

/* The next character of text as it is or escaped, to out; returns its length there. */
static size_t put_character(const unsigned char **text, int controls, char out[4 * GM_ESCAPED])
{
    uint32_t code;
    size_t length = decode(*text, &code), used = 0;
    if (length && !(controls && is_control(code))) {
        memcpy(out, *text, length);
        used = length;
    } else {
        for (size_t i = 0; i < (length ? length : 1); i++)
            used += put_byte((*text)[i], out + used);
    }
    *text += length ? length : 1;
    return used;
}

/* The same for a line, if controls is set: there a backslash is an escape, or is escaped. */
static size_t put_line_character(const unsigned char **text, int controls, char out[4 * GM_ESCAPED])
{
    if (!controls || **text != '\\')
        return put_character(text, controls, out);
    memcpy(out, "\\\\", 2);
    ++*text;
    return 2;
}

static char *escape(const char *text, int controls, char *out, size_t room)
{
    const unsigned char *at = (const unsigned char *)text;
    char character[4 * GM_ESCAPED];
    size_t used = 0;
    while (*at) {
        size_t length = put_line_character(&at, controls, character);
        if (used + length >= room)
            break;
        memcpy(out + used, character, length);
        used += length;
    }
    out[used] = '\0';
    return out;
}

static char *copy(const char *text, int controls)
{
    size_t room = GM_ESCAPED * strlen(text) + 1;
    char *out = malloc(room);
    return out ? escape(text, controls, out, room) : NULL;
}

char *gm_escape_line(const char *text, char *out, size_t room)
{
    return escape(text, 1, out, room);
}

char *gm_escape_line_copy(const char *text)
{
    return copy(text, 1);
}

char *gm_escape_utf8_copy(const char *text)
{
    return copy(text, 0);
}

size_t gm_escape_fit(const char *text, size_t most)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = strnlen(text, most + 1);
    uint32_t code;
    if (length <= most)
        return length;
    for (size_t back = 1; back < 4 && back <= most; back++) /* a character that begins before the cut and ends after */
        if (decode(bytes + most - back, &code) > back)
            return most - back;
    return most;
}

char *gm_escape_cut(const char *text, char *out, size_t room)
{
    size_t length = gm_escape_fit(text, room - 1);
    memcpy(out, text, length);
    out[length] = '\0';
    return out;
}

int gm_escape_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

/* A word as bash reads it back; returns its length. */
static size_t put_word(const char *word, char *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+@%-";
    const unsigned char *at = (const unsigned char *)word;
    int dollar = 0, bare = *word && strspn(word, plain) == strlen(word);
    uint32_t code;
    for (size_t length; *at; at += length ? length : 1) {
        length = decode(at, &code);
        dollar |= length == 0 || is_control(code);
    }
    size_t used = (size_t)sprintf(out, "%s", dollar ? "$'" : bare ? "" : "'");
    for (at = (const unsigned char *)word; *at;) {
        if (*at == '\'')
            used += (size_t)sprintf(out + used, "%s", dollar ? "\\'" : "'\\''");
        else if (*at == '\\' && dollar)
            used += (size_t)sprintf(out + used, "\\\\");
        else {
            used += put_character(&at, 1, out + used);
            continue;
        }
        at++;
    }
    return used + (size_t)sprintf(out + used, "%s", bare ? "" : "'");
}

char *gm_escape_words(int count, char *const *words)
{
    size_t room = 1, used = 0;
    for (int i = 0; i < count; i++)
        room += GM_ESCAPED * strlen(words[i]) + sizeof " $''";
    char *text = calloc(1, room);
    for (int i = 0; text && i < count; i++) {
        if (i)
            text[used++] = ' ';
        used += put_word(words[i], text + used);
    }
    return text;
}
