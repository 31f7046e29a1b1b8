/* rules_device.c: rules of PCIe, NICs and RDMA ports. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/list.h"
#include "core/audit/mention.h"
#include "core/audit/past.h"
#include "core/audit/rule_list.h"

/* The bridge above the device. NULL: the device is part of the root, or the bridge is not known; the verdict is set then. */
static const char *bridge_above(struct judging *j)
{
    const char *above = judge_text(j, FACT_PCI_ABOVE, j->subject);

    if (above != NULL && strncmp(above, "pci", 3) == 0) {
        judge_skip(j, "it is part of the root complex: there is no link");
        return NULL;
    }
    return above;
}

void rule_pcie_width(struct judging *j)
{
    const char *above = bridge_above(j);
    int64_t now, own, other;

    if (above == NULL || !judge_number(j, FACT_PCI_WIDTH, j->subject, &now) ||
        !judge_number(j, FACT_PCI_WIDTH_MAX, j->subject, &own) ||
        !judge_number(j, FACT_PCI_WIDTH_MAX, above, &other)) {
        return;
    }
    const int64_t most = own < other ? own : other;
    if (most <= 0 || most > 64 || now < 0) { /* a virtual device's bridge has no link */
        judge_skip(j, "there is no link to be wide");
        return;
    }
    judge_end(j, now < most ? AUDIT_FAIL : AUDIT_PASS, judge_format(j, "x%lld", (long long)now),
              judge_format(j, "x%lld: the most that both ends have", (long long)most));
}

static double transfers(const char *text)
{
    return strtod(text, NULL);
}

void rule_pcie_speed(struct judging *j)
{
    const char *above = bridge_above(j);
    const char *now = above != NULL ? judge_text(j, FACT_PCI_SPEED, j->subject) : NULL;
    const char *own = now != NULL ? judge_text(j, FACT_PCI_SPEED_MAX, j->subject) : NULL;
    const char *other = own != NULL ? judge_text(j, FACT_PCI_SPEED_MAX, above) : NULL;
    const char *kind = other != NULL ? judge_text(j, FACT_PCI_KIND, j->subject) : NULL;

    if (kind == NULL) {
        return;
    }
    const char *most = transfers(own) < transfers(other) ? own : other;
    if (transfers(now) >= transfers(most)) {
        judge_end(j, AUDIT_PASS, now, most);
    } else if (strcmp(kind, "gpu") == 0) { /* a GPU lowers its link's speed when it is idle */
        judge_end(j, AUDIT_UNKNOWN, now, most);
        j->result->reason = REASON_NOT_RUN;
        j->result->note = "a GPU lowers its link while it idles: only under load it is known";
    } else {
        judge_end(j, AUDIT_FAIL, now, most);
    }
}

void rule_numa(struct judging *j)
{
    int64_t sockets, node;

    if (!judge_number(j, FACT_CPU_PACKAGES, "", &sockets) ||
        !judge_number(j, FACT_PCI_NUMA, j->subject, &node)) {
        return;
    }
    if (sockets < 2) {
        judge_skip(j, "one socket: there is no far node");
        return;
    }
    judge_end(j, node < 0 ? AUDIT_FAIL : AUDIT_PASS, judge_format(j, "%lld", (long long)node),
              "a node");
}

/* Uncorrected errors count since boot, corrected ones by the hour. */
void rule_aer(struct judging *j)
{
    int64_t fatal, nonfatal;
    struct past_count corrected;

    if (!judge_number(j, FACT_PCI_AER_FATAL, j->subject, &fatal) ||
        !judge_number(j, FACT_PCI_AER_NONFATAL, j->subject, &nonfatal) ||
        !past_count(j, FACT_PCI_AER_CORRECTED, &corrected)) {
        return;
    }
    const double hours = fmax(corrected.seconds / 3600, 1);
    judge_end(j,
              (double)(fatal + nonfatal) > j->fail        ? AUDIT_FAIL
              : (double)corrected.count > j->warn * hours ? AUDIT_WARN
                                                          : AUDIT_PASS,
              judge_format(j, "%lld fatal, %lld uncorrected since boot, %lld corrected %s",
                           (long long)fatal, (long long)nonfatal, (long long)corrected.count,
                           past_words(j, &corrected)),
              judge_format(j, "none uncorrected, at most %.15g corrected an hour", j->warn));
    judge_found_in(j, fatal > 0      ? FACT_PCI_AER_FATAL
                      : nonfatal > 0 ? FACT_PCI_AER_NONFATAL
                                     : FACT_PCI_AER_CORRECTED);
}

