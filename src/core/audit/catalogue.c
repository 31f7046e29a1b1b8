/* catalogue.c: all checks, in the order of the tree, and the words of their kinds. */
#include "core/audit/catalogue.h"

#include <string.h>

#include "base/bug.h"

static const struct {
    const struct check *checks;
    uint32_t count;
} tables[] = {{catalogue_software, CATALOGUE_SOFTWARE},
              {catalogue_hardware, CATALOGUE_HARDWARE},
              {catalogue_node, CATALOGUE_NODE},
              {catalogue_links, CATALOGUE_LINKS},
              {catalogue_measured, CATALOGUE_MEASURED}};
_Static_assert(CATALOGUE_COUNT == CATALOGUE_SOFTWARE + CATALOGUE_HARDWARE + CATALOGUE_NODE +
                                      CATALOGUE_LINKS + CATALOGUE_MEASURED,
               "all tables are in it");
_Static_assert(CATALOGUE_COUNT <= CHECKS_MAX, "settings have a place for each");

static const char *const groups[] = {"foliot",    "configuration", "node",
                                     "front end", "back end",      "NCCL"};
static const char *const severities[] = {"block", "drain", "ticket", "info"};
static const char *const subjects[] = {"host", "PCI device", "GPU",  "interface",
                                       "NIC",  "port",       "other"};
static const char *const costs[] = {"passive", "packets", "bandwidth", "exclusive"};

const struct check *check_at(uint32_t number)
{
    ASSERT(number < CATALOGUE_COUNT);
    size_t i = 0;
    for (; number >= tables[i].count; i++) {
        number -= tables[i].count;
    }
    return &tables[i].checks[number];
}

const struct check *check_by_id(const char *id)
{
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        if (strcmp(check_at(i)->id, id) == 0) {
            return check_at(i);
        }
    }
    return NULL;
}

uint32_t check_number(const struct check *c)
{
    uint32_t before = 0;
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++) {
        const uintptr_t at = (uintptr_t)c - (uintptr_t)tables[i].checks;
        if (at < tables[i].count * sizeof(*c)) {
            return before + (uint32_t)(at / sizeof(*c));
        }
        before += tables[i].count;
    }
    ASSERT(false); /* the check is not in the catalogue */
    return 0;
}

const char *check_group_name(unsigned group)
{
    return groups[group];
}

const char *check_part_name(const struct check *c)
{
    static const struct {
        const char *prefix, *name;
    } parts[] = {{"cfg.sw.", "software"},
                 {"cfg.fw.", "software"},
                 {"cfg.kern.", "software"},
                 {"cfg.mem.", "memory"},
                 {"cfg.pcie.", "PCIe"},
                 {"cfg.gpu.", "GPU"},
                 {"cfg.nic.", "NIC"},
                 {"cfg.time.", "time"},
                 {"node.", "node"},
                 {"fe.", "front end"},
                 {"be.link.initialized", "initialized"},
                 {"be.link.active", "active"},
                 {"be.link.", "links"},
                 {"be.roce.gid", "GID index"},
                 {"be.topo.", "topology"},
                 {"be.matrix.", "all NICs"},
                 {"be.conn.", "connectivity"},
                 {"be.lat.", "latency"},
                 {"be.bw.", "bandwidth"},
                 {"be.roce.", "RoCE"},
                 {"be.ib.", "InfiniBand"}};

    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (strncmp(c->id, parts[i].prefix, strlen(parts[i].prefix)) == 0) {
            return parts[i].name;
        }
    }
    return check_group_name(c->group);
}

const char *check_severity_name(enum check_severity severity)
{
    return severities[severity];
}

const char *check_subject_name(enum check_subject subject)
{
    return subjects[subject];
}

const char *check_cost_name(enum check_cost cost)
{
    return costs[cost];
}

#define MORE(first)                                                                                \
    {                                                                                              \
        first, first ", lab", first ", kernel", first ", lab, kernel", first ", soft-RoCE",        \
            first ", lab, soft-RoCE", first ", kernel, soft-RoCE",                                 \
            first ", lab, kernel, soft-RoCE"                                                       \
    }

const char *check_shown_on(const struct check *c)
{
    static const char *const on[2][8] = {MORE("files"), MORE("facts")};
    const unsigned made_up = (c->flags & (CHECK_MATRIX | CHECK_TESTED | CHECK_FLEET)) != 0,
                   lab = (c->flags & CHECK_SEEN_LAB) != 0,
                   kernel = (c->flags & CHECK_SEEN_KERNEL) != 0,
                   roce = (c->flags & CHECK_SEEN_ROCE) != 0;

    return on[made_up][lab + 2 * kernel + 4 * roce];
}
