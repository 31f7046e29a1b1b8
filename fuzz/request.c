/* request.c: a line from the agent's socket. Anybody on the host may write it. */
#include "service/agent/request.h"

#include <string.h>

#include "fuzz.h"

static bool is_shown(const char *text, size_t size)
{
    const size_t length = strnlen(text, size);

    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            return false;
        }
    }
    return length < size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agent_request request = {.kind = (enum agent_request_kind)99};
    struct agent_refusal refusal = {.code = NULL};

    if (agent_request_parse((const char *)data, size, &request, &refusal)) {
        ASSERT(refusal.code == NULL);
        ASSERT(request.kind <= AGENT_REQUEST_WATCH_LINKS);
        ASSERT(is_shown(request.what, sizeof(request.what)));
        ASSERT((request.kind == AGENT_REQUEST_GET) || request.what[0] == 0);
    } else {
        ASSERT(request.kind == (enum agent_request_kind)99);
        ASSERT(refusal.code != NULL && refusal.text[0] != 0);
        ASSERT(is_shown(refusal.text, sizeof(refusal.text)));
    }
    return 0;
}
