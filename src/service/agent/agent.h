/* agent.h: one host's agent: core/node with its inputs and outputs.
 *
 * A round runs every 10 ms. It does these steps:
 * - read the sockets (packets, transmit stamps, routers' answers);
 * - compare the kernel's clocks with each other;
 * - give all of this to the node, and let the node tick;
 * - send the packets that the node wants to send;
 * - write the shared pages.
 *
 * Packets wait for up to 10 ms. That costs no accuracy, because the kernel stamps them. Links, questions on the Unix socket,
 * and signals are events of the same loop. There are no threads.
 *
 * All input of the node goes through agent_feed, which records it. So the recorder has everything that the node ever received.
 *
 * Files:
 * agent.c          start, reload
 * round.c          packets and the round
 * nics.c           sockets and links
 * clocks.c         second clock (guard), anchors, facts
 * publish.c        shared pages
 * state.c          warm start
 * journal.c        findings to the journal
 * jobs*.c          pages of the jobs on this host
 * measure.c        measurements on demand
 * audit.c          facts of the machine
 * matrix.c         rounds of a matrix
 * perf.c           tests of an audit
 * plan.c           plans of matrix.c and perf.c
 * server.c, answer*.c  answers in JSON
 * uplink*.c, report*.c, spool.c  the controller
 * members*.c       the fleet's list
 * settings.c       settings that the controller sends
 * join.c           how a host joins the fleet */
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
#define AGENT_HISTORY         120 /* seconds of history of the clock's bound, for the plot */
#define AGENT_EVENT_KEPT      64
#define AGENT_CLOSED_KEPT     64

struct agent_nic {
    struct endpoint *endpoint; /* NULL: not open; `trouble` has the reason */
    char trouble[160];         /* logged once; empty: none */
    bool hardware;
    struct stamp_watch watch; /* watches hardware stamps */
    int phc_index;            /* of the NIC's clock; -1: it has none */
    struct phc *phc;          /* open for the first NIC of each clock only */
    uint8_t domain;           /* the node's number of the clock; 0: the host's raw clock */
    struct in_addr address4;  /* the sockets are bound to these */
    struct in6_addr address6;
    int64_t retry_ns;       /* CLOCK_MONOTONIC: time of the next try to open */
    unsigned slot;          /* index in the link monitor */
    struct mono down_since; /* start of the present carrier state */
    struct link_facts said; /* last facts that the node got */
    int64_t facts_ns;       /* time of `said` */
    bool facts_known, started, ports_said, steering_said;
    uint16_t hold_us;      /* packets of this round are sent after this delay */
    struct lldp neighbour; /* the switch, from its own LLDP */
    int64_t neighbour_until_ns;
    uint32_t lldp_interface; /* where LLDP is received; 0: none */
};

struct agent_event { /* an event of a link, for `foliot links` */
    uint32_t nic;    /* UINT32_MAX: an RDMA port that belongs to no NIC of this host */
    char port[64];   /* the device of such a port */
    const char *event;
    struct mono at;
    int64_t fleet_ns, utc_ns;
    uint32_t flaps_hour, down_count;
    char text[160];
};

struct agent_receive { /* kept until the stamps of the batch can be assigned */
    struct node_receive event;
    int64_t software_ns, hardware_ns;
    uint8_t from[16], dscp;
};
struct agent_transmit {
    uint32_t local;
    struct endpoint_stamp stamp;
};

struct agent_moment { /* one second of the clock's history */
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
    uint64_t version, config_version;  /* of the last settings received */
    uint32_t report_ms, beat_ms, mode; /* mode: enum switch_mode */
    /* the values that are not in force; empty: all are in force */
    char refused[120];
};

/* What the agent can't watch, in words. */
#define AGENT_LINKS_UNREAD "link state can't be read"
#define AGENT_HOPS_REFUSED "routers can't be heard: expected CAP_NET_RAW; findings name no switch"

