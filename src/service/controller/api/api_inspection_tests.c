/* api_inspection_tests.c: the results of an audit's tests of bandwidth and of collectives. */
#include <jansson.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/fleet/fleet.h"

static void put_number(struct json_writer *j, const char *key, const json_t *value)
{
    json_put_int_if(j, key, json_is_integer(value), json_integer_value(value));
}

static void put_rows(struct json_writer *j, const json_t *rows)
{
    size_t i;
    json_t *row;
    json_put_array(j, "rows");
    json_array_foreach(rows, i, row)
    {
        json_put_object(j, NULL);
        put_number(j, "lanes", json_object_get(row, "lanes"));
        json_put_string(j, "order", json_string_value(json_object_get(row, "order")));
        put_number(j, "hosts", json_object_get(row, "hosts"));
        json_put_string(j, "outcome", json_string_value(json_object_get(row, "outcome")));
        put_number(j, "busbw", json_object_get(row, "busbw"));
        put_number(j, "spread_1e4", json_object_get(row, "spread_1e4"));
        put_number(j, "busy_1e4", json_object_get(row, "busy_1e4"));
        json_put_end(j);
    }
    json_put_end(j);
}

static const char *name_of(struct api_call *call, const json_t *id)
{
    const struct fleet_host *h =
        json_is_integer(id) ? scope_host(call, json_integer_value(id)) : NULL;
    return h != NULL ? h->name : NULL;
}

static void put_named(struct api_call *call, const json_t *named)
{
    size_t i;
    json_t *n;
    json_put_array(call->j, "named");
    json_array_foreach(named, i, n)
    {
        const json_t *with = json_object_get(n, "with");
        const char *host = name_of(call, json_object_get(n, "host"));
        if (host != NULL && (!json_is_integer(with) || name_of(call, with) != NULL)) {
            json_put_object(call->j, NULL);
            json_put_string(call->j, "host", host);
            json_put_string(call->j, "with", name_of(call, with));
            json_put_end(call->j);
        }
    }
    json_put_end(call->j);
}

/* Results of hosts that the caller sees: `before`, the numbers, `after`. Words end with a NULL. */
struct result_fields {
    const char *array, *before[2], *numbers[6], *after[2];
};

static void put_words(struct json_writer *j, const json_t *of, const char *const *names)
{
    for (; *names != NULL; names++) {
        json_put_string(j, *names, json_string_value(json_object_get(of, *names)));
    }
}

static void put_of_hosts(struct api_call *call, const json_t *results,
                         const struct result_fields *fields)
{
    size_t i;
    json_t *one;
    json_put_array(call->j, fields->array);
    json_array_foreach(results, i, one)
    {
        const char *host = name_of(call, json_object_get(one, "host"));
        if (host != NULL) {
            json_put_object(call->j, NULL);
            json_put_string(call->j, "host", host);
            put_words(call->j, one, fields->before);
            for (const char *const *name = fields->numbers; *name != NULL; name++) {
                put_number(call->j, *name, json_object_get(one, *name));
            }
            put_words(call->j, one, fields->after);
            json_put_end(call->j);
        }
    }
    json_put_end(call->j);
}

static void put_nics(struct api_call *call, const json_t *nics)
{
    static const struct result_fields fields = {
        "nics", {"nic"}, {"rate", "usual", "partners", "retests", "slower_1e4"}, {"verdict"}};
    put_of_hosts(call, nics, &fields);
}

static void put_memory(struct api_call *call, const json_t *memory)
{
    static const struct result_fields fields = {
        "memory", {"outcome"}, {"rate", "runs", "spread_1e4"}, {NULL}};
    put_of_hosts(call, memory, &fields);
}

/* The figures cover all hosts together. A tenant gets only its own results, elsewhere. */
void api_put_audit_tests(struct api_call *call, const json_t *tests)
{
    struct json_writer *j = call->j;
    if (tests == NULL || call->visible != NULL) {
        json_put_null(j, "tests");
        return;
    }
    json_put_object(j, "tests");
    put_number(j, "expected", json_object_get(tests, "expected"));
    put_nics(call, json_object_get(tests, "nics"));
    put_memory(call, json_object_get(tests, "memory"));
    put_rows(j, json_object_get(tests, "rows"));
    put_number(j, "rows_ms", json_object_get(tests, "rows_ms"));
    json_put_bool(j, "slow", json_is_true(json_object_get(tests, "slow")));
    json_put_bool(j, "processors", json_is_true(json_object_get(tests, "processors")));
    json_put_bool(j, "searched", json_is_true(json_object_get(tests, "searched")));
    put_number(j, "rounds", json_object_get(tests, "rounds"));
    put_named(call, json_object_get(tests, "named"));
    json_put_end(j);
}
