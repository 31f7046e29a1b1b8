/* rules_settings.c: rules for facts from drivers and GPU libraries: settings that should be alike, and counters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/audit/past.h"
#include "core/audit/rule_list.h"

/* ---- GPUs ---- */

/* NULL: it has no value. A GPU without this feature is skipped. */
static const char *of_gpu(struct judging *j, enum fact_id id)
{
    const struct fact *fact = judge_look(j, id, j->subject);

    if (fact != NULL && fact->state == FACT_ABSENT) {
        judge_skip(j, "this GPU does not have it, or its library is not asked for it");
        return NULL;
    }
    if (fact == NULL || fact->state != FACT_VALUE) {
        judge_unknown(j, fact);
        return NULL;
    }
    return fact->value;
}

static bool number_of_gpu(struct judging *j, enum fact_id id, int64_t *ret)
{
    const char *value = of_gpu(j, id);

    return value != NULL && fact_number(value, ret);
}

/* All facts of the check must be as on most GPUs of the model. */
void rule_gpu_alike(struct judging *j)
{
    const struct check *c = j->check;
    char text[256] = "";

    for (int i = 0; i < CHECK_FACTS_MAX && c->facts[i] != FACT_COUNT; i++) {
        const size_t used = strlen(text);
        const struct fact *fact = judge_look(j, c->facts[i], j->subject);
        const bool lacks = fact != NULL && fact->state == FACT_ABSENT;
        if (!lacks && (fact == NULL || fact->state != FACT_VALUE)) {
            judge_unknown(j, fact);
            return;
        }
        if (!lacks) {
            snprintf(text + used, sizeof(text) - used, "%s%s %s", used > 0 ? ", " : "",
                     strchr(fact_name(c->facts[i]), '.') + 1, fact->value);
        }
    }
    if (text[0] == '\0') {
        judge_skip(j, "this GPU does not have it, or its library is not asked for it");
        return;
    }
    const char *model = judge_text(j, FACT_GPU_MODEL, j->subject);
    if (model != NULL) {
        judge_join(j, model, judge_format(j, "%s", text), 0);
    }
}

void rule_gpu_ecc(struct judging *j)
{
    const struct fact *on = judge_look(j, FACT_GPU_ECC, j->subject);
    int64_t errors;

    if (on != NULL && on->state == FACT_VALUE && strcmp(on->value, "0") == 0) {
        judge_end(j, AUDIT_FAIL, "off", "on");
    } else if (on != NULL && on->state > FACT_ABSENT) {
        judge_unknown(j, on);
    } else if (number_of_gpu(j, FACT_GPU_UE, &errors)) {
        judge_end(j, (double)errors > j->fail ? AUDIT_FAIL : AUDIT_PASS,
                  judge_format(j, "%lld uncorrected", (long long)errors),
                  judge_format(j, "at most %.15g", j->fail));
    }
}

void rule_gpu_remap(struct judging *j)
{
    int64_t pending, failed;

    if (number_of_gpu(j, FACT_GPU_REMAP_PENDING, &pending) &&
        number_of_gpu(j, FACT_GPU_REMAP_FAILED, &failed)) {
        judge_end(j,
                  failed != 0    ? AUDIT_FAIL
                  : pending != 0 ? AUDIT_WARN
                                 : AUDIT_PASS,
                  failed != 0    ? "a row could not be remapped"
                  : pending != 0 ? "rows wait to be remapped"
                                 : "none",
                  "none");
    }
}

/* Bits of nvmlClocksEventReasons. */
void rule_gpu_throttle(struct judging *j)
{
    enum { HARDWARE = 0x8, SOFTWARE_HEAT = 0x20, HARDWARE_HEAT = 0x40, POWER_BRAKE = 0x80 };
    int64_t bits;

    if (number_of_gpu(j, FACT_GPU_THROTTLE, &bits)) {
        const bool bad = (bits & (HARDWARE | HARDWARE_HEAT | POWER_BRAKE)) != 0;
        judge_end(j,
                  bad                           ? AUDIT_FAIL
                  : (bits & SOFTWARE_HEAT) != 0 ? AUDIT_WARN
                                                : AUDIT_PASS,
                  (bits & POWER_BRAKE) != 0     ? "power brake"
                  : (bits & HARDWARE_HEAT) != 0 ? "too hot"
                  : bad                         ? "slowed by the hardware"
                  : (bits & SOFTWARE_HEAT) != 0 ? "slowed by the driver: hot"
                                                : "not slowed",
                  "not slowed");
    }
}