void rule_arp(struct judging *j)
{
    const char *shared = judge_text(j, FACT_NET_SHARED, j->subject);
    int64_t ignore, announce, filter;

    if (shared == NULL) {
        return;
    }
    if (shared[0] == '\0') {
        judge_skip(j, "no other interface is in its subnet");
        return;
    }
    if (judge_number(j, FACT_NET_ARP_IGNORE, j->subject, &ignore) &&
        judge_number(j, FACT_NET_ARP_ANNOUNCE, j->subject, &announce) &&
        judge_number(j, FACT_NET_RP_FILTER, j->subject, &filter)) {
        judge_end(j, ignore >= 1 && announce >= 2 && filter != 1 ? AUDIT_PASS : AUDIT_FAIL,
                  judge_format(j, "arp_ignore %lld, arp_announce %lld, rp_filter %lld",
                               (long long)ignore, (long long)announce, (long long)filter),
                  judge_format(j, "1, 2, and 0 or 2: it shares a subnet with %s", shared));
        judge_found_in(j, ignore < 1     ? FACT_NET_ARP_IGNORE
                          : announce < 2 ? FACT_NET_ARP_ANNOUNCE
                                         : FACT_NET_RP_FILTER);
    }
}

void rule_irqs(struct judging *j)
{
    int64_t all, far;

    if (!judge_number(j, FACT_NET_IRQS, j->subject, &all) ||
        !judge_number(j, FACT_NET_IRQS_FAR, j->subject, &far)) {
        return;
    }
    judge_end(j, far > 0 ? AUDIT_FAIL : AUDIT_PASS,
              judge_format(j, "%lld of %lld on another node", (long long)far, (long long)all),
              "all on the NIC's node");
}

/* Of the same port of other hosts of this kind: the number that are up, minus the number that are down. `*ret_known`: at least
 * two are known. */
static int peers_up(struct judging *j, bool *ret_known)
{
    const struct audit *a = j->audit;
    const char *own = audit_kind(a, (uint32_t)(j->sheet - a->sheets));
    int up = 0, down = 0;

    for (uint32_t i = 0; i < a->sheet_count; i++) {
        const char *kind = audit_kind(a, i);
        const struct fact *s = sheet_find(&a->sheets[i], FACT_PORT_STATE, j->subject);
        if (&a->sheets[i] != j->sheet && s != NULL && s->state == FACT_VALUE && kind != NULL &&
            own != NULL && strcmp(kind, own) == 0) {
            up += s->value[0] == '4';
            down += s->value[0] != '4';
        }
    }
    *ret_known = up + down >= 2;
    return up - down;
}

/* A port that is not used doesn't count: it has no address, and is down on most hosts of its kind. */
static void port_down(struct judging *j, const char *found, const char *expected)
{
    const struct fact *gids = sheet_find(j->sheet, FACT_PORT_GIDS, j->subject);
    const bool addressed =
        gids != NULL && gids->state == FACT_VALUE && strstr(gids->value, "ip") != NULL;
    bool known = false;
    const int up = addressed ? 0 : peers_up(j, &known);

    if (known && up < 0) {
        judge_skip(j, "unused port: without an address, and down on most hosts of its kind");
        return;
    }
    judge_end(j, known && up == 0 ? AUDIT_UNKNOWN : AUDIT_FAIL, found, expected);
    if (known && up == 0) {
        j->result->reason = REASON_NO_MAJORITY;
        j->result->note = "as many hosts of its kind use this port as do not";
    }
}

