/* journal.h: a daemon's words, a line each on stderr.
 *
 * Where systemd reads it (JOURNAL_STREAM) a line begins with its priority, "<4>", else with the program's name. What
 * others wrote, a switch's name say, can't forge a line: control characters become '?'. At most 2047 bytes. */
#pragma once
#include <stdarg.h>

/* `priority`: LOG_ERR, LOG_WARNING, LOG_INFO … of syslog.h. */
void journal_say(const char *program, int priority, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