void rule_gpu_replays(struct judging *j)
{
    int64_t replays;
    struct past_count c;

    if (number_of_gpu(j, FACT_GPU_REPLAYS, &replays) && past_count(j, FACT_GPU_REPLAYS, &c)) {
        const double hours = fmax(c.seconds / 3600, 1);
        judge_end(j, (double)c.count > j->fail * hours ? AUDIT_FAIL : AUDIT_PASS,
                  judge_format(j, "%lld %s", (long long)c.count, past_words(j, &c)),
                  judge_format(j, "at most %.15g an hour", j->fail));
    }
}

/* The text that was read can't be judged. */
static void not_told(struct judging *j, const char *found, const char *why)
{
    judge_end(j, AUDIT_UNKNOWN, found, NULL);
    j->result->reason = REASON_NO_SOURCE;
    j->result->note = why;
}

void rule_gpu_fabric(struct judging *j)
{
    int64_t state;

    if (!number_of_gpu(j, FACT_GPU_FABRIC, &state)) {
        return;
    }
    if (state == 0) {
        judge_skip(j, "the GPU is on no NVSwitch fabric");
    } else if (state < 0 || state > 3) {
        not_told(j, judge_format(j, "state %lld", (long long)state), "nvml.h has no such state");
    } else {
        judge_end(j, state == 3 ? AUDIT_PASS : AUDIT_FAIL,
                  state == 1   ? "registration has not begun"
                  : state == 2 ? "registration goes on"
                               : "registered",
                  "registered");
    }
}

/* Takes the next part of a version: numbers are separated by dots, and a missing part is 0. */
static bool next_part(const char **version, unsigned *ret_part)
{
    int used = 0;

    *ret_part = 0;
    if (**version == '\0') {
        return true;
    }
    if (**version < '0' || **version > '9' || sscanf(*version, "%9u%n", ret_part, &used) != 1) {
        return false;
    }
    *version += used + ((*version)[used] == '.');
    return true;
}

/* False: one of them is not a version. */
static bool compare_versions(const char *a, const char *b, int *ret_order)
{
    unsigned x, y;

    *ret_order = 0;
    while (*a != '\0' || *b != '\0') {
        if (!next_part(&a, &x) || !next_part(&b, &y)) {
            return false;
        }
        if (*ret_order == 0) {
            *ret_order = x < y ? -1 : x > y;
        }
    }
    return true;
}

/* At least the declared version; else the version of most hosts. */
void rule_gpu_runtime(struct judging *j)
{
    const char *version = of_gpu(j, FACT_GPU_RUNTIME);
    int order;

    if (version != NULL && j->setting != NULL && j->setting->declared != NULL) {
        const char *least = j->setting->declared;
        if (!compare_versions(version, least, &order)) {
            not_told(j, version,
                     "it can't be compared with what is declared: expected numbers apart by dots");
            return;
        }
        judge_end(j, order < 0 ? AUDIT_FAIL : AUDIT_PASS, version,
                  judge_format(j, "at least %s, as declared", least));
    } else if (version != NULL) {
        judge_join(j, "", version, 0);
    }
}

/* ---- interfaces ---- */

/* The interface of a port, or the interface itself. */
static const char *interface_of(struct judging *j)
{
    return j->check->subject == SUBJECT_PORT ? judge_text(j, FACT_PORT_NET, j->subject)
                                             : j->subject;
}

/* The first fact of the check must be as for the same interface of most hosts. */
void rule_setting(struct judging *j)
{
    const char *net = interface_of(j),
               *value = net != NULL ? judge_text(j, j->check->facts[0], net) : NULL;

    if (value == NULL) {
        return;
    }
    if (strcmp(value, "unsupported") == 0) {
        judge_skip(j, "the driver does not have it");
    } else {
        judge_join(j, j->subject, value, 0);
    }
}

/* The light on the darkest lane, in 0.1 uW, against that of other modules of the same part: the less, the greater is the number
 * (in thousandths of a decibel). Copper and some modules tell no light. */
