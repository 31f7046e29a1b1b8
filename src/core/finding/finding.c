/* finding.c: the one form of sentence. Each part is a small function that appends to the text. */
#include "core/finding/finding.h"

#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/prng.h"
#include "base/strbuf.h"
#include "core/clock/clock.h"
#include "core/link/verbs_port.h"
#include "wire/probe.h"

#define WIRE_BYTES 66 /* bytes of headers, preamble and gap for each packet */

/* ---- words ------------------------------------------------------------------------------------------------------ */

static const char *const kind_words[FINDING_KIND_COUNT] = {
    [FINDING_NONE] = "none",
    [FINDING_LINK_DOWN] = "link-down",
    [FINDING_LINK_FLAPPING] = "link-flapping",
    [FINDING_LINK_SPEED] = "link-speed",
    [FINDING_LINK_ERRORS] = "link-errors",
    [FINDING_NIC_GONE] = "nic-gone",
    [FINDING_PATH_DEAD] = "path-dead",
    [FINDING_PATH_LOSSY] = "path-lossy",
    [FINDING_PATH_SLOW] = "path-slow",
    [FINDING_PATH_FLAPPING] = "path-flapping",
    [FINDING_PEER_SILENT] = "peer-silent",
    [FINDING_CLOCK_DISRUPTED] = "clock-disrupted",
    [FINDING_CLOCK_STEP] = "clock-step",
    [FINDING_CLOCK_LIAR] = "clock-liar",
    [FINDING_CLOCK_ASYMMETRY] = "clock-asymmetry",
    [FINDING_SENSING_LATE] = "sensing-late",
    [FINDING_STAMPS_MISSING] = "stamps-missing",
    [FINDING_BAD_PACKETS] = "bad-packets",
    [FINDING_TWO_AGENTS] = "two-agents",
    [FINDING_CLOCK_ASTRAY] = "clock-astray",
    [FINDING_RDMA_PORT] = "rdma-port",
    [FINDING_PATH_NARROW] = "path-narrow",
};

static const char *refused_for(enum probe_error error)
{
    switch (error) {
    case PROBE_ERROR_SIZE:
    case PROBE_ERROR_MAGIC:
        return "size or first bytes: no agent sends such";
    case PROBE_ERROR_VERSION_NEWER:
        return "newer wire version";
    case PROBE_ERROR_VERSION_OLDER:
        return "older wire version";
    case PROBE_ERROR_KEY:
        return "key, which is not in this host's key file";
    case PROBE_ERROR_TAG:
        return "tag: forged, damaged or of another key";
    default:
        return "contents";
    }
}

static const char *const advice_texts[] = {
    [ADVICE_NONE] = "",
    [ADVICE_CHECK_CABLE] = "check cable and optics of this NIC's link",
    [ADVICE_CHECK_TRUNK] = "check optics and counters of the trunk at both ends",
    [ADVICE_CHECK_SWITCH] = "check the switch",
    [ADVICE_CHECK_PEER_AGENT] = "check that the agent runs there",
    [ADVICE_CHECK_PEER_HOST] = "check that host",
    [ADVICE_CHECK_OWN_HOST] = "check this host",
    [ADVICE_GIVE_CPU] = "give the agent CPU time: it judges nothing until then",
    [ADVICE_CHECK_CLOCK] = "check the clock hardware, and which programs set or steer the clock",
    [ADVICE_CHECK_DRIVER] = "check the NIC's driver and its time stamping settings",
    [ADVICE_CHECK_KEYS] = "compare the key files of both hosts",
    [ADVICE_STOP_OTHER_AGENT] = "stop the other agent, or give it its own NIC id",
    [ADVICE_WAIT] = "nothing to do: it ends by itself",
    [ADVICE_UPGRADE] =
        "upgrade the older agents: an agent understands its own wire version and the one before",
    [ADVICE_ASK_ITS_CLOCK] = "run foliot clock on that host: it prints the reason",
    [ADVICE_CHECK_CLASS] =
        "only packets of the job's class are lost: check its queues and policers",
    [ADVICE_CHECK_SIZE] =
        "only packets of full size are lost: check the MTU of switches and tunnels",
    [ADVICE_CHECK_RATE] =
        "compare speed, lanes, errors and a NIC's PCI slot at both ends with those of its like",
    [ADVICE_CHECK_RDMA] = "run foliot links on that host: it names the port and what to do",
    [ADVICE_SHOW_PAUSES] =
        "if this is a virtual machine: with ptp_kvm or VMClock the agent sees a pause at once",
    [ADVICE_CHECK_SOURCE] =
        ("check the kernel's clock source (/sys/devices/system/clocksource/clocksource0): it is "
         "read too slowly"),
    [ADVICE_FIND_SENDER] = "find what else sends to this port",
};

