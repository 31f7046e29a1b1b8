/* routes.c: an InfiniBand subnet's routes, on the host of its subnet manager: the ports without a route to another port.
 *
 * opensm writes two files with each full sweep. opensm-subnet.lst has a line for each link, with both ends. If the log flags
 * have 0x40, opensm-lfts.dump has the forwarding table of each switch (opensm(8); its source, release 3.3.23). Each route is
 * followed from the switch of one port to the other port, table by table. Only base LIDs are followed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"
#include "service/inspect/collect.h"

#define LINKS  "opensm-subnet.lst"
#define TABLES "opensm-lfts.dump"

enum {
    SWITCHES_MAX = 4096,
    HOST_PORTS_MAX = 49151, /* unicast LIDs: InfiniBand Architecture Specification, 4.1.3 */
    SWITCH_PORTS = 255,
    TOLD_MAX = 1000, /* most facts of ports */
    APART_S = 60,    /* two files of one sweep are at most so far apart */
    PIECE_SIZE = 1 << 20,
    NOWHERE = -1
};
#define FILES_MAX ((int64_t)512 << 20)

struct end {
    char kind; /* 'S' of a switch, 'C' of a host's adapter, 'R' of a router */
    uint64_t guid;
    unsigned lid, port;
};

/* Where a switch's port leads: a switch's number, or HOST_PORT minus the number of a host's port. */
enum { HOST_PORT = -2 };

struct crossing {
    uint64_t guid;
    unsigned lid;
    int32_t leads[SWITCH_PORTS];
    unsigned table_size; /* 0: the switch has no table */
    uint8_t *table;      /* by LID: the output port; 0xff: none */
    unsigned hosts;      /* ports of hosts on it */
    unsigned missing;    /* LIDs that this switch can't reach */
    uint8_t state;       /* for the LID that is being followed */
};
enum { NEW, ALIVE, DEAD, ON_THE_WAY };

struct host_port {
    struct end end;
    int32_t on; /* the switch; NOWHERE: none */
    unsigned from, to;
};

struct subnet {
    struct end (*links)[2];
    size_t link_count, link_capacity;
    struct crossing *switches;
    size_t switch_count;
    struct host_port *ports;
    size_t port_count;
    struct crossing *filled; /* its table is being read */
};

/* ---- the files ---- */

/* "{ CA Ports:01 SystemGUID:… NodeGUID:… PortGUID:… VenID:… DevID:… Rev:… {name} LID:0101 PN:01 } ". Returns the text after
 * it. */
static const char *read_end(const char *at, struct end *ret)
{
    char kind[8];
    int used = 0;
    const char *name_end;

    if (sscanf(at,
               "{ %7[A-Za-z-] Ports:%*x SystemGUID:%*16x NodeGUID:%16" SCNx64
               " PortGUID:%*16x VenID:%*x DevID:%*x Rev:%*x {%n",
               kind, &ret->guid, &used) != 2 ||
        used == 0) {
        return NULL;
    }
    name_end = strstr(at + used, "} LID:");
    used = 0;
    if (name_end == NULL ||
        sscanf(name_end, "} LID:%4x PN:%2x }%n", &ret->lid, &ret->port, &used) != 2 || used == 0) {
        return NULL;
    }
    ret->kind = kind[0];
    return name_end + used + 1;
}

/* A name may hold any text. So a line is read only if both ends are found, and nothing that looks like a third end. */
static int note_link(struct subnet *s, const char *line)
{
    struct end ends[2];
    const char *second = read_end(line, &ends[0]),
               *rest = second != NULL ? read_end(second, &ends[1]) : NULL;

    if (rest == NULL || strncmp(rest, "PHY=", 4) != 0 || strchr("SCR", ends[0].kind) == NULL ||
        strchr("SCR", ends[1].kind) == NULL || ends[0].port >= SWITCH_PORTS) {
        return -EBADMSG;
    }
    if (s->link_count == s->link_capacity) {
        const size_t capacity = s->link_capacity == 0 ? 4096 : s->link_capacity * 2;
        void *grown = capacity <= 4 * HOST_PORTS_MAX * 2
                          ? realloc(s->links, capacity * sizeof(*s->links))
                          : NULL;
        if (grown == NULL) {
            return -E2BIG;
        }
        s->links = grown;
        s->link_capacity = capacity;
    }
    memcpy(s->links[s->link_count++], ends, sizeof(ends));
    return 0;
}

static int compare_switch(const void *a, const void *b)
{
    const uint64_t x = ((const struct crossing *)a)->guid, y = ((const struct crossing *)b)->guid;

    return x < y ? -1 : x > y;
}

static struct crossing *switch_of(const struct subnet *s, uint64_t guid)
{
    const struct crossing wanted = {.guid = guid};

