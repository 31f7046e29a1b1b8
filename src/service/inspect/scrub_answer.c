/* scrub_answer.c: what is kept of the answers that collectors got, and of results of tests. See scrub_answer.h. */
#include "service/inspect/scrub_answer.h"

#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "platform/netlink/ethtool.h"
#include "platform/sysfs/sysfs.h"

char *scrub_line(char **text)
{
    return *text == NULL || **text == '\0' ? NULL : strsep(text, "\n");
}

/* ---- answers ---- */

int scrub_library(const struct scrub *s, char *text, FILE *out)
{
    for (char *line; (line = scrub_line(&text)) != NULL;) {
        char gpu[32], key[32], value[32];
        if (strcmp(line, "end") == 0) {
            fputs("end\n", out);
        } else if (sscanf(line, "%31s %31s %31s", gpu, key, value) == 3 &&
                   strspn(gpu, "0123456789abcdef:.-") == strlen(gpu) &&
                   strspn(value, "!0123456789abcdefx:.") == strlen(value)) {
            fprintf(out, "%s %s %s\n", gpu, key, value);
        } else {
            return -EBADMSG;
        }
    }
    (void)s;
    return 0;
}

static json_t *kept(const struct scrub *s, const char *key, const json_t *value);

static json_t *kept_object(const struct scrub *s, const json_t *value)
{
    static const char *const keys[] = {
        "version",    "kind",       "agent_version", "now_fleet_ns", "system_utc_ns",
        "clock",      "status",     "hard_ns",       "epoch",        "members",
        "name",       "stamps",     "rate_ppb",      "edges",        "local_name",
        "peer_host",  "peer_name",  "bound_hard_ns", "full_tried",   "full_lost",
        "paths",      "hops",       "out",           "in",           "state",
        "owd_ns_min", "owd_ns_p99", "sent",          "lost",         "nics",
        "switch",     "processes",  "lane_list",     "direction",    "own_nic",
        "peer_nic",   "owd_ns_p50", "bound_ns",      "carrier",      "own_address",
        "same_rail",  "silent"};
    json_t *copy = json_object();

    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        const json_t *one = json_object_get(value, keys[i]);
        if (one != NULL) {
            json_object_set_new(copy, keys[i], kept(s, keys[i], one));
        }
    }
    return copy;
}

/* Scrubs a word by its kind: a host or switch, an interface, or one of Foliot's own words. */
static json_t *kept_word(const struct scrub *s, const char *key, const char *word)
{
    char other[SCRUB_NAME_SIZE];

    if (strcmp(key, "peer_host") == 0 || strcmp(key, "switch") == 0 || strcmp(key, "hops") == 0) {
        return json_string(scrub_name(s, key[0] == 'p' ? "host" : "switch", word, other));
    }
    if (strcmp(key, "own_address") == 0 && strchr(word, '.') != NULL) { /* as in a GID */
        return json_string(scrub_address(s, word, other));
    }
    if (strcmp(key, "name") == 0 && strcmp(word, "host") == 0) {
        return json_string(word);
    }
    if (strstr(key, "name") != NULL || strstr(key, "_nic") != NULL) {
        return json_string(scrub_device(s, word, other));
    }
    return json_string(
        strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
                    strlen(word) &&
                strlen(word) < 24
            ? word
            : "other");
}

static json_t *kept(const struct scrub *s, const char *key, const json_t *value)
{
    const json_t *one;
    size_t i;

    if (json_is_object(value)) {
        return kept_object(s, value);
    }
    if (json_is_array(value)) {
        json_t *copy = json_array();
        json_array_foreach(value, i, one)
        {
            json_array_append_new(copy, kept(s, key, one));
        }
        return copy;
    }
    return json_is_string(value) ? kept_word(s, key, json_string_value(value))
                                 : json_deep_copy(value);
}

int scrub_agent(const struct scrub *s, char *text, FILE *out)
{
    if (strcmp(text, "silent\n") == 0) {
        fputs(text, out);
        return 0;
    }
    json_t *all = json_loads(text, 0, NULL), *left = all != NULL ? kept(s, "", all) : NULL;
    const int r = left != NULL && json_dumpf(left, out, JSON_COMPACT) == 0 ? 0 : -EBADMSG;
    putc('\n', out);
    json_decref(left);
    json_decref(all);
    return r;
}

/* Hexadecimal digits of netlink attributes, or "none". */
int scrub_answer(const char *question, char *text, FILE *out)
{
    uint8_t answer[ETHTOOL_ANSWER_MAX];
    size_t size = 0;

    text[strcspn(text, "\n")] = '\0';
    if (strcmp(text, "none") == 0) {
        fputs("none\n", out);
        return 0;
    }
    if (sodium_hex2bin(answer, sizeof(answer), text, strlen(text), NULL, &size, NULL) != 0 ||
        2 * size != strlen(text)) {
        return -EBADMSG;
    }
    size = scrub_attributes(question, answer, size);
    for (size_t i = 0; i < size; i++) {
        fprintf(out, "%02x", answer[i]);
    }
    putc('\n', out);
    return 0;
}

