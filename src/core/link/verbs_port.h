/* verbs_port.h: what happens to one RDMA port: up, down, gone; its GID, MTU, subnet manager, and errors of its cable. The
 * Ethernet interface beside it has a struct link of its own; here is what only RDMA knows.
 *
 * A trouble is open until a look shows that it is over, or its device is gone. Each opening and closing is one message, and so
 * are other numbers of the MTU. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum verbs_trouble {
    VERBS_GONE,
    VERBS_DOWN,       /* no link */
    VERBS_NO_MANAGER, /* InfiniBand: the link is there, no subnet manager has been */
    VERBS_NO_GID,     /* none with an address that a router carries */
    VERBS_V1_ONLY,    /* such a one, but of RoCE v1 only: not routed, not spread over paths */
    VERBS_MTU,        /* smaller than its interface has room for, or not that of its siblings */
    VERBS_CABLE,      /* symbol errors, damaged packets, links trained again: 10 a minute or more */
    VERBS_GID_MOVED, /* within an hour: the same GID at another index; who names it by index fails */
    VERBS_CLASS, /* packets of the class of jobs take longer than the reference's (core/mesh/port_probe.h) */
    VERBS_TROUBLE_COUNT
};

/* What a driver reads, whole, each time. */
struct verbs_port_facts {
    struct mono at;
    bool present; /* false: the rest is ignored */
    bool infiniband;
    bool active, linked; /* linked: the cable is there */
    bool gid_known;      /* one that lanes would use */
    bool v1;             /* a GID of RoCE v1 with an address that a router would carry */
    uint8_t gid[16];
    uint32_t gid_index;
    uint32_t mtu;           /* active, bytes; 0: not told */
    uint32_t interface_mtu; /* 0: none */
    uint32_t sibling_mtu;   /* that most ports of the host's kind have; 0: no opinion */
    uint16_t lid, sm_lid;   /* InfiniBand */
    uint64_t cable_errors;  /* since some moment; may restart */
    bool class_slow;        /* port_probe_slow() */
    int64_t class_job_ns, class_reference_ns; /* then; the first -1: it doesn't come */
};

enum verbs_port_event {
    VERBS_EVENT_TROUBLE,     /* numbers: enum verbs_trouble, what was found, what was expected */
    VERBS_EVENT_TROUBLE_END, /* numbers: enum verbs_trouble */
    VERBS_EVENT_GID_CHANGED, /* another GID is the one to use; numbers: index before, now */
    VERBS_EVENT_MANAGER,     /* another subnet manager; numbers: its LID before, now */
    VERBS_EVENT_LID,         /* numbers: before, now */
};
struct verbs_port_message {
    enum verbs_port_event event;
    struct mono at;
    int64_t numbers[3];
};

#define VERBS_MESSAGE_MAX 16 /* the caller drains after each look */

struct verbs_port {
    struct verbs_port_facts facts;
    bool known;
    struct mono since;                              /* of the present state: active or not */
    struct mono trouble_since[VERBS_TROUBLE_COUNT]; /* MONO_NEVER: it has none */
    int64_t found[VERBS_TROUBLE_COUNT], expected[VERBS_TROUBLE_COUNT]; /* as they were told */
    uint8_t gid[16];                                                   /* the last that was known */
    uint32_t gid_index;
    bool gid_ever;
    uint32_t gid_before;       /* its index, before it moved */
    struct mono moved_at;      /* MONO_NEVER: it didn't, or is back */
    uint64_t downs, gid_moves; /* since the first look */
    uint64_t cable_errors;     /* likewise */
    uint64_t window_errors;
    struct mono window_start;
    struct verbs_port_message messages[VERBS_MESSAGE_MAX];
    uint32_t message_head, message_count;
};

void verbs_port_init(struct verbs_port *p, struct mono now);
void verbs_port_on_facts(struct verbs_port *p, const struct verbs_port_facts *facts);
bool verbs_port_next_message(struct verbs_port *p, struct verbs_port_message *ret_message);
bool verbs_port_has(const struct verbs_port *p, enum verbs_trouble trouble);
/* The RoCE MTU that an interface's MTU has room for: 256 to 4096, 0: not even that (kernel: iboe_get_mtu). */
uint32_t verbs_port_mtu_of(uint32_t interface_mtu);
