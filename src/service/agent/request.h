/* request.h: parses one line from the agent's socket (docs/json.md). Pure: it takes any bytes and returns a request, or the
 * reason of a refusal. */
#pragma once
#include "base/bug.h"

#include <stdbool.h>
#include <stddef.h>

enum agent_request_kind {
    AGENT_REQUEST_GET, /* `what` is a kind of answer; the answering code checks if it exists */
    AGENT_REQUEST_RECORD,
    AGENT_REQUEST_WATCH_FINDINGS,
    AGENT_REQUEST_WATCH_LINKS,
};
struct agent_request {
    enum agent_request_kind kind;
    char what[32]; /* of GET: printable ASCII */
};
struct agent_refusal {
    const char *code; /* docs/json.md lists them */
    char text[160];   /* expected …, found …; printable ASCII */
};

/* Parses a line without its end. False: *ret_refusal has the reason, *ret_request is not set. */
MUST_CHECK bool agent_request_parse(const char *line, size_t size,
                                    struct agent_request *ret_request,
                                    struct agent_refusal *ret_refusal);
/* Fills the refusal: there is no answer of that kind. */
void agent_request_unknown(const char *what, struct agent_refusal *ret_refusal);
