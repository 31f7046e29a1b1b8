/* command_line.c: reads a command line, and prints the help, the version or the error. */
#include "platform/config/command_line.h"

#include <stdio.h>

int command_line_read(const struct option_set *set, int argc, char *argv[], int *ret_first)
{
    struct option_outcome o;
    options_read(set, argc, argv, &o);
    switch (o.verdict) {
    case OPTIONS_GOOD:
        *ret_first = o.first;
        return COMMAND_LINE_GOOD;
    case OPTIONS_HELP:
        fputs(o.text, stdout);
        return 0;
    case OPTIONS_VERSION:
        printf("%s " FOLIOT_VERSION "\n", set->program);
        return 0;
    case OPTIONS_WRONG:
        break;
    }
    fputs(o.text, stderr);
    return 2;
}