/* Scrubs the lines of bmc.c. Of records that aren't sensors' only the head is kept: the rest may have a serial number. */
int scrub_controller(const struct scrub *s, char *text, FILE *out)
{
    enum { NEXT_RECORD = 6, HEAD = 5 * 2, TYPE = NEXT_RECORD + 3 * 2 };
    char request[16], data[32], reply[1024];
    bool sensor = false;

    for (char *line; (line = scrub_line(&text)) != NULL;) {
        if (sscanf(line, "%15s %31s = %1023s", request, data, reply) != 3 ||
            strspn(request, "0123456789abcdef") != strlen(request) ||
            strspn(data, "0123456789abcdef-") != strlen(data) ||
            strspn(reply, "0123456789abcdef") != strlen(reply)) {
            return -EBADMSG;
        }
        const bool record = strcmp(request, "0a0023") == 0 && strlen(data) == 12,
                   begins = record && strncmp(data + 8, "00", 2) == 0;
        const size_t head =
            begins ? NEXT_RECORD + HEAD : NEXT_RECORD; /* else a later part of the record */
        if (begins && strlen(reply) > TYPE + 2) {
            sensor = strncmp(reply + TYPE, "01", 2) == 0 || strncmp(reply + TYPE, "02", 2) == 0;
        }
        if (record && !sensor && strlen(reply) > head) {
            memset(reply + head, '0', strlen(reply) - head);
        }
        fprintf(out, "%s %s = %s\n", request, data, reply);
    }
    (void)s;
    return 0;
}

int scrub_used(const struct scrub *s, char *text, FILE *out)
{
    char place[512], path[SYSFS_PATH_SIZE];
    long long percent;

    for (char *line; (line = scrub_line(&text)) != NULL;) {
        if (sscanf(line, "%511s %lld", place, &percent) != 2) {
            return -EBADMSG;
        }
        fprintf(out, "%s %lld\n", scrub_path(s, place, path, sizeof(path)), percent);
    }
    return 0;
}

/* ---- results of tests ---- */

int scrub_runs(const struct scrub *s, char *text, FILE *out)
{
    for (char *line; (line = scrub_line(&text)) != NULL;) {
        static const char *const marks[] = {"# Avg bus bandwidth", "# Out of bounds values",
                                            "Using network ", "Init timings"};
        const char *at = NULL;
        for (size_t i = 0; i < ARRAY_COUNT(marks) && at == NULL; i++) {
            at = strstr(line, marks[i]);
        }
        const char *total = at != NULL && at[1] == 'n' ? strstr(at, " total ") : NULL;
        double seconds;
        if (total != NULL && sscanf(total, " total %lf", &seconds) == 1) {
            fprintf(out, "Init timings - total %g\n", seconds);
        } else if (at != NULL) {
            scrub_words(s, at, out);
            putc('\n', out);
        }
    }
    return 0;
}

int scrub_values(const struct scrub *s, char *text, FILE *out)
{
    static const char known[] = " mem_bw storage_bw gemm h2d fe_bw pair_bw gdr_bw permutation_bw ";
    char name[64], word[72];
    double value;

    fputs("#\n", out);
    for (char *line; (line = scrub_line(&text)) != NULL;) {
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        if (sscanf(line, "%63s %lf", name, &value) != 2) {
            return -EBADMSG;
        }
        snprintf(word, sizeof(word), " %s ", name);
        if (strstr(known, word) != NULL) {
            fprintf(out, "%s %.15g\n", name, value);
        }
    }
    (void)s;
    return 0;
}

/* DCGM's names of tests are kept. Its texts about a GPU, except the status, are not. */
static json_t *diagnosis(const struct scrub *s, const json_t *value)
{
    static const char *const keys[] = {"test_categories", "category", "tests", "name",
                                       "results",         "status",   "gpu_id"};
    json_t *copy;
    const json_t *one;
    size_t i;

    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach(value, i, one)
        {
            json_array_append_new(copy, diagnosis(s, one));
        }
        return copy;
    }
    if (!json_is_object(value)) {
        return json_deep_copy(value);
    }
    copy = json_object();
    for (i = 0; i < ARRAY_COUNT(keys); i++) {
        one = json_object_get(value, keys[i]);
        if (one != NULL) {
            json_object_set_new(copy, keys[i], diagnosis(s, one));
        }
    }
    return copy;
}

int scrub_dcgm(const struct scrub *s, char *text, FILE *out)
{
    json_t *all = json_loads(text, 0, NULL), *copy = json_object();
    const char *key;
    json_t *value;

    json_object_foreach(all, key, value)
    {
        if (json_object_get(value, "test_categories") != NULL) {
            json_object_set_new(copy, "DCGM Diagnostic", diagnosis(s, value));
        }
    }
    char *whole = json_dumps(copy, JSON_COMPACT);
    if (whole != NULL) {
        scrub_words(s, whole, out);
        putc('\n', out);
    }
    free(whole);
    json_decref(copy);
    json_decref(all);
    return all != NULL ? 0 : -EBADMSG;
}
