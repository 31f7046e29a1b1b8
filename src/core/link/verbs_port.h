/* verbs_port.h: the events of one RDMA port: up, down, gone; its GID, MTU, subnet manager, and cable errors. The Ethernet
 * interface of the port has a struct link of its own. Here are the facts that only RDMA has.
 *
 * A trouble is open until a read shows that it is over, or until its device is gone. Each opening and each closing is one
 * message. So are changed numbers of the MTU. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum verbs_trouble {
    VERBS_GONE,
    VERBS_DOWN, /* no link */
    /* InfiniBand: the link is there, but no subnet manager has configured the port */
    VERBS_NO_MANAGER,
    VERBS_NO_GID,  /* no GID with an address that a router forwards */
    VERBS_V1_ONLY, /* such a GID, but only for RoCE v1: not routed, not spread over paths */
    VERBS_MTU,     /* smaller than its interface allows, or another one than its siblings have */
    /* symbol errors, damaged packets or links trained again: 10 a minute or more */
    VERBS_CABLE,
    /* within the last hour the GID moved to another index: programs that use the old index fail */
    VERBS_GID_MOVED,
    /* packets of the jobs' class take longer than those of the reference class (core/mesh/port_probe.h) */
    VERBS_CLASS,
    VERBS_TROUBLE_COUNT
};

/* One whole read of the port by a driver. */
struct verbs_port_facts {
    struct mono at;
    bool present; /* false: the other fields are ignored */
    bool infiniband;
    bool active, linked; /* linked: the cable is connected */
    bool gid_known;      /* it has a GID that lanes would use */
    bool v1;             /* it has a GID of RoCE v1 with an address that a router would forward */
    uint8_t gid[16];
    uint32_t gid_index;
    uint32_t mtu;           /* the active MTU in bytes; 0: not reported */
    uint32_t interface_mtu; /* 0: none */
    uint32_t sibling_mtu;   /* the MTU of most ports of this kind on the host; 0: unclear */
    uint16_t lid, sm_lid;   /* InfiniBand */
    uint64_t cable_errors;  /* since some moment; may restart */
    bool class_slow;        /* port_probe_slow() */
    /* if class_slow; the first is -1 if no packet of the jobs' class arrives */
    int64_t class_job_ns, class_reference_ns;
};

enum verbs_port_event {
    VERBS_EVENT_TROUBLE,     /* numbers: enum verbs_trouble, the found value, the expected value */
    VERBS_EVENT_TROUBLE_END, /* numbers: enum verbs_trouble */
    VERBS_EVENT_GID_CHANGED, /* lanes would now use another GID; numbers: the index before, now */
    VERBS_EVENT_MANAGER,     /* another subnet manager; numbers: its LID before, now */
    VERBS_EVENT_LID,         /* numbers: before, now */
};
struct verbs_port_message {
    enum verbs_port_event event;
    struct mono at;
    int64_t numbers[3];
};

#define VERBS_MESSAGE_MAX 16 /* the caller takes the messages after each read */

struct verbs_port {
    struct verbs_port_facts facts;
    bool known;
    /* when it last became active, or stopped being active */
    struct mono since;
    struct mono trouble_since[VERBS_TROUBLE_COUNT]; /* MONO_NEVER: it is not open */
    int64_t found[VERBS_TROUBLE_COUNT], expected[VERBS_TROUBLE_COUNT]; /* as last reported */
    uint8_t gid[16];                                                   /* the last known GID */
    uint32_t gid_index;
    bool gid_ever;
    uint32_t gid_before;       /* the index before the move */
    struct mono moved_at;      /* MONO_NEVER: it didn't move, or it is back */
    uint64_t downs, gid_moves; /* since the first look */
    uint64_t cable_errors;     /* since the first read, too */
    uint64_t window_errors;
    struct mono window_start;
    struct verbs_port_message messages[VERBS_MESSAGE_MAX];
    uint32_t message_head, message_count;
};

void verbs_port_init(struct verbs_port *p, struct mono now);
void verbs_port_on_facts(struct verbs_port *p, const struct verbs_port_facts *facts);
bool verbs_port_next_message(struct verbs_port *p, struct verbs_port_message *ret_message);
bool verbs_port_has(const struct verbs_port *p, enum verbs_trouble trouble);
/* The largest RoCE MTU that fits into an interface's MTU: 256 to 4096; 0: none fits (kernel: iboe_get_mtu). */
uint32_t verbs_port_mtu_of(uint32_t interface_mtu);
