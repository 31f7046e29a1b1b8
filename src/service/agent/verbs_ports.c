/* verbs_ports.c: this host's RDMA ports. The kernel's files are read, one port in a round. An event of a device makes the next
 * look come at once. core/link/verbs_port.h decides what is reported. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/ip.h"
#include "core/audit/quiet.h"
#include "core/link/verbs_port.h"
#include "platform/rdma/verbs.h"
#include "service/agent/verbs_probe.h"

#define LIST_EACH_S 2 /* interval to list the ports and to look at each of them */

struct device {
    char name[RDMA_NAME_SIZE];
    struct rdma_device *handle;      /* NULL: not open */
    sd_event_source *source, *armed; /* for events; for completion queues */
    /* the device reported that it is lost; it is opened again only after it was missing in a list */
    bool lost;
};

struct port {
    struct rdma_port_name name;
    struct rdma_port facts;
    struct rdma_port_now now; /* from the library; mtu 0: not known */
    struct verbs_port state;
    bool there, look;              /* there: in the last list; look: a look is due */
    uint32_t local;                /* the agent's own NIC beside it; UINT32_MAX: none */
    bool has[VERBS_TROUBLE_COUNT]; /* troubles that are findings */
    struct quiet quiet;
};

struct agent_verbs {
    struct sysfs tree;
    bool own_tree;
    struct rdma_verbs *library;
    char why[160]; /* why the library can't be used; "": it can, or there is no port */
    bool library_tried;
    struct device devices[RDMA_PORT_MAX];
    uint32_t device_count;
    struct port ports[RDMA_PORT_MAX];
    uint32_t port_count;
    struct mono next_list;
};

static const struct {
    const char *word, *text, *advice;
} troubles[VERBS_TROUBLE_COUNT] = {
    [VERBS_GONE] = {"gone", "the device is gone",
                    "look for it in the kernel's log and on the PCI bus"},
    [VERBS_DOWN] = {"down", "the port is down", "look at its cable and its switch"},
    [VERBS_NO_MANAGER] = {"no-subnet-manager", "no subnet manager has been at this port",
                          "start one, or look why it doesn't reach this port"},
    [VERBS_NO_GID] = {"no-gid", "it has no GID with an address that a router carries",
                      "give its interface an address"},
    [VERBS_V1_ONLY] = {"roce-v1",
                       "it has GIDs of RoCE v1 only, which isn't routed and takes one path",
                       "switch RoCE v2 on"},
    [VERBS_MTU] = {"mtu", "its MTU is at odds",
                   "set the same MTU on all ports and switches: 4200 or more for 4096"},
    [VERBS_CABLE] = {"cable", "errors of the cable", "check cable and transceiver"},
    [VERBS_CLASS] = {"class", "packets of the class of jobs take longer than unmarked ones",
                     "look in the switches for rules for its DSCP, and for the queue that it uses"},
    [VERBS_GID_MOVED] = {"gid-moved", "its GID moved to another index within the past hour",
                         "let jobs choose it by address: a job that chooses it by index "
                         "(NCCL_IB_GID_INDEX) fails"},
};

/* ---- telling ---- */

