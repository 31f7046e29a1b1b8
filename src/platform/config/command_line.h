/* command_line.h: reads a program's command line with its table (base/options.h), and prints its help, version or error. */
#pragma once
#include "base/options.h"

#define COMMAND_LINE_GOOD (-1)

/* Returns COMMAND_LINE_GOOD, and argv[*ret_first] is the first word. Else everything is printed, and the exit status is
 * returned: 0 after --help (stdout) or --version, 2 after a line about the error (stderr). */
int command_line_read(const struct option_set *set, int argc, char *argv[], int *ret_first);