void rule_port_initialized(struct judging *j)
{
    const char *physical = judge_text(j, FACT_PORT_PHYSICAL, j->subject),
               *state = physical != NULL ? judge_text(j, FACT_PORT_STATE, j->subject) : NULL;

    if (state == NULL) {
        return;
    }
    if (physical[0] == '5' && state[0] >= '2') {
        judge_end(j, AUDIT_PASS, judge_format(j, "%s, %s", physical + 3, state + 3), "LinkUp");
    } else {
        port_down(j, judge_format(j, "%s, %s", physical + 3, state + 3), "LinkUp, INIT or more");
    }
}

void rule_port_active(struct judging *j)
{
    const char *physical = judge_text(j, FACT_PORT_PHYSICAL, j->subject),
               *state = physical != NULL ? judge_text(j, FACT_PORT_STATE, j->subject) : NULL;

    if (state != NULL && physical[0] != '5') {
        judge_skip(j, "there is no link: be.link.initialized");
    } else if (state != NULL && state[0] == '4') {
        judge_end(j, AUDIT_PASS, state + 3, "ACTIVE");
    } else if (state != NULL) {
        port_down(j, state + 3, "ACTIVE");
    }
}

/* It fails above so many an hour, and warns above so many in all. */
void rule_symbols(struct judging *j)
{
    struct past_count c;

    if (past_count(j, FACT_PORT_SYMBOLS, &c)) {
        const double hours = fmax(c.seconds / 3600, 1);
        judge_end(j,
                  (double)c.count > j->fail * hours ? AUDIT_FAIL
                  : (double)c.count > j->warn       ? AUDIT_WARN
                                                    : AUDIT_PASS,
                  judge_format(j, "%lld symbol errors %s", (long long)c.count, past_words(j, &c)),
                  judge_format(j, "at most %.15g an hour", j->fail));
    }
}

/* A link goes down a few times while a host boots, or when its driver is loaded: those don't count. Of a driver that was loaded
 * anew this counter may have grown all the same; the bytes that came have fallen. */
void rule_flaps(struct judging *j)
{
    enum { FLAPS_BEGINNING = 3 };
    static const enum fact_id ids[] = {FACT_NET_DOWNS, FACT_NET_RX_BYTES};
    const struct sheet *was = j->sheet->was;
    const struct fact *bytes = sheet_find(j->sheet, FACT_NET_RX_BYTES, j->subject),
                      *before = was != NULL ? sheet_find(was, FACT_NET_RX_BYTES, j->subject) : NULL;
    const bool both = bytes != NULL && bytes->state == FACT_VALUE && before != NULL &&
                      before->state == FACT_VALUE;
    int64_t counted[2];
    struct past_count c;

    if (past_counts(j, ids, both ? 2 : 1, counted, &c)) {
        const double days = fmax(c.seconds / 86400, 1),
                     none = c.since == SINCE_LOOK ? 0 : FLAPS_BEGINNING;
        judge_end(j,
                  (double)c.count > j->fail * days + none   ? AUDIT_FAIL
                  : (double)c.count > j->warn * days + none ? AUDIT_WARN
                                                            : AUDIT_PASS,
                  judge_format(j, "lost its carrier %lld times %s", (long long)c.count,
                               past_words(j, &c)),
                  judge_format(j, "at most %.15g a day%s", j->warn,
                               none > 0 ? ", and 3 while booting" : ""));
    }
}

void rule_drops(struct judging *j)
{
    struct past_count c;

    if (past_count(j, FACT_PORT_DISCARDS, &c)) {
        const double count = (double)c.count;
        judge_end(j,
                  count > j->fail   ? AUDIT_FAIL
                  : count > j->warn ? AUDIT_WARN
                                    : AUDIT_PASS,
                  judge_format(j, "%lld packets %s", (long long)c.count, past_words(j, &c)),
                  judge_format(j, "at most %.15g", count > j->fail ? j->fail : j->warn));
    }
}

