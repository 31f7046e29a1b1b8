/* fleet_load.h: the fleet of fleet_load: its hosts, and what they report (load_report.c). For these two files only. */
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
    uint64_t stream, number, acknowledged; /* number: the last made */
    struct message_buffer waiting;         /* the one report that isn't acknowledged */
    uint64_t generation;
    int64_t report_at, beat_at, sent_at;
    bool joined, joining, table_sent;
    uint64_t look_run; /* of an audit: which look is to be answered */
    uint32_t look_number;
    uint64_t fleet_version, keys_version, settings_version;
    uint64_t members_base; /* of the pages that it is given; it keeps nothing of them */
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
    uint32_t *local, *peer, *port, *hops, *router; /* three of these a way */
    char **router_name;                            /* spines, then leaves */
    uint32_t router_count;
    uint64_t *signature;
    int32_t *p50, *p99;
    uint32_t *state;
    struct { /* numbers of switches and of NICs */
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
uint64_t draw(void); /* by world.prng */
/* Both ends probe each other: who is the k-th to the one side has this NIC as its k-th to the other. */
uint32_t peer_of(uint32_t nic, uint32_t k);
void read_parts(const char *folder);
bool is_absent(const struct host *h);
void make_report(struct host *h); /* into h->waiting */
