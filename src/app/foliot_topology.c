/* foliot_topology.c: `foliot topology`: the declared topology, and its differences from the real one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_api.h"
#include "app/foliot_text.h"

enum { FILE_MAX = 1 << 20 };

static int print(struct api *api, int status)
{
    const json_t *declared = json_object_get(api->answer, "declared"),
                 *differences = json_object_get(api->answer, "differences");
    size_t i;
    json_t *d;
    if (status != EXIT_WELL) {
        return status;
    }
    status = json_array_size(differences) > 0 ? EXIT_NOT_WELL : EXIT_WELL;
    if (api->json) {
        api_print(api);
        return status;
    }
    if (!json_is_object(declared)) {
        puts("no topology is declared; to declare one: foliot topology declare FILE "
             "(docs/topology.md)");
        return EXIT_WELL;
    }
    printf("version %s, declared by %s at %s: %zu hosts, %zu leaves, %zu spines\n",
           api_number_text(declared, "version").text, api_text(declared, "who"),
           text_time(json_integer_value(json_object_get(declared, "at_utc_ns"))).text,
           json_array_size(json_object_get(api->answer, "hosts")),
           json_array_size(json_object_get(api->answer, "leaves")),
           json_array_size(json_object_get(api->answer, "spines")));
    json_array_foreach(differences, i, d)
    {
        printf("%-15s %s\n", api_text(d, "difference"), api_text(d, "text"));
    }
    if (status == EXIT_WELL) {
        puts("the real topology does not differ from it");
    }
    return status;
}

static int declare(struct api *api, const char *path, const char *why)
{
    FILE *file = fopen(path, "re");
    char *text = calloc(1, FILE_MAX + 1);
    size_t size = 0;
    int status = EXIT_UNREACHABLE;
    if (file == NULL || text == NULL) {
        fprintf(stderr, "foliot topology: %s: expected a readable file, found: %s\n", path,
                strerror(errno));
    } else if ((size = fread(text, 1, FILE_MAX + 1, file)) > FILE_MAX || ferror(file)) {
        fprintf(stderr, "foliot topology: %s: expected a file of at most 1 MiB that can be read\n",
                path);
    } else {
        json_t *body = json_pack("{s:s#, s:s*}", "text", text, size, "why", why);
        if (body == NULL) {
            fprintf(stderr, "foliot topology: %s: expected UTF-8\n", path);
        } else {
            status = print(api, api_ask_json(api, "POST", "/api/v1/topology", body));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    free(text);
    return status;
}

static int history(struct api *api)
{
    const int status = api_ask(api, "GET", "/api/v1/topology/versions", NULL);
    size_t i;
    json_t *v;
    if (status == EXIT_WELL && api->json) {
        api_print(api);
    }
    json_array_foreach(
        status == EXIT_WELL && !api->json ? json_object_get(api->answer, "items") : NULL, i, v)
    {
        printf("%6s  %s  %-16s %s\n", api_number_text(v, "version").text,
               text_time(json_integer_value(json_object_get(v, "at_utc_ns"))).text,
               api_text(v, "who"), api_text(v, "why"));
    }
    return status;
}

int command_topology(int argc, char *argv[])
{
    const char *why = NULL;
    struct api api;
    int status = EXIT_USAGE;
    api_init(&api, "topology");
    const int r = api_parse(&api, (const struct option_entry[]){{"why", 0, OPTION_TEXT, &why}, {0}},
                            argc, argv);
    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    const int count = argc - api.first;
    char **words = argv + api.first;
    if (count == 0 || (count == 1 && strcmp(words[0], "show") == 0)) {
        status = print(&api, api_ask(&api, "GET", "/api/v1/topology", NULL));
    } else if (count == 2 && strcmp(words[0], "declare") == 0) {
        status = declare(&api, words[1], why);
    } else if (count == 1 && strcmp(words[0], "history") == 0) {
        status = history(&api);
    } else {
        (void)command_wrong_words("topology", count, words);
    }
    api_done(&api);
    return status;
}
