/* audit_fleets.c: makes fleets of hosts from one sheet and judges them: audit_fleets SHEET HOSTS RUNS SEED healthy|breaker.
 *
 * healthy: counters, delays, rates, temperatures and memory vary with heavy tails. Nine of ten hosts have counters of a day
 * before; since then some have booted and some have loaded their NICs' driver anew, so counters fell. Some have just booted, with
 * links still down. A third of them is of another batch with another BIOS. Nothing is wrong; it counts fails and warnings of each
 * run. breaker: 20 rules, one at a time, that are wrong for every machine of one kind. It counts hosts that fail, and whether the
 * rule is reported as suspect. Prints one line of JSON. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/prng.h"
#include "core/audit/judge.h"
#include "core/audit/rule.h"
#include "service/audit/sheet_json.h"
#include "service/inspect/inspect.h"

/* The spread of runs of one test, as in the files of test/audit/machines (a share). */
#ifndef TEST_SPREAD
#define TEST_SPREAD 0.003
#endif

enum { RESULTS_A_HOST = 1000, ITEMS_A_HOST = 128, TEXT_A_HOST = 64 << 10 };

struct fleet {
    struct sheet *sheets, *before; /* of now, and counters of a day before */
    uint32_t hosts;
    struct audit audit;
};

static void *claim(size_t count, size_t size)
{
    void *all = calloc(count, size);

    if (all == NULL) {
        fputs("audit_fleets: out of memory\n", stderr);
        exit(1);
    }
    return all;
}

/* Copies the model's facts, with its own memory for texts. */
static void make(struct fleet *f, const struct sheet *model, uint32_t hosts)
{
    f->hosts = hosts;
    f->sheets = claim(hosts, sizeof(*f->sheets));
    f->before = claim(hosts, sizeof(*f->before));
    for (uint32_t i = 0; i < hosts; i++) {
        struct sheet *s = &f->sheets[i];
        *s = *model;
        s->facts = claim(model->count, sizeof(*s->facts));
        s->text = claim(1 << 14, 1);
        s->text_size = 1 << 14;
        s->text_used = 0;
        f->before[i] = *s;
        f->before[i].facts = claim(model->count, sizeof(*s->facts));
        f->before[i].text = claim(1 << 14, 1);
    }
    f->audit = (struct audit){.sheets = f->sheets,
                              .sheet_count = hosts,
                              .settings = &audit_usual,
                              .capacity = hosts * RESULTS_A_HOST,
                              .item_capacity = hosts * ITEMS_A_HOST,
                              .mention_capacity = hosts * model->count,
                              .text_size = (size_t)hosts * TEXT_A_HOST};
    f->audit.results = claim(f->audit.capacity, sizeof(struct audit_result));
    f->audit.items = claim(f->audit.item_capacity, audit_item_size());
    f->audit.mentions = claim(f->audit.mention_capacity, sizeof(struct audit_mention));
    f->audit.text = claim(f->audit.text_size, 1);
}

static void set(struct sheet *s, struct fact *f, const char *text)
{
    f->value = sheet_keep(s, text);
}

static void set_number(struct sheet *s, struct fact *f, double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.0f", value);
    set(s, f, text);
}

/* Copies of the model, each with its own identity. */
static void renew(struct fleet *f, const struct sheet *model)
{
    for (uint32_t h = 0; h < f->hosts; h++) {
        struct sheet *s = &f->sheets[h];
        char text[64];
        memcpy(s->facts, model->facts, model->count * sizeof(*s->facts));
        s->text_used = 0;
        s->was = NULL;
        snprintf(text, sizeof(text), "h%u", h);
        s->host = sheet_keep(s, text);
        for (uint32_t i = 0; i < s->count; i++) {
            struct fact *fact = &s->facts[i];
            if (fact->id == FACT_OS_MACHINE_ID || fact->id == FACT_RDMA_GUID) {
                snprintf(text, sizeof(text), "%08x:%.40s", h, fact->subject);
                set(s, fact, text);
            }
        }
    }
}

