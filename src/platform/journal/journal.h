/* journal.h: log lines of a daemon, one line each on stderr.
 *
 * Under systemd (JOURNAL_STREAM is set) a line begins with its priority, "<4>". Else it begins with the program's name.
 * Foreign text, for example a switch's name, can't forge a line: it is shown with escapes (base/plain.h). A line has at most
 * 2047 bytes. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>

/* A field to find lines: `journalctl FOLIOT_WHAT=token.make`. A line with fields goes to the journal's socket, and the journal
 * looks up its unit. So the last line before a program ends must have no fields: the lookup would be too late. */
struct journal_field {
    const char *name,
        /* name: FOLIOT_…, A to Z and _; value NULL: the line has no such field, also not from journal_about */
        *value;
};

/* From now on each line of this thread has this field; value NULL: no longer. At most 8 fields. `name`: a literal. Only the
 * first 127 bytes of `value` are used. */
void journal_about(const char *name, const char *value);

/* priority: LOG_ERR, LOG_WARNING, LOG_INFO … of syslog.h. fields: NULL, or at most 8, ended by a NULL name. Only the journal
 * gets them and those of journal_about. */
void journal_say(const char *program, int priority, const struct journal_field *fields,
                 const char *format, va_list arguments) __attribute__((format(printf, 4, 0)));
