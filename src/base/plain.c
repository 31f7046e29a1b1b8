/* plain.c: see plain.h. */
#include "base/plain.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) {
        return 1;
    }
    const size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) {
        return 0;
    }
    return n;
}

static uint32_t code_point(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    uint32_t code = n == 1 ? s[0] : s[0] & (0xffU >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        code = code << 6 | (s[i] & 0x3fU);
    }
    return code;
}

/* Control characters, and invisible characters that change the display: Unicode 15, general categories Cc, Zl, Zp and Cf. */
static bool hidden(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0x00, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},       {0x600, 0x605},
        {0x61c, 0x61c},   {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x180e, 0x180e},
        {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},   {0xfeff, 0xfeff},
        {0xfff9, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe007f},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (code >= ranges[i][0] && code <= ranges[i][1]) {
            return true;
        }
    }
    return false;
}

size_t plain_length(const char *text)
{
    const size_t n = utf8_length(text);
    return n == 0 || hidden(code_point(text, n)) ? 0 : n;
}

bool plain_is(const char *text)
{
    for (size_t n; *text != 0; text += n) {
        n = plain_length(text);
        if (n == 0) {
            return false;
        }
    }
    return true;
}

size_t plain_character(const char *text, char to[16])
{
    const size_t n = utf8_length(text);
    const char *named = strchr("\nn\rr\tt", *text);
    const uint32_t code = n > 1 ? code_point(text, n) : (unsigned char)*text;
    if (code < ' ' && named != NULL) {
        snprintf(to, 16, "\\%c", named[1]);
    } else {
        snprintf(to, 16, n < 2 ? "\\x%02x" : code > 0xffff ? "\\U%08x" : "\\u%04x", code);
    }
    return n > 0 ? n : 1;
}

size_t plain_text(const char *text, char *to, size_t size)
{
    size_t whole = 0, used = 0;
    bool cut = size == 0;
    while (*text != 0) {
        char shown[16];
        size_t length = plain_length(text), out = length;
        const char *from = text;
        if (length == 0) {
            length = plain_character(text, shown);
            out = strlen(shown);
            from = shown;
        }
        cut = cut || whole + out >= size;
        if (!cut) {
            memcpy(to + used, from, out);
            used += out;
        }
        whole += out;
        text += length;
    }
    if (size > 0) {
        to[used] = 0;
    }
    return whole;
}
