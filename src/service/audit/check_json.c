/* check_json.c: see check_json.h. */
#include "service/audit/check_json.h"

#include <stdio.h>

#include "base/bug.h"

const char *check_compares(const struct check *c, char text[CHECK_COMPARES_SIZE])
{
    static const char *const with[] = {"rule", "other hosts", "what is declared",
                                       "the accepted audit"}; /* by bit */
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(with); i++) {
        if ((c->compare & 1U << i) != 0) {
            used += (size_t)snprintf(text + used, CHECK_COMPARES_SIZE - used, "%s%s",
                                     used > 0 ? ", " : "", with[i]);
        }
    }
    return text;
}

const char *check_costs(const struct check *c, char text[CHECK_COMPARES_SIZE])
{
    snprintf(text, CHECK_COMPARES_SIZE, "%s%s%s", check_cost_name(c->cost),
             c->test_cost != COST_PASSIVE ? ", its test " : "",
             c->test_cost != COST_PASSIVE ? check_cost_name(c->test_cost) : "");
    return text;
}

/* Limits that a site can set; else null. */
static void put_limits(struct json_writer *j, const struct check *c)
{
    json_put_string(j, "unit", c->unit);
    if (c->unit != NULL) {
        json_put_double(j, "fail", c->fail);
        json_put_double(j, "warn", c->warn);
    } else {
        json_put_null(j, "fail");
        json_put_null(j, "warn");
    }
    json_put_string(j, "values", c->words);
}

/* The condition under which the check is for a subject. */
static void put_only_where(struct json_writer *j, const struct check_applies *when)
{
    if (when->is == NULL) {
        json_put_null(j, "only_where");
        return;
    }
    json_put_object(j, "only_where");
    json_put_string(j, "fact", fact_name(when->fact));
    json_put_bool(j, "not", when->not );
    json_put_string(j, "value", when->is);
    json_put_string(j, "else", when->reason);
    json_put_end(j);
}

void catalogue_check_put(struct json_writer *j, const struct check *c)
{
    char text[CHECK_COMPARES_SIZE];

    json_put_object(j, NULL);
    json_put_string(j, "check", c->id);
    json_put_string(j, "group", check_group_name(c->group));
    json_put_string(j, "part", check_part_name(c));
    json_put_string(j, "subject", check_subject_name(c->subject));
    json_put_string(j, "compares", check_compares(c, text));
    json_put_string(j, "severity", check_severity_name(c->severity));
    json_put_string(j, "cost", check_cost_name(c->cost));
    json_put_string(j, "test_cost",
                    c->test_cost != COST_PASSIVE ? check_cost_name(c->test_cost) : NULL);
    json_put_array(j, "facts");
    for (int i = 0; i < CHECK_FACTS_MAX && c->facts[i] != FACT_COUNT; i++) {
        json_put_string(j, NULL, fact_name(c->facts[i]));
    }
    json_put_end(j);
    put_limits(j, c);
    put_only_where(j, &c->applies);
    json_put_string(j, "title", c->title);
    json_put_string(j, "why", c->why);
    json_put_string(j, "remedy", c->remedy);
    json_put_string(j, "origin", c->origin);
    json_put_string(j, "shown_on", check_shown_on(c));
    json_put_end(j);
}
