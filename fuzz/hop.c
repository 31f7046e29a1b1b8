/* hop.c: ICMP answers of routers, in both families. Anybody in the network can send them. */
#include "platform/timestamp/hop.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t router[16] = {0xfe, 0x80};
    struct hop_answer answer;

    if (hop_parse4(data, size, &answer)) {
        ASSERT(answer.quoted <= sizeof(answer.payload));
    }
    if (hop_parse6(data, size, router, &answer)) {
        ASSERT(answer.quoted <= sizeof(answer.payload));
    }
    return 0;
}
