/* foliot_token.c: `foliot token`: tokens of a running controller, through its API: lists them without their secrets, makes and
 * revokes them. A token's text is shown only when it is made. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_api.h"
#include "app/foliot_foreign.h"
#include "app/foliot_text.h"

struct wishes {
    const char *hours, *uses, *scope;
};

static int list(struct api *c)
{
    size_t i;
    json_t *t;
    const int status = api_ask(c, "GET", "/api/v1/tokens", NULL);
    if (status != EXIT_WELL) {
        return status;
    }
    if (c->json) {
        api_print(c);
        return status;
    }
    printf("%-5s %-9s %-24s %-20s %-20s %-20s %5s  %s\n", "ID", "ROLE", "NAME", "MADE", "ENDS",
           "USED", "LEFT", "SCOPE");
    json_array_foreach(json_object_get(c->answer, "items"), i, t)
    {
        printf("%-5s %-9s %-24s %-20s %-20s %-20s %5s  %s\n", api_number_text(t, "id").text,
               api_text(t, "role"), api_text(t, "name"), field_time(t, "created_utc_ns").text,
               field_time(t, "expires_utc_ns").text, field_time(t, "used_utc_ns").text,
               api_number_text(t, "uses_left").text, api_text(t, "scope"));
    }
    return status;
}

/* false: it is no number; the error was printed. */
static bool put_number(json_t *body, const char *key, const char *text)
{
    char *end = NULL;
    const long long number = text != NULL ? strtoll(text, &end, 10) : 0;
    if (text != NULL && (*text == 0 || *end != 0 || number < 1)) {
        fprintf(stderr, "foliot: --%s: expected a whole number above 0, found '%s'\n", key,
                foreign_text(text).text);
        return false;
    }
    if (text != NULL) {
        json_object_set_new(body, key, json_integer(number));
    }
    return true;
}

static int make(struct api *c, const char *role, const char *name, const struct wishes *w)
{
    const bool join = role == NULL;
    json_t *body = json_object();
    if (!join) {
        json_object_set_new(body, "role", json_string(role));
    }
    if (name != NULL) {
        json_object_set_new(body, "name", json_string(name));
    }
    if (w->scope != NULL) {
        json_object_set_new(body, "scope", json_string(w->scope));
    }
    if (!put_number(body, "hours", w->hours) || !put_number(body, "uses", w->uses)) {
        json_decref(body);
        return EXIT_USAGE;
    }
    const int status =
        api_ask_json(c, "POST", join ? "/api/v1/join-tokens" : "/api/v1/tokens", body);
    if (status == EXIT_WELL && c->json) {
        api_print(c);
    } else if (status == EXIT_WELL) {
        printf(join ? "foliot-agent join ADDRESS %s\n" : "%s\n", api_text(c->answer, "token"));
    }
    return status;
}

/* Finds a token by number, or by a name that only one token has. NULL: there is none, or there are several; the error was
 * printed. */
static const json_t *find(const json_t *items, const char *which)
{
    const json_t *found = NULL, *t;
    char *end = NULL;
    const long long id = strtoll(which, &end, 10);
    unsigned count = 0;
    size_t i;
    json_array_foreach(items, i, t)
    {
        const char *name = json_string_value(json_object_get(t, "name"));
        const bool is = *end == 0 ? json_integer_value(json_object_get(t, "id")) == id
                                  : name != NULL && strcmp(name, which) == 0;
        found = is ? t : found;
        count += is;
    }
    if (count != 1) {
        fprintf(stderr, "foliot: %s: %s\n", foreign_text(which).text,
                count == 0 ? "no token has this name or number: see foliot token"
                           : "more than one token has this name: give its number");
    }
    return count == 1 ? found : NULL;
}

static int revoke(struct api *c, const char *which)
{
    char path[64];
    int status = api_ask(c, "GET", "/api/v1/tokens", NULL);
    const json_t *t = status == EXIT_WELL ? find(json_object_get(c->answer, "items"), which) : NULL;
    if (t == NULL) {
        return status == EXIT_WELL ? EXIT_USAGE : status;
    }
    snprintf(path, sizeof(path), "/api/v1/tokens/%s", api_number_text(t, "id").text);
    status = api_ask(c, "DELETE", path, NULL);
    if (status == EXIT_WELL && c->json) {
        api_print(c);
    } else if (status == EXIT_WELL) {
        printf("token %s is revoked: it is refused from now on\n",
               api_number_text(c->answer, "removed").text);
    }
    return status;
}

static int run(struct api *c, int argc, char **argv, const struct wishes *w)
{
    if (argc == 0 || (argc == 1 && strcmp(argv[0], "list") == 0)) {
        return list(c);
    }
    if (argc == 3 && strcmp(argv[0], "make") == 0 && w->uses == NULL) {
        if (strcmp(argv[1], "viewer") != 0 && strcmp(argv[1], "operator") != 0 &&
            strcmp(argv[1], "admin") != 0) {
            fprintf(stderr, "foliot token make: expected viewer, operator or admin, found '%s'\n",
                    foreign_text(argv[1]).text);
            return EXIT_USAGE;
        }
        return make(c, argv[1], argv[2], w);
    }
    if (argc <= 2 && strcmp(argv[0], "join") == 0) {
        return make(c, NULL, argc == 2 ? argv[1] : NULL, w);
    }
    if (argc == 2 && strcmp(argv[0], "revoke") == 0) {
        return revoke(c, argv[1]);
    }
    return command_wrong_words("token", argc, argv);
}

int command_token(int argc, char *argv[])
{
    struct wishes wishes = {0};
    struct api api;
    api_init(&api, "token");
    const int r = api_parse(&api,
                            (const struct option_entry[]){{"hours", 0, OPTION_TEXT, &wishes.hours},
                                                          {"uses", 0, OPTION_TEXT, &wishes.uses},
                                                          {"scope", 0, OPTION_TEXT, &wishes.scope},
                                                          {0}},
                            argc, argv);
    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    const int status = run(&api, argc - api.first, argv + api.first, &wishes);
    api_done(&api);
    return status;
}