/* "3 v2 ip4": index, type and family of the GID that jobs use. */
void rule_gid_index(struct judging *j)
{
    const char *gid = judge_text(j, FACT_PORT_GID, j->subject);

    if (gid != NULL && strcmp(gid, "none") == 0) {
        judge_end(j, AUDIT_FAIL, gid, "a RoCE v2 GID with an address that a router carries");
    } else if (gid != NULL) {
        judge_join(j, j->subject, gid, 0);
    }
}

void rule_gid_type(struct judging *j)
{
    const char *gid = judge_text(j, FACT_PORT_GID, j->subject);

    if (gid == NULL) {
        return;
    }
    if (strcmp(gid, "none") == 0) {
        judge_skip(j, "there is no GID: be.roce.gid_index");
        return;
    }
    judge_end(j, strstr(gid, " v2 ") != NULL ? AUDIT_PASS : AUDIT_FAIL, gid, "RoCE v2");
}

/* The entry's "v2 ip4" in "0 v1 link, 3 v2 ip4"; NULL: the entry is empty. */
static const char *gid_at(const char *table, int index)
{
    const char *entry;
    size_t size;

    while (list_next(&table, &entry, &size)) {
        int own, used = 0;
        if (sscanf(entry, "%d %n", &own, &used) == 1 && own == index && (size_t)used < size) {
            return entry + used;
        }
    }
    return NULL;
}

/* GIDs by index: "3 of process 4711, 1 of process 4712". NULL: all exist, and are of RoCE v2. If the host's own index is of v1,
 * the check be.roce.gid_type reports it. */
static const char *strange_index(struct judging *j, const char *users, const char *table)
{
    const struct fact *own = sheet_find(j->sheet, FACT_PORT_GID, j->subject);
    const char *type = own != NULL && own->state == FACT_VALUE ? strchr(own->value, ' ') : NULL;
    const char *user;
    size_t size;

    while (list_next(&users, &user, &size)) {
        int index = -1;
        const char *kind = sscanf(user, "%d", &index) == 1 ? gid_at(table, index) : NULL;
        if (kind == NULL) {
            return judge_format(j, "index %.*s: empty", (int)size, user);
        }
        if (strncmp(kind, "v1", 2) == 0 && (type == NULL || strncmp(type, " v1", 3) != 0)) {
            return judge_format(j, "index %.*s: RoCE v1", (int)size, user);
        }
    }
    return NULL;
}

/* Does an entry of "3 10.100.0.1, 5 10.100.0.2" have this address? */
static bool table_has(const char *table, const char *address, size_t size)
{
    const char *entry;
    size_t its;

    while (list_next(&table, &entry, &its)) {
        const size_t index = strcspn(entry, " ") + 1;
        if (its == index + size && memcmp(entry + index, address, size) == 0) {
            return true;
        }
    }
    return false;
}

/* GIDs by value. NULL: the table has each address. */
static const char *strange_address(struct judging *j, const char *users, const char *table)
{
    const char *user;
    size_t size;

    while (list_next(&users, &user, &size)) {
        if (!table_has(table, user, size)) {
            return judge_format(j, "no RoCE v2 GID is %.*s, which queue pairs use", (int)size,
                                user);
        }
    }
    return NULL;
}

