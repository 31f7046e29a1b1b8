/* foliot_audit_tests.c: prints an audit's tests of bandwidth and of collectives. */
#include <stdio.h>
#include <string.h>

#include "app/foliot_api.h"
#include "app/foliot_audit.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"

static double gigabytes(const json_t *object, const char *key)
{
    return (double)json_integer_value(json_object_get(object, key)) * 1e-9;
}

static void print_rows(const json_t *rows)
{
    static const char *const titles[] = {">LANES", "ORDER", ">HOSTS", ">GB/S", ">SPREAD", NULL};
    struct libscols_table *table = table_new(titles);
    size_t i;
    json_t *row;

    json_array_foreach(rows, i, row)
    {
        struct libscols_line *line = table != NULL ? table_line(table) : NULL;
        if (line != NULL) {
            const bool done = json_is_integer(json_object_get(row, "busbw"));
            table_put(line, 0, api_number_text(row, "lanes").text);
            table_put(line, 1, api_text(row, "order"));
            table_put(line, 2, api_number_text(row, "hosts").text);
            table_put(line, 3,
                      done ? text_format("%.3f", gigabytes(row, "busbw")).text
                           : api_text(row, "outcome"));
            table_put(line, 4,
                      done ? text_format("%.1f %%", (double)json_integer_value(
                                                        json_object_get(row, "spread_1e4")) /
                                                        100)
                                 .text
                           : "-");
        }
    }
    if (table != NULL) {
        table_show(table, stdout);
    }
}

void audit_print_tests(const json_t *tests)
{
    const json_t *named = json_object_get(tests, "named"), *rows = json_object_get(tests, "rows");
    size_t i;
    json_t *n;

    if (!json_is_object(tests)) {
        return;
    }
    printf("\nall_reduce; pairs of hosts carry %.3f GB/s over all their NICs\n",
           gigabytes(tests, "expected"));
    if (json_array_size(rows) > 0) {
        print_rows(rows);
    }
    if (!json_is_true(json_object_get(tests, "slow"))) {
        return;
    }
    printf("all together are slower than pairs");
    json_array_foreach(named, i, n)
    {
        const char *with = api_text(n, "with");
        const bool pair = json_is_string(json_object_get(n, "with"));
        printf("%s %s%s%s", i == 0 ? ": by" : ",", api_text(n, "host"), pair ? " with " : "",
               pair ? with : "");
    }
    printf("%s\n", json_array_size(named) > 0                           ? ""
                   : json_is_true(json_object_get(tests, "processors")) ? "; processors may be why"
                   : json_is_true(json_object_get(tests, "searched"))   ? "; no part of them is"
                                                                        : "; who makes them so was "
                                                                          "not searched");
}