/* Student's t with 3 degrees of freedom: tails as heavy as those measured on machines. They end at `most`. */
static double heavy(struct prng *p, double most)
{
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        const double z = prng_normal(p);
        sum += z * z;
    }
    return fmax(fmin(prng_normal(p) / sqrt(sum / 3), most), -most);
}

/* ---- counters: of now, and of the look of a day before ---- */

/* What happened to a host since the look of a day before. */
struct story {
    double up_s, before_s; /* since boot; since the look before, 0: there was none */
    bool young, reloaded;  /* it has just booted; its NICs' driver was loaded anew meanwhile */
    double rate;           /* of its oscillator, ppb */
};

static struct story story_of(struct prng *p)
{
    struct story s = {.young = prng_below(p, 100) == 0};

    s.up_s = s.young ? 30 + prng_uniform(p) * 500 : 1e4 + prng_exponential(p) * 3e6;
    s.before_s = prng_below(p, 10) == 0 ? 0 : 86400 * (0.9 + 0.1 * prng_uniform(p));
    s.reloaded = prng_below(p, 50) == 0;
    s.rate = fmax(fmin(6000 * prng_normal(p), 20000), -20000) + 300 * heavy(p, 20);
    return s;
}

/* A counter: so much at its beginning (a boot, a driver's load; `again`: at the latest one), then so much an hour. */
struct counter {
    double first, again, hourly;
    bool of_driver; /* it counts anew when the NICs' driver is loaded */
};

static double count_in(struct prng *p, const struct counter *c, double seconds)
{
    return floor(c->hourly * seconds / 3600 * prng_exponential(p));
}

/* Sets the counter of now, and beside it that of the look before. */
static void count(struct sheet *s, struct sheet *was, struct fact *f, struct prng *p,
                  const struct story *story, const struct counter *c)
{
    const bool booted = story->up_s < story->before_s,
               anew = booted || (story->reloaded && c->of_driver);
    const double since =
                     anew ? fmin(story->up_s, story->before_s * prng_uniform(p)) : story->before_s,
                 older = booted ? prng_exponential(p) * 3e6 : story->up_s - story->before_s,
                 then = floor(c->first) + count_in(p, c, older),
                 more = count_in(p, c, story->before_s > 0 ? since : story->up_s);

    if (story->before_s > 0) {
        struct fact *g = &was->facts[was->count++];
        *g = *f;
        set_number(was, g, then);
    }
    set_number(s, f,
               (anew                  ? floor(c->again)
                : story->before_s > 0 ? then
                                      : floor(c->first)) +
                   more);
}

/* Packets that a port discarded and bits that a link lost long ago, a link that went down: not within the last day. */
static bool vary_counter(struct sheet *s, struct sheet *was, struct fact *f, struct prng *p,
                         const struct story *story)
{
    const bool long_ago = prng_below(p, 50) == 0 && story->before_s > 0;
    struct counter c;

    switch (f->id) {
    case FACT_PCI_AER_CORRECTED:
        c = (struct counter){.first = 2 * prng_exponential(p)};
        break;
    case FACT_MEM_CE:
        c = (struct counter){.first = prng_exponential(p), .hourly = 0.1};
        break;
    case FACT_GPU_REPLAYS:
        c = (struct counter){.first = 3 * prng_exponential(p), .hourly = 0.05};
        break;
    case FACT_NET_DOWNS:
        c = (struct counter){.first = 1 + (double)prng_below(p, 3),
                             .again = 1 + (double)prng_below(p, 3),
                             .of_driver = true};
        break;
    case FACT_NET_RX_BYTES:
        c = (struct counter){
            .first = 1e6, .again = 1e6, .hourly = 1e11 * exp(heavy(p, 4)), .of_driver = true};
        break;
    case FACT_PORT_DISCARDS:
    case FACT_PORT_SYMBOLS:
        c = (struct counter){.first = long_ago ? 40 * prng_exponential(p) : 0, .of_driver = true};
        break;
    case FACT_OS_SEGMENTS:
        c = (struct counter){.first = 1e5, .hourly = 1e5 * exp(heavy(p, 4))};
        break;
    default:
        return false;
    }
    count(s, was, f, p, story, &c);
    return true;
}

