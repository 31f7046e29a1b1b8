/* target.c: targets of a scenario's lines ("edge 0.0>5.1 path 2"), durations, and the language's names. */
#include "service/scenario/scenario.h"

#include "base/time.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const fault_names[FAULT_KINDS] = {
    [FAULT_CARRIER] = "carrier",
    [FAULT_FLAP] = "flap",
    [FAULT_BLACKHOLE] = "blackhole",
    [FAULT_LOSS] = "loss",
    [FAULT_BROWNOUT] = "brownout",
    [FAULT_DELAY] = "delay",
    [FAULT_TRUNK] = "trunk",
    [FAULT_SPINE] = "spine",
    [FAULT_AGENT_KILL] = "agent-kill",
    [FAULT_AGENT_STOP] = "agent-stop",
    [FAULT_AGENT_STARVE] = "agent-starve",
    [FAULT_AGENT_RESTART] = "agent-restart",
    [FAULT_CLOCK_STEP] = "clock-step",
    [FAULT_CLOCK_FREQ] = "clock-freq",
    [FAULT_LIAR] = "liar",
    [FAULT_ASYMMETRY] = "asymmetry",
    [FAULT_SUSPEND] = "suspend",
    [FAULT_REBOOT] = "reboot",
    [FAULT_PARTITION] = "partition",
    [FAULT_NIC_VANISH] = "nic-vanish",
    [FAULT_NIC_STEER] = "nic-steer",
    [FAULT_REPLAY] = "replay",
    [FAULT_FORGE] = "forge",
    [FAULT_ANCHOR_LOST] = "anchor-lost",
    [FAULT_KEY_ROTATE] = "key-rotate",
    [FAULT_VERSION] = "version",
    [FAULT_PEERS] = "peers",
};

const char *scenario_fault_name(enum scenario_fault_kind kind)
{
    return (unsigned)kind < FAULT_KINDS ? fault_names[kind] : "unknown";
}

int scenario_duration(const char *text, int64_t *ret_ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1},     {"us", 1e3},   {"ms", 1e6},   {"s", 1e9},
                 {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
    char *end = NULL;
    const double value = strtod(text, &end);

    if (end == text || !isfinite(value)) {
        return -EINVAL;
    }
    while (*end == ' ') {
        end++;
    }
    if (*end == '\0' && value == 0) {
        *ret_ns = 0;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (strcmp(end, units[i].unit) == 0) {
            const double ns = value * units[i].ns;
            if (fabs(ns) > 9e18) {
                return -EINVAL;
            }
            *ret_ns = llround(ns);
            return 0;
        }
    }
    return -EINVAL;
}

/* Reads a required number, and moves *text behind it. */
static bool take_number(const char **text, int *ret)
{
    char *end = NULL;
    if (**text < '0' || **text > '9') {
        return false;
    }
    const long value = strtol(*text, &end, 10);
    if (value > 1000000) {
        return false;
    }
    *text = end;
    *ret = (int)value;
    return true;
}

static bool take_char(const char **text, char c)
{
    if (**text != c) {
        return false;
    }
    (*text)++;
    return true;
}

static bool take_word(const char **text, const char *word)
{
    const size_t size = strlen(word);
    if (strncmp(*text, word, size) != 0 || ((*text)[size] != ' ' && (*text)[size] != '\0')) {
        return false;
    }
    *text += size;
    while (**text == ' ') {
        (*text)++;
    }
    return true;
}

static bool take_nic(const char **text, struct scenario_nic *ret)
{
    return take_number(text, &ret->host) && take_char(text, '.') && take_number(text, &ret->nic);
}

/* "P%": a share, 0 < P <= 100. */
static bool take_share(const char *text, double *ret)
{
    char *end = NULL;
    const double value = strtod(text, &end);
    if (end == text || strcmp(end, "%") != 0 || !(value > 0) || value > 100) {
        return false;
    }
    *ret = value / 100;
    return true;
}