struct agent_move { /* a NIC that sends from another address than the list has */
    struct nic_id nic;
    uint32_t number; /* of the question sent to that address; 0: this entry is free */
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
    char config_error[512]; /* of the last reload that was refused; empty: none */
    int64_t config_loaded_utc_ns;
    struct node *node;
    struct node_config node_config;
    struct agent_nic nics[HOST_NIC_MAX];
    struct link_monitor *links;
    struct agent_verbs *verbs; /* RDMA ports */
    struct agent_ud *ud;       /* probes between queue pairs of these ports */
    struct hop_listener hops;
    struct lldp_listener lldp;
    uint32_t links_failures; /* failures in a row; the agent tries once a second */
    /* hops_wait: a router has answered; the next round reads the answer */
    bool hops_allowed, hops_wait;
    struct agent_discovery discovery[AGENT_DISCOVERY_KEPT];
    uint32_t discovery_count;
    struct recorder *recorder;
    int lock_fd, timer_fd;
    int64_t period_ns; /* of the rounds' grid */
    int64_t grid_ns;   /* the grid's instant of the round that is armed; CLOCK_MONOTONIC */

    struct mono now;      /* goes back only if the host's clock does */
    struct mono tick_due; /* node_deadline() after the last round */
    struct mono ticked;
    struct mono next_slow, next_poll, next_save, next_moment;
    struct agent_receive received[AGENT_RECEIVE_PENDING];
    size_t received_count;
    struct agent_transmit transmitted[AGENT_STAMP_PENDING];
    size_t transmitted_count;
    uint32_t bad[HOST_NIC_MAX][PROBE_ERROR_COUNT]; /* not yet given to the node */
    uint64_t bad_total[PROBE_ERROR_COUNT];
    struct mono bad_last[PROBE_ERROR_COUNT];
    struct mono old_key_used; /* last packet that came with the older of two keys */
    uint32_t peer_key[256];   /* newest key id of a peer, by the peer's NIC id modulo 256 */

    struct page_maker page;
    struct shm_page clock_shm, mesh_shm, switch_shm;
    struct agent_settings settings;
    struct mesh_page_header mesh_header;
    uint32_t mesh_capacity;
    bool publish_clock; /* write the clock page: the node reported a change, or got a guard event */
    bool publish_mesh, publish_mesh_all;
    uint32_t mesh_turn; /* the part of the page that is refreshed next */
    uint64_t guard_turn;
    struct phc *guard;     /* a second clock: of a NIC (borrowed or own), or of the hypervisor */
    bool guard_own;        /* the agent opened the guard only for this use */
    uint32_t guard_source; /* as in struct node_guard; 0: none */
    const char *guard_name;
    int64_t bracket_ns[HOST_NIC_MAX]; /* width of the last bracket */

    struct mono started;
    int64_t started_utc_ns;
    int64_t cpu_ns_then, cpu_mono_then, cpu_ppm;
    struct agent_moment history[AGENT_HISTORY];
    uint32_t history_count;
    struct agent_event events[AGENT_EVENT_KEPT];
    uint64_t event_count;
    struct finding closed[AGENT_CLOSED_KEPT];
    uint64_t closed_count;
    struct node_anchor anchor; /* the last anchor */
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
    uint32_t software_nics; /* bits: NICs without the hardware stamps that they promised */
    bool again;             /* start the agent again, with software_nics */
};

/* ---- agent.c ---- */
struct agent_options {
    const char *config_path, *runtime_dir;
};
/* Runs until a signal ends it. Returns the exit status. Errors are printed on stderr. */
int agent_run(const struct agent_options *options);
void agent_feed(struct agent *a, enum node_event_kind kind, const void *event);
/* Reads the configuration again. fleet_file: a list of the fleet that is tried in place of the list that the configuration
 * names, or NULL. If it can be read, it replaces that list on the disk. < 0: refused. Then a->config_error has the reason, and
 * the old configuration stays in force. */
int agent_reload(struct agent *a, const char *fleet_file);
/* Applies changes that members_plan() allows NIC by NIC: to the list, the node and the keys. */
struct Foliot__V1__Members;
struct members_plan;
void agent_members_change(struct agent *a, const struct Foliot__V1__Members *members,
                          const struct members_plan *plan);
