/* uplink_internal.h: shared by uplink.c, uplink_members.c and uplink_renew.c. */
#pragma once
#include <foliot.pb-c.h>
#include <systemd/sd-event.h>

#include "platform/http/client.h"
#include "platform/message/message.h"
#include "service/agent/agent.h"
#include "service/agent/controller_seen.h"
#include "service/agent/uplink.h"

enum {
    TIMEOUT_MS = 15000,
    RETRY_MS_MIN = 250,
    RETRY_MS_MAX = 5000, /* the agent finds a returned controller within this time */
    REFUSED_MS = 60000,
    RENEW_RETRY_MS_MIN = 500, /* doubled after each failure, up to REFUSED_MS */
    SEND_BYTES_MAX = 700 << 10,
    ANSWER_MAX = 32 << 20,
    ANSWER_UNPACKED = 64 << 20,
    PATH_SIZE = AGENT_PATH_SIZE + 40,
};

struct uplink {
    uint32_t protocol; /* protocol version that this controller uses */
    struct agent *agent;
    struct http_client *client;
    struct spool *spool;
    struct report_maker *maker;
    sd_event_source *timer; /* of the next deadline */
    char url[64], authority[PATH_SIZE], certificate[PATH_SIZE], key[PATH_SIZE];
    uint64_t boot, lost_told, jobs_told;
    uint32_t run, retry_ms, renew_retry_ms;
    int64_t report_at, beat_at, send_at, renew_at; /* ns of CLOCK_MONOTONIC */
    int64_t reported_at;
    uint64_t keys_version, authority_version, acknowledged;
    struct controller_seen seen;
    struct { /* the last list of members that was refused */
        uint64_t version;
        int64_t again_at; /* when to try again: the cause may have been a full disk */
        char why[160];    /* reason; empty: no list is refused */
    } refused;
    struct {                       /* a whole list that arrives in pages */
        struct agent_config *list; /* only its arrays are used; NULL: no list is arriving */
        uint64_t base;
        uint32_t next;
        bool wanted;      /* ask for the first page */
        int64_t tried_at; /* time of the last whole list; 0: none yet */
    } pages;
    int64_t not_after;
    bool connected, said_trouble, said_renewal, renewing, event_waits, echo;
    char trouble[200];
    uint64_t prng;
    struct message_buffer packed, encoded, unpacked;
    struct message_arena arena; /* memory of an answer; allocated when an answer comes */
};

int64_t uplink_now(void);
void uplink_arm(struct uplink *u);
int64_t uplink_spread(struct uplink *u, uint32_t ms);
/* Decodes an answer into u->arena; the caller frees the arena. NULL: it is not such a message. */
void *uplink_decode(struct uplink *u, const struct http_result *result,
                    const ProtobufCMessageDescriptor *descriptor);
void uplink_explain(const struct http_result *result, char words[160]);
/* A call to our controller with our certificate. It sends the message that was encoded last. */
struct http_call uplink_call(const struct uplink *u, const char *url);

/* ---- uplink_members.c ---- */
void uplink_take_members(struct uplink *u, const Foliot__V1__Members *members);
void uplink_take_fleet(struct uplink *u, Foliot__V1__Fleet *fleet); /* list of protocol 1 */
void uplink_ask_members(const struct uplink *u, Foliot__V1__Batch *ret_batch);
void uplink_members_close(struct uplink *u);

/* ---- uplink_renew.c ---- */
void uplink_renew(struct uplink *u);
/* Version of a file's text; 0: the file can't be read. */
uint64_t uplink_file_version(const char *path);
