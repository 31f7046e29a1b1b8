/* foliot_api_options.c: the options of all commands that ask the controller. A command's usage in foliot.c is what --help and
 * the shells' completion print and what the manual is held to; here it also decides whether an option takes a value. */
#include <getopt.h>
#include <string.h>

#include "app/foliot_api.h"
#include "app/foliot_command.h"
#include "app/foliot_text.h"
#include "base/bug.h"

enum { OWN_FIRST = 1000, OWN_MAX = 16 };

static const struct option common[] = {{"json", no_argument, NULL, 'j'},
                                       {"controller", required_argument, NULL, 'c'},
                                       {"authority", required_argument, NULL, 'a'},
                                       {"token-file", required_argument, NULL, 't'},
                                       {"help", no_argument, NULL, 'h'}};

static size_t count_own(const struct api_option *own)
{
    size_t count = 0;
    while (own != NULL && own[count].name != NULL) {
        count++;
    }
    ASSERT(count <= OWN_MAX);
    return count;
}

/* An option that --help lacks, or has otherwise, is a bug of ours: any run of the command finds it. */
static void fill(struct option *table, const struct command *command, const struct api_option *own,
                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int value = command_option(command, own[i].name);
        ASSERT(value == (own[i].kind == API_FLAG ? no_argument : required_argument));
        table[i] = (struct option){own[i].name, value, NULL, OWN_FIRST + (int)i};
    }
    memcpy(table + count, common, sizeof(common));
}

static bool take_own(const char *command, const struct api_option *own, const char *value)
{
    switch (own->kind) {
    case API_FLAG:
        *(bool *)own->to = true;
        return true;
    case API_WORD:
        *(const char **)own->to = value;
        return true;
    case API_SPAN:
        return span_parse(command, value, own->to);
    }
    return false;
}

static bool take_common(struct api *a, int option, const char *value)
{
    switch (option) {
    case 'j':
        a->json = true;
        return true;
    case 'c':
        a->url = value;
        return true;
    case 'a':
        a->authority = value;
        return true;
    case 't':
        a->token_path = value;
        return true;
    default:
        return false;
    }
}

int api_parse(struct api *a, const struct api_option *own, int argc, char *argv[])
{
    const struct command *command = command_find(a->command);
    const size_t count = count_own(own);
    struct option table[OWN_MAX + ARRAY_COUNT(common) + 1] = {0};

    fill(table, command, own, count);
    optind = 1;
    for (int o; (o = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        if (o == 'h') {
            command_usage(command, stdout);
            return API_HELPED;
        }
        if (o >= OWN_FIRST ? !take_own(a->command, &own[o - OWN_FIRST], optarg)
                           : !take_common(a, o, optarg)) {
            return EXIT_USAGE;
        }
    }
    return 0;
}
