/* alert_world.h: a fleet as the alert engine sees it: hosts that report each minute, planned maintenance, unplanned reboots, jobs
 * that start, links that bounce once; and faults on demand. A unit test uses it, and a bench, for a week and a larger fleet. The
 * default rules are in force. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "service/alert/file.h"
#include "suspect.h"

#define WORLD_UTC         (1795000000LL * NS_PER_S)
#define WORLD_STEP_NS     (60 * NS_PER_S)
#define WORLD_NICS        8
#define WORLD_POD         16 /* hosts under one set of leaves */
#define WORLD_FINDING_MAX 4096

struct world_finding {
    struct alert_finding f;
    int64_t closes_ns;
    char text[96];
};
struct world_host {
    int64_t away_until_ns, unsynced_until_ns, busy_until_ns, worked_on_until_ns;
    uint32_t run;
    bool away;
};
struct world {
    uint32_t host_count;
    struct alert_file file;
    struct alerts *engine;
    struct mono now;
    struct prng prng;
    struct world_host *hosts;
    double *downs, *errors, *drops; /* per NIC */
    struct world_finding findings[WORLD_FINDING_MAX];
    uint32_t finding_count, next_number;
    uint64_t samples, pages, told, opened, next_silence;
    char page_text[ALERT_TEXT_MAX], page_cause[ALERT_ELEMENT_MAX];
};

static bool world_nic(void *context, uint32_t nic, struct alert_nic *ret)
{
    static char name[32], leaf[32];
    const uint32_t host = nic / WORLD_NICS, rail = nic % WORLD_NICS;

    snprintf(name, sizeof(name), "host%u/ib%u", host, rail);
    snprintf(leaf, sizeof(leaf), "leaf%u", host / WORLD_POD * WORLD_NICS + rail);
    *ret = (struct alert_nic){.name = name, .leaf = leaf, .host = host, .rail = rail};
    return true;
}
static const char *world_host_name(void *context, uint32_t host)
{
    static char name[32];

    snprintf(name, sizeof(name), "host%u", host);
    return name;
}

static void world_drain(struct world *w)
{
    struct alert_action action;

    while (alerts_next_action(w->engine, &action)) {
        if (action.kind != ALERT_ACTION_NOTIFY) {
            continue;
        }
        w->told++;
        w->opened += action.event == ALERT_OPENED;
        if (action.page) {
            w->pages++;
            snprintf(w->page_text, sizeof(w->page_text), "%s", action.incident.text);
            snprintf(w->page_cause, sizeof(w->page_cause), "%s", action.incident.cause);
        }
    }
}

