/* foliot_levels.c: `foliot levels`: service levels of the fleet: met or broken, since when, by whom. */
#include <stdio.h>
#include <string.h>

#include "app/foliot_api.h"
#include "app/foliot_text.h"

static void value_text(const char *unit, const json_t *v, char ret[32])
{
    const long long n = (long long)json_integer_value(v);
    if (!json_is_integer(v)) {
        snprintf(ret, 32, "-");
    } else if (strcmp(unit, "ns") == 0) {
        snprintf(ret, 32, "%.3f us", (double)n * 1e-3);
    } else if (strcmp(unit, "ppm") == 0) {
        snprintf(ret, 32, "%.4g %%", (double)n * 1e-4);
    } else {
        snprintf(ret, 32, "%lld %s", n, unit);
    }
}

static void print_level(const json_t *l)
{
    const json_t *worst = json_object_get(l, "worst"), *by = json_object_get(l, "by");
    const char *unit = api_text(l, "unit");
    char limit[32], value[32];
    size_t i;
    json_t *nic;
    value_text(unit, json_object_get(l, "limit"), limit);
    value_text(unit, json_object_get(worst, "value"), value);
    printf("%-20s %-8s %-30s %-8s %-6s <= %-12s %-12s %s of %s\n", api_text(l, "name"),
           api_text(l, "state"), field_time(l, "since_utc_ns").text, api_text(l, "measure"),
           api_text(l, "within"), limit, value, api_number_text(l, "paths_beyond").text,
           api_number_text(l, "paths").text);
    if (strcmp(api_text(l, "state"), "broken") == 0) {
        printf("    worst: %s -> %s, path by port %s; by", api_text(worst, "from"),
               api_text(worst, "to"), api_number_text(worst, "port").text);
        json_array_foreach(by, i, nic)
        {
            printf("%s %s (%s)", i > 0 ? "," : "", api_text(nic, "nic"),
                   api_number_text(nic, "paths_beyond").text);
        }
        putchar('\n');
    }
    if (json_integer_value(json_object_get(l, "paths_unmeasured")) > 0) {
        printf("    not measured: %s paths\n", api_number_text(l, "paths_unmeasured").text);
    }
}

/* Exit status 1: a level is broken, or not known. */
static int show(struct api *api)
{
    int status = api_ask(api, "GET", "/api/v1/levels", NULL);
    size_t i;
    json_t *l;
    if (status != EXIT_WELL) {
        return status;
    }
    if (!api->json) {
        printf("%-20s %-8s %-30s %-8s %-6s %-15s %-12s %s\n", "LEVEL", "STATE", "SINCE", "MEASURE",
               "WITHIN", "LIMIT", "WORST", "PATHS BEYOND");
    }
    json_array_foreach(json_object_get(api->answer, "items"), i, l)
    {
        if (!api->json) {
            print_level(l);
        }
        status = strcmp(api_text(l, "state"), "met") == 0 ? status : EXIT_NOT_WELL;
    }
    if (api->json) {
        api_print(api);
    } else if (json_is_string(json_object_get(api->answer, "error"))) {
        printf("the file was refused: %s\n", api_text(api->answer, "error"));
        status = EXIT_NOT_WELL;
    }
    return status;
}

int command_levels(int argc, char *argv[])
{
    struct api api;
    api_init(&api, "levels");
    const int r = api_parse(&api, NULL, argc, argv);
    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    if (api.first < argc) {
        return command_wrong_words("levels", argc - api.first, argv + api.first);
    }
    const int status = show(&api);
    api_done(&api);
    return status;
}