/* A Poisson count. */
static double events(struct prng *p, double mean)
{
    double n = 0;

    for (double at = prng_exponential(p); at < mean && n < 1e4; n++) {
        at += prng_exponential(p);
    }
    return n;
}

/* A share of another counter of this subject: retransmitted segments, bits that error correction mended, blocks that it could not
 * mend. */
static void vary_share(struct sheet *s, struct sheet *was, struct fact *f, enum fact_id of,
                       const char *subject, struct prng *p, double share)
{
    const struct fact *all = sheet_find(s, of, subject);
    int64_t now = 0, then = 0;
    bool before = false;

    for (uint32_t i = 0; i < was->count; i++) {
        if (was->facts[i].id == of && strcmp(was->facts[i].subject, subject) == 0) {
            before = fact_number(was->facts[i].value, &then);
        }
    }
    if (all == NULL || !fact_number(all->value, &now)) {
        return;
    }
    const bool goes_on = before && now >= then;
    const double mean = (double)(goes_on ? now - then : now) * share,
                 old = events(p, (double)then * share);
    if (before) {
        struct fact *g = &was->facts[was->count++];
        *g = *f;
        set_number(was, g, old);
    }
    set_number(s, f, (goes_on ? old : 0) + (mean > 1e4 ? mean : events(p, mean)));
}

/* ---- measurements ---- */

/* "rail, hops 1, …, sent 3200000, lost 0, least 4100 out 4160 in, late 2100, bound 620" */
static void vary_edge(struct sheet *s, struct fact *f, struct prng *p)
{
    const char *lost = strstr(f->value, ", lost ");
    long long out, in, late, bound;
    char text[256];

    if (lost == NULL || sscanf(lost, ", lost %*d, least %lld out %lld in, late %lld, bound %lld",
                               &out, &in, &late, &bound) != 4) {
        return;
    }
    const double cable = 60 * heavy(p, 8);
    snprintf(text, sizeof(text), "%.*s, lost %.0f, least %.0f out %.0f in, late %.0f, bound %lld",
             (int)(lost - f->value), f->value, floor(2 * prng_exponential(p)),
             (double)out + cable + 15 * heavy(p, 8), (double)in + cable + 15 * heavy(p, 8),
             (double)late + 400 * fabs(heavy(p, 20)), bound);
    set(s, f, text);
}

/* The middle one of a test's runs; of tests whose file has no runs it is one. */
static double noise_of_runs(const struct sheet *s, const char *test, struct prng *p)
{
    const struct fact *runs = sheet_find(s, FACT_TEST_RUNS, test);
    double noise[16];
    int64_t count = 1;

    if (runs != NULL && fact_number(runs->value, &count)) {
        count = count < 1                             ? 1
                : count > (int64_t)ARRAY_COUNT(noise) ? (int64_t)ARRAY_COUNT(noise)
                                                      : count;
    }
    for (int64_t i = 0; i < count; i++) {
        double one = heavy(p, 20);
        for (int64_t k = 0; k < i; k++) { /* sorted */
            if (one < noise[k]) {
                const double other = noise[k];
                noise[k] = one;
                one = other;
            }
        }
        noise[i] = one;
    }
    return noise[count / 2];
}

