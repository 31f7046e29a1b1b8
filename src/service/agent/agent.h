/* agent.h: one host's agent: core/node with its senses and hands.
 *
 * Every 10 ms a round: take what the sockets hold (packets, transmit stamps, routers' answers), tie
 * the kernel's clocks together, tell the node, let it tick, send what it decides, write the shared
 * pages. Kernel stamps make it harmless that packets wait for up to 10 ms. All else (links,
 * questions on the Unix socket, signals) are events of the same loop; there are no threads.
 *
 * The node is told everything through agent_feed, which records it: what the recorder holds is all
 * that the node ever knew.
 *
 * Files: agent.c life, reload; round.c packets and the round; nics.c sockets and links; clocks.c
 * guard, anchors, facts; publish.c pages; state.c warm start; journal.c findings to the journal; jobs.c,
 * jobs_change.c what jobs on this host say; measure.c measurements on demand; audit.c facts; matrix.c rounds; perf.c tests;
 * plan.c for both; server.c and answer_*.c the JSON; uplink.c, uplink_members.c, report.c, spool.c the controller; members.c,
 * members_file.c the fleet's list; settings.c what it configures; join.c the way in. */
#pragma once
#include "core/audit/plan.h"
#include "core/node/node.h"
#include "core/page/page.h"
#include "platform/json/json.h"
#include "platform/netlink/link_monitor.h"
#include "platform/netlink/lldp_listener.h"
#include "platform/shm/shm.h"
#include "platform/timestamp/endpoint.h"
#include "platform/timestamp/hop.h"
#include "platform/timestamp/phc.h"
#include "platform/timestamp/source.h"
#include "platform/timestamp/stamp_watch.h"
#include "service/agent/config.h"
#include "service/agent/jobs.h"
#include "service/agent/uplink.h"
#include "service/record/codec.h"
#include "service/record/recorder.h"
#include "wire/mesh_page.h"
#include "wire/switch_page.h"

#include <systemd/sd-event.h>

#define AGENT_ROUND_NS        (10 * NS_PER_MS)
#define AGENT_RECEIVE_PENDING 256
#define AGENT_STAMP_PENDING   512
#define AGENT_HISTORY         120 /* seconds of the bound, for the plot */
#define AGENT_EVENT_KEPT      64
#define AGENT_CLOSED_KEPT     64

struct agent_nic {
    struct endpoint *endpoint; /* NULL: not open; why is in `trouble` */
    char trouble[160];         /* said once; empty: none */
    bool hardware;
    struct stamp_watch watch; /* of hardware stamps */
    int phc_index;            /* the NIC's clock, -1: none */
    struct phc *phc;          /* open for the first NIC of each clock only */
    uint8_t domain;           /* of the node: 0 the host's raw clock */
    struct in_addr address4;  /* that the sockets are bound to */
    struct in6_addr address6;
    int64_t retry_ns;       /* mono: when to try to open again */
    unsigned slot;          /* of the link monitor */
    struct mono down_since; /* of the present carrier state */
    struct link_facts said; /* last facts given to the node */
    int64_t facts_ns;       /* when */
    bool facts_known, started, ports_said, steering_said;
    uint16_t hold_us;      /* what this round sends leaves so long after it */
    struct lldp neighbour; /* the switch, as it says */
    int64_t neighbour_until_ns;
    uint32_t lldp_interface; /* that is listened at; 0: none */
};

struct agent_event { /* of a link, for `foliot links` */
    uint32_t nic;    /* UINT32_MAX: of an RDMA port that is no NIC of ours */
    char port[64];   /* the device of such a one */
    const char *event;
    struct mono at;
    int64_t fleet_ns, utc_ns;
    uint32_t flaps_hour, down_count;
    char text[160];
};

struct agent_receive { /* until the batch's stamps can be placed */
    struct node_receive event;
    int64_t software_ns, hardware_ns;
    uint8_t from[16], dscp;
};
struct agent_transmit {
    uint32_t local;
    struct endpoint_stamp stamp;
};

struct agent_moment { /* a second of the clock's past */
    struct mono at;
    double hard_ns, statistical_ns;
    uint32_t status;
};

