/* journal.c: see journal.h. */
#include "platform/journal/journal.h"

#include <stdio.h>
#include <stdlib.h>

void journal_say(const char *program, int priority, const char *format, va_list arguments)
{
    char text[2048];
    vsnprintf(text, sizeof(text), format, arguments);
    for (char *p = text; *p != 0; p++) {
        *p = (unsigned char)*p < ' ' ? '?' : *p;
    }
    if (getenv("JOURNAL_STREAM") != NULL) {
        fprintf(stderr, "<%d>%s\n", priority, text);
    } else {
        fprintf(stderr, "%s: %s\n", program, text);
    }
}
