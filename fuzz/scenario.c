/* scenario.c: the scenario language, from text to its model. */
#include "service/scenario/scenario.h"

#include <stdlib.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct scenario scenario;
    struct config_error error = {""};

    if (scenario_parse("input", (const char *)data, size, &scenario, &error) < 0) {
        ASSERT(error.text[0] != 0);
    }
    return 0;
}