/* Writes to the journal. priority: as in syslog. */
void agent_say(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- round.c ---- */
/* pair.c: the key that proves a packet. agent_pair_open() opens or makes state_dir/pair.key. */
#define AGENT_PAIR_FILE "pair.key"
void agent_pair_open(struct agent *a);
/* Reads the host's secret key; makes one if there is none. */
MUST_CHECK int agent_pair_secret(const char *path, uint8_t ret_secret[static PAIR_SECRET_SIZE],
                                 bool *ret_made);
/* The list or the fleet's keys have changed. */
void agent_pair_follow(struct agent *a);
/* Some hosts of the list have changed. */
void agent_pair_change(struct agent *a, const struct Foliot__V1__Members *members);
/* Decodes a packet. from: its source address (16 bytes), or NULL for a packet that this host sent and that a router quotes. */
enum probe_error agent_pair_decode(struct agent *a, const uint8_t *bytes, size_t size,
                                   const uint8_t *from, struct probe *ret);
const struct probe_key *agent_pair_key(struct agent *a, struct nic_id peer);

/* Is `from` the peer's address in the list? */
bool agent_address_same(const struct agent_peer *peer, const uint8_t from[static 16]);
/* address.c: NICs that moved to another address. True: the packet was an answer to a question of address.c. */
bool agent_address_on_packet(struct agent *a, const struct agent_receive *r);

void agent_round(struct agent *a);
void agent_drain_actions(struct agent *a);
/* Counts a packet that is refused. */
void agent_refused(struct agent *a, uint32_t local, enum probe_error error);
/* When the next round begins, in nanoseconds of the clock of `now`. The rounds follow a grid, from the agent's start on. Each
 * begins a little after its instant, by a time that the node drew. So its first packets leave at a random time, and need no sleep
 * for that. If a round took longer, the next one begins at once, and further instants that passed are left out.
 * grid_ns: the instant of the last round (0: none yet), and then of the next. */
int64_t agent_next_round(int64_t *grid_ns, int64_t now, int64_t period_ns, int64_t begin_ns);
/* Sets the timer for the next round. The error of timerfd_settime. */
MUST_CHECK int agent_arm(struct agent *a);
void agent_depart(struct agent *a); /* sends the queued packets of all NICs: takes up to 3 ms */
/* The addresses that one of this host's NICs and a peer use to reach each other. IPv4 is ::ffff:a.b.c.d. */
void agent_pair_addresses(const struct agent *a, uint32_t local, const struct agent_peer *peer,
                          uint8_t ret_own[static 16], uint8_t ret_peer[static 16]);
void agent_send(struct agent *a, const struct mesh_send *s); /* queued; sent with the next flush */
/* family: 4 or 6; 0: IPv4 if both ends have it. */
void agent_send_over(struct agent *a, const struct mesh_send *s, unsigned family, uint8_t dscp);

/* ---- measure.c: measurements that the controller asks for once (core/mesh/measure.h) ---- */
struct Foliot__V1__Measure;
struct Foliot__V1__Measured;
MUST_CHECK int agent_measure_open(struct agent *a);
void agent_measure_close(struct agent *a);
/* Takes the request of the controller's last reply; NULL: there is none (any more). */
void agent_measure_take(struct agent *a, const struct Foliot__V1__Measure *wish);
/* The result, until it is sent; NULL: nothing was asked for. */
struct Foliot__V1__Measured *agent_measure_result(struct agent *a);
void agent_measure_send(struct agent *a);
/* True: the packet belongs to a measurement. */
bool agent_measure_on_packet(struct agent *a, const struct node_receive *r);
bool agent_measure_on_transmit(struct agent *a, const struct node_transmit *t);
/* Fleet time of this NIC's stamp, from the clock that made the stamp. False: not known. */
bool agent_fleet_of_stamp(const struct agent *a, uint32_t local, struct nic_time stamp,
                          int64_t *ret_ns, uint32_t *ret_bound_ns);
/* The timeline of this NIC's fleet time; 0: none. Times of two timelines can't be compared. */
uint64_t agent_timeline_of(const struct agent *a, uint32_t local);

/* ---- plan.c: this host's facts to check a plan of an audit (core/audit/plan.h) ---- */
struct agent_plan_host {
    struct plan_host host;
    uint32_t own[HOST_NIC_MAX], *members; /* members: on the heap; the caller frees it */
};
MUST_CHECK int agent_plan_host(struct agent *a, struct agent_plan_host *ret);

/* ---- matrix.c: this host's part in a matrix of all NICs (core/audit/matrix_part.h) ---- */
struct Foliot__V1__Matrix;
MUST_CHECK int agent_matrix_open(struct agent *a);
void agent_matrix_close(struct agent *a);
/* Takes the plan of the controller's last reply. NULL: there is none, and a running matrix ends. */
void agent_matrix_take(struct agent *a, const struct Foliot__V1__Matrix *plan);
uint64_t agent_matrix_held(const struct agent *a); /* id of the current plan; 0: none */
void agent_matrix_round(struct agent *a);
/* True: the packet belongs to a matrix. */
bool agent_matrix_on_packet(struct agent *a, const struct node_receive *r, uint8_t dscp);
bool agent_matrix_on_transmit(struct agent *a, const struct node_transmit *t);

/* ---- perf.c: this host's ranks of an audit's tests, in a process of their own ---- */
struct Foliot__V1__Perf;
MUST_CHECK int agent_perf_open(struct agent *a);
void agent_perf_close(struct agent *a);
/* Takes the plan of the controller's last reply. NULL: there is none, and running tests end. */
void agent_perf_take(struct agent *a, const struct Foliot__V1__Perf *plan);
uint64_t agent_perf_held(const struct agent *a); /* id of the current plan; 0: none */
void agent_perf_round(struct agent *a);
/* True: all traffic of the links since the last look belongs to the audit, or to a job that has a page. */
bool agent_traffic_explained(const struct agent *a);
/* True: a process of a job is alive on this host, with or without traffic. */
bool agent_job_runs(const struct agent *a);

/* ---- audit.c: the machine's facts, read by foliot-inspect, when the controller asks ---- */
struct Foliot__V1__Look;
MUST_CHECK int agent_audit_open(struct agent *a);
void agent_audit_close(struct agent *a);
/* Takes the request of the controller's last reply. NULL: there is none. */
void agent_audit_take(struct agent *a, const struct Foliot__V1__Look *look);
/* Processes that had a GPU open when the machine was last read; -1: not known. */
int64_t agent_gpu_users(const struct agent *a);

/* ---- nics.c ---- */
MUST_CHECK int agent_nics_open(struct agent *a);
void agent_nics_close(struct agent *a);
/* Opens closed NICs, follows changes of addresses and names, and gives all changes to the node. */
void agent_nics_follow(struct agent *a);
void agent_nics_poll(struct agent *a);
bool agent_links_unread(const struct agent *a); /* the state of links can't be read */
uint8_t agent_nic_stamps(const struct agent *a, uint32_t local);

/* ---- verbs_ports.c: RDMA ports ---- */
MUST_CHECK int agent_verbs_open(struct agent *a);
void agent_verbs_close(struct agent *a);
void agent_verbs_round(struct agent *a);
bool agent_verbs_quiet(const struct agent *a);                   /* see core/audit/quiet.h */
void agent_verbs_answer(struct agent *a, struct json_writer *j); /* writes fields of "links" */

/* ---- verbs_probe.c: probes between queue pairs (core/mesh/port_probe.h) ---- */
MUST_CHECK int agent_ud_open(struct agent *a);
void agent_ud_close(struct agent *a);
void agent_ud_round(struct agent *a);
/* True: the packet belongs to these probes. */
bool agent_ud_on_packet(struct agent *a, const struct node_receive *r);
void agent_ud_answer(struct agent *a, struct json_writer *j); /* writes fields of "mesh" */

/* ---- clocks.c ---- */
/* Decides which clock stamps each NIC's packets, and the second clock for comparison. Logs both. Called before the node is
 * made. */
void agent_clocks_open(struct agent *a);
void agent_clocks_close(struct agent *a);
/* The node's member that stands for a NIC's clock; and the NIC of a member (UINT32_MAX: none). */
uint32_t agent_member_of_nic(const struct agent *a, uint32_t local);
uint32_t agent_nic_of_member(const struct agent *a, uint32_t member);
void agent_clocks_watch(struct agent *a); /* checks that stamps come; called once a second */
void agent_clocks_round(struct agent *a); /* second clock and facts; called each round */
void agent_clocks_slow(struct agent *a);  /* anchor and brackets; called ten times a second */

/* ---- lldp.c ---- */
void agent_lldp_open(struct agent *a); /* without LLDP, neighbours stay unknown */
void agent_lldp_poll(struct agent *a); /* once a second */
const struct lldp *agent_lldp_of(const struct agent *a, uint32_t local); /* NULL: not known */

/* ---- publish.c ---- */
MUST_CHECK int agent_pages_open(struct agent *a);
void agent_pages_close(struct agent *a);
/* Called once a round. The page's time of writing is new each time. The clock's values are new only after a change (sim/host.c
 * does the same). */
void agent_publish_clock(struct agent *a);
void agent_publish_mesh(struct agent *a);

/* ---- settings.c ---- */
struct Foliot__V1__Settings;
MUST_CHECK int agent_settings_open(struct agent *a);
void agent_settings_close(struct agent *a);
/* Takes settings of the controller. A value that can't be followed is refused and logged; the value of agent.yaml stays in
 * force. */
void agent_settings_take(struct agent *a, const struct Foliot__V1__Settings *settings);
/* The lower of the fleet's mode and this host's own limit. agent_settings_publish() writes it to the switch page. */
enum switch_mode agent_settings_mode(const struct agent *a);
void agent_settings_publish(struct agent *a);

/* ---- state.c ---- */
void agent_state_save(struct agent *a);
void agent_state_load(struct agent *a);

/* ---- journal.c ---- */
struct finding_names agent_names(const struct agent *a);
/* The interface's name alone, as "nic0"; NULL: not in the fleet. */
const char *agent_interface_name(const struct agent *a, struct nic_id nic);
void agent_say_finding(struct agent *a, const struct finding *f);
void agent_link_event(struct agent *a, uint32_t local, const char *event, const char *text);
/* The same for an RDMA port. local: this host's NIC beside the port, or UINT32_MAX. */
void agent_verbs_event(struct agent *a, uint32_t local, const char *device, const char *event,
                       const char *text);
/* Logs the changes between two looks at a link. */
void agent_link_news(struct agent *a, uint32_t local, const struct link_facts *before,
                     const struct link_facts *now);
/* Fleet time and UTC for a time of this host; false: not known. */
bool agent_fleet_ns(const struct agent *a, struct mono at, int64_t *ret_ns);
bool agent_utc_ns(struct agent *a, struct mono at, int64_t *ret_ns);

/* ---- metrics.c ---- */
MUST_CHECK int agent_metrics_open(struct agent *a);

/* ---- server.c ---- */
MUST_CHECK int agent_server_open(struct agent *a);
void agent_server_close(struct agent *a);
void agent_server_group(struct agent *a); /* looks up the group that may ask */
/* sends a finding to all watchers */
void agent_server_finding(struct agent *a, const struct finding *f);
void agent_server_link(struct agent *a, const struct agent_event *e);
/* Writes the whole answer to one kind of request; false: no such kind. */
bool agent_answer(struct agent *a, struct json_writer *j, const char *what);
void agent_answer_head(struct agent *a, struct json_writer *j, const char *kind);
void agent_answer_finding(struct agent *a, struct json_writer *j, const char *key,
                          const struct finding *f);
void agent_answer_link_event(struct agent *a, struct json_writer *j, const struct agent_event *e);