struct agent_discovery { /* a probe with a small TTL that a router may answer */
    uint64_t token;
    struct mono at;
    struct nic_id peer;
    uint32_t local, seq;
    uint16_t source_port;
    uint8_t ttl;
};
#define AGENT_DISCOVERY_KEPT 256

struct agent_settings {                /* the fleet's configuration as this host follows it */
    uint64_t version, config_version;  /* last received */
    uint32_t report_ms, beat_ms, mode; /* mode: enum switch_mode */
    char refused[120];                 /* what of it isn't in force; empty: all is */
};

/* What isn't watched, in words. */
#define AGENT_LINKS_UNREAD "link state can't be read"
#define AGENT_HOPS_REFUSED "routers can't be heard: expected CAP_NET_RAW; findings name no switch"

struct agent_move { /* a NIC that sends from another address than it is sent to */
    struct nic_id nic;
    uint32_t number; /* of the question sent there; 0: free */
    uint8_t address[16];
    struct mono asked;
};
#define AGENT_MOVE_MAX 16

struct agent_server;
struct agent_verbs;
struct agent_ud;
struct http_server;

struct agent {
    sd_event *loop;
    struct time_source *source;
    struct agent_config *config;
    struct agent_keys keys;
    bool pairs_followed;
    struct pair_table *pairs; /* NULL: this host has no key of its own */
    uint8_t pair_public[PAIR_PUBLIC_SIZE];
    struct agent_move moves[AGENT_MOVE_MAX];
    char config_error[512]; /* of a refused reload; empty: none */
    int64_t config_loaded_utc_ns;
    struct node *node;
    struct node_config node_config;
    struct agent_nic nics[HOST_NIC_MAX];
    struct link_monitor *links;
    struct agent_verbs *verbs; /* RDMA ports */
    struct agent_ud *ud;       /* probes between them */
    struct hop_listener hops;
    struct lldp_listener lldp;
    uint32_t links_failures;      /* in a row, once a second */
    bool hops_allowed, hops_wait; /* a router's answer came: taken in the next round */
    struct agent_discovery discovery[AGENT_DISCOVERY_KEPT];
    uint32_t discovery_count;
    struct recorder *recorder;
    int lock_fd, timer_fd;

    struct mono now;      /* never goes back more than the host's clock does */
    struct mono tick_due; /* node_deadline() after the last round */
    struct mono ticked;
    struct mono next_slow, next_poll, next_save, next_moment;
    struct agent_receive received[AGENT_RECEIVE_PENDING];
    size_t received_count;
    struct agent_transmit transmitted[AGENT_STAMP_PENDING];
    size_t transmitted_count;
    uint32_t bad[HOST_NIC_MAX][PROBE_ERROR_COUNT]; /* not yet told to the node */
    uint64_t bad_total[PROBE_ERROR_COUNT];
    struct mono old_key_used; /* a packet came under the older of two keys */
    uint32_t peer_key[256];   /* newest key id heard from a peer, by nic id modulo */

    struct page_maker page;
    struct shm_page clock_shm, mesh_shm, switch_shm;
    struct agent_settings settings;
    struct mesh_page_header mesh_header;
    uint32_t mesh_capacity;
    bool publish_clock; /* the node has news for the page: it said so, or was told of the guard */
    bool publish_mesh, publish_mesh_all;
    uint32_t mesh_turn; /* which part of the page is refreshed next */
    uint64_t guard_turn;
    struct phc
        *guard; /* a second clock: a NIC's (borrowed, or opened for this), or the hypervisor's */
    bool guard_own;        /* opened for this */
    uint32_t guard_source; /* as struct node_guard has it; 0: none */
    const char *guard_name;
    int64_t bracket_ns[HOST_NIC_MAX]; /* width of the last one */

