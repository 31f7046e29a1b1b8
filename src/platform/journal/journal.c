/* journal.c: see journal.h. */
#define SD_JOURNAL_SUPPRESS_LOCATION /* source file and line would only be those of this file */
#include "platform/journal/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include "base/plain.h"

enum { FIELDS_MAX = 8, FIELD_SIZE = 512, ABOUT_SIZE = 128 };

/* The present work of a thread: for which request, for which host. */
static _Thread_local struct {
    const char *name; /* NULL: unused entry */
    char value[ABOUT_SIZE];
} about[FIELDS_MAX];

void journal_about(const char *name, const char *value)
{
    int at = -1;
    for (int i = 0; i < FIELDS_MAX; i++) {
        if (about[i].name != NULL && strcmp(about[i].name, name) == 0) {
            at = i;
            break;
        }
        at = at < 0 && about[i].name == NULL ? i : at;
    }
    if (at < 0) {
        return; /* no room for the field: the line itself is more important */
    }
    about[at].name = value != NULL ? name : NULL;
    if (value != NULL) {
        plain_text(value, about[at].value, sizeof(about[at].value));
    }
}

static bool has(const struct journal_field *fields, const char *name)
{
    for (int i = 0; fields != NULL && i < FIELDS_MAX && fields[i].name != NULL; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_any(const struct journal_field *fields)
{
    bool any = fields != NULL && fields[0].name != NULL;
    for (int i = 0; i < FIELDS_MAX; i++) {
        any = any || about[i].name != NULL;
    }
    return any;
}

/* Sends to the journal's own socket, which accepts fields. false: there is no socket, or it is full. */
static bool send_fields(const char *program, int priority, const struct journal_field *fields,
                        const char *text)
{
    char lines[2 * FIELDS_MAX][FIELD_SIZE], message[4096 + 16], level[16], name[64];
    struct iovec parts[2 * FIELDS_MAX + 3];
    int count = 3;
    parts[0] =
        (struct iovec){message, (size_t)snprintf(message, sizeof(message), "MESSAGE=%s", text)};
    parts[1] =
        (struct iovec){level, (size_t)snprintf(level, sizeof(level), "PRIORITY=%d", priority)};
    parts[2] =
        (struct iovec){name, (size_t)snprintf(name, sizeof(name), "SYSLOG_IDENTIFIER=%s", program)};
    for (int i = 0; fields != NULL && i < FIELDS_MAX && fields[i].name != NULL; i++) {
        if (fields[i].value == NULL) {
            continue;
        }
        const int n = snprintf(lines[i], FIELD_SIZE, "%s=%s", fields[i].name, fields[i].value);
        parts[count++] =
            (struct iovec){lines[i], n < FIELD_SIZE ? (size_t)n : (size_t)FIELD_SIZE - 1};
    }
    for (int i = 0; i < FIELDS_MAX; i++) {
        if (about[i].name != NULL && !has(fields, about[i].name)) {
            char *line = lines[FIELDS_MAX + i];
            const int n = snprintf(line, FIELD_SIZE, "%s=%s", about[i].name, about[i].value);
            parts[count++] = (struct iovec){line, (size_t)n};
        }
    }
    return sd_journal_sendv(parts, count) >= 0;
}

void journal_say(const char *program, int priority, const struct journal_field *fields,
                 const char *format, va_list arguments)
{
    char whole[2048], text[4096];
    vsnprintf(whole, sizeof(whole), format, arguments);
    /* The text may have names that hosts sent. Escapes keep them from forging lines. */
    plain_text(whole, text, sizeof(text));
    const bool journal = getenv("JOURNAL_STREAM") != NULL;
    /* A line through stderr always belongs to the unit, e.g. the reason of a failed start. */
    if (journal && has_any(fields) && send_fields(program, priority, fields, text)) {
        return;
    }
    if (journal) {
        fprintf(stderr, "<%d>%s\n", priority, text);
    } else {
        fprintf(stderr, "%s: %s\n", program, text);
    }
}
