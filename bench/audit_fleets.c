/* audit_fleets.c: makes fleets of hosts from one sheet and judges them: audit_fleets SHEET HOSTS RUNS SEED healthy|breaker.
 *
 * healthy: counters, temperatures and memory vary with heavy tails. Some hosts have just booted, with links still down. A
 * third of them is of another batch with another BIOS. Nothing is wrong; it counts fails and warnings of each run. breaker: 20
 * rules, one at a time, that are wrong for every machine of one kind. It counts hosts that fail, and whether the rule is
 * reported as suspect. Prints one line of JSON. */
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

enum { RESULTS_A_HOST = 1000, ITEMS_A_HOST = 128, TEXT_A_HOST = 64 << 10 };

struct fleet {
    struct sheet *sheets;
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
    for (uint32_t i = 0; i < hosts; i++) {
        struct sheet *s = &f->sheets[i];
        *s = *model;
        s->facts = claim(model->count, sizeof(*s->facts));
        s->text = claim(1 << 14, 1);
        s->text_size = 1 << 14;
        s->text_used = 0;
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

/* Student's t with 3 degrees of freedom: tails as heavy as those measured on machines. */
static double heavy(struct prng *p)
{
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        const double z = prng_normal(p);
        sum += z * z;
    }
    return prng_normal(p) / sqrt(sum / 3);
}

static double positive(double value)
{
    return value > 0 ? value : 0;
}

/* Varies what differs between healthy machines. */
static void vary(struct sheet *s, struct prng *p, bool young)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct fact *f = &s->facts[i];
        int64_t number;
        if (f->state != FACT_VALUE) {
            continue;
        }
        const bool known = fact_number(f->value, &number);
        switch (f->id) {
        case FACT_OS_UPTIME:
            set_number(s, f, young ? 30 + prng_uniform(p) * 500 : 1e4 + prng_exponential(p) * 3e6);
            break;
        case FACT_SENSOR_C:
            set_number(s, f, 52000 + 3000 * fmin(fmax(heavy(p), -8), 8));
            break;
        case FACT_MEM_TOTAL:
        case FACT_MEM_NODE_TOTAL:
            set_number(s, f, known ? (double)number * (1 - 2e-4 * prng_uniform(p)) : 0);
            break;
        case FACT_PCI_AER_CORRECTED:
            set_number(s, f, floor(prng_exponential(p) * 2));
            break;
        case FACT_NET_DOWNS:
            set_number(s, f, 1 + (double)prng_below(p, 3));
            break;
        case FACT_OS_RETRANS:
            set_number(s, f, positive(120 + 40 * fmin(heavy(p), 50)));
            break;
        case FACT_PORT_STATE: /* a host that boots has links that are not up yet */
            set(s, f, young && prng_below(p, 2) == 0 ? "1: DOWN" : f->value);
            break;
        case FACT_PORT_PHYSICAL:
            set(s, f, young && prng_below(p, 2) == 0 ? "2: Polling" : f->value);
            break;
        case FACT_PCI_WIDTH:
            set(s, f, young && prng_below(p, 20) == 0 ? "1" : f->value);
            break;
        default:
            break;
        }
    }
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
            vary(s, p, prng_below(p, 100) == 0);
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
