/* journal.h: a daemon's words, a line each on stderr.
 *
 * Where systemd reads it (JOURNAL_STREAM) a line begins with its priority, "<4>", else with the program's name. What
 * others wrote, a switch's name say, can't forge a line: it is shown with its escapes (base/plain.h). At most 2047 bytes. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>

/* What to find a line by: `journalctl FOLIOT_WHAT=token.make`. A line that has one goes to the journal's socket, where the
 * journal looks up whose it is; the last line before a program ends has none, or that would be too late. */
struct journal_field {
    const char *name,
        *value; /* FOLIOT_…: A to Z and _; value NULL: the line has none, whatever journal_about told */
};

/* From now on every line of this thread has this field; value NULL: no longer. At most 8, `name` is a literal, of `value` the
 * first 127 bytes. */
void journal_about(const char *name, const char *value);

/* `priority`: LOG_ERR, LOG_WARNING, LOG_INFO … of syslog.h. `fields`: NULL, or at most 8, ended by a NULL name; for the
 * journal alone, as those of journal_about. */
void journal_say(const char *program, int priority, const struct journal_field *fields,
                 const char *format, va_list arguments) __attribute__((format(printf, 4, 0)));