/* The GIDs in the environment of processes, and those of Foliot's own queue pairs. */
void rule_gid_job(struct judging *j)
{
    const struct fact *net = sheet_find(j->sheet, FACT_PORT_NET, j->subject),
                      *told = judge_look(j, FACT_JOB_GID, j->subject),
                      *used = judge_look(j, FACT_LANE_ADDRESS,
                                         net != NULL && net->state == FACT_VALUE ? net->value : "");
    const bool tells = told != NULL && told->state == FACT_VALUE,
               uses = used != NULL && used->state == FACT_VALUE;
    const char *strange = NULL, *table;

    if (tells) {
        table = judge_text(j, FACT_PORT_GIDS, j->subject);
        if (table == NULL) {
            return;
        }
        strange = strange_index(j, told->value, table);
    }
    if (uses && strange == NULL) {
        table = judge_text(j, FACT_PORT_ADDRESSES, j->subject);
        if (table == NULL) {
            return;
        }
        strange = strange_address(j, used->value, table);
        if (strange != NULL) {
            judge_found_in(j, FACT_LANE_ADDRESS);
        }
    }
    if (strange != NULL) {
        judge_end(j, AUDIT_FAIL, strange, "a RoCE v2 entry of the table");
    } else if (told != NULL && !tells && told->state != FACT_ABSENT) {
        judge_unknown(j, told);
    } else if (used != NULL && !uses && used->state != FACT_ABSENT) {
        judge_unknown(j, used);
    } else if (!tells && !uses) {
        judge_skip(j,
                   "no process with this port open names an index, and no queue pair of Foliot's "
                   "lanes uses it");
    } else {
        judge_end(j, AUDIT_PASS,
                  tells ? judge_format(j, "index %s", told->value)
                        : judge_format(j, "queue pairs use %s", used->value),
                  "in the table");
    }
}

void rule_roce_mtu(struct judging *j)
{
    const char *net = judge_text(j, FACT_PORT_NET, j->subject);
    int64_t mtu;

    if (net == NULL || !judge_number(j, FACT_NET_MTU, net, &mtu)) {
        return;
    }
    if ((double)mtu < j->fail) {
        judge_end(
            j, AUDIT_FAIL, judge_format(j, "%s: %lld", net, (long long)mtu),
            judge_format(j, "at least %.15g, so that RoCE's packets have 4,096 bytes", j->fail));
    } else {
        judge_join(j, j->subject, judge_format(j, "%lld", (long long)mtu), 0);
    }
}

void rule_ecn(struct judging *j)
{
    const char *ecn = judge_text(j, FACT_PORT_ECN, j->subject);

    if (ecn != NULL && strstr(ecn, "none") != NULL) {
        judge_end(j, AUDIT_FAIL, ecn, "a priority with both");
    } else if (ecn != NULL) {
        judge_join(j, j->subject, ecn, 0);
    }
}

/* The interface of the default route. */
void rule_front_end(struct judging *j)
{
    const char *net = judge_text(j, FACT_NET_ROUTE, ""), *state;
    int64_t carrier, speed, mtu;

    if (net == NULL) {
        return;
    }
    if (strcmp(net, "none") == 0) {
        judge_skip(j, "no default route: fe.route");
        return;
    }
    state = judge_text(j, FACT_NET_STATE, net);
    if (state == NULL || !judge_number(j, FACT_NET_CARRIER, net, &carrier)) {
        return;
    }
    if (carrier != 1 || strcmp(state, "up") != 0) {
        judge_end(j, AUDIT_FAIL,
                  judge_format(j, "%s: %s, carrier %lld", net, state, (long long)carrier), "up");
    } else if (judge_number(j, FACT_NET_SPEED, net, &speed) &&
               judge_number(j, FACT_NET_MTU, net, &mtu)) {
        /* drivers without a speed report -1: virtual NICs */
        judge_join(j, "",
                   speed > 0
                       ? judge_format(j, "%lld Mbit/s, MTU %lld", (long long)speed, (long long)mtu)
                       : judge_format(j, "no speed told, MTU %lld", (long long)mtu),
                   0);
    }
}

void rule_route(struct judging *j)
{
    const char *net = judge_text(j, FACT_NET_ROUTE, ""),
               *servers = net != NULL ? judge_text(j, FACT_NET_NAMESERVER, "") : NULL;

    if (servers != NULL) {
        judge_end(j,
                  strcmp(net, "none") == 0       ? AUDIT_FAIL
                  : strcmp(servers, "none") == 0 ? AUDIT_WARN
                                                 : AUDIT_PASS,
                  judge_format(j, "default route: %s, name servers: %s", net, servers),
                  "both are set");
        judge_found_in(j, strcmp(net, "none") == 0 ? FACT_NET_ROUTE : FACT_NET_NAMESERVER);
    }
}