/* Varies what differs between healthy machines. */
static void vary(struct sheet *s, struct sheet *was, struct prng *p, const struct story *story)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct fact *f = &s->facts[i];
        int64_t number;
        if (f->state != FACT_VALUE || vary_counter(s, was, f, p, story)) {
            continue;
        }
        const bool known = fact_number(f->value, &number);
        switch (f->id) {
        case FACT_OS_UPTIME:
            set_number(s, f, story->up_s);
            break;
        case FACT_SENSOR_C:
            set_number(s, f, 52000 + 3000 * heavy(p, 8));
            break;
        case FACT_MEM_TOTAL:
        case FACT_MEM_NODE_TOTAL:
            set_number(s, f, known ? (double)number * (1 - 2e-4 * prng_uniform(p)) : 0);
            break;
        case FACT_NET_MODULE_RX: /* half a decibel */
            set_number(s, f,
                       known && number > 0 ? (double)number * pow(10, 0.05 * heavy(p, 4)) : -1);
            break;
        case FACT_CLOCK_RATE:
            set_number(s, f, story->rate);
            break;
        case FACT_EDGE:
            vary_edge(s, f, p);
            break;
        case FACT_LANE:
            set_number(s, f, (double)number * exp(0.1 * heavy(p, 8)));
            break;
        case FACT_TEST_RATE:
            set_number(s, f, (double)number * (1 + TEST_SPREAD * noise_of_runs(s, f->subject, p)));
            break;
        case FACT_PORT_STATE: /* a host that boots has links that are not up yet */
            set(s, f, story->young && prng_below(p, 2) == 0 ? "1: DOWN" : f->value);
            break;
        case FACT_PORT_PHYSICAL:
            set(s, f, story->young && prng_below(p, 2) == 0 ? "2: Polling" : f->value);
            break;
        case FACT_PCI_WIDTH:
            set(s, f, story->young && prng_below(p, 20) == 0 ? "1" : f->value);
            break;
        default:
            break;
        }
    }
    for (uint32_t i = 0; i < s->count; i++) {
        struct fact *f = &s->facts[i];
        if (f->state != FACT_VALUE || strcmp(f->value, "-1") == 0) {
            continue;
        }
        if (f->id == FACT_OS_RETRANS) {
            vary_share(s, was, f, FACT_OS_SEGMENTS, "", p, 2e-5 * exp(heavy(p, 2)));
        } else if (f->id == FACT_NET_FEC_CORRECTED) {
            vary_share(s, was, f, FACT_NET_RX_BYTES, f->subject, p, 1.6e-8 * exp(heavy(p, 2)));
        } else if (f->id == FACT_NET_FEC_LOST) {
            vary_share(s, was, f, FACT_NET_RX_BYTES, f->subject, p,
                       5e-15 * exp(heavy(p, 2))); /* a hundredth of the limit */
        }
    }
    sheet_finish(was);
    s->was = story->before_s > 0 ? was : NULL;
}

static int healthy(struct fleet *f, const struct sheet *model, int64_t runs, struct prng *p)
{
    int64_t fails = 0, warns = 0, results = 0;

    for (int64_t run = 0; run < runs; run++) {
        uint32_t counts[AUDIT_STATUS_COUNT];
        renew(f, model);
        for (uint32_t h = 0; h < f->hosts; h++) {
            struct sheet *s = &f->sheets[h];
            for (uint32_t i = 0; i < s->count;
                 i++) { /* the other batch has other firmware on another board */
                const bool batch = h % 3 == 0;
                if (batch && s->facts[i].id == FACT_OS_PRODUCT) {
                    set(s, &s->facts[i], "Example GPU Server 4b");
                } else if (batch && s->facts[i].id == FACT_OS_BIOS) {
                    set(s, &s->facts[i], "3.0.0");
                }
            }
            const struct story story = story_of(p);
            struct sheet *was = &f->before[h];
            was->count = 0;
            was->text_used = 0;
            was->at_utc_ns = s->at_utc_ns - (int64_t)(story.before_s * 1e9);
            vary(s, was, p, &story);
        }
        if (audit_judge(&f->audit) < 0) {
            fputs("audit_fleets: no room\n", stderr);
            return 1;
        }
        audit_worst(&f->audit, "", UINT32_MAX, counts);
        fails += counts[AUDIT_FAIL];
        warns += counts[AUDIT_WARN];
        results += f->audit.count;
        for (uint32_t i = 0; i < f->audit.count; i++) {
            const struct audit_result *r = &f->audit.results[i];
            if (r->status == AUDIT_FAIL || r->status == AUDIT_WARN) {
                fprintf(stderr, "run %lld: %s %s %s: %s\n", (long long)run,
                        f->sheets[r->sheet].host, r->check->id, r->subject, r->found);
            }
        }
    }
    printf("{\"hosts\": %u, \"runs\": %lld, \"results\": %lld, \"fails\": %lld, \"warns\": %lld}\n",
           f->hosts, (long long)runs, (long long)results, (long long)fails, (long long)warns);
    return 0;
}

