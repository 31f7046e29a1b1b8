/* lldp.c: LLDP frames. Any device can be at the other end of the cable. */
#include "wire/lldp.h"

#include <string.h>

#include "fuzz.h"

static void check(const char *text)
{
    const size_t length = strnlen(text, LLDP_TEXT_SIZE);
    ASSERT(length < LLDP_TEXT_SIZE);
    for (size_t i = 0; i < length; i++) {
        ASSERT(text[i] >= 0x20 && text[i] < 0x7f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lldp lldp;

    if (lldp_decode(data, size, &lldp)) {
        check(lldp.system);
        check(lldp.port);
    }
    return 0;
}
