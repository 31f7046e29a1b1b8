/* load_report.c: the invented reports of a host of fleet_load: delays around a base, paths through leaves and spines,
 * requested faults, and the sheet of an audit. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"
#include "core/fleet/delay_code.h"
#include "fleet_load.h"
#include "now.h"

enum { PART_SIZE = 256 << 10, ODD = 50 };

uint64_t draw(void)
{
    return world.prng = hash_u64(world.prng, 1);
}

/* ---- paths ---- */

uint32_t peer_of(uint32_t nic, uint32_t k)
{
    const uint32_t fleet = world.host_count * world.nic_count,
                   away = 1 + (uint32_t)(hash_u64(9, k / 2) % (fleet - 1));
    return (nic + (k % 2 == 0 ? away : fleet - away)) % fleet;
}

static uint32_t leaf_of(uint32_t nic)
{
    return SPINES + nic / world.nic_count / LEAF_HOSTS * world.nic_count + nic % world.nic_count;
}

static uint32_t spine_of(uint32_t from, uint32_t to, uint32_t port)
{
    return (uint32_t)(hash_u64((uint64_t)from << 32 | to, port) % SPINES);
}

/* Describes the n paths that fill_columns made. */
static void tell_ways(Foliot__V1__PathTable *t, uint32_t n)
{
    uint32_t places = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = leaf_of(world.local[i]), to = leaf_of(world.peer[i]);
        world.hops[i] = from == to ? 1 : 3;
        world.router[places++] = 1 + from;
        if (from != to) {
            world.router[places++] = 1 + spine_of(world.local[i], world.peer[i], world.port[i]);
            world.router[places++] = 1 + to;
        }
    }
    t->n_out_local = t->n_out_peer = t->n_out_port = t->n_out_hops = n;
    t->out_local = world.local;
    t->out_peer = world.peer;
    t->out_port = world.port;
    t->out_hops = world.hops;
    t->n_out_router = places;
    t->out_router = world.router;
    t->n_router = world.router_count;
    t->router = world.router_name;
}

/* The state of the path from a NIC's k-th peer to it. */
static enum _Foliot__V1__PathState state_of(uint32_t to, uint32_t from, uint32_t port)
{
    const uint32_t leaf = SPINES + world.faults.leaf;
    if (world.faults.are && to == world.faults.down) {
        return FOLIOT__V1__PATH_STATE__PATH_STATE_UNKNOWN;
    }
    const bool crosses = leaf_of(from) != leaf_of(to) &&
                         (leaf_of(from) == leaf || leaf_of(to) == leaf) &&
                         spine_of(from, to, port) == world.faults.spine;
    return world.faults.are && (from == world.faults.down || crosses)
               ? FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD
               : FOLIOT__V1__PATH_STATE__PATH_STATE_ALIVE;
}

static uint32_t fill_columns(const struct host *h)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < world.nic_count; i++) {
        for (uint32_t k = 0; k < world.peer_count; k++) {
            const uint64_t pair = hash_u64(h->first_nic + i, k);
            for (uint32_t p = 0; p < world.path_count; p++, n++) {
                const uint32_t nic = h->first_nic + i;
                const bool slow = world.faults.are && k == 0 && nic == world.faults.slow;
                const int64_t base = (2000 + (int64_t)(hash_u64(pair, p) % 6000)) * (slow ? 80 : 1);
                world.local[n] = nic;
                world.peer[n] = peer_of(nic, k);
                world.port[n] = 7640 + p;
                world.signature[n] = hash_u64(pair, 77 + p);
                world.state[n] = state_of(nic, world.peer[n], world.port[n]);
                const bool alive = world.state[n] == FOLIOT__V1__PATH_STATE__PATH_STATE_ALIVE;
                world.p50[n] = alive ? delay_encode(base + (int64_t)(draw() % 60)) : 0;
                world.p99[n] = alive ? delay_encode(base + 300 + (int64_t)(draw() % 900)) : 0;
            }
        }
    }
    return n;
}

/* ---- a sheet ---- */

static char *read_part(const char *folder, const char *name)
{
    char path[256];
    char *text = calloc(1, PART_SIZE);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (text == NULL || file == NULL) {
        free(text);
        text = NULL;
    } else if (fread(text, 1, PART_SIZE - 1, file) == PART_SIZE - 1) {
        die("a part is too large");
    }
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

void read_parts(const char *folder)
{
    static const char *const names[] = {"os",   "cpu",     "memory", "pcie", "gpu", "nic",
                                        "rdma", "storage", "time",   "job",  "own", "now"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char odd[40];
        snprintf(odd, sizeof(odd), "%s.odd", names[i]);
        char *text = read_part(folder, names[i]);
        if (text != NULL) {
            snprintf(world.parts[world.part_count].name, sizeof(world.parts[0].name), "%s",
                     names[i]);
            world.parts[world.part_count].odd = read_part(folder, odd);
            world.parts[world.part_count++].text = text;
        }
    }
}

bool is_absent(const struct host *h)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/absent.%s", getenv("FOLIOT_LOAD_SHEET"), h->name);
    return access(path, F_OK) == 0;
}

/* The text with its host's name in place of @HOST@; at most as large as a part. */
static size_t name_host(const char *text, const char *host, char *to)
{
    char *end = to;
    for (const char *mark; (mark = strstr(text, "@HOST@")) != NULL; text = mark + 6) {
        end = mempcpy(end, text, (size_t)(mark - text));
        end = stpcpy(end, host);
    }
    return (size_t)(stpcpy(end, text) - to);
}

