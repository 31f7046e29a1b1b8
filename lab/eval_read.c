/* eval_read.c: makes readings from clock pages and oscillators. */
#include "lab/eval_read.h"

#include "lab/agents.h"
#include "lab/machine.h"
#include "wire/clock_page.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define LOOK_INTERVAL_NS 20000000 /* pause between looks for pages of new agents */

/* 0: the lab does not exist. */
static unsigned long inode_of(const struct lab *lab)
{
    char file[LAB_TEXT_SIZE];
    struct stat st;
    lab_oscillators_file(lab, file);
    return stat(file, &st) < 0 ? 0 : (unsigned long)st.st_ino;
}

int eval_reader_open(struct eval_reader *r, const struct lab *lab)
{
    char file[LAB_TEXT_SIZE], spec[LAB_TEXT_SIZE + 32];
    *r = (struct eval_reader){.lab = lab};
    lab_oscillators_file(lab, file);
    snprintf(spec, sizeof(spec), "%s:host0", file);
    int rc = oscillator_open(spec, &r->oscillator);
    if (rc < 0) {
        return rc;
    }
    r->inode = inode_of(lab);
    int hosts = lab->scenario.fabric.hosts;
    for (int h = 0; h < hosts; h++) {
        char host[OSCILLATOR_NAME_SIZE];
        snprintf(host, sizeof(host), "host%d", h);
        r->hosts[h].oscillator = oscillator_find(&r->oscillator, host);
        if (r->hosts[h].oscillator == NULL) {
            oscillator_close(&r->oscillator);
            return -ENOENT;
        }
    }
    r->reads_nics = lab->scenario.clocks.stamps == STAMPS_NIC;
    r->clock_count = hosts + (r->reads_nics ? hosts * lab->scenario.fabric.nics_per_host : 0);
    if (r->clock_count > EVAL_CLOCK_MAX) {
        r->reads_nics = false;
        r->clock_count = hosts;
    }
    return 0;
}

void eval_reader_close(struct eval_reader *r)
{
    for (int h = 0; h < LAB_HOST_MAX; h++) {
        if (r->hosts[h].is_open) {
            shm_close(&r->hosts[h].page);
        }
    }
    oscillator_close(&r->oscillator);
}

void eval_clock_name(const struct eval_reader *r, int clock, char ret_name[32])
{
    int hosts = r->lab->scenario.fabric.hosts, nics = r->lab->scenario.fabric.nics_per_host;
    if (clock < hosts) {
        snprintf(ret_name, 32, "host%d", clock);
    } else {
        snprintf(ret_name, 32, "host%d.%d", (clock - hosts) / nics, (clock - hosts) % nics);
    }
}

/* A new agent makes a new file, so the file is opened again. */
static void look(struct eval_reader *r, int host)
{
    char path[2 * LAB_TEXT_SIZE], folder[LAB_TEXT_SIZE];
    struct eval_host *h = &r->hosts[host];
    struct stat st;
    lab_host_folder(r->lab, host, folder);
    snprintf(path, sizeof(path), "%s/" CLOCK_PAGE_NAME, folder);
    if (stat(path, &st) < 0) {
        if (h->is_open) {
            shm_close(&h->page);
        }
        h->is_open = false;
        return;
    }
    if (h->is_open && h->inode == (unsigned long)st.st_ino) {
        return;
    }
    if (h->is_open) {
        shm_close(&h->page);
    }
    h->is_open = shm_open_read(&h->page, path, CLOCK_PAGE_SIZE) == 0;
    h->inode = (unsigned long)st.st_ino;
}

static struct eval_reading from_page(const struct clock_page_reading *p,
                                     const struct clock_page_terms *terms)
{
    static const enum eval_status status[] = {
        [CLOCK_PAGE_UNKNOWN] = EVAL_UNKNOWN,
        [CLOCK_PAGE_SYNCED] = EVAL_SYNCED,
        [CLOCK_PAGE_HOLDOVER] = EVAL_HOLDOVER,
        [CLOCK_PAGE_DISRUPTED] = EVAL_DISRUPTED,
    };
    return (struct eval_reading){
        .status = status[p->status],
        .timeline = terms->timeline,
        .epoch = terms->epoch,
        .time_ns = p->estimate_ns,
        .hard_ns = p->hard_ns,
        .statistical_ns = p->statistical_ns,
    };
}

static void read_host(const struct eval_reader *r, int host, int64_t raw_ns,
                      struct eval_reading *ret)
{
    const struct eval_host *h = &r->hosts[host];
    struct clock_page_terms terms;
    *ret = (struct eval_reading){.status = EVAL_ABSENT};
    if (h->is_open && clock_page_read_terms(h->page.memory, &terms)) {
        int64_t c = oscillator_mono(h->oscillator, raw_ns).ns;
        struct clock_page_reading p = clock_page_at(&terms, c, c);
        *ret = from_page(&p, &terms);
    }
}

static void read_nics(const struct eval_reader *r, int host, int64_t raw_ns,
                      struct eval_reading *ret)
{
    const struct eval_host *h = &r->hosts[host];
    int nics = r->lab->scenario.fabric.nics_per_host;
    struct clock_page page;
    bool is_read = h->is_open && clock_page_read(h->page.memory, &page);
    int64_t now = oscillator_mono(h->oscillator, raw_ns).ns;
    for (int n = 0; n < nics; n++) {
        ret[n] = (struct eval_reading){.status = EVAL_ABSENT};
        if (is_read && (uint32_t)n < page.nic_count) {
            int64_t c = oscillator_nic(h->oscillator, (uint32_t)n, raw_ns).ns;
            struct clock_page_reading p = clock_page_nic_at(&page, (uint32_t)n, c, now);
            ret[n] = from_page(&p, &page.terms);
        }
    }
}

int64_t eval_read(struct eval_reader *r, struct eval_reading *ret_readings)
{
    int hosts = r->lab->scenario.fabric.hosts, nics = r->lab->scenario.fabric.nics_per_host;
    int64_t raw_ns = machine_clock_ns(CLOCK_MONOTONIC_RAW);
    if (r->looked_ns == 0 || raw_ns - r->looked_ns >= LOOK_INTERVAL_NS) {
        for (int h = 0; h < hosts; h++) {
            look(r, h);
        }
        r->is_gone = inode_of(r->lab) != r->inode;
        r->looked_ns = raw_ns;
        raw_ns = machine_clock_ns(CLOCK_MONOTONIC_RAW);
    }
    for (int h = 0; h < hosts; h++) {
        read_host(r, h, raw_ns, &ret_readings[h]);
    }
    for (int h = 0; r->reads_nics && h < hosts; h++) {
        read_nics(r, h, raw_ns, &ret_readings[hosts + h * nics]);
    }
    return raw_ns;
}

int64_t eval_clock_own(const struct eval_reader *r, int clock, int64_t raw_ns)
{
    int hosts = r->lab->scenario.fabric.hosts, nics = r->lab->scenario.fabric.nics_per_host;
    if (clock < hosts) {
        return oscillator_mono(r->hosts[clock].oscillator, raw_ns).ns - raw_ns;
    }
    const struct eval_host *h = &r->hosts[(clock - hosts) / nics];
    return oscillator_nic(h->oscillator, (uint32_t)((clock - hosts) % nics), raw_ns).ns - raw_ns;
}