const char *finding_kind_word(uint32_t kind)
{
    return kind < FINDING_KIND_COUNT ? kind_words[kind] : "unknown";
}

const char *finding_advice_text(uint32_t advice)
{
    return advice < ARRAY_COUNT(advice_texts) ? advice_texts[advice] : "";
}

void finding_init(struct finding *f, enum finding_kind kind, struct mono now)
{
    ASSERT((unsigned)kind < FINDING_KIND_COUNT); /* a host reports only kinds that have words */
    /* structs are compared as bytes, so every byte is set */
    memset(f, 0, sizeof(*f));
    f->kind = kind;
    f->from = f->to = NIC_NONE;
    f->from_host = f->to_host = HOST_NONE;
    f->since = f->said = now;
    f->since_fleet_ns = f->since_utc_ns = FINDING_NO_TIME;
    f->suspect.a.number = f->suspect.b.number = UINT32_MAX;
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

/* Days since 1970 to a date; Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days. */
static void add_date(struct strbuf *t, int64_t days)
{
    const int64_t z = days + 719468;
    const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    const int64_t day_of_era = z - era * 146097;
    const int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month_from_march = (5 * day_of_year + 2) / 153;
    const int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;

    strbuf_add(t, "%04lld-%02lld-%02lld", (long long)(year_of_era + era * 400 + (month <= 2)),
               (long long)month, (long long)(day_of_year - (153 * month_from_march + 2) / 5 + 1));
}

static void add_time(struct strbuf *t, int64_t ns)
{
    const int64_t day_ns = 86400 * NS_PER_S;
    const int64_t days = ns / day_ns - (ns % day_ns < 0);
    const int64_t in_day = ns - days * day_ns, s = in_day / NS_PER_S;

    add_date(t, days);
    strbuf_add(t, " %02lld:%02lld:%02lld.%06lld", (long long)(s / 3600), (long long)(s / 60 % 60),
               (long long)(s % 60), (long long)(in_day % NS_PER_S / NS_PER_US));
}

size_t finding_time_text(int64_t ns, char *ret_text, size_t size)
{
    struct strbuf t = strbuf_init(ret_text, size);

    add_time(&t, ns);
    return t.length;
}

#define UTC_UNKNOWN ", since: UTC unknown"

/* Adds a time of a clock that isn't UTC. */
static void add_other_time(struct strbuf *t, const char *whose, int64_t ns)
{
    strbuf_add(t, " (%s %lld.%09lld)", whose, (long long)(ns / NS_PER_S),
               (long long)(ns % NS_PER_S));
}

size_t finding_since_text(int64_t utc_ns, int64_t fleet_ns, char *ret_text, size_t size)
{
    struct strbuf t = strbuf_init(ret_text, size);

    if (utc_ns != FINDING_NO_TIME) {
        strbuf_add(&t, ", since ");
        add_time(&t, utc_ns);
        strbuf_add(&t, " UTC");
    } else {
        strbuf_add(&t, UTC_UNKNOWN);
        if (fleet_ns != FINDING_NO_TIME) {
            add_other_time(&t, "fleet time", fleet_ns);
        }
    }
    return t.length;
}

static void add_since(struct strbuf *t, const struct finding_names *names, const struct finding *f)
{
    char since[96];

    if (f->since_utc_ns == FINDING_NO_TIME && names != NULL && names->receiver != NULL) {
        strbuf_add(t, ", since ");
        add_time(t, names->received_since_ns);
        strbuf_add(t, " UTC by %s clock", names->receiver);
    } else {
        (void)finding_since_text(f->since_utc_ns, f->since_fleet_ns, since, sizeof(since));
        strbuf_add(t, "%s", since);
        if (f->since_utc_ns == FINDING_NO_TIME && f->since_fleet_ns == FINDING_NO_TIME) {
            add_other_time(t, "host clock", f->since.ns);
        }
    }
    if (f->phase == FINDING_CLOSED) {
        strbuf_add(t, ", over after %.3f s", (double)(f->ended_ns - f->since.ns) * 1e-9);
        if (f->length_error_ns > 0) {
            strbuf_add(t, " ± %.3f s", (double)f->length_error_ns * 1e-9);
        }
    }
}

/* ---- what ------------------------------------------------------------------------------------------------------- */

static void add_many(struct strbuf *t, const struct finding *f, int first)
{
    if (f->numbers[first] > 1) {
        strbuf_add(t, ", %lld paths", (long long)f->numbers[first]);
    }
    if (f->numbers[first + 1] > 1) {
        strbuf_add(t, " of %lld NIC pairs", (long long)f->numbers[first + 1]);
    }
}

static void add_what_link(struct strbuf *t, const struct finding *f)
{
    const long long n0 = f->numbers[0], n1 = f->numbers[1], n2 = f->numbers[2], n3 = f->numbers[3];

    switch ((enum finding_kind)f->kind) {
    case FINDING_LINK_DOWN:
        strbuf_add(t, "link is down (%lld time%s since the agent started)", n0, n0 == 1 ? "" : "s");
        break;
    case FINDING_LINK_FLAPPING:
        if (f->phase == FINDING_CLOSED) {
            strbuf_add(t, "link no longer flaps: %lld times within the past %s", n0,
                       n1 == 3600 ? "hour" : "window");
        } else if (n1 == 3600) {
            strbuf_add(t, "link has flapped more than %lld times within the past hour: %lld", n2,
                       n0);
        } else {
            strbuf_add(t, "link has flapped more than %lld times within the past %lld s: %lld", n2,
                       n1, n0);
        }
        break;
    case FINDING_LINK_SPEED:
        strbuf_add(t, "link speed went from %lld to %lld Mbit/s", n0, n1);
        if (n2 != n3) {
            strbuf_add(t, ", width from %lld to %lld lanes", n2, n3);
        }
        break;
    case FINDING_LINK_ERRORS:
        strbuf_add(t, "link has %lld errors within %lld s", n0, n1);
        break;
    default:
        strbuf_add(t, "NIC is gone");
        break;
    }
}

/* Ports, paths and clocks are equal, so the difference comes from the switches' rules for the job's DSCP or service level. */
static void add_what_class(struct strbuf *t, long long job_ns, long long reference_ns,
                           int64_t detail)
{
    const unsigned dscp = (unsigned)(detail & 255) >> 2, sl = (unsigned)(detail >> 8) & 15;

    strbuf_add(t, "RDMA packets of the job's class (");
    if (dscp > 0 || sl == 0) {
        strbuf_add(t, "DSCP %u%s", dscp, sl > 0 ? ", " : "");
    }
    if (sl > 0) {
        strbuf_add(t, "SL %u", sl);
    }
    if (job_ns < 0) {
        strbuf_add(t, ") don't come, unmarked ones do");
    } else {
        strbuf_add(t, ") take %.3f ms, unmarked ones between the same ports %.3f ms",
                   (double)job_ns / 1e6, (double)reference_ns / 1e6);
    }
}

static void add_what_rdma(struct strbuf *t, const struct finding *f)
{
    static const char *const texts[VERBS_TROUBLE_COUNT] = {
        [VERBS_GONE] = "RDMA device is gone",
        [VERBS_DOWN] = "RDMA port is down",
        [VERBS_NO_MANAGER] = "no subnet manager has been at the RDMA port",
        [VERBS_NO_GID] = "RDMA port has no GID with an address that a router carries",
        [VERBS_V1_ONLY] = "RDMA port has GIDs of RoCE v1 only",
    };
    const long long found = f->numbers[1], expected = f->numbers[2];

    switch (f->numbers[0]) {
    case VERBS_MTU:
        strbuf_add(t, "MTU of the RDMA port is %lld, expected %lld", found, expected);
        break;
    case VERBS_CABLE:
        strbuf_add(t, "RDMA port has %lld errors of its cable within a minute", found);
        break;
    case VERBS_GID_MOVED:
        strbuf_add(t, "GID of the RDMA port moved from index %lld to %lld", expected, found);
        break;
    case VERBS_CLASS:
        add_what_class(t, found, expected, f->numbers[3]);
        break;
    default:
        strbuf_add(t, "%s",
                   f->numbers[0] >= 0 && f->numbers[0] < VERBS_TROUBLE_COUNT
                       ? texts[f->numbers[0]]
                       : "RDMA port has a trouble of a newer agent");
        break;
    }
}

/* The rate at which a probe takes so long on the wire. */
static void add_rate(struct strbuf *t, int64_t apart_ns)
{
    const double mbps = apart_ns > 0 ? (PROBE_SIZE + WIRE_BYTES) * 8000.0 / (double)apart_ns : 0;

    if (apart_ns > 0) {
        strbuf_add(t, "a link has only some %.*f Mb/s", mbps < 10, mbps);
    } else {
        strbuf_add(t, "a link is slow");
    }
}

static void add_what_path(struct strbuf *t, const struct finding *f)
{
    const long long n0 = f->numbers[0], n1 = f->numbers[1], n2 = f->numbers[2], n3 = f->numbers[3];

    switch ((enum finding_kind)f->kind) {
    case FINDING_PATH_DEAD:
        strbuf_add(t, "silent black hole");
        if (n0 > 0) {
            strbuf_add(t, " (%lld probe%s proven lost)", n0, n0 == 1 ? "" : "s");
        }
        add_many(t, f, 1);
        break;
    case FINDING_PATH_LOSSY:
        strbuf_add(t, "packets are lost");
        if (n1 > 0) {
            strbuf_add(t, ", %lld of %lld probes (%.1f %%)", n0, n1,
                       100.0 * (double)n0 / (double)n1);
        }
        add_many(t, f, 2);
        break;
    case FINDING_PATH_SLOW:
        strbuf_add(
            t,
            "one-way delay went from %.3f to %.3f us, the other direction by %+.3f us (clock bound "
            "%.3f us)",
            (double)n0 * 1e-3, (double)n1 * 1e-3, (double)n2 * 1e-3, (double)n3 * 1e-3);
        break;
    case FINDING_PATH_NARROW:
        add_rate(t, n0);
        strbuf_add(t, ": packets sent back to back arrive %.3f us apart, usually %.3f",
                   (double)n0 * 1e-3, (double)n1 * 1e-3);
        add_many(t, f, 2);
        break;
    case FINDING_PATH_FLAPPING:
        strbuf_add(t, "path was dead %lld times within %lld s", n0, n1);
        break;
    default:
        strbuf_add(t, "nothing is heard");
        if (n0 > 0) {
            strbuf_add(t, " for %lld ms", n0);
        }
        break;
    }
}

static const char *disrupted_by(int64_t fault)
{
    static const char *const words[] = {
        [CLOCK_FAULT_NONE] = "",
        [CLOCK_FAULT_SUSPEND] = ": the host was suspended",
        [CLOCK_FAULT_CLOCKSOURCE] = ": the kernel changed its clock source",
        [CLOCK_FAULT_STEP] = ": it stepped",
        [CLOCK_FAULT_MIGRATED] = ": the virtual machine was moved or restored",
        [CLOCK_FAULT_GUARD] = ": another clock of this host contradicts it",
    };

    return fault >= 0 && fault < (int64_t)ARRAY_COUNT(words) ? words[fault] : "";
}

static void add_what_host(struct strbuf *t, const struct finding *f)
{
    const long long n0 = f->numbers[0], n1 = f->numbers[1], n2 = f->numbers[2];

    switch ((enum finding_kind)f->kind) {
    case FINDING_CLOCK_DISRUPTED:
        strbuf_add(t, "clock is disrupted, its time must not be used%s", disrupted_by(n2));
        if (n1 != 0) {
            strbuf_add(t, " (%.3f us)", (double)n1 * 1e-3);
        }
        break;
    case FINDING_CLOCK_STEP:
        if (n1 != 0) {
            strbuf_add(t,
                       "clock stood still for %.3f ms, as if this virtual machine had been paused "
                       "or moved",
                       (double)n0 * 1e-6);
        } else {
            strbuf_add(t, "clock stepped by %+.3f us", (double)n0 * 1e-3);
        }
        break;
    case FINDING_CLOCK_LIAR:
        strbuf_add(t, "clock is wrong by %+.3f us, as %lld of %lld neighbours measure it",
                   (double)n0 * 1e-3, n1, n2);
        break;
    case FINDING_CLOCK_ASTRAY:
        strbuf_add(
            t,
            "clock has not been in step with the fleet for %lld s, while %lld of %lld neighbours "
            "are",
            n0, n1, n2);
        break;
    case FINDING_CLOCK_ASYMMETRY:
        strbuf_add(t, "path is asymmetric by about %.3f us", (double)n0 * 1e-3);
        break;
    case FINDING_SENSING_LATE:
        strbuf_add(t, "this agent was %lld ms late and judged nothing meanwhile", n0);
        break;
    case FINDING_STAMPS_MISSING:
        if (n2 > 0) {
            strbuf_add(t,
                       "%lld stamps of %lld packets may be off by more than %lld ns: they make no "
                       "fleet time",
                       n0, n1, n2);
        } else {
            strbuf_add(t, "%lld of %lld transmit stamps are missing", n0, n1);
        }
        break;
    case FINDING_BAD_PACKETS:
        strbuf_add(t, "%lld packets refused, the last one for its %s", n1,
                   refused_for((enum probe_error)n0));
        break;
    case FINDING_TWO_AGENTS:
        strbuf_add(t, "another agent sends with this NIC's id");
        break;
    default:
        strbuf_add(t, "unknown finding %u", f->kind);
        break;
    }
}

static void add_what(struct strbuf *t, const struct finding *f)
{
    if (f->kind >= FINDING_LINK_DOWN && f->kind <= FINDING_NIC_GONE) {
        add_what_link(t, f);
    } else if (finding_is_of_path(f->kind)) {
        add_what_path(t, f);
    } else if (f->kind == FINDING_RDMA_PORT) {
        add_what_rdma(t, f);
    } else {
        add_what_host(t, f);
    }
}

size_t finding_what_text(const struct finding *f, char *ret_text, size_t size)
{
    struct strbuf t = strbuf_init(ret_text, size);

    add_what(&t, f);
    return t.length;
}

/* ---- who, path, and the other evidence ---------------------------------------------------------------------------- */

static void add_end(struct strbuf *t, const struct finding_names *names, struct nic_id nic,
                    struct host_id host)
{
    const bool is_nic = !nic_id_equal(nic, NIC_NONE);
    const struct place place = {.kind = is_nic ? PLACE_NIC : PLACE_HOST,
                                .number = is_nic ? nic.index : host.index};
    char text[160];

    if (!is_nic && host_id_equal(host, HOST_NONE)) {
        strbuf_add(t, "this host");
        return;
    }
    place_text(&place, names, text, sizeof(text));
    strbuf_add(t, "%s", text);
}

static void add_who(struct strbuf *t, const struct finding_names *names, const struct finding *f)
{
    add_end(t, names, f->from, f->from_host);
    if (!nic_id_equal(f->to, NIC_NONE) || !host_id_equal(f->to_host, HOST_NONE)) {
        /* from -> to is the direction of the packets, whichever end reports it */
        strbuf_add(t, " %s ", f->direction == DIRECTION_BOTH ? "<->" : "->");
        add_end(t, names, f->to, f->to_host);
    }
    if (f->path_count > 0) {
        strbuf_add(t, ", path %u of %u", f->path + 1u, f->path_count);
        if (f->source_port != 0) {
            strbuf_add(t, " (port %u", f->source_port);
            if (f->signature != 0) {
                strbuf_add(t, ", signature %016llx", (unsigned long long)f->signature);
            }
            strbuf_add(t, ")");
        }
    }
}

static void add_other(struct strbuf *t, const struct finding *f)
{
    static const char *const words[] = {[OTHER_UNKNOWN] = "unknown",
                                        [OTHER_FINE] = "fine",
                                        [OTHER_LOSSY] = "lossy",
                                        [OTHER_DEAD] = "dead"};

    if (f->direction == DIRECTION_OUT || f->direction == DIRECTION_IN) {
        strbuf_add(t, "; the other direction: %s",
                   f->other < ARRAY_COUNT(words) ? words[f->other] : "unknown");
    }
}

static void add_rules_out(struct strbuf *t, const struct finding *f)
{
    static const char *const words[] = {"own host", "own NIC", "peer host", "peer NIC", "own link",
                                        "leaf",     "spine",   "clock",     "network"};
    const char *before = "; rules out: ";

    for (unsigned bit = 0; bit < ARRAY_COUNT(words); bit++) {
        if (f->rules_out & 1u << bit) {
            strbuf_add(t, "%s%s", before, words[bit]);
            before = ", ";
        }
    }
}

size_t finding_text(const struct finding *f, const struct finding_names *names, char *ret_text,
                    size_t size)
{
    struct strbuf t = strbuf_init(ret_text, size);
    char suspect[640];

    add_who(&t, names, f);
    strbuf_add(&t, ": ");
    add_what(&t, f);
    add_since(&t, names, f);
    add_other(&t, f);
    add_rules_out(&t, f);
    strbuf_add(&t, "; suspect: ");
    if (f->suspect.kind == ELEMENT_UNKNOWN) {
        element_choice_text(&f->choice, names, suspect, sizeof(suspect));
    } else {
        element_text(&f->suspect, names, suspect, sizeof(suspect));
    }
    strbuf_add(&t, "%s", suspect);
    if (f->suspect.kind == ELEMENT_NIC && names != NULL && names->port != NULL &&
        names->port(names->context, (struct nic_id){f->suspect.a.number}) != NULL) {
        strbuf_add(&t, " (%s)", names->port(names->context, (struct nic_id){f->suspect.a.number}));
    }
    if (f->advice != ADVICE_NONE && f->phase != FINDING_CLOSED) {
        strbuf_add(&t, "; %s", finding_advice_text(f->advice));
    }
    return t.length;
}

/* ---- which fault ------------------------------------------------------------------------------ */

static uint64_t place_hash(const struct place *p)
{
    uint64_t low, high;

    memcpy(&low, p->address, 8);
    memcpy(&high, p->address + 8, 8);
    return p->kind == PLACE_NONE     ? 0
           : p->number != UINT32_MAX ? hash_u64(p->kind, p->number)
                                     : hash_u64(hash_u64(p->kind, low), high);
}

static uint64_t element_hash(const struct element *e)
{
    return hash_u64(hash_u64(hash_u64(e->kind, e->direction), place_hash(&e->a)),
                    place_hash(&e->b));
}

uint64_t finding_fault(const struct element *suspect, const struct element_choice *c)
{
    uint64_t sum = 0;
    bool nic = false;

    if (suspect->kind != ELEMENT_UNKNOWN) {
        return element_hash(suspect);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        nic = nic || c->one_of[i].kind == ELEMENT_NIC;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        sum += c->one_of[i].kind == ELEMENT_HOST && nic ? 0 : element_hash(&c->one_of[i]);
    }
    return sum;
}

bool finding_fault_same(const struct finding *x, const struct finding *y)
{
    const uint64_t fault = finding_fault(&x->suspect, &x->choice);
    const int64_t apart = x->since_fleet_ns - y->since_fleet_ns;

    return fault != 0 && fault == finding_fault(&y->suspect, &y->choice) &&
           x->since_fleet_ns != FINDING_NO_TIME && y->since_fleet_ns != FINDING_NO_TIME &&
           apart <= FINDING_FAULT_NS && apart >= -FINDING_FAULT_NS;
}