    return bsearch(&wanted, s->switches, s->switch_count, sizeof(*s->switches), compare_switch);
}

/* "Unicast lids [0-4882] of switch Lid 2 guid 0x…", lines "0x0101 003 # …", "4882 lids dumped". */
static int note_table(struct subnet *s, const char *line)
{
    unsigned most, lid, port;
    uint64_t guid;
    int used = 0;

    if (sscanf(line, "Unicast lids [0-%5u] of switch Lid %*u guid 0x%16" SCNx64, &most, &guid) ==
        2) {
        s->filled = switch_of(s, guid);
        if (s->filled == NULL || s->filled->table != NULL || most > HOST_PORTS_MAX) {
            return -EBADMSG;
        }
        s->filled->table_size = most + 1;
        s->filled->table = malloc(most + 1);
        if (s->filled->table == NULL) {
            return -ENOMEM;
        }
        memset(s->filled->table, 0xff, most + 1);
        return 0;
    }
    if (sscanf(line, "%5u lids dumped%n", &lid, &used) == 1 && used > 0 && line[used] == '\0') {
        const bool whole = s->filled != NULL && lid + 1 == s->filled->table_size;
        s->filled = NULL;
        return whole ? 0 : -EBADMSG;
    }
    if (s->filled == NULL || sscanf(line, "0x%4x %3u #", &lid, &port) != 2 ||
        lid >= s->filled->table_size || port > SWITCH_PORTS) {
        return -EBADMSG;
    }
    s->filled->table[lid] = (uint8_t)port;
    return 0;
}

/* Passes each whole line of a file to `note`. */
static int each_line(struct collector *c, int fd, struct subnet *s,
                     int (*note)(struct subnet *s, const char *line))
{
    int64_t all = 0;
    size_t size = 0;
    int r = 0;

    _Static_assert((int)PIECE_SIZE <= (int)FILE_MAX, "a piece fits");
    for (ssize_t n = 1; r == 0 && n != 0;) {
        n = read(fd, c->text + size, PIECE_SIZE - size);
        if (n < 0) {
            r = errno == EINTR ? 0 : -errno;
            continue;
        }
        size += (size_t)n;
        all += n;
        char *at = c->text, *end;
        while (r == 0 && (end = memchr(at, '\n', size - (size_t)(at - c->text))) != NULL) {
            *end = '\0';
            r = memchr(at, '\0', (size_t)(end - at)) != NULL ? -EILSEQ : note(s, at);
            at = end + 1;
        }
        size -= (size_t)(at - c->text);
        memmove(c->text, at, size);
        r = r < 0 ? r : all > FILES_MAX ? -EMSGSIZE : size == PIECE_SIZE ? -EBADMSG : 0;
    }
    return r < 0 ? r : size > 0 || all == 0 ? -EBADMSG : 0;
}

/* ---- routes from the files ---- */

static size_t add_switch(struct subnet *s, const struct end *e)
{
    struct crossing *one = &s->switches[s->switch_count];

    *one = (struct crossing){.guid = e->guid, .lid = e->lid};
    for (size_t i = 0; i < ARRAY_COUNT(one->leads); i++) {
        one->leads[i] = NOWHERE;
    }
    return s->switch_count++;
}

static int compare_port(const void *a, const void *b)
{
    const struct host_port *x = a, *y = b;

    return x->end.lid < y->end.lid ? -1 : x->end.lid > y->end.lid ? 1 : 0;
}

static struct host_port *port_of(const struct subnet *s, unsigned lid)
{
    const struct host_port wanted = {.end.lid = lid};

    return bsearch(&wanted, s->ports, s->port_count, sizeof(*s->ports), compare_port);
}

/* Makes a list of switches, each once, in the order of GUIDs, and a list of hosts' ports in the order of LIDs. */
static int make_nodes(struct subnet *s)
{
    uint64_t last = 0;

    s->switches = calloc(SWITCHES_MAX, sizeof(*s->switches));
    s->ports = calloc(HOST_PORTS_MAX, sizeof(*s->ports));
    if (s->switches == NULL || s->ports == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->link_count; i++) {
        const struct end *e = &s->links[i][0];
        if (e->kind == 'S' && e->guid != last) { /* a switch's lines follow each other */
            if (s->switch_count == SWITCHES_MAX) {
                return -E2BIG;
            }
            (void)add_switch(s, e);
            last = e->guid;
        } else if (e->kind != 'S') {
            if (s->port_count == HOST_PORTS_MAX || e->lid == 0 || e->lid > HOST_PORTS_MAX) {
                return -EBADMSG;
            }
            s->ports[s->port_count++] = (struct host_port){.end = *e, .on = NOWHERE};
        }
    }
    qsort(s->switches, s->switch_count, sizeof(*s->switches), compare_switch);
    qsort(s->ports, s->port_count, sizeof(*s->ports), compare_port);
    for (size_t i = 1; i < s->switch_count || i < s->port_count; i++) {
        if ((i < s->switch_count && s->switches[i].guid == s->switches[i - 1].guid) ||
            (i < s->port_count && s->ports[i].end.lid == s->ports[i - 1].end.lid)) {
            return -EBADMSG; /* two ports share a LID, or lines are out of order */
        }
    }
    return s->switch_count > 0 && s->port_count > 0 ? 0 : -EBADMSG;
}

