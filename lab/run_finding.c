/* run_finding.c: compares findings with faults: which fault explains a finding, and whether the finding names it correctly. */
#include "lab/run_judge.h"

#include "base/time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AFTER_NS (20 * NS_PER_S) /* findings may refer to a fault that ended so long ago */

enum group { GROUP_OTHER, GROUP_PATH, GROUP_LINK, GROUP_STEP, GROUP_LIAR };

struct said {
    const char *kind;
    enum group group;
    int host;                     /* the host that reported it */
    struct scenario_nic from, to; /* host -1: not named; nic -1: a host */
    int from_host, to_host;
    const char *direction, *suspect_kind, *suspect;
    bool is_confident;
};

static enum group group_of(const char *kind)
{
    return strncmp(kind, "path-", 5) == 0                                    ? GROUP_PATH
           : strncmp(kind, "link-", 5) == 0 || strcmp(kind, "nic-gone") == 0 ? GROUP_LINK
           : strcmp(kind, "clock-step") == 0                                 ? GROUP_STEP
           : strcmp(kind, "clock-liar") == 0                                 ? GROUP_LIAR
                                                                             : GROUP_OTHER;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static void read_end(const struct lab *lab, const json_t *end, struct scenario_nic *ret_nic,
                     int *ret_host)
{
    const json_t *nic = json_object_get(end, "nic");
    int nics = lab->scenario.fabric.nics_per_host;
    *ret_host = -1;
    *ret_nic = (struct scenario_nic){-1, -1};
    (void)sscanf(text_of(end, "host"), "host%d", ret_host);
    if (json_is_integer(nic)) {
        *ret_nic = (struct scenario_nic){(int)(json_integer_value(nic) / nics),
                                         (int)(json_integer_value(nic) % nics)};
        *ret_host = ret_nic->host;
    }
}

static struct said read_said(const struct lab *lab, int host, const json_t *f)
{
    const json_t *suspect = json_object_get(f, "suspect");
    struct said s = {.kind = text_of(f, "finding"),
                     .host = host,
                     .direction = text_of(f, "direction"),
                     .suspect_kind = text_of(suspect, "kind"),
                     .suspect = text_of(suspect, "name"),
                     .is_confident = json_is_true(json_object_get(suspect, "confident"))};
    s.group = group_of(s.kind);
    read_end(lab, json_object_get(f, "from"), &s.from, &s.from_host);
    read_end(lab, json_object_get(f, "to"), &s.to, &s.to_host);
    return s;
}

/* ---- does the finding fit this fault? ---- */

static bool is_nic(struct scenario_nic a, struct scenario_nic b)
{
    return a.host == b.host && a.nic == b.nic;
}

static bool about_nic(const struct said *s, struct scenario_nic nic)
{
    return is_nic(s->from, nic) || is_nic(s->to, nic) ||
           ((s->from.host < 0 || s->from.nic < 0) && s->host == nic.host) ||
           (s->to.nic < 0 && s->to_host == nic.host);
}

static bool about_leaf(const struct lab *lab, const struct said *s, int leaf)
{
    return (s->from.host >= 0 && lab_leaf_of(lab, s->from.host, s->from.nic) == leaf) ||
           (s->to.host >= 0 && lab_leaf_of(lab, s->to.host, s->to.nic) == leaf);
}

static bool touches(const struct run_judge *j, int index, const struct said *s)
{
    const struct scenario_target *t = &j->lab->scenario.fault[index].target;
    switch (t->kind) {
    case TARGET_ALL:
    case TARGET_SPINE:
        return true;
    case TARGET_HOSTS: {
        const bool *hit = j->fault[index].is_hit;
        return hit[s->host] || (s->from_host >= 0 && hit[s->from_host]) ||
               (s->to_host >= 0 && hit[s->to_host]);
    }
    case TARGET_NIC:
        return about_nic(s, t->from);
    case TARGET_EDGE:
        return about_nic(s, t->from) && about_nic(s, t->to);
    case TARGET_TRUNK:
    case TARGET_LEAF:
        return about_leaf(j->lab, s, t->first);
    default:
        return false;
    }
}

/* True if such a fault may cause the finding. */
static bool leads_to(const struct scenario_fault *f, const struct said *s)
{
    switch (f->kind) {
    case FAULT_CARRIER:
    case FAULT_FLAP:
        return s->group == GROUP_PATH || (s->group == GROUP_LINK && f->target.kind == TARGET_NIC);
    case FAULT_BLACKHOLE:
    case FAULT_LOSS:
    case FAULT_BROWNOUT:
    case FAULT_DELAY:
    case FAULT_TRUNK:
    case FAULT_SPINE:
        return s->group == GROUP_PATH;
    case FAULT_CLOCK_STEP:
    case FAULT_CLOCK_FREQ:
    case FAULT_SUSPEND:
        return s->group == GROUP_PATH || s->group == GROUP_STEP;
    default:
        return false;
    }
}

/* True if the finding names the fault: the fault must cause at least one such finding. */
static bool names(const struct scenario_fault *f, const struct said *s)
{
    switch (f->kind) {
    case FAULT_CARRIER:
    case FAULT_FLAP:
        return s->group == (f->target.kind == TARGET_NIC ? GROUP_LINK : GROUP_PATH);
    case FAULT_BLACKHOLE:
        if (f->target.kind == TARGET_EDGE && f->target.path < 0 &&
            strcmp(s->kind, "peer-silent") == 0) {
            return true; /* no packet comes through */
        }
        return strcmp(s->kind, "path-dead") == 0 || strcmp(s->kind, "path-flapping") == 0;
    case FAULT_TRUNK:
    case FAULT_SPINE:
        return strcmp(s->kind, "path-dead") == 0 || strcmp(s->kind, "path-flapping") == 0;
    case FAULT_LOSS:
        return strcmp(s->kind, "path-lossy") == 0 || strcmp(s->kind, "path-dead") == 0;
    case FAULT_DELAY:
        return strcmp(s->kind, "path-slow") == 0;
    case FAULT_CLOCK_STEP:
    case FAULT_CLOCK_FREQ:
    case FAULT_SUSPEND:
        return s->group == GROUP_STEP || strcmp(s->kind, "clock-disrupted") == 0;
    default:
        return false;
    }
}

static bool is_active(const struct run_judge *j, int index, int64_t now_ns)
{
    const struct run_fault *f = &j->fault[index];
    return f->on_ns >= 0 && now_ns >= f->on_ns && (f->off_ns < 0 || now_ns <= f->off_ns + AFTER_NS);
}

/* ---- is it named correctly? ---- */

/* A finding's from -> to is the packets' direction. */
static bool right_way(const struct scenario_fault *f, const struct said *s)
{
    if (f->target.kind != TARGET_EDGE || s->from.host < 0 || s->to.host < 0 ||
        s->direction[0] == '\0') {
        return true;
    }
    bool is_forth = is_nic(s->from, f->target.from) && is_nic(s->to, f->target.to);
    bool is_back = is_nic(s->from, f->target.to) && is_nic(s->to, f->target.from);
    return is_forth || (f->target.both_ways && is_back);
}

static bool has_word(const char *text, const char *word, int number)
{
    char wanted[32];
    size_t size = (size_t)snprintf(wanted, sizeof(wanted), "%s%d", word, number);
    for (const char *p = strstr(text, wanted); p != NULL; p = strstr(p + 1, wanted)) {
        if (p[size] < '0' || p[size] > '9') {
            return true;
        }
    }
    return false;
}

static bool right_element(const struct scenario_fault *f, const struct said *s)
{
    const struct scenario_target *t = &f->target;
    if (!s->is_confident || strcmp(s->suspect_kind, "unknown") == 0 || s->suspect_kind[0] == '\0') {
        return true; /* "unknown" is never counted as wrong */
    }
    switch (t->kind) {
    case TARGET_TRUNK:
        return strcmp(s->suspect_kind, "trunk") == 0 && has_word(s->suspect, "leaf", t->first) &&
               has_word(s->suspect, "spine", t->last);
    case TARGET_SPINE:
        return has_word(s->suspect, "spine", t->first);
    case TARGET_NIC:
        return has_word(s->suspect, "host", t->from.host);
    default:
        return true;
    }
}

static void count_false(struct run_judge *j, int64_t now_ns, const struct said *s, const char *text)
{
    for (int i = 0; i < j->lab->scenario.bound_count; i++) {
        struct run_window *w = &j->window[i];
        if (now_ns >= w->from_ns && now_ns <= w->until_ns) {
            w->false_path += s->group == GROUP_PATH;
            w->false_link += s->group == GROUP_LINK;
            w->false_step += s->group == GROUP_STEP;
            w->false_liar += s->group == GROUP_LIAR;
        }
    }
    if (s->group != GROUP_OTHER && j->unexplained_count < (int)ARRAY_COUNT(j->unexplained)) {
        j->unexplained[j->unexplained_count] = strdup(text);
        j->unexplained_count += j->unexplained[j->unexplained_count] != NULL;
    }
}

void run_judge_finding(struct run_judge *j, int64_t now_ns, int host, const json_t *finding)
{
    struct said s = read_said(j->lab, host, finding);
    bool is_explained = false;
    if (j->findings != NULL) {
        fprintf(j->findings, "  %9.4f s  host%d  %s  [%s]\n", (double)now_ns * 1e-9, host,
                text_of(finding, "text"),
                json_is_true(json_object_get(finding, "open")) ? "open" : "closed");
    }
    if (!json_is_true(json_object_get(finding, "open"))) {
        return;
    }
    for (int i = 0; i < j->lab->scenario.fault_count; i++) {
        const struct scenario_fault *f = &j->lab->scenario.fault[i];
        struct run_fault *state = &j->fault[i];
        if (!is_active(j, i, now_ns) || !touches(j, i, &s)) {
            continue;
        }
        is_explained = is_explained || leads_to(f, &s);
        if (names(f, &s)) {
            state->detected_ns = state->detected_ns < 0 ? now_ns : state->detected_ns;
            bool is_wrong = s.group == GROUP_PATH && (!right_way(f, &s) || !right_element(f, &s));
            if (is_wrong && !state->is_wrong) {
                fprintf(stderr, "foliot lab: named incorrectly: %s\n", text_of(finding, "text"));
            }
            state->is_wrong = state->is_wrong || is_wrong;
        }
    }
    if (!is_explained) {
        count_false(j, now_ns, &s, text_of(finding, "text"));
    }
}