    struct mono started;
    int64_t started_utc_ns;
    int64_t cpu_ns_then, cpu_mono_then, cpu_ppm;
    struct agent_moment history[AGENT_HISTORY];
    uint32_t history_count;
    struct agent_event events[AGENT_EVENT_KEPT];
    uint64_t event_count;
    struct finding closed[AGENT_CLOSED_KEPT];
    uint64_t closed_count;
    struct node_anchor anchor; /* the last one */
    int64_t anchor_ns;
    struct agent_server *server;
    struct uplink *uplink; /* NULL: no controller */
    struct agent_measure *measure;
    struct agent_audit *audit;
    struct agent_matrix *matrix;
    struct agent_perf *perf;
    struct jobs *jobs;
    struct http_server *metrics;
    bool ready_said, state_trouble;
    int exit_code;
    uint32_t software_nics; /* bits: whose hardware stamps didn't come */
    bool again;             /* start anew, with those */
};

/* ---- agent.c ---- */
struct agent_options {
    const char *config_path, *runtime_dir;
};
/* Runs until a signal says stop. Returns the exit status; troubles were said on stderr. */
int agent_run(const struct agent_options *options);
void agent_feed(struct agent *a, enum node_event_kind kind, const void *event);
/* Reads the configuration again, with this list of the fleet tried in place of the one it names, or NULL. A list that can
 * be read takes the other's place on the disk. < 0: refused, a->config_error tells why, what was in force stays so. */
int agent_reload(struct agent *a, const char *fleet_file);
/* What members_plan() has allowed to be told NIC by NIC: list, node and keys. */
struct Foliot__V1__Members;
struct members_plan;
void agent_members_change(struct agent *a, const struct Foliot__V1__Members *members,
                          const struct members_plan *plan);