static int make_links(struct subnet *s)
{
    for (size_t i = 0; i < s->link_count; i++) {
        const struct end *a = &s->links[i][0], *b = &s->links[i][1];
        struct crossing *from = a->kind == 'S' ? switch_of(s, a->guid) : NULL,
                        *to = b->kind == 'S' ? switch_of(s, b->guid) : NULL;
        struct host_port *port = b->kind != 'S' ? port_of(s, b->lid) : NULL;
        if (b->kind == 'S' ? to == NULL : port == NULL) {
            return -EBADMSG; /* the file has both ends of each link */
        }
        if (from != NULL) {
            from->leads[a->port] =
                to != NULL ? (int32_t)(to - s->switches) : HOST_PORT - (int32_t)(port - s->ports);
        } else if (to != NULL) {
            port_of(s, a->lid)->on = (int32_t)(to - s->switches);
            to->hosts++;
        }
    }
    return 0;
}

/* Follows the tables from this switch to the port. All switches on the way get the result for this LID. */
static uint8_t follow(struct subnet *s, int32_t at, size_t port, int32_t *way)
{
    const unsigned lid = s->ports[port].end.lid;
    size_t count = 0;
    uint8_t state = DEAD;

    while (at >= 0) {
        struct crossing *one = &s->switches[at];
        if (one->state != NEW) { /* the switch was passed before: packets loop */
            state = one->state == ALIVE ? ALIVE : DEAD;
            break;
        }
        one->state = ON_THE_WAY;
        way[count++] = at;
        const unsigned by = lid < one->table_size ? one->table[lid] : 0xff;
        at = by < SWITCH_PORTS ? one->leads[by] : NOWHERE;
        if (at == HOST_PORT - (int32_t)port) {
            state = ALIVE;
        }
    }
    for (size_t i = 0; i < count; i++) {
        s->switches[way[i]].state = state;
    }
    return state;
}

/* Counts for each port the ports that it can't reach, and the ports that can't reach it. */
static int count_missing(struct subnet *s, uint64_t *ret_missing)
{
    int32_t *way = calloc(s->switch_count, sizeof(*way));

    if (way == NULL) {
        return -ENOMEM;
    }
    for (size_t p = 0; p < s->port_count; p++) {
        struct host_port *port = &s->ports[p];
        for (size_t i = 0; i < s->switch_count; i++) {
            s->switches[i].state = NEW;
        }
        for (size_t i = 0; i < s->switch_count; i++) {
            struct crossing *leaf = &s->switches[i];
            if (leaf->hosts > 0 && follow(s, (int32_t)i, p, way) == DEAD) {
                const bool own = port->on == (int32_t)i;
                leaf->missing++;
                port->to += leaf->hosts - own;
                port->from -= own; /* a port sends nothing to itself */
            }
        }
    }
    for (size_t p = 0; p < s->port_count; p++) {
        struct host_port *port = &s->ports[p];
        const unsigned others = (unsigned)s->port_count - 1;
        port->from = port->on == NOWHERE ? others : port->from + s->switches[port->on].missing;
        port->to = port->on == NOWHERE ? others : port->to;
        *ret_missing += port->to;
    }
    free(way);
    return 0;
}

/* ---- facts ---- */

/* Ranges of LIDs, "257-304 513": subnet managers number LIDs one after the other. */
static void put_lids(struct collector *c, const struct subnet *s, const char *path)
{
    char text[FACT_VALUE_MAX];
    size_t used = 0;

    for (size_t i = 0, next; i < s->port_count && used < sizeof(text); i = next) {
        const unsigned first = s->ports[i].end.lid;
        for (next = i + 1; next < s->port_count && s->ports[next].end.lid == first + (next - i);
             next++) {
        }
        const unsigned last = first + (unsigned)(next - i) - 1;
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, last > first ? "%s%u-%u" : "%s%u",
                             used > 0 ? " " : "", first, last);
    }
    if (used < sizeof(text)) {
        put(c, FACT_IB_LIDS, "", text, path);
    } else {
        put_error(c, FACT_IB_LIDS, "", -EMSGSIZE, path);
    }
}

