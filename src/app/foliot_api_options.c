/* foliot_api_options.c: the options of all commands that ask the controller. A command's usage in foliot.c is what --help and
 * the shells' completion print, and a test compares it with the manual. Here it also decides whether an option takes a value. */
#include <string.h>

#include "app/foliot_api.h"
#include "app/foliot_command.h"
#include "app/foliot_text.h"
#include "base/bug.h"

enum { OWN_MAX = 16 };

bool api_take_span(const char *text, void *to)
{
    return span_parse(text, to);
}

int api_parse(struct api *a, const struct option_entry *own, int argc, char *argv[])
{
    const struct option_entry common[] = {
        {"json", 0, OPTION_FLAG, &a->json},
        {"controller", 0, OPTION_TEXT, &a->url},
        {"authority", 0, OPTION_TEXT, &a->authority},
        {"token-file", 0, OPTION_TEXT, &a->token_path},
    };
    struct option_entry entries[OWN_MAX + ARRAY_COUNT(common)];
    size_t count = 0;

    for (; own != NULL && own[count].name != NULL; count++) {
        ASSERT(count < OWN_MAX);
        entries[count] = own[count];
    }
    memcpy(entries + count, common, sizeof(common));
    return command_read(command_find(a->command), entries, count + ARRAY_COUNT(common), argc, argv,
                        &a->first);
}
