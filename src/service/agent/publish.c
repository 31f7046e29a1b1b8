/* publish.c: shared pages. */
#include "service/agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>
#include <unistd.h>

enum { MESH_PARTS = 10 };

static uint64_t nonce(void)
{
    uint64_t n = (uint64_t)getpid() << 20;
    if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n)) {
        n ^= (uint64_t)time_source_kernel_wall_ns();
    }
    return n;
}

/* Parses "01234567-89ab-…" into 16 bytes. */
static void parse_boot_id(const char *text, uint8_t ret[16])
{
    unsigned digits = 0;
    memset(ret, 0, 16);
    for (; *text != 0 && digits < 32; text++) {
        const char *hex = "0123456789abcdef", *at = strchr(hex, *text);
        if (at != NULL) {
            ret[digits / 2] = (uint8_t)(ret[digits / 2] << 4 | (at - hex));
            digits++;
        }
    }
}

static int open_page(struct agent *a, struct shm_page *page, const char *name, size_t size)
{
    char path[AGENT_PATH_SIZE + 32];
    snprintf(path, sizeof(path), "%s/%s", a->config->runtime_dir, name);
    const int r = shm_create(page, path, size, 0644);
    if (r < 0) {
        agent_say(LOG_ERR, "%s: expected a page that can be made, found: %s", path, strerror(-r));
    }
    return r;
}

/* Readers may have seen the page of an earlier agent. Fleet time continues from that page. */
static void resume_page(struct agent *a)
{
    char path[AGENT_PATH_SIZE + 32];
    struct shm_page old;
    struct clock_page page;
    snprintf(path, sizeof(path), "%s/" CLOCK_PAGE_NAME, a->config->runtime_dir);
    if (shm_open_read(&old, path, CLOCK_PAGE_SIZE) < 0) {
        return;
    }
    if (clock_page_read(old.memory, &page) &&
        memcmp(page.boot_id, a->page.page.boot_id, sizeof(page.boot_id)) == 0) {
        page_maker_resume(&a->page, &page.terms);
    }
    shm_close(&old);
}

int agent_pages_open(struct agent *a)
{
    uint32_t edges = 0;
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        edges += a->node_config.edge_limit != 0 ? a->node_config.edge_limit : 28;
    }
    a->mesh_capacity = 2 * edges * EDGE_PATH_MAX;
    int r = open_page(a, &a->clock_shm, CLOCK_PAGE_NAME, CLOCK_PAGE_SIZE);
    r = r < 0 ? r : open_page(a, &a->mesh_shm, MESH_PAGE_NAME, mesh_page_size(a->mesh_capacity));
    if (r < 0) {
        return r;
    }
    clock_page_init(a->clock_shm.memory, nonce());
    mesh_page_init(a->mesh_shm.memory, a->mesh_capacity, nonce());
    page_maker_init(&a->page);
    parse_boot_id(time_source_boot_id(a->source), a->page.page.boot_id);
    resume_page(a);
    a->page.page.agent = a->mesh_header.agent = (uint32_t)getpid();
    a->publish_clock = true;
    agent_publish_clock(a);
    r = shm_publish(&a->clock_shm);
    return r < 0 ? r : shm_publish(&a->mesh_shm);
}

void agent_pages_close(struct agent *a)
{
    /* The files stay, and their contents stay valid for some time. But nothing watches the clock any more, so the status is
     * holdover. */
    if (a->clock_shm.memory != NULL && a->page.page.terms.status == CLOCK_PAGE_SYNCED) {
        a->page.page.terms.status = CLOCK_PAGE_HOLDOVER;
        clock_page_write(a->clock_shm.memory, &a->page.page);
    }
    shm_close(&a->clock_shm);
    shm_close(&a->mesh_shm);
}

static void fill_nics(struct agent *a)
{
    struct clock_page *page = &a->page.page;
    page->nic_count = a->config->nic_count;
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct clock_page_nic *nic = &page->nics[i];
        memcpy(nic->name, link_monitor_get(a->links, a->nics[i].slot)->name, sizeof(nic->name));
        nic->nic = a->config->peers[a->config->nics[i].peer].nic.index;
        /* This also applies to software stamps: they are the host's time. The NIC's own clock, if it has one, is not known
         * then. */
        nic->status = CLOCK_PAGE_UNKNOWN;
        const struct clock *clock = node_member_clock(a->node, agent_member_of_nic(a, i));
        if (agent_nic_stamps(a, i) == STAMP_HARDWARE && clock != NULL) {
            struct clock_terms terms;
            struct linear_map slewing;
            clock_terms(clock, &terms);
            const struct clock_reading reading = clock_terms_read(&terms, terms.line.r);
            page_line_maps(&terms.line, &slewing, &nic->map);
            nic->status = (uint32_t)reading.status;
            nic->h_ns = reading.hard_ns;
            nic->statistical_ns = reading.statistical_ns;
        }
    }
}

void agent_publish_clock(struct agent *a)
{
    time_source_pass(a->source, &a->page.page.terms.pass_raw, &a->page.page.terms.pass_coarse,
                     &a->page.page.terms.pass_suspended, &a->page.page.marker);
    if (a->publish_clock) {
        struct clock_terms terms;
        node_clock_page(a->node, &terms);
        page_maker_update(&a->page, &terms, time_source_now(a->source));
        a->publish_clock = false;
    }
    if (++a->guard_turn % 20 == 1) { /* ten times a second */
        fill_nics(a);
    }
    clock_page_write(a->clock_shm.memory, &a->page.page);
}

/* A job's transport knows addresses and no fleet numbers. It finds its pairs by this value. */
static uint32_t addresses_of(const struct agent *a, const struct mesh_page_entry *entry)
{
    uint32_t local = 0, peer = 0;
    uint8_t own[16], other[16];
    while (local < a->config->nic_count &&
           !nic_id_equal(a->config->peers[a->config->nics[local].peer].nic, entry->local)) {
        local++;
    }
    if (local == a->config->nic_count || !agent_config_find(a->config, entry->peer, &peer)) {
        return 0;
    }
    agent_pair_addresses(a, local, &a->config->more[peer], own, other);
    return mesh_page_addresses(own, other);
}

void agent_publish_mesh(struct agent *a)
{
    struct mesh_page_memory *memory = a->mesh_shm.memory;
    uint32_t count = node_mesh_count(a->node);
    bool changed = false;
    count = count < a->mesh_capacity ? count : a->mesh_capacity;
    /* Quantiles of delays are costly. If no verdict changed, each entry is refreshed once in MESH_PARTS calls. */
    const uint32_t part = a->mesh_turn++ % MESH_PARTS;
    for (uint32_t i = 0; i < count; i++) {
        struct mesh_page_entry entry;
        if (!a->publish_mesh_all && i % MESH_PARTS != part) {
            continue;
        }
        node_mesh_page(a->node, i, &entry);
        entry.addresses = addresses_of(a, &entry);
        changed = mesh_page_write(memory, i, &entry) || changed;
    }
    a->mesh_header.count = count;
    a->mesh_header.timeline = a->page.page.terms.timeline;
    a->mesh_header.epoch = a->page.page.terms.epoch;
    a->mesh_header.generation += changed;
    a->mesh_header.written = a->now.ns;
    mesh_page_write_header(memory, &a->mesh_header);
    a->publish_mesh = a->publish_mesh_all = false;
}