/* A port's name is its device's GUID, in the form of the device's own file, and its number. */
static void put_ports(struct collector *c, const struct subnet *s, const char *path)
{
    char name[64], text[96];

    for (size_t i = 0, told = 0; i < s->port_count && told < TOLD_MAX; i++) {
        const struct host_port *p = &s->ports[i];
        const uint64_t g = p->end.guid;
        if (p->from + p->to > 0) {
            snprintf(name, sizeof(name), "%04x:%04x:%04x:%04x/%u", (unsigned)(g >> 48),
                     (unsigned)(g >> 32 & 0xffff), (unsigned)(g >> 16 & 0xffff),
                     (unsigned)(g & 0xffff), p->end.port);
            snprintf(text, sizeof(text), "missing %u from here, %u to here, of %zu", p->from, p->to,
                     s->port_count - 1);
            put(c, FACT_IB_ROUTE, name, text, path);
            told++;
        }
    }
}

/* More ports lack routes than are listed, so nothing is known of a port that isn't listed. */
static bool are_more(const struct subnet *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->port_count; i++) {
        count += s->ports[i].from + s->ports[i].to > 0;
    }
    return count > TOLD_MAX;
}

static int judge_routes(struct subnet *s, uint64_t *ret_missing)
{
    for (size_t i = 0; i < s->switch_count; i++) {
        if (s->switches[i].table == NULL) {
            return -EBADMSG; /* the files come from two sweeps */
        }
    }
    const int r = make_links(s);
    return r < 0 ? r : count_missing(s, ret_missing);
}

static int read_file(struct collector *c, const char *path, struct subnet *s,
                     int (*note)(struct subnet *s, const char *line), int64_t *ret_written_s)
{
    struct stat status;
    const int fd = sysfs_fd(c->tree, path, O_RDONLY | O_NONBLOCK);
    int r = fd < 0                     ? fd
            : fstat(fd, &status) < 0   ? -errno
            : !S_ISREG(status.st_mode) ? -EISDIR
                                       : each_line(c, fd, s, note);

    if (fd >= 0) {
        *ret_written_s = status.st_mtime;
        close(fd);
    }
    return r;
}

/* The folder that opensm writes to: from its file of settings, else the compiled-in default. */
static void find_folder(struct collector *c, char ret[SYSFS_PATH_SIZE])
{
    static const char *const files[] = {"/etc/opensm/opensm.conf", "/etc/rdma/opensm.conf"};

    snprintf(ret, SYSFS_PATH_SIZE, "/var/log");
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        char *cursor = NULL, folder[256];
        int r = collect_file(c, files[i]);
        for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
            if (sscanf(line, "dump_files_dir %255s", folder) == 1 && folder[0] == '/') {
                snprintf(ret, SYSFS_PATH_SIZE, "%s", folder);
            }
        }
    }
}

void collect_routes(struct collector *c)
{
    char folder[SYSFS_PATH_SIZE], links[SYSFS_PATH_SIZE], tables[SYSFS_PATH_SIZE], text[128];
    struct subnet s = {0};
    int64_t links_s = 0, tables_s = 0;
    uint64_t missing = 0;

    /* the names of a whole fabric don't belong into the capture of one machine */
    if (c->config->capture != NULL) {
        put_error(c, FACT_IB_ROUTES, "", -ENOENT, TABLES);
        return;
    }
    find_folder(c, folder);
    const char *path = sysfs_path(links, "%s/" LINKS, folder);
    sysfs_path(tables, "%s/" TABLES, folder);
    int r = read_file(c, path, &s, note_link, &links_s);
    r = r < 0 ? r : make_nodes(&s);
    if (r == 0) {
        path = tables;
        r = read_file(c, path, &s, note_table, &tables_s);
        r = r < 0 ? r : s.filled != NULL ? -EBADMSG : judge_routes(&s, &missing);
    }
    if (r < 0) {
        put_error(c, FACT_IB_ROUTES, "", r, path);
    } else if (tables_s + APART_S < links_s) {
        sheet_add(c->sheet, &(struct fact){.id = FACT_IB_ROUTES,
                                           .state = FACT_UNREADABLE,
                                           .subject = "",
                                           .value = "older than " LINKS,
                                           .source = path});
    } else {
        snprintf(text, sizeof(text), "%zu ports, %zu switches, %" PRIu64 " of %zu routes missing%s",
                 s.port_count, s.switch_count, missing, s.port_count * (s.port_count - 1),
                 are_more(&s) ? ", not all ports listed" : "");
        put(c, FACT_IB_ROUTES, "", text, path);
        put_lids(c, &s, path);
        put_ports(c, &s, path);
    }
    for (size_t i = 0; i < s.switch_count; i++) {
        free(s.switches[i].table);
    }
    free(s.switches);
    free(s.ports);
    free(s.links);
}
