/* command_line.h: a program's command line: read by its table (base/options.h), and its help, version or error printed. */
#pragma once
#include "base/options.h"

#define COMMAND_LINE_GOOD (-1)

/* COMMAND_LINE_GOOD: argv[*ret_first] is the first word. Else the exit status, and all is printed: 0 after --help (stdout) or
 * --version, 2 after a line about what is wrong (stderr). */
int command_line_read(const struct option_set *set, int argc, char *argv[], int *ret_first);