/* To the journal: priority as syslog's. */
void agent_say(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- round.c ---- */
/* pair.c: which key a packet is proven with. Opens or makes state_dir/pair.key. */
#define AGENT_PAIR_FILE "pair.key"
void agent_pair_open(struct agent *a);
/* The host's secret half; made where there is none. */
MUST_CHECK int agent_pair_secret(const char *path, uint8_t ret_secret[static PAIR_SECRET_SIZE],
                                 bool *ret_made);
/* The list or the fleet's keys are others. */
void agent_pair_follow(struct agent *a);
/* Some hosts of the list are others. */
void agent_pair_change(struct agent *a, const struct Foliot__V1__Members *members);
/* Decodes a packet that came from that address (16 bytes), or one that this host sent and a router quotes (NULL). */
enum probe_error agent_pair_decode(struct agent *a, const uint8_t *bytes, size_t size,
                                   const uint8_t *from, struct probe *ret);
const struct probe_key *agent_pair_key(struct agent *a, struct nic_id peer);

/* Is it the address, 16 bytes, that the list has of it? */
bool agent_address_same(const struct agent_peer *peer, const uint8_t from[static 16]);
/* address.c: NICs that moved to another address. True: the packet was an answer to a question of this module. */
bool agent_address_on_packet(struct agent *a, const struct agent_receive *r);

void agent_round(struct agent *a);
void agent_drain_actions(struct agent *a);
void agent_depart(struct agent *a); /* what the NICs send leaves: takes up to 4 ms */
/* The addresses by which one of our NICs and a peer reach each other, IPv4 as ::ffff:a.b.c.d. */
void agent_pair_addresses(const struct agent *a, uint32_t local, const struct agent_peer *peer,
                          uint8_t ret_own[static 16], uint8_t ret_peer[static 16]);
void agent_send(struct agent *a, const struct mesh_send *s); /* leaves with the next flush */
/* family: 4, 6; 0: IPv4 where both have it. */
void agent_send_over(struct agent *a, const struct mesh_send *s, unsigned family, uint8_t dscp);

/* ---- measure.c: what the controller asks to be measured once (core/mesh/measure.h) ---- */
struct Foliot__V1__Measure;
struct Foliot__V1__Measured;
MUST_CHECK int agent_measure_open(struct agent *a);
void agent_measure_close(struct agent *a);
/* As the controller's last reply says; NULL: nothing (any more). */
void agent_measure_take(struct agent *a, const struct Foliot__V1__Measure *wish);
/* What it came to, until it is taken away; NULL: nothing was asked for. */
struct Foliot__V1__Measured *agent_measure_result(struct agent *a);
void agent_measure_send(struct agent *a);
/* True: it was of a measurement. */
bool agent_measure_on_packet(struct agent *a, const struct node_receive *r);
bool agent_measure_on_transmit(struct agent *a, const struct node_transmit *t);
/* Fleet time of a stamp of this NIC, by the clock that made it; false: not known. */
bool agent_fleet_of_stamp(const struct agent *a, uint32_t local, struct nic_time stamp,
                          int64_t *ret_ns, uint32_t *ret_bound_ns);
/* Which timeline this NIC's fleet time is of; 0: none. Times of two compare with nothing. */
uint64_t agent_timeline_of(const struct agent *a, uint32_t local);

/* ---- plan.c: what a plan of an audit is held against (core/audit/plan.h) ---- */
struct agent_plan_host {
    struct plan_host host;
    uint32_t own[HOST_NIC_MAX], *members; /* of the heap, the caller's */
};
MUST_CHECK int agent_plan_host(struct agent *a, struct agent_plan_host *ret);

/* ---- matrix.c: this host's part in a matrix of all NICs (core/audit/matrix_part.h) ---- */
struct Foliot__V1__Matrix;
MUST_CHECK int agent_matrix_open(struct agent *a);
void agent_matrix_close(struct agent *a);
/* As the controller's last reply has it; NULL: none, and what is under way ends. */
void agent_matrix_take(struct agent *a, const struct Foliot__V1__Matrix *plan);
uint64_t agent_matrix_held(const struct agent *a); /* the plan that it knows; 0: none */
void agent_matrix_round(struct agent *a);
/* True: it was of a matrix. */
bool agent_matrix_on_packet(struct agent *a, const struct node_receive *r, uint8_t dscp);
bool agent_matrix_on_transmit(struct agent *a, const struct node_transmit *t);

/* ---- perf.c: this host's ranks of an audit's tests, in a process of their own ---- */
struct Foliot__V1__Perf;
MUST_CHECK int agent_perf_open(struct agent *a);
void agent_perf_close(struct agent *a);
/* As the controller's last reply has it; NULL: none, and what is under way ends. */
void agent_perf_take(struct agent *a, const struct Foliot__V1__Perf *plan);
uint64_t agent_perf_held(const struct agent *a); /* the plan that it knows; 0: none */
void agent_perf_round(struct agent *a);
/* What the links carry, and have carried since they were last looked at, is the audit's own, or of a job that has a page. */
bool agent_traffic_explained(const struct agent *a);
/* Some process of a job is alive here, whatever it does. */
bool agent_job_runs(const struct agent *a);

/* ---- audit.c: the machine's facts, read by foliot-inspect, when the controller asks ---- */
struct Foliot__V1__Look;
MUST_CHECK int agent_audit_open(struct agent *a);
void agent_audit_close(struct agent *a);
/* As the controller's last reply has it; NULL: nothing is asked. */
void agent_audit_take(struct agent *a, const struct Foliot__V1__Look *look);
/* Processes that had a GPU open when the machine was last read; -1: not known. */
int64_t agent_gpu_users(const struct agent *a);

/* ---- nics.c ---- */
MUST_CHECK int agent_nics_open(struct agent *a);
void agent_nics_close(struct agent *a);
/* Opens what isn't open, follows addresses and names, tells the node what changed. */
void agent_nics_follow(struct agent *a);
void agent_nics_poll(struct agent *a);
bool agent_links_unread(const struct agent *a); /* nobody knows how links are */
uint8_t agent_nic_stamps(const struct agent *a, uint32_t local);

/* ---- verbs_ports.c: RDMA ports ---- */
MUST_CHECK int agent_verbs_open(struct agent *a);
void agent_verbs_close(struct agent *a);
void agent_verbs_round(struct agent *a);
bool agent_verbs_quiet(const struct agent *a);                   /* core/audit/quiet.h */
void agent_verbs_answer(struct agent *a, struct json_writer *j); /* fields of "links" */

/* ---- verbs_probe.c: probes between queue pairs (core/mesh/port_probe.h) ---- */
MUST_CHECK int agent_ud_open(struct agent *a);
void agent_ud_close(struct agent *a);
void agent_ud_round(struct agent *a);
/* True: it was of these. */
bool agent_ud_on_packet(struct agent *a, const struct node_receive *r);
void agent_ud_answer(struct agent *a, struct json_writer *j); /* fields of "mesh" */

/* ---- clocks.c ---- */
/* Decides what stamps each NIC's packets, and what the raw clock is compared with; says so. Before
 * the node is made. */
void agent_clocks_open(struct agent *a);
void agent_clocks_close(struct agent *a);
/* The node's member that stands for a NIC's clock, and a NIC that a member stands for (UINT32_MAX:
 * none). */
uint32_t agent_member_of_nic(const struct agent *a, uint32_t local);
uint32_t agent_nic_of_member(const struct agent *a, uint32_t member);
void agent_clocks_watch(struct agent *a); /* do stamps come? Once a second */
void agent_clocks_round(struct agent *a); /* guard, facts: each round */
void agent_clocks_slow(struct agent *a);  /* anchor, brackets: ten times a second */

/* ---- lldp.c ---- */
void agent_lldp_open(struct agent *a); /* without it neighbours stay unknown */
void agent_lldp_poll(struct agent *a); /* once a second */
const struct lldp *agent_lldp_of(const struct agent *a, uint32_t local); /* NULL: not known */

/* ---- publish.c ---- */
MUST_CHECK int agent_pages_open(struct agent *a);
void agent_pages_close(struct agent *a);
/* Once a round: that we look is new each time, what the clock says when there are news (sim/host.c does the same). */
void agent_publish_clock(struct agent *a);
void agent_publish_mesh(struct agent *a);

/* ---- settings.c ---- */
struct Foliot__V1__Settings;
MUST_CHECK int agent_settings_open(struct agent *a);
void agent_settings_close(struct agent *a);
/* As the controller says; each value that can't be followed is refused and said, and agent.yaml's is in force. */
void agent_settings_take(struct agent *a, const struct Foliot__V1__Settings *settings);
/* The lesser of the fleet's mode and this host's own; and to the switch with it. */
enum switch_mode agent_settings_mode(const struct agent *a);
void agent_settings_publish(struct agent *a);

/* ---- state.c ---- */
void agent_state_save(struct agent *a);
void agent_state_load(struct agent *a);

/* ---- journal.c ---- */
struct finding_names agent_names(const struct agent *a);
/* "nic0", by itself; NULL: not in the fleet. */
const char *agent_interface_name(const struct agent *a, struct nic_id nic);
void agent_say_finding(struct agent *a, const struct finding *f);
void agent_link_event(struct agent *a, uint32_t local, const char *event, const char *text);
/* The same of an RDMA port: local: our NIC beside it, or UINT32_MAX. */
void agent_verbs_event(struct agent *a, uint32_t local, const char *device, const char *event,
                       const char *text);
/* Tells of what changed between two looks. */
void agent_link_news(struct agent *a, uint32_t local, const struct link_facts *before,
                     const struct link_facts *now);
/* Fleet time and UTC of a host time; false: not known. */
bool agent_fleet_ns(const struct agent *a, struct mono at, int64_t *ret_ns);
bool agent_utc_ns(struct agent *a, struct mono at, int64_t *ret_ns);

/* ---- metrics.c ---- */
MUST_CHECK int agent_metrics_open(struct agent *a);

/* ---- server.c ---- */
MUST_CHECK int agent_server_open(struct agent *a);
void agent_server_close(struct agent *a);
void agent_server_group(struct agent *a); /* looks the group up whose members may ask */
void agent_server_finding(struct agent *a, const struct finding *f); /* to those who watch */
void agent_server_link(struct agent *a, const struct agent_event *e);
/* Writes the whole answer to one request kind; false: no such kind. */
bool agent_answer(struct agent *a, struct json_writer *j, const char *what);
void agent_answer_head(struct agent *a, struct json_writer *j, const char *kind);
void agent_answer_finding(struct agent *a, struct json_writer *j, const char *key,
                          const struct finding *f);
void agent_answer_link_event(struct agent *a, struct json_writer *j, const struct agent_event *e);
