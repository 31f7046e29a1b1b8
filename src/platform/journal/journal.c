/* journal.c: see journal.h. */
#define SD_JOURNAL_SUPPRESS_LOCATION /* of this file: it would say nothing */
#include "platform/journal/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include "base/plain.h"

enum { FIELDS_MAX = 8, FIELD_SIZE = 512 };

/* By the journal's own socket, which takes fields; false: there is none, or it is full. */
static bool send_fields(const char *program, int priority, const struct journal_field *fields,
                        const char *text)
{
    char lines[FIELDS_MAX][FIELD_SIZE], message[4096 + 16], level[16], name[64];
    struct iovec parts[FIELDS_MAX + 3];
    int count = 3;
    parts[0] =
        (struct iovec){message, (size_t)snprintf(message, sizeof(message), "MESSAGE=%s", text)};
    parts[1] =
        (struct iovec){level, (size_t)snprintf(level, sizeof(level), "PRIORITY=%d", priority)};
    parts[2] =
        (struct iovec){name, (size_t)snprintf(name, sizeof(name), "SYSLOG_IDENTIFIER=%s", program)};
    for (int i = 0; i < FIELDS_MAX && fields[i].name != NULL; i++) {
        const int n = snprintf(lines[i], FIELD_SIZE, "%s=%s", fields[i].name, fields[i].value);
        parts[count++] =
            (struct iovec){lines[i], n < FIELD_SIZE ? (size_t)n : (size_t)FIELD_SIZE - 1};
    }
    return sd_journal_sendv(parts, count) >= 0;
}

void journal_say(const char *program, int priority, const struct journal_field *fields,
                 const char *format, va_list arguments)
{
    char whole[2048], text[4096];
    vsnprintf(whole, sizeof(whole), format, arguments);
    plain_text(whole, text,
               sizeof(text)); /* hosts name things: no line, no screen of ours is theirs */
    const bool journal = getenv("JOURNAL_STREAM") != NULL;
    if (journal && fields != NULL && send_fields(program, priority, fields, text)) {
        return;
    }
    if (journal) {
        fprintf(stderr, "<%d>%s\n", priority, text);
    } else {
        fprintf(stderr, "%s: %s\n", program, text);
    }
}