static bool take_hosts(const char *text, struct scenario_target *t)
{
    t->kind = TARGET_HOSTS;
    if (take_share(text, &t->share)) {
        return true;
    }
    if (!take_number(&text, &t->first)) {
        return false;
    }
    t->last = t->first;
    if (take_char(&text, '-') && !take_number(&text, &t->last)) {
        return false;
    }
    return *text == '\0' && t->last >= t->first;
}

static bool take_edge(const char *text, struct scenario_target *t)
{
    t->kind = TARGET_EDGE;
    if (!take_nic(&text, &t->from)) {
        return false;
    }
    t->both_ways = take_char(&text, '-');
    if (!t->both_ways && !take_char(&text, '>')) {
        return false;
    }
    if (!take_nic(&text, &t->to)) {
        return false;
    }
    if (take_char(&text, ' ') && (!take_word(&text, "path") || !take_number(&text, &t->path))) {
        return false;
    }
    return *text == '\0';
}

int scenario_target_parse(const char *text, struct scenario_target *ret)
{
    struct scenario_target t = {.kind = TARGET_NONE, .path = -1};
    bool good = false;

    if (strcmp(text, "all") == 0) {
        t.kind = TARGET_ALL;
        good = true;
    } else if (take_word(&text, "host") || take_word(&text, "hosts")) {
        good = take_hosts(text, &t);
    } else if (take_word(&text, "nic")) {
        t.kind = TARGET_NIC;
        good = take_nic(&text, &t.from) && *text == '\0';
    } else if (take_word(&text, "leaf")) {
        t.kind = TARGET_LEAF;
        good = take_number(&text, &t.first) && *text == '\0';
    } else if (take_word(&text, "spine")) {
        t.kind = TARGET_SPINE;
        good = take_number(&text, &t.first) && *text == '\0';
    } else if (take_word(&text, "trunk")) {
        t.kind = TARGET_TRUNK;
        good = take_number(&text, &t.first) && take_char(&text, '-') &&
               take_number(&text, &t.last) && *text == '\0';
    } else if (take_word(&text, "edges")) {
        t.kind = TARGET_EDGES;
        good = take_share(text, &t.share);
    } else if (take_word(&text, "edge")) {
        good = take_edge(text, &t);
    }
    if (!good) {
        return -EINVAL;
    }
    *ret = t;
    return 0;
}

static void edge_text(const struct scenario_target *t, char *ret_text, size_t size)
{
    char path[24] = "";
    if (t->path >= 0) {
        snprintf(path, sizeof(path), " path %d", t->path);
    }
    snprintf(ret_text, size, "edge %d.%d%c%d.%d%s", t->from.host, t->from.nic,
             t->both_ways ? '-' : '>', t->to.host, t->to.nic, path);
}

void scenario_target_text(const struct scenario_target *t, char *ret_text, size_t size)
{
    switch (t->kind) {
    case TARGET_NONE:
        snprintf(ret_text, size, "nothing");
        break;
    case TARGET_ALL:
        snprintf(ret_text, size, "all");
        break;
    case TARGET_HOSTS:
        if (t->share > 0) {
            snprintf(ret_text, size, "hosts %g%%", t->share * 100);
        } else if (t->first == t->last) {
            snprintf(ret_text, size, "host %d", t->first);
        } else {
            snprintf(ret_text, size, "hosts %d-%d", t->first, t->last);
        }
        break;
    case TARGET_NIC:
        snprintf(ret_text, size, "nic %d.%d", t->from.host, t->from.nic);
        break;
    case TARGET_LEAF:
        snprintf(ret_text, size, "leaf %d", t->first);
        break;
    case TARGET_SPINE:
        snprintf(ret_text, size, "spine %d", t->first);
        break;
    case TARGET_TRUNK:
        snprintf(ret_text, size, "trunk %d-%d", t->first, t->last);
        break;
    case TARGET_EDGE:
        edge_text(t, ret_text, size);
        break;
    case TARGET_EDGES:
        snprintf(ret_text, size, "edges %g%%", t->share * 100);
        break;
    }
}
