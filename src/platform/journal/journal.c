/* journal.c: see journal.h. */
#include "platform/journal/journal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/plain.h"

void journal_say(const char *program, int priority, const char *format, va_list arguments)
{
    char whole[2048], text[4096];
    vsnprintf(whole, sizeof(whole), format, arguments);
    plain_text(whole, text,
               sizeof(text)); /* hosts name things: no line, no screen of ours is theirs */
    if (getenv("JOURNAL_STREAM") != NULL) {
        fprintf(stderr, "<%d>%s\n", priority, text);
    } else {
        fprintf(stderr, "%s: %s\n", program, text);
    }
}