/* A fact that another kind of machine has differently, though it is healthy; and the check that would fail. */
static const struct {
    uint16_t fact;
    const char *value, *check;
} rules[] = {
    {FACT_CPU_GOVERNOR, "schedutil", "cfg.kern.governor"},
    {FACT_OS_NUMA_BALANCING, "1", "cfg.kern.numa_balancing"},
    {FACT_MEM_SWAPS, "1", "cfg.mem.swap"},
    {FACT_MEM_BLOCKS, "-1", "cfg.mem.fragment"},
    {FACT_MEM_UE, "1", "cfg.mem.ecc"},
    {FACT_PCI_WIDTH, "8", "cfg.pcie.width"},
    {FACT_PCI_NUMA, "-1", "cfg.pcie.numa"},
    {FACT_PCI_ACS, "12", "cfg.pcie.acs"},
    {FACT_PCI_IOMMU, "DMA-FQ", "cfg.pcie.iommu"},
    {FACT_PCI_AER_NONFATAL, "3", "cfg.pcie.aer"},
    {FACT_GPU_DIRECT, "none", "cfg.sw.gpu_direct"},
    {FACT_GPU_USERS, "2", "cfg.gpu.idle"},
    {FACT_OS_LOG_XID, "79", "cfg.gpu.xid"},
    {FACT_OS_LOG_NIC, "4", "cfg.kern.log"},
    {FACT_RDMA_VERBS, "0", "cfg.nic.chardev"},
    {FACT_TIME_SOURCE, "acpi_pm", "cfg.time.source"},
    {FACT_TIME_STEERS, "chronyd ntpd", "cfg.time.one_steer"},
    {FACT_NVME_STATE, "resetting", "node.disk"},
    {FACT_SENSOR_C, "101000", "node.thermal"},
    {FACT_NET_MTU, "1500", "be.roce.mtu"},
};

static int breaker(struct fleet *f, const struct sheet *model)
{
    int condemned = 0, said = 0;

    for (size_t k = 0; k < ARRAY_COUNT(rules); k++) {
        bool suspect = false;
        renew(f, model);
        for (uint32_t h = 0; h < f->hosts; h++) {
            struct sheet *s = &f->sheets[h];
            for (uint32_t i = 0; i < s->count; i++) {
                /* half of the fleet is of the kind for which the rule is wrong */
                if (h % 2 == 1 && s->facts[i].id == FACT_OS_PRODUCT) {
                    set(s, &s->facts[i], "Another kind");
                } else if (h % 2 == 1 && s->facts[i].id == rules[k].fact) {
                    set(s, &s->facts[i], rules[k].value);
                }
            }
        }
        if (audit_judge(&f->audit) < 0) {
            fputs("audit_fleets: no room\n", stderr);
            return 1;
        }
        for (uint32_t i = 0; i < f->audit.count; i++) {
            const struct audit_result *r = &f->audit.results[i];
            condemned += r->status == AUDIT_FAIL;
            suspect = suspect || (r->suspect && strcmp(r->check->id, rules[k].check) == 0);
        }
        said += suspect;
        if (!suspect) {
            fprintf(stderr, "not told: %s\n", rules[k].check);
        }
    }
    printf("{\"rules\": %zu, \"condemned\": %d, \"said\": %d}\n", ARRAY_COUNT(rules), condemned,
           said);
    return 0;
}

int main(int argc, char *argv[])
{
    struct sheet *model = sheet_new();
    int64_t hosts, runs, seed;
    const char *why = "";
    struct fleet f;
    struct prng p;
    json_t *json = argc == 6 ? json_load_file(argv[1], 0, NULL) : NULL;

    if (json == NULL || model == NULL || sheet_read(json, model, &why) < 0 ||
        !fact_number(argv[2], &hosts) || !fact_number(argv[3], &runs) ||
        !fact_number(argv[4], &seed) || hosts < 1 || hosts > 10000) {
        fprintf(stderr, "usage: audit_fleets SHEET HOSTS RUNS SEED healthy|breaker%s\n", why);
        return 2;
    }
    prng_init(&p, (uint64_t)seed);
    make(&f, model, (uint32_t)hosts);
    return strcmp(argv[5], "breaker") == 0 ? breaker(&f, model) : healthy(&f, model, runs, &p);
}
