/* request.c: see request.h. */
#include "service/agent/request.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool refuse(struct agent_refusal *refusal, const char *code, const char *text)
{
    refusal->code = code;
    snprintf(refusal->text, sizeof(refusal->text), "%s", text);
    return false;
}

/* Copies as much of a foreign text as fits, as printable text. */
static void shown(char *to, size_t size, const char *text)
{
    size_t n = 0;

    for (; n + 1 < size && text[n] != 0; n++) {
        to[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
    }
    to[n] = 0;
}

void agent_request_unknown(const char *what, struct agent_refusal *refusal)
{
    char found[32];

    shown(found, sizeof(found), what);
    refusal->code = "unknown-request";
    snprintf(refusal->text, sizeof(refusal->text),
             "expected status, clock, mesh, links, findings, jobs, lanes, doctor, selftest or "
             "record, found %s",
             found);
}

static bool parse_watch(const char *what, struct agent_request *ret, struct agent_refusal *refusal)
{
    if (strcmp(what, "findings") != 0 && strcmp(what, "links") != 0) {
        return refuse(refusal, "unknown-request", "expected findings or links to watch");
    }
    *ret = (struct agent_request){.kind = what[0] == 'f' ? AGENT_REQUEST_WATCH_FINDINGS
                                                         : AGENT_REQUEST_WATCH_LINKS};
    return true;
}

static bool parse_get(const char *what, struct agent_request *ret, struct agent_refusal *refusal)
{
    struct agent_request request = {.kind = AGENT_REQUEST_GET};

    if (strcmp(what, "record") == 0) {
        request.kind = AGENT_REQUEST_RECORD;
    } else {
        shown(request.what, sizeof(request.what), what);
        if (strcmp(request.what, what) != 0) {
            /* too long or not printable: no kind of answer has this name */
            agent_request_unknown(what, refusal);
            return false;
        }
    }
    *ret = request;
    return true;
}

bool agent_request_parse(const char *line, size_t size, struct agent_request *ret,
                         struct agent_refusal *refusal)
{
    json_error_t problem;
    bool ok;

    if (memchr(line, 0, size) != NULL) {
        return refuse(refusal, "bad-request", "expected text, found a zero byte");
    }
    json_t *root = json_loadb(line, size, JSON_REJECT_DUPLICATES, &problem);
    if (!json_is_object(root)) {
        json_decref(root);
        return refuse(refusal, "bad-request", "expected a JSON object, found something else");
    }
    const json_t *version = json_object_get(root, "version");
    const char *get = json_string_value(json_object_get(root, "get"));
    const char *watched = json_string_value(json_object_get(root, "watch"));
    if (version != NULL && json_integer_value(version) != 1) {
        ok = refuse(refusal, "bad-version", "expected version 1");
    } else if ((watched != NULL) == (get != NULL)) {
        ok = refuse(refusal, "bad-request", "expected one of \"get\" and \"watch\", and its kind");
    } else {
        ok = get != NULL ? parse_get(get, ret, refusal) : parse_watch(watched, ret, refusal);
    }
    json_decref(root);
    return ok;
}