/* false: the default rules are invalid, or no memory. */
static bool world_init(struct world *w, uint32_t host_count, uint64_t seed)
{
    static struct alert_config config;
    struct config_error error;

    memset(w, 0, sizeof(*w));
    w->host_count = host_count;
    w->now = (struct mono){3600 * NS_PER_S};
    prng_init(&w->prng, seed);
    if (alert_file_parse("defaults", NULL, 0, &w->file, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return false;
    }
    alert_file_config(&w->file, &config);
    config.fleet = (struct alert_fleet){.nic = world_nic, .host = world_host_name};
    config.route_count = 1;
    config.routes[0] = (struct alert_route){.severity = ALERT_INFO, .receivers = 1};
    w->engine = alerts_new(&config, w->now);
    w->hosts = calloc(host_count, sizeof(*w->hosts));
    w->downs = calloc((size_t)host_count * WORLD_NICS, sizeof(double));
    w->errors = calloc((size_t)host_count * WORLD_NICS, sizeof(double));
    w->drops = calloc((size_t)host_count * WORLD_NICS, sizeof(double));
    if (w->engine == NULL || w->hosts == NULL || w->downs == NULL || w->errors == NULL ||
        w->drops == NULL) {
        return false;
    }
    alerts_on_clock(w->engine, w->now, WORLD_UTC - w->now.ns, WORLD_UTC - w->now.ns);
    return true;
}

static void world_done(struct world *w)
{
    alerts_free(w->engine);
    free(w->hosts);
    free(w->downs);
    free(w->errors);
    free(w->drops);
}

static void world_sample(struct world *w, uint32_t host, enum alert_metric metric, uint32_t nic,
                         double value)
{
    const bool path = metric <= ALERT_PATH_LOSS;
    const struct alert_sample s = {.metric = metric,
                                   .host = host,
                                   .nic = nic,
                                   .peer = path ? (nic + WORLD_NICS) % (w->host_count * WORLD_NICS)
                                                : ALERT_NO_ID,
                                   .port = path ? 50000 : ALERT_NO_ID,
                                   .value = value};

    alerts_on_sample(w->engine, w->now, &s);
    w->samples++;
}

static double world_between(struct world *w, double low, double high)
{
    return low + (high - low) * prng_uniform(&w->prng);
}
static bool world_chance(struct world *w, double p)
{
    return prng_uniform(&w->prng) < p;
}

/* Reports a finding that lasts so long; NIC ids, ALERT_NO_ID for none. Returns it as it was reported. */
static struct world_finding *world_say(struct world *w, uint32_t host, enum finding_kind kind,
                                       uint32_t from, uint32_t to, double seconds)
{
    if (w->finding_count == WORLD_FINDING_MAX) {
        return NULL;
    }
    struct world_finding *x = &w->findings[w->finding_count++];
    memset(x, 0, sizeof(*x));
    x->f = (struct alert_finding){.said_by = host,
                                  .run = w->hosts[host].run,
                                  .number = ++w->next_number,
                                  .kind = kind,
                                  .from_nic = from,
                                  .to_nic = to,
                                  .from_host = from != ALERT_NO_ID ? from / WORLD_NICS : host,
                                  .to_host = to != ALERT_NO_ID ? to / WORLD_NICS : ALERT_NO_ID,
                                  .since = w->now};
    snprintf(x->text, sizeof(x->text), "%s of host%u", finding_kind_word(kind), host);
    x->closes_ns = w->now.ns + (int64_t)(seconds * 1e9);
    return x;
}

static void world_tell(struct world *w, struct world_finding *x, enum finding_phase phase)
{
    x->f.phase = phase;
    x->f.text = x->text;
    alerts_on_finding(w->engine, w->now, &x->f);
    world_drain(w);
}

static void world_finding(struct world *w, uint32_t host, enum finding_kind kind, uint32_t from,
                          uint32_t to, enum element_kind suspect_kind, const char *suspect,
                          bool confident, double seconds)
{
    struct world_finding *x = world_say(w, host, kind, from, to, seconds);

    if (x != NULL) {
        suspect_set(&x->f, suspect_named(suspect_kind, suspect), confident);
        world_tell(w, x, FINDING_OPENED);
    }
}

/* Lets the engine's own time pass up to `until`, without reports. */
static void world_run(struct world *w, struct mono until)
{
    while (mono_before(w->now, until)) {
        w->now = mono_min(mono_min(alerts_deadline(w->engine), until), until);
        alerts_tick(w->engine, w->now);
        world_drain(w);
    }
}

/* ---- events of a healthy fleet -------------------------------------------------------------------------------------- */

/* A reboot: some links go down first, the host falls silent, its peers report that, and it comes back with new counters. */
static void world_reboot(struct world *w, uint32_t host, double seconds)
{
    struct world_host *h = &w->hosts[host];
    char name[64];

    if (h->away) {
        return;
    }
    for (uint32_t r = 0; r < WORLD_NICS; r++) {
        if (world_chance(w, 0.5)) {
            w->downs[host * WORLD_NICS + r]++;
            world_finding(w, host, FINDING_LINK_DOWN, host * WORLD_NICS + r, ALERT_NO_ID,
                          ELEMENT_NIC, NULL, true, 1e9);
        }
    }
    world_run(w, mono_add(w->now, span_s(3)));
    h->away = true;
    h->away_until_ns = w->now.ns + (int64_t)(seconds * 1e9);
    for (uint32_t k = 1; k <= 6; k++) {
        const uint32_t peer = (host + k * 5) % w->host_count;
        const uint32_t from = host * WORLD_NICS + k, to = peer * WORLD_NICS + k;
        if (w->hosts[peer].away) {
            continue;
        }
        snprintf(name, sizeof(name), "host%u", host);
        world_finding(w, peer, FINDING_PEER_SILENT, from, to,
                      k % 2 ? ELEMENT_HOST : ELEMENT_UNKNOWN, k % 2 ? name : NULL, k % 2 != 0,
                      seconds + 20);
        snprintf(name, sizeof(name), "host%u/ib%u or its link", host, k);
        world_finding(w, peer, FINDING_PATH_DEAD, to, from, k % 3 ? ELEMENT_NIC : ELEMENT_UNKNOWN,
                      k % 3 ? name : NULL, k % 3 == 1, seconds + 30);
    }
}

static void world_back(struct world *w, uint32_t host)
{
    struct world_host *h = &w->hosts[host];

    h->away = false;
    h->run++;
    h->unsynced_until_ns = w->now.ns + (int64_t)world_between(w, 30e9, 150e9);
    alerts_on_run(w->engine, w->now, host, h->run);
    for (uint32_t r = 0; r < WORLD_NICS; r++) { /* counters begin anew; training takes its time */
        w->downs[host * WORLD_NICS + r] = (double)prng_below(&w->prng, 5);
        w->errors[host * WORLD_NICS + r] = (double)prng_below(&w->prng, 50);
        w->drops[host * WORLD_NICS + r] = 0;
        if (world_chance(w, 0.2)) {
            world_finding(w, host, FINDING_LINK_DOWN, host * WORLD_NICS + r, ALERT_NO_ID,
                          ELEMENT_NIC, NULL, true, world_between(w, 5, 90));
        }
    }
}

static void world_job(struct world *w)
{
    const uint32_t size = 4u << prng_below(&w->prng, 5),
                   first = (uint32_t)prng_below(&w->prng, w->host_count);

    for (uint32_t k = 0; k < size && k < w->host_count; k++) {
        const uint32_t host = (first + k) % w->host_count;
        w->hosts[host].busy_until_ns = w->now.ns + (int64_t)world_between(w, 60e9, 240e9);
        if (!w->hosts[host].away && world_chance(w, 0.1)) {
            world_finding(w, host, FINDING_SENSING_LATE, ALERT_NO_ID, ALERT_NO_ID, ELEMENT_HOST,
                          NULL, false, 20);
            world_finding(w, host, FINDING_PATH_LOSSY,
                          (host * WORLD_NICS + 9) % (w->host_count * WORLD_NICS), host * WORLD_NICS,
                          ELEMENT_UNKNOWN, NULL, false, world_between(w, 20, 120));
            world_finding(
                w, host, FINDING_PATH_SLOW, (host * WORLD_NICS + 10) % (w->host_count * WORLD_NICS),
                host * WORLD_NICS + 1, ELEMENT_UNKNOWN, NULL, false, world_between(w, 60, 400));
        }
    }
}

/* Announced work on a pod for two hours: hosts go and come, cables are pulled and put back. */
static void world_maintain(struct world *w, uint32_t pod)
{
    struct alert_silence s = {.id = ++w->next_silence,
                              .maintenance = true,
                              .from_utc_ns = w->now.ns - 3600 * NS_PER_S + WORLD_UTC,
                              .until_utc_ns =
                                  w->now.ns - 3600 * NS_PER_S + 7200 * NS_PER_S + WORLD_UTC};

    for (uint32_t k = 0; k < WORLD_POD && pod * WORLD_POD + k < w->host_count; k++) {
        s.id = ++w->next_silence;
        snprintf(s.match.host, sizeof(s.match.host), "host%u", pod * WORLD_POD + k);
        if (alerts_silence(w->engine, w->now, &s) < 0) {
            abort();
        }
        w->hosts[pod * WORLD_POD + k].worked_on_until_ns =
            w->now.ns + 4500 * NS_PER_S; /* the last is back in time */
    }
}

static void world_work_on(struct world *w, uint32_t host)
{
    if (world_chance(w, 0.02)) {
        world_reboot(w, host, world_between(w, 120, 2400));
    }
    if (!w->hosts[host].away && world_chance(w, 0.1)) {
        const uint32_t nic = host * WORLD_NICS + (uint32_t)prng_below(&w->prng, WORLD_NICS);
        w->downs[nic] += (double)prng_below(&w->prng, 4);
        world_finding(w, host, FINDING_LINK_DOWN, nic, ALERT_NO_ID, ELEMENT_NIC, NULL, true,
                      world_between(w, 10, 900));
    }
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

static void world_report(struct world *w, uint32_t host)
{
    const struct world_host *h = &w->hosts[host];
    const bool busy = w->now.ns < h->busy_until_ns;

    alerts_on_host(w->engine, w->now, host);
    for (uint32_t r = 0; r < WORLD_NICS; r++) {
        const uint32_t nic = host * WORLD_NICS + r;
        w->drops[nic] += busy ? world_between(w, 0, 20000) : 0;
        w->errors[nic] += world_chance(w, 0.001) ? 3 : 0;
        world_sample(w, host, ALERT_LINK_UP, nic, 1);
        world_sample(w, host, ALERT_LINK_DOWNS, nic, w->downs[nic]);
        world_sample(w, host, ALERT_LINK_RX_ERRORS, nic, w->errors[nic]);
        world_sample(w, host, ALERT_LINK_RX_DROPS, nic, w->drops[nic]);
        world_sample(w, host, ALERT_PATH_OWD_P99, nic,
                     busy ? world_between(w, 5e4, 2e6) : world_between(w, 4e3, 9e3));
        world_sample(w, host, ALERT_PATH_LOSS, nic,
                     busy && world_chance(w, 0.1) ? world_between(w, 0, 3e4) : 0);
    }
    world_sample(w, host, ALERT_CLOCK_SYNCED, ALERT_NO_ID, w->now.ns >= h->unsynced_until_ns);
    world_sample(w, host, ALERT_CLOCK_HARD, ALERT_NO_ID, world_between(w, 500, 5000));
    world_sample(w, host, ALERT_AGENT_CPU, ALERT_NO_ID, busy ? world_between(w, 0, 2e5) : 1.5e4);
    world_sample(w, host, ALERT_AGENT_REPORTS_LOST, ALERT_NO_ID, 0);
    world_sample(w, host, ALERT_CERTIFICATE_DAYS, ALERT_NO_ID, 60);
}

static void world_close(struct world *w)
{
    for (uint32_t k = 0; k < w->finding_count;) {
        struct world_finding *x = &w->findings[k];
        const bool lost = x->f.run != w->hosts[x->f.said_by].run; /* its agent has restarted */
        if (!lost && (w->hosts[x->f.said_by].away || w->now.ns < x->closes_ns)) {
            k++;
            continue;
        }
        if (!lost) {
            world_tell(w, x, FINDING_CLOSED);
        }
        w->findings[k] = w->findings[--w->finding_count];
    }
}

/* One minute of the fleet, with all events of a healthy fleet. */
static void world_minute(struct world *w, bool eventful)
{
    const int64_t minute = w->now.ns / WORLD_STEP_NS;
    const double scale = (double)w->host_count / 500;

    world_close(w);
    if (eventful) {
        if (minute % 1440 == 120) {
            world_maintain(w, (uint32_t)(minute / 1440) %
                                  ((w->host_count + WORLD_POD - 1) / WORLD_POD));
        }
        if (world_chance(w, 5 * scale / 1440)) {
            world_reboot(w, (uint32_t)prng_below(&w->prng, w->host_count),
                         world_between(w, 180, 600));
        }
        if (world_chance(w, 20.0 / 1440)) {
            world_job(w);
        }
        if (world_chance(w, 3 * scale / 1440)) { /* a link that bounces once */
            const uint32_t nic = (uint32_t)prng_below(&w->prng, w->host_count * WORLD_NICS);
            if (!w->hosts[nic / WORLD_NICS].away) {
                w->downs[nic]++;
                world_finding(w, nic / WORLD_NICS, FINDING_LINK_DOWN, nic, ALERT_NO_ID, ELEMENT_NIC,
                              NULL, true, world_between(w, 0.5, 20));
            }
        }
    }
    for (uint32_t host = 0; host < w->host_count; host++) {
        if (w->hosts[host].away && w->now.ns >= w->hosts[host].away_until_ns) {
            world_back(w, host);
        }
        if (w->now.ns < w->hosts[host].worked_on_until_ns) {
            world_work_on(w, host);
        }
        if (!w->hosts[host].away) {
            world_report(w, host);
        }
    }
    world_drain(w);
    for (int part = 0; part < 6; part++) { /* signs of life come more often than values */
        world_run(w, mono_add(w->now, span_s(10)));
        for (uint32_t host = 0; host < w->host_count; host++) {
            if (!w->hosts[host].away) {
                alerts_on_host(w->engine, w->now, host);
            }
        }
    }
}
