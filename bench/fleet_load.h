/* fleet_load.h: the fleet of fleet_load: its hosts, and their reports (load_report.c). Only these two files use it. */
#pragma once
#include <foliot.pb-c.h>
#include <systemd/sd-event.h>

#include "platform/http/client.h"
#include "platform/message/message.h"

enum { LEAF_HOSTS = 64, SPINES = 64 };
enum { PARTS = 16 };

struct host {
    struct http_client *client;
    char name[32], key_path[160], certificate_path[160], nic_path[160];
    uint32_t index, first_nic;
    uint64_t stream, number, acknowledged; /* number: of the last report made */
    struct message_buffer waiting;         /* the only report that isn't acknowledged */
    uint64_t generation;
    int64_t report_at, beat_at, sent_at;
    bool joined, joining, table_sent;
    uint64_t look_run; /* of an audit: the look to be answered */
    uint32_t look_number;
    uint64_t fleet_version, keys_version, settings_version;
    uint64_t members_base; /* of the pages that it gets; it keeps none of them */
    uint32_t members_cursor;
};

extern struct load_world {
    sd_event *loop;
    const char *address;
    char secret[64], pin[80], folder[96], authority[160];
    bool keep, events;
    uint32_t host_count, nic_count, peer_count, path_count, report_ms, beat_ms;
    struct host *hosts;
    uint32_t joined, joining, reporting;
    uint64_t acknowledged, errors, sent_bytes;
    double *samples;
    size_t sample_count;
    uint64_t prng;
    struct message_arena arena;
    struct message_buffer encoded, packed, unpacked;
    uint32_t *local, *peer, *port, *hops, *router; /* three of these for each path */
    char **router_name;                            /* first the spines, then the leaves */
    uint32_t router_count;
    uint64_t *signature;
    int32_t *p50, *p99;
    uint32_t *state;
    struct { /* numbers of switches and NICs */
        bool are;
        uint32_t leaf, spine, down, slow;
    } faults;
    struct { /* of a sheet */
        char name[32], *text, *odd;
    } parts[PARTS];
    uint32_t part_count;
} world;

_Noreturn void die(const char *what);

/* ---- load_report.c ---- */
uint64_t draw(void); /* draws from world.prng */
/* The k-th peer of this NIC. Both ends probe each other: each is the other's k-th peer. */
uint32_t peer_of(uint32_t nic, uint32_t k);
void read_parts(const char *folder);
bool is_absent(const struct host *h);
void make_report(struct host *h); /* into h->waiting */