/* The other host with this neighbour's address ("ADDRESS INTERFACE"); UINT32_MAX: no host of the fleet has it. */
static uint32_t host_of_neighbour(const struct judging *j, const char *subject)
{
    const struct audit *a = j->audit;
    char address[64];
    uint32_t count;

    snprintf(address, sizeof(address), "%.*s", (int)strcspn(subject, " "), subject);
    const struct audit_mention *m = audit_mentions_of(a, FACT_NET_ADDRESS, address, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (&a->sheets[m[i].sheet] != j->sheet) {
            return m[i].sheet;
        }
    }
    return UINT32_MAX;
}

/* Does this interface have a neighbour in that state which is a host of the fleet other than `but`? */
static bool has_neighbour(const struct judging *j, const char *state, uint32_t but)
{
    const char *net = j->subject + strcspn(j->subject, " ");
    uint32_t count;
    const struct fact *f = sheet_first(j->sheet, FACT_NET_NEIGHBOUR, &count);

    for (uint32_t i = 0; i < count; i++) {
        if (f[i].state == FACT_VALUE && strcmp(f[i].value, state) == 0 &&
            strcmp(f[i].subject + strcspn(f[i].subject, " "), net) == 0) {
            const uint32_t host = host_of_neighbour(j, f[i].subject);
            if (host != UINT32_MAX && host != but) {
                return true;
            }
        }
    }
    return false;
}

/* Neighbours that are hosts of the fleet, by their addresses. A host that is off doesn't answer, so only two silent ones fail an
 * interface. */
void rule_neighbour(struct judging *j)
{
    const char *state = judge_text(j, FACT_NET_NEIGHBOUR, j->subject);
    const uint32_t host = state != NULL ? host_of_neighbour(j, j->subject) : UINT32_MAX;

    if (state == NULL) {
        return;
    }
    if (host == UINT32_MAX) {
        judge_skip(j, "it is no host of those that are compared");
    } else if (strcmp(state, "failed") != 0) {
        judge_end(j, AUDIT_PASS, state, "resolved");
    } else if (has_neighbour(j, "failed", host)) {
        judge_end(j, AUDIT_FAIL, state, "resolved");
    } else if (has_neighbour(j, "resolved", host)) {
        judge_end(j, AUDIT_WARN, state, "resolved");
        j->result->note = "of this host alone: it may be off";
    } else {
        judge_end(j, AUDIT_UNKNOWN, state, "resolved");
        j->result->reason = REASON_NO_MAJORITY;
        j->result->note = "no other host was tried: which of both is at fault a third one tells";
    }
}

void rule_bond(struct judging *j)
{
    const char *down = judge_text(j, FACT_BOND_DOWN, j->subject), *mode;

    if (down != NULL && strcmp(down, "none") != 0) {
        judge_end(j, AUDIT_FAIL, judge_format(j, "down: %s", down), "all members up");
        return;
    }
    mode = down != NULL ? judge_text(j, FACT_BOND_MODE, j->subject) : NULL;
    if (mode != NULL) {
        judge_join(j, j->subject, mode, 0);
    }
}

void rule_mad(struct judging *j)
{
    const char *layer;
    int64_t verbs, mad;
    char port[128];

    if (!judge_number(j, FACT_RDMA_VERBS, j->subject, &verbs) ||
        !judge_number(j, FACT_RDMA_MAD, j->subject, &mad)) {
        return;
    }
    snprintf(port, sizeof(port), "%.120s/1", j->subject);
    layer = judge_text(j, FACT_PORT_LAYER, port);
    if (layer != NULL) {
        const bool need = strcmp(layer, "InfiniBand") == 0;
        judge_end(j, verbs == 0 || (need && mad == 0) ? AUDIT_FAIL : AUDIT_PASS,
                  judge_format(j, "verbs %s, management %s", verbs != 0 ? "there" : "missing",
                               mad != 0 ? "there" : "missing"),
                  need ? "both are there" : "verbs are there");
        judge_found_in(j, verbs != 0 && need ? FACT_RDMA_MAD : FACT_RDMA_VERBS);
    }
}