static void compare_light(struct judging *j)
{
    const struct fact *light = judge_look(j, FACT_NET_MODULE_RX, j->subject);
    int64_t tenths;

    if (light == NULL || light->state == FACT_ABSENT) {
        return;
    }
    const char *part = judge_text(j, FACT_NET_MODULE, j->subject);
    if (part == NULL || !judge_number(j, FACT_NET_MODULE_RX, j->subject, &tenths)) {
        return;
    }
    if (tenths < 0) {
        judge_end(j, AUDIT_PASS, "none", "no alarm");
        return;
    }
    const double decibel = 10 * log10(fmax((double)tenths, 1) / 10000); /* of 1 mW */
    judge_join_apart(j, part, judge_format(j, "%.1f dBm received", decibel), -1000 * decibel, 0);
    judge_found_in(j, FACT_NET_MODULE_RX);
}

void rule_optics(struct judging *j)
{
    const char *alarms = judge_text(j, FACT_NET_MODULE_ALARM, j->subject);

    if (alarms == NULL) {
        return;
    }
    if (strcmp(alarms, "unsupported") == 0) {
        judge_skip(j, "the driver does not have it");
        return;
    }
    judge_end(j, strcmp(alarms, "none") == 0 ? AUDIT_PASS : AUDIT_FAIL, alarms, "no alarm");
    if (j->result->status == AUDIT_PASS) {
        compare_light(j);
    }
}

/* Global pause stops all classes of a link. Priority flow control stops only its own class. */
void rule_pause(struct judging *j)
{
    const char *net = interface_of(j),
               *pause = net != NULL ? judge_text(j, FACT_NET_PAUSE, net) : NULL,
               *pfc = pause != NULL ? judge_text(j, FACT_NET_PFC, net) : NULL;

    if (pfc == NULL) {
        return;
    }
    if (strcmp(pause, "unsupported") == 0) {
        judge_skip(j, "the driver does not have it");
    } else if (pfc[0] >= '0' && pfc[0] <= '7' && strstr(pause, "on") != NULL) {
        judge_end(j, AUDIT_FAIL,
                  judge_format(j, "%s, with priority flow control of %s", pause, pfc),
                  "off where priorities are paused");
    } else {
        judge_join(j, j->subject, pause, 0);
    }
}

/* A block that could not be corrected had at least 16 wrong symbols (RS(544,514), IEEE 802.3 clause 91). Of a good link some
 * lose one or two while so few bits come that these would be above the limit. */
void rule_error_rate(struct judging *j)
{
    enum { BITS_OF_LOST = 16 };
    static const double least_bits = 1e13;
    static const enum fact_id ids[] = {FACT_NET_FEC_LOST, FACT_NET_FEC_CORRECTED,
                                       FACT_NET_RX_BYTES};
    int64_t now[3], counted[3];
    struct past_count time;

    for (int i = 0; i < 3; i++) {
        if (!judge_number(j, ids[i], j->subject, &now[i])) {
            return;
        }
    }
    if (now[0] < 0) {
        judge_skip(j, "the driver does not count it");
        return;
    }
    if (!past_counts(j, ids, 3, counted, &time)) {
        return;
    }
    /* if these are few, it takes all that ever came */
    const bool few = (double)counted[2] * 8 < least_bits;
    const int64_t lost = few ? now[0] : counted[0], mended = few ? now[1] : counted[1];
    const double all = (double)(few ? now[2] : counted[2]) * 8,
                 after = (double)lost * BITS_OF_LOST / all,
                 before = mended > 0 ? (double)mended / all : 0;
    if (all < least_bits) {
        judge_skip(j, "too little was received to tell a rate");
        return;
    }
    if (few) {
        time.since = SINCE_BOOT;
        time.seconds = time.up_s;
    }
    judge_end(j,
              judge_beyond((double)lost, j->fail * all / BITS_OF_LOST) ? AUDIT_FAIL
              : (after > j->fail && lost > 1) || before > j->warn      ? AUDIT_WARN
                                                                       : AUDIT_PASS,
              judge_format(j, "%.1e before and %.1e after correction, %s", before, after,
                           past_words(j, &time)),
              judge_format(j, "at most %.1e before and %.1e after", j->warn, j->fail));
    if (j->result->status != AUDIT_FAIL && after > j->fail) {
        j->result->note =
            judge_format(j, "%lld blocks were lost: chance may be the reason", (long long)lost);
    }
}
