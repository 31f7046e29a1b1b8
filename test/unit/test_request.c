/* Valid requests on the agent's socket, and the errors of wrong ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "service/agent/request.h"

static void good_requests(void **state)
{
    static const struct {
        const char *line;
        enum agent_request_kind kind;
        const char *what;
    } cases[] = {
        {"{\"get\":\"status\",\"version\":1}", AGENT_REQUEST_GET, "status"},
        {"{\"get\":\"mesh\"}", AGENT_REQUEST_GET, "mesh"},
        {"  {\"later\":[1],\"get\":\"weather\"}\r", AGENT_REQUEST_GET, "weather"},
        {"{\"get\":\"record\",\"version\":1}", AGENT_REQUEST_RECORD, ""},
        {"{\"watch\":\"findings\",\"version\":1}", AGENT_REQUEST_WATCH_FINDINGS, ""},
        {"{\"watch\":\"links\"}", AGENT_REQUEST_WATCH_LINKS, ""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct agent_request request;
        struct agent_refusal refusal;
        assert_true(agent_request_parse(cases[i].line, strlen(cases[i].line), &request, &refusal));
        assert_int_equal(request.kind, cases[i].kind);
        assert_string_equal(request.what, cases[i].what);
    }
}

static void refused(const char *line, size_t size, const char *code, const char *part)
{
    struct agent_request request;
    struct agent_refusal refusal = {0};

    assert_false(agent_request_parse(line, size, &request, &refusal));
    assert_string_equal(refusal.code, code);
    if (strstr(refusal.text, part) == NULL) {
        fail_msg("%s: told \"%s\"", line, refusal.text);
    }
}

static void bad_requests(void **state)
{
    static const char *const cases[][3] = {
        {"", "bad-request", "JSON object"},
        {"status", "bad-request", "JSON object"},
        {"[{\"get\":\"status\"}]", "bad-request", "JSON object"},
        {"{\"get\":\"status\"} {}", "bad-request", "JSON object"},
        {"{\"get\":\"mesh\",\"get\":\"mesh\"}", "bad-request", "JSON object"},
        {"{}", "bad-request", "get"},
        {"{\"get\":1}", "bad-request", "get"},
        {"{\"get\":\"mesh\",\"watch\":\"links\"}", "bad-request", "one of"},
        {"{\"get\":\"mesh\",\"version\":2}", "bad-version", "version 1"},
        {"{\"get\":\"mesh\",\"version\":\"1\"}", "bad-version", "version 1"},
        {"{\"watch\":\"mesh\"}", "unknown-request", "findings or links"},
        {"{\"get\":\"caf\\u00e9\"}", "unknown-request", "found caf??"},
        {"{\"get\":\"an endless story about a request that nobody knows\"}", "unknown-request",
         "found an endless story about a reque"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        refused(cases[i][0], strlen(cases[i][0]), cases[i][1], cases[i][2]);
    }
    refused("{\"get\":\"mesh\"}\0", 15, "bad-request", "zero byte");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_requests),
        cmocka_unit_test(bad_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