/* Counters and measurements of each host are its own: of each number in a value the second half of the digits is drawn. */
static void vary_values(char *text, uint64_t seed)
{
    unsigned field = 0;
    for (char *at = text; *at != 0;) {
        const size_t digits = strspn(at, "0123456789");
        field = *at == '\n' ? 0 : field + (*at == '\t');
        for (size_t i = (digits + 1) / 2; field == 3 && i < digits; i++) {
            seed = hash_u64(seed, i);
            at[i] = (char)('0' + seed % 10);
        }
        at += digits > 0 ? digits : 1;
    }
}

/* Valid until the next call. */
static Foliot__V1__Sheet *make_sheet(const struct host *h)
{
    static Foliot__V1__Sheet sheet;
    static Foliot__V1__SheetPart parts[PARTS], *pointers[PARTS];
    static char texts[PARTS][2 * PART_SIZE];
    foliot__v1__sheet__init(&sheet);
    for (uint32_t i = 0; i < world.part_count; i++) {
        const bool odd = h->index % ODD == ODD - 1 && world.parts[i].odd != NULL;
        char file[64];
        snprintf(file, sizeof(file), "%s.%s", world.parts[i].name, h->name);
        char *own = read_part(getenv("FOLIOT_LOAD_SHEET"), file);
        const size_t size = name_host(own != NULL ? own
                                      : odd       ? world.parts[i].odd
                                                  : world.parts[i].text,
                                      h->name, texts[i]);
        free(own);
        if (strcmp(world.parts[i].name, "now") == 0) {
            vary_values(texts[i], hash_u64(h->look_run, h->index));
        }
        foliot__v1__sheet_part__init(&parts[i]);
        parts[i].name = world.parts[i].name;
        parts[i].body = (ProtobufCBinaryData){size, (uint8_t *)texts[i]};
        pointers[i] = &parts[i];
    }
    sheet.audit = h->look_run;
    sheet.number = h->look_number;
    sheet.parts = pointers;
    sheet.n_parts = world.part_count;
    return &sheet;
}

/* ---- a report ---- */

void make_report(struct host *h)
{
    Foliot__V1__Report m = FOLIOT__V1__REPORT__INIT;
    Foliot__V1__Clock clock = FOLIOT__V1__CLOCK__INIT;
    Foliot__V1__Cost cost = FOLIOT__V1__COST__INIT;
    Foliot__V1__PathTable table = FOLIOT__V1__PATH_TABLE__INIT;
    Foliot__V1__PathRollup paths = FOLIOT__V1__PATH_ROLLUP__INIT;
    Foliot__V1__Port ports[16], *pointers[16];
    const uint32_t n = fill_columns(h);
    m.boot = 1;
    m.at_mono = now_ns(CLOCK_MONOTONIC);
    m.covers_ms = world.report_ms;
    clock.status = FOLIOT__V1__CLOCK_STATUS__CLOCK_STATUS_SYNCED;
    clock.hard_ns = 4000 + (int64_t)(draw() % 500);
    clock.statistical_ns = 100 + (int64_t)(draw() % 50);
    clock.edges_live = clock.edges_chosen = world.peer_count;
    cost.cpu_ppm = 20000 + (uint32_t)(draw() % 1000);
    cost.memory_bytes = 24 << 20;
    cost.packets_sent = cost.packets_received = (uint64_t)m.at_mono / 1000000;
    for (uint32_t i = 0; i < world.nic_count; i++) {
        foliot__v1__port__init(&ports[i]);
        ports[i].nic = h->first_nic + i;
        ports[i].state = world.faults.are && ports[i].nic == world.faults.down
                             ? FOLIOT__V1__PORT_STATE__PORT_DOWN
                             : FOLIOT__V1__PORT_STATE__PORT_UP;
        ports[i].since_mono = 1;
        ports[i].carrier_downs = 1;
        ports[i].speed_mbps = 400000;
        ports[i].rx_bytes = ports[i].tx_bytes = (uint64_t)m.at_mono * 40 + draw() % 1000000;
        ports[i].stamps = 2;
        pointers[i] = &ports[i];
    }
    h->generation = hash_u64(h->first_nic, n) | 1;
    Foliot__V1__Event event = FOLIOT__V1__EVENT__INIT, *event_pointer = &event;
    char number[24];
    if (world.events) {
        snprintf(number, sizeof(number), "%" PRIu64, h->number + 1);
        event.type = FOLIOT__V1__EVENT_TYPE__EVENT_LINK;
        event.at_mono = m.at_mono;
        event.nic = h->first_nic;
        event.word = (char *)(uintptr_t) "up";
        event.text = number;
        m.events = &event_pointer;
        m.n_events = 1;
    }
    paths.generation = table.generation = h->generation;
    paths.n_owd_p50 = paths.n_owd_p99 = n;
    paths.owd_p50 = world.p50;
    paths.owd_p99 = world.p99;
    paths.bound_ns = 150;
    paths.n_state = world.faults.are ? n : 0;
    paths.state = world.state;
    table.n_local = table.n_peer = table.n_port = table.n_signature = n;
    table.local = world.local;
    table.peer = world.peer;
    table.port = world.port;
    table.signature = world.signature;
    tell_ways(&table, n);
    m.clock = &clock;
    m.cost = &cost;
    m.ports = pointers;
    m.n_ports = world.nic_count;
    m.paths = &paths;
    m.table = h->table_sent ? NULL : &table;
    m.sheet = h->look_run != 0 ? make_sheet(h) : NULL;
    h->look_run = 0;
    if (message_encode(&m.base, &world.encoded) < 0 ||
        message_pack(world.encoded.bytes, world.encoded.size, &world.packed) < 0 ||
        message_buffer_reserve(&h->waiting, world.packed.size) < 0) {
        die("out of memory");
    }
    memcpy(h->waiting.bytes, world.packed.bytes, world.packed.size);
    h->waiting.size = world.packed.size;
    h->number++;
    h->table_sent = true;
}