/* Finds this host's NIC beside the port; UINT32_MAX: none. */
static uint32_t nic_of(const struct agent *a, const struct port *p)
{
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        if (p->facts.if_name[0] != 0 &&
            strcmp(link_monitor_get(a->links, a->nics[i].slot)->name, p->facts.if_name) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

static void gid_text(const uint8_t gid[16], char text[static INET6_ADDRSTRLEN])
{
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
    const bool is_v4 = memcmp(gid, v4, sizeof(v4)) == 0;

    inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? gid + 12 : gid, text, INET6_ADDRSTRLEN);
}

static void trouble_text(const struct verbs_port_message *m, char *text, size_t size)
{
    const int64_t *n = m->numbers;
    const enum verbs_trouble t = (enum verbs_trouble)n[0];

    if (m->event == VERBS_EVENT_TROUBLE_END) {
        snprintf(text, size, "it is over: %s", troubles[t].text);
    } else if (t == VERBS_MTU) {
        snprintf(text, size, "its MTU is %lld, expected %lld: %s", (long long)n[1], (long long)n[2],
                 troubles[t].advice);
    } else if (t == VERBS_CLASS && n[1] < 0) {
        snprintf(text, size, "packets of the class of jobs don't come, unmarked ones do: %s",
                 troubles[t].advice);
    } else if (t == VERBS_CLASS) {
        snprintf(text, size, "packets of the class of jobs take %.3f ms, unmarked ones %.3f: %s",
                 (double)n[1] / 1e6, (double)n[2] / 1e6, troubles[t].advice);
    } else if (t == VERBS_CABLE) {
        snprintf(text, size, "%lld %s within a minute: %s", (long long)n[1], troubles[t].text,
                 troubles[t].advice);
    } else {
        snprintf(text, size, "%s: %s", troubles[t].text, troubles[t].advice);
    }
}

static const char *news_text(const struct port *p, const struct verbs_port_message *m, char *text,
                             size_t size)
{
    const long long before = (long long)m->numbers[0], now = (long long)m->numbers[1];
    char gid[INET6_ADDRSTRLEN];

    gid_text(p->state.gid, gid);
    switch (m->event) {
    case VERBS_EVENT_GID_CHANGED:
        snprintf(text, size, "its GID is now %s, at index %lld", gid, now);
        return "gid";
    case VERBS_EVENT_MANAGER:
        snprintf(text, size, "the subnet manager's LID changed from %lld to %lld", before, now);
        return "subnet-manager";
    case VERBS_EVENT_LID:
        snprintf(text, size, "its LID changed from %lld to %lld", before, now);
        return "lid";
    case VERBS_EVENT_TROUBLE:
    case VERBS_EVENT_TROUBLE_END:
    default:
        if (m->event == VERBS_EVENT_TROUBLE && before == VERBS_GID_MOVED) {
            snprintf(text, size,
                     "GID %s moved from index %lld to %lld: a job that chooses it by index "
                     "(NCCL_IB_GID_INDEX) fails",
                     gid, (long long)m->numbers[2], now);
            return "gid-moved";
        }
        trouble_text(m, text, size);
        return m->event == VERBS_EVENT_TROUBLE ? "rdma-trouble" : "rdma-well";
    }
}

/* If the interface of a port is down, only the interface has a finding. */
static bool is_found(const struct agent *a, const struct port *p, enum verbs_trouble trouble)
{
    return verbs_port_has(&p->state, trouble) &&
           (trouble != VERBS_DOWN || p->local == UINT32_MAX ||
            link_monitor_get(a->links, a->nics[p->local].slot)->carrier);
}

static uint32_t class_of(const struct agent *a)
{
    const struct job_class class = agent_ud_class(a);

    return class.traffic_class | (uint32_t) class.sl << 8;
}

/* If several ports beside one NIC have the same trouble, this is one finding. */
static void find(struct agent *a, uint32_t local, enum verbs_trouble trouble)
{
    struct agent_verbs *v = a->verbs;
    struct node_verbs event = {
        .local = local, .trouble = trouble, .detail = trouble == VERBS_CLASS ? class_of(a) : 0};

    for (uint32_t i = 0; i < v->port_count && event.has == 0; i++) {
        const struct port *p = &v->ports[i];
        if (p->local == local && p->has[trouble]) {
            event.has = 1;
            event.found = p->state.found[trouble];
            event.expected = p->state.expected[trouble];
        }
    }
    agent_feed(a, NODE_EVENT_VERBS, &event);
}

/* Findings belong to a NIC. If the port is now beside another NIC, its findings at the old NIC end. */
static void follow_nic(struct agent *a, struct port *p)
{
    const uint32_t before = p->local;

    p->local = nic_of(a, p);
    for (int t = 0; t < VERBS_TROUBLE_COUNT && p->local != before; t++) {
        if (p->has[t]) {
            p->has[t] = false;
            find(a, before, (enum verbs_trouble)t);
        }
    }
}

static void tell(struct agent *a, struct port *p)
{
    struct verbs_port_message m;
    char text[180], line[200 + sizeof(p->name.device)];
    bool news[VERBS_TROUBLE_COUNT] = {false};

    follow_nic(a, p);
    while (verbs_port_next_message(&p->state, &m)) {
        const char *event = news_text(p, &m, text, sizeof(text));
        snprintf(line, sizeof(line), "%s/%u: %s", p->name.device, p->name.port, text);
        agent_say(m.event == VERBS_EVENT_TROUBLE_END ? LOG_NOTICE : LOG_WARNING, "%s", line);
        agent_verbs_event(a, p->local, p->name.device, event, line);
        if (m.event <= VERBS_EVENT_TROUBLE_END) {
            news[m.numbers[0]] = true;
        }
    }
    for (int t = 0; t < VERBS_TROUBLE_COUNT; t++) {
        /* a finding may change without a message, e.g. when the interface comes back */
        const bool has = is_found(a, p, (enum verbs_trouble)t);
        if (has != p->has[t] || (has && news[t])) {
            p->has[t] = has;
            find(a, p->local, (enum verbs_trouble)t);
        }
    }
}

/* ---- looking ---- */

/* The interface's counters do not count packets of queue pairs, so the port's counters are read. */
static void look_at_traffic(struct agent *a, struct port *p)
{
    const uint64_t words = p->facts.counters[RDMA_DATA];

    if (words != RDMA_COUNTER_NONE) {
        quiet_look(&p->quiet, a->now, 4 * words, p->facts.rate_mbps, agent_traffic_explained(a));
    }
}

bool agent_verbs_quiet(const struct agent *a)
{
    const struct agent_verbs *v = a->verbs;
    bool quiet = true;

    for (uint32_t i = 0; v != NULL && i < v->port_count; i++) {
        quiet = quiet && quiet_is(&v->ports[i].quiet, a->now);
    }
    return quiet;
}

static uint64_t cable_errors(const struct rdma_port *f)
{
    static const enum rdma_counter of[] = {RDMA_SYMBOL_ERRORS, RDMA_LINK_RECOVERIES, RDMA_DAMAGED};
    uint64_t sum = 0;

    for (size_t i = 0; i < ARRAY_COUNT(of); i++) {
        sum += f->counters[of[i]] != RDMA_COUNTER_NONE ? f->counters[of[i]] : 0;
    }
    return sum;
}

/* The MTU that more than half of the host's active ports of this kind have. */
static uint32_t sibling_mtu(const struct agent_verbs *v, const struct port *p)
{
    uint32_t best = 0;

    for (uint32_t i = 0; i < v->port_count; i++) {
        uint32_t alike = 0, all = 0;
        for (uint32_t k = 0; k < v->port_count; k++) {
            const struct port *o = &v->ports[k];
            if (o->there && o->now.active_mtu != 0 && o->facts.layer == p->facts.layer) {
                all++;
                alike += o->now.active_mtu == v->ports[i].now.active_mtu;
            }
        }
        if (v->ports[i].now.active_mtu != 0 && 2 * alike > all) {
            best = v->ports[i].now.active_mtu;
        }
    }
    return best;
}

static bool has_v1(const struct rdma_port *f)
{
    bool has = false;

    for (uint32_t i = 0; i < f->gid_count; i++) {
        has = has || (f->gids[i].type == RDMA_GID_ROCE_V1 && !rdma_gid_is_link_local(&f->gids[i]));
    }
    return has;
}

static struct device *device_of(struct agent_verbs *v, const char *name)
{
    for (uint32_t i = 0; i < v->device_count; i++) {
        if (strcmp(v->devices[i].name, name) == 0) {
            return &v->devices[i];
        }
    }
    return NULL;
}

/* Finds the GID that peers may know: the NIC's address in the list. */
static const struct rdma_gid *gid_of_nic(const struct agent *a, const struct port *p)
{
    uint8_t ip[16] = {0};

    if (p->local == UINT32_MAX) {
        return NULL;
    }
    if (a->nics[p->local].address4.s_addr != 0) {
        ip_of_v4(ip, &a->nics[p->local].address4);
    } else {
        memcpy(ip, &a->nics[p->local].address6, sizeof(ip));
    }
    return rdma_gid_choose(&p->facts, ip);
}

static void look(struct agent *a, struct port *p)
{
    struct agent_verbs *v = a->verbs;
    struct verbs_port_facts facts = {.at = a->now};
    const struct device *d = device_of(v, p->name.device);
    struct port_slow slow;

    p->look = false;
    facts.present = p->there && rdma_port_read(v->own_tree ? &v->tree : NULL, &p->name, &p->facts);
    if (facts.present) {
        const struct rdma_port *f = &p->facts;
        const struct rdma_gid *gid = rdma_gid_choose(f, NULL);
        if (d == NULL || d->handle == NULL ||
            rdma_device_port(d->handle, p->name.port, &p->now) < 0) {
            p->now = (struct rdma_port_now){0};
        }
        facts.infiniband = f->layer == RDMA_LAYER_INFINIBAND;
        facts.active = f->state == RDMA_PORT_ACTIVE;
        facts.linked = facts.active || f->state == RDMA_PORT_INIT || f->state == RDMA_PORT_ARMED;
        facts.gid_known = gid != NULL;
        facts.v1 = has_v1(f);
        facts.mtu = p->now.active_mtu;
        facts.interface_mtu = f->mtu;
        facts.sibling_mtu = sibling_mtu(v, p);
        facts.lid = f->lid;
        facts.sm_lid = f->sm_lid;
        facts.cable_errors = cable_errors(f);
        look_at_traffic(a, p);
        facts.class_slow = agent_ud_slow(a, p->local, &p->name, &slow);
        if (facts.class_slow) {
            facts.class_job_ns = slow.job_ns;
            facts.class_reference_ns = slow.reference_ns;
        }
        if (gid != NULL) {
            memcpy(facts.gid, gid->gid, sizeof(facts.gid));
            facts.gid_index = gid->index;
        }
    } else {
        p->now = (struct rdma_port_now){0};
    }
    verbs_port_on_facts(&p->state, &facts);
    tell(a, p);
    agent_ud_follow(a, p->local, d != NULL && facts.active ? d->handle : NULL, &p->name,
                    facts.active ? gid_of_nic(a, p) : NULL);
}

/* ---- which there are ---- */

static void close_device(struct agent *a, struct device *d)
{
    d->source = sd_event_source_unref(d->source);
    d->armed = sd_event_source_unref(d->armed);
    if (d->handle != NULL) {
        agent_ud_close_device(a, d->handle);
        (void)rdma_device_close(d->handle);
        d->handle = NULL;
    }
}

static int on_device(sd_event_source *source, int fd, uint32_t revents, void *context)
{
    struct agent *a = context;
    struct agent_verbs *v = a->verbs;
    struct rdma_event event;

    for (uint32_t i = 0; i < v->device_count; i++) {
        struct device *d = &v->devices[i];
        int r = 0;
        if (d->source != source) {
            continue;
        }
        while ((r = rdma_device_event(d->handle, &event)) == 0 &&
               event.kind != RDMA_EVENT_DEVICE_GONE) {
        }
        if (r != -EAGAIN) {
            d->lost = true;
            close_device(a, d);
        }
        for (uint32_t k = 0; k < v->port_count; k++) {
            v->ports[k].look = v->ports[k].look || strcmp(v->ports[k].name.device, d->name) == 0;
        }
        v->next_list = a->now;
        break;
    }
    return 0;
}

/* The descriptor of a lost device stays readable for ever: on_device closes it. */
static int on_armed(sd_event_source *source, int fd, uint32_t revents, void *context)
{
    struct agent *a = context;
    struct agent_verbs *v = a->verbs;
    uint64_t tags[RDMA_PORT_MAX];
    int count = 0, r = 0;

    (void)fd, (void)revents;
    for (uint32_t i = 0; i < v->device_count; i++) {
        struct device *d = &v->devices[i];
        if (d->armed != source) {
            continue;
        }
        while (count < RDMA_PORT_MAX && (r = rdma_device_armed(d->handle, &tags[count])) == 0) {
            count++;
        }
        if (r < 0 && r != -EAGAIN) {
            d->armed = sd_event_source_unref(d->armed);
        }
        break;
    }
    for (int i = 0; i < count; i++) {
        agent_ud_ready(a, tags[i]);
    }
    return 0;
}

static void open_device(struct agent *a, const char *name)
{
    struct agent_verbs *v = a->verbs;
    struct device *d = device_of(v, name);

    if (d == NULL && v->device_count < RDMA_PORT_MAX) {
        d = &v->devices[v->device_count++];
        *d = (struct device){0};
        snprintf(d->name, sizeof(d->name), "%s", name);
    }
    if (v->library == NULL || d == NULL || d->handle != NULL || d->lost) {
        return;
    }
    const int r = rdma_device_open(v->library, name, &d->handle);
    if (r < 0) {
        d->handle = NULL;
        d->lost = true; /* logged once */
        agent_say(LOG_NOTICE,
                  "RDMA device %s can't be opened: %s. Its MTU isn't known, and changes are seen "
                  "%d s late",
                  name, strerror(-r), LIST_EACH_S);
    } else if (sd_event_add_io(a->loop, &d->source, rdma_device_fd(d->handle), EPOLLIN, on_device,
                               a) < 0 ||
               sd_event_add_io(a->loop, &d->armed, rdma_device_armed_fd(d->handle), EPOLLIN,
                               on_armed, a) < 0) {
        close_device(a, d);
    }
}

static void open_library(struct agent_verbs *v)
{
    if (!v->library_tried) {
        v->library_tried = true;
        const int r = rdma_verbs_open(&v->library, getenv("FOLIOT_VERBS"), v->why, sizeof(v->why));
        if (r < 0) {
            agent_say(LOG_NOTICE,
                      "RDMA ports are watched by the kernel's files alone: %s. Install rdma-core",
                      v->why);
        } else {
            v->why[0] = 0;
        }
    }
}

static void list(struct agent *a)
{
    struct agent_verbs *v = a->verbs;
    struct rdma_port_name names[RDMA_PORT_MAX];
    const int count = rdma_port_names(v->own_tree ? &v->tree : NULL, names, RDMA_PORT_MAX);

    for (uint32_t k = 0; k < v->port_count; k++) {
        v->ports[k].there = false;
        v->ports[k].look = true;
    }
    for (int i = 0; i < count; i++) {
        struct port *p = NULL;
        for (uint32_t k = 0; k < v->port_count; k++) {
            const struct rdma_port_name *known = &v->ports[k].name;
            if (known->port == names[i].port && strcmp(known->device, names[i].device) == 0) {
                p = &v->ports[k];
            }
        }
        if (p == NULL && v->port_count < RDMA_PORT_MAX) {
            p = &v->ports[v->port_count++];
            *p = (struct port){.name = names[i], .look = true, .local = UINT32_MAX};
            verbs_port_init(&p->state, a->now);
        }
        if (p != NULL) {
            p->there = true;
            open_library(v);
            open_device(a, p->name.device);
        }
    }
    for (uint32_t k = 0; k < v->device_count;
         k++) { /* a device that was missing may be opened when it is back */
        bool there = false;
        for (uint32_t i = 0; i < v->port_count; i++) {
            there = there ||
                    (v->ports[i].there && strcmp(v->ports[i].name.device, v->devices[k].name) == 0);
        }
        if (!there) {
            close_device(a, &v->devices[k]);
            v->devices[k].lost = false;
        }
    }
}

void agent_verbs_round(struct agent *a)
{
    struct agent_verbs *v = a->verbs;

    if (!mono_before(a->now, v->next_list)) {
        v->next_list = mono_add(a->now, span_s(LIST_EACH_S));
        list(a);
    }
    for (uint32_t i = 0; i < v->port_count; i++) {
        if (v->ports[i].look) {
            look(a, &v->ports[i]);
            return; /* one port per round: reading a table of GIDs takes a millisecond */
        }
    }
}

int agent_verbs_open(struct agent *a)
{
    const char *root = getenv("FOLIOT_VERBS_ROOT");
    struct agent_verbs *v = calloc(1, sizeof(*v));
    int r = v == NULL ? -ENOMEM : 0;

    if (r == 0 && root != NULL) {
        r = sysfs_open(&v->tree, root);
        v->own_tree = r == 0;
    }
    if (r < 0) {
        free(v);
        return r;
    }
    v->next_list = a->now;
    a->verbs = v;
    return 0;
}

void agent_verbs_close(struct agent *a)
{
    struct agent_verbs *v = a->verbs;

    if (v == NULL) {
        return;
    }
    for (uint32_t i = 0; i < v->device_count; i++) {
        close_device(a, &v->devices[i]);
    }
    v->library = rdma_verbs_close(v->library);
    if (v->own_tree) {
        sysfs_close(&v->tree);
    }
    free(v);
    a->verbs = NULL;
}

/* ---- answering ---- */

static void put_troubles(struct json_writer *j, const struct verbs_port *s)
{
    json_put_array(j, "troubles");
    for (int i = 0; i < VERBS_TROUBLE_COUNT; i++) {
        if (verbs_port_has(s, (enum verbs_trouble)i)) {
            json_put_object(j, NULL);
            json_put_string(j, "trouble", troubles[i].word);
            json_put_int(j, "since_mono_ns", s->trouble_since[i].ns);
            json_put_string(j, "text", troubles[i].text);
            json_put_string(j, "advice", troubles[i].advice);
            json_put_end(j);
        }
    }
    json_put_end(j);
}

static void put_port(struct agent *a, struct json_writer *j, const struct port *p)
{
    const struct rdma_port *f = &p->facts;
    const struct verbs_port_facts *now = &p->state.facts;
    const uint32_t nic = nic_of(a, p);
    const bool here = now->present; /* false: the numbers are old */
    char gid[INET6_ADDRSTRLEN];

    gid_text(p->state.gid, gid);
    json_put_object(j, NULL);
    json_put_string(j, "device", p->name.device);
    json_put_uint(j, "port", p->name.port);
    json_put_string(j, "interface", f->if_name[0] != 0 ? f->if_name : NULL);
    json_put_int_if(j, "nic", nic != UINT32_MAX,
                    nic != UINT32_MAX ? a->config->peers[a->config->nics[nic].peer].nic.index : 0);
    json_put_bool(j, "present", here);
    json_put_string(j, "link",
                    f->layer == RDMA_LAYER_ETHERNET     ? "roce"
                    : f->layer == RDMA_LAYER_INFINIBAND ? "infiniband"
                                                        : NULL);
    json_put_string(j, "state", here ? rdma_port_state_name(f->state) : "gone");
    json_put_int(j, "since_mono_ns", p->state.since.ns);
    json_put_int_if(j, "rate_bps", here && f->rate_mbps != 0, (int64_t)f->rate_mbps * 1000000);
    json_put_int_if(j, "mtu", p->now.active_mtu != 0, p->now.active_mtu);
    json_put_string(j, "gid", here && now->gid_known ? gid : NULL);
    json_put_int_if(j, "gid_index", here && now->gid_known, now->gid_index);
    json_put_int_if(j, "lid", here && f->lid != 0, f->lid);
    json_put_int_if(j, "subnet_manager_lid", here && f->sm_lid != 0, f->sm_lid);
    json_put_uint(j, "downs", p->state.downs);
    json_put_uint(j, "gid_moves", p->state.gid_moves);
    json_put_uint(j, "cable_errors", p->state.cable_errors);
    put_troubles(j, &p->state);
    json_put_object(j, "counters");
    for (int i = 0; i < RDMA_COUNTER_COUNT; i++) {
        if (here && f->counters[i] != RDMA_COUNTER_NONE) {
            json_put_uint(j, rdma_counter_name((enum rdma_counter)i), f->counters[i]);
        }
    }
    json_put_end(j);
    json_put_end(j);
}

void agent_verbs_answer(struct agent *a, struct json_writer *j)
{
    const struct agent_verbs *v = a->verbs;

    json_put_array(j, "verbs_ports");
    for (uint32_t i = 0; v != NULL && i < v->port_count; i++) {
        put_port(a, j, &v->ports[i]);
    }
    json_put_end(j);
    json_put_string(j, "verbs_trouble", v != NULL && v->why[0] != 0 ? v->why : NULL);
}
