/* probe.h: the probe packet, the only packet that hosts send each other.
 *
 * A UDP payload of 160 bytes, the same size in both directions (a difference in size would be an asymmetry of the path), with a
 * fixed layout, little endian, authenticated by a SipHash-2-4-128 tag under the key of the two hosts (pair_key.h), or the fleet's
 * key while one of them has none. It carries the sender's *earlier* stamps (a packet can't hold its own transmit stamp), what the
 * sender heard last from the receiver, and the sender's clock map, so that both ends see the same points.
 *
 * offset  type  field                             unit, sign, meaning
 *   0     u16   magic 0x4f46 ("FO")
 *   2     u8    version of this packet
 *   3     u8    lowest version the sender accepts  <= version
 *   4     u8    type                              enum probe_type
 *   5     u8    flags                             0 hardware, 1 own, 2 heard, 3 late, 4 pair key
 *   6     u8    state                             0-2 enum probe_state, 5 settled 6 tight 7 core
 *   7     u8    path, bit 7: second of a pair     the sender's number of the path taken
 *   8     u16   length, 10 u16 0                  144: bytes with a meaning before the tag
 * 12     u32   key id 16     u32   src NIC, 20 u32 dst NIC           numbers in the peers list, different 24     u64   timeline
 * hash that names it 32     u32   epoch, 36 u32 timeline age        age in raw seconds 40     i64   own.first, 48 i32 gap, 52 u32
 * seq     sender's transmit stamps, earlier 56     i64   heard.first, 64 i32 gap, 68 u32 seq   its receive stamps of yours 72
 * i64   map r, 80 i64 map x               linear_map.h: stamping clock -> fleet time 88     u32   x fraction, 92 i32 y
 * 2^-32 ns; 2^-42 (+-488 ppm) 96     u32   map seq, 100 i32 line - map       2^-4 ns, at the time this packet was built 104
 * u16   sqrt P00, 106 u16 scale, 108 u32 h   0.1 ns, 0.1 ns, ns 112     u32   anchor NIC, 116 u32 bound         UINT32_MAX = no
 * anchor; ns 120     i64   UTC - fleet, 128 u32 age          ns; ms 132     u32   seq                               per (src,
 * dst, path), counts every packet 136     u32   received                          bit k: packet heard.seq - k came; 0: none 140
 * u8    own.path, 141 u8 heard.path       path of the stamps: the sender's, the receiver's 142     u8    wanted       143  u8
 * dead         bit k: the receiver's path k is overdue / proven dead 144     u8*16 tag over bytes 0-143
 *
 * A query and its answer ("what do you think of j?") have this at 40 instead of the stamps: 40     u32   subject NIC, 44 u32
 * number 48     i32   level, 52 u32 noise               2^-4 ns, positive = subject ahead of the answerer 56     u8    opinion,
 * 57-71 0                  enum probe_opinion
 *
 * A packet of a measurement on demand and its answer (core/mesh/measure.h) have this there: 40     u32   run, 44 u32 packet
 * which measurement, which of its packets; repeated 48     i64   heard, 56 u32 bound               in an answer: fleet time of
 * hearing, ns; UINT32_MAX: none 60     u32   count, 64-71 0                    in an answer: packets heard of that path so far;
 * 0: not known A packet of a matrix of all NICs (core/audit/matrix_part.h) has the same fields: packet is round * 8 + its number
 * in the round (7: it only carries the time of another one), heard the fleet time at which an earlier packet of the round left,
 * bound the bound of that time, count that packet's number, and its path the DSCP with which it was marked, 0: none. They are
 * sent to NICs whose agents are known to understand them; an older agent counts them as malformed.
 *
 * A digest (from version 3) has what its sender saw of its own paths lately. From 40 on it has no stamps, map, bound or anchor,
 * but: 40     i64   made                              fleet time, ns 48     u32   from NIC                          one of the
 * sender's host: the paths are its own 52     u8    count, 53-55 0                    of observations, 1 to PROBE_OBSERVATION_MAX
 * 56     88 B  observations, one after the other, then 0; each of 10 + 4 * hops bytes:
 *          0 u32 to NIC   4 u8 path   5 u8 lost    trials lost since the last that came; 0: none
 *          6 u16 age                               ms from the last that came to `made`; UINT16_MAX: or longer
 *          8 u16 hops: bits 0-2 count, 3 answered, 4 + 2k kind of hop k: enum probe_hop
 *         10 u32 per hop                           its name in the fleet (core/mesh/digest.c)
 *        answered: not the peer but the last of these hops answered, a packet with a small hop limit.
 *
 * Where the sender's RDMA port beside the NIC src can be probed (from version 4), sent by UDP: 40     u8*16 GID
 * network order 56     u32   queue pair, 60 u32 Q_Key          24 bits; highest bit 0 64     u16   LID
 * InfiniBand, else 0 66     u8    flags, 67 0                       0 a global route header is needed, 1 its device stamps
 * completions 68     u32   echo.seq, 72 u8 echo.path         the newest packet heard of the receiver: this one is no recording
 * 73-143 0 Packets between two such queue pairs (core/mesh/port_probe.h) have this there. They never use UDP: 40     u32
 * exchange, 44 u8 step              enum probe_step 45     u8    way, 46 u16 0                     enum probe_way 48     i64
 * earliest                          of the moment that belongs to `step`: fleet time, ns; 0 if bound is UINT32_MAX 56     u32
 * width, 60 u32 bound               ns: latest less earliest; of the fleet time, UINT32_MAX: none 64     u32   from key, 68 u32
 * to key           both queue pairs' Q_Keys, each drawn when it was made; highest bit 0 72-143 0
 *
 * Version 1 has no anchor (112-131 are 0), version 2 no digests, version 3 no RDMA ports. All are read, and written to a peer
 * that supports no newer one, so that the rules of a rolling upgrade are used from the first day. Rule: send the lower of both
 * ends' newest versions; read the current one and the one before.
 *
 * Trust: probe_decode() is total. For any bytes it returns an error and touches nothing, or returns a struct in which each field
 * is in range. The order is: size, magic, version, key, tag; then the fields, so a stranger only learns that the packet was
 * dropped. Replay (seq, age of stamps) is judged by the prober, which has the pair's history. Cost: ~0.3 us each way, most of it
 * the tag. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/time.h"
#include "wire/linear_map.h"

#define PROBE_SIZE           160
#define PROBE_VERSION        4 /* newest version that is written */
#define PROBE_VERSION_DIGEST 3 /* lowest that has digests */
#define PROBE_VERSION_PORT   4 /* lowest that has RDMA ports */
#define PROBE_VERSION_BEFORE 3 /* for a peer whose newest version isn't known */
#define PROBE_VERSION_LOWEST 1 /* oldest version that is read */
#define PROBE_PATH_MAX       127
#define PROBE_GAP_NS_MAX     100000000  /* between the stamps of one pair, 100 ms */
#define PROBE_LINE_MAX       1600000000 /* |line - map| in 2^-4 ns: 100 ms */
#define PROBE_KEY_SIZE       16

enum probe_type {
    PROBE_PAIR = 1,  /* one of two coded packets; 'second' is false for the first one */
    PROBE_SINGLE,    /* one-way delay and liveness between the pairs */
    PROBE_BURST,     /* liveness of another path, requested by wanted */
    PROBE_DISCOVERY, /* sent with a small TTL; it reaches the peer only if the fabric is shorter */
    PROBE_QUERY,     /* what do you think of `subject`? */
    PROBE_ANSWER,
    PROBE_MEASURE,  /* of a measurement on demand */
    PROBE_MEASURED, /* its answer */
    PROBE_ROUND,    /* of a matrix of all NICs; nothing answers it */
    PROBE_DIGEST,   /* the sender's observations of its own paths */
    PROBE_PORT,     /* where the sender's RDMA port can be probed */
    PROBE_UD,       /* between queue pairs of two RDMA ports */
};
enum probe_step {
    PROBE_UD_HERALD,   /* announces the question, which follows at once. It has no moment */
    PROBE_UD_COMING,   /* announces the answer, which follows at once. It has no moment */
    PROBE_UD_QUESTION, /* it has no moment, either */
    PROBE_UD_ANSWER,   /* its moment: when the question came */
    PROBE_UD_LEFT,     /* its moment: when the answer left */
};
enum probe_way {
    PROBE_WAY_REFERENCE, /* the best-effort class */
    PROBE_WAY_JOB,       /* the class of jobs */
};
enum probe_state {
    PROBE_COLD,     /* no valid line yet */
    PROBE_ACQUIRE,  /* converging */
    PROBE_TRACK,    /* in step */
    PROBE_HOLDOVER, /* was in step; continues with its last rate */
};
enum probe_opinion {
    PROBE_OPINION_NONE,   /* the answerer doesn't measure the subject */
    PROBE_OPINION_USED,   /* it agrees with the rest */
    PROBE_OPINION_PARKED, /* it doesn't, and is ignored */
};

/* Stamps of one earlier packet or pair, by the sender's stamping clock. */
struct probe_stamps {
    bool present; /* false: not stamped (lost, or the NIC gave none); first, gap are then 0 */
    uint8_t path; /* own: sender's path number; heard: receiver's */
    uint32_t seq; /* of the first packet of the pair */
    struct nic_time first;
    int32_t gap_ns; /* second - first; 0 = a single. own: >= 0. Two equal stamps are sent as 1. */
};
struct probe_query {
    struct nic_id subject;
    uint32_t number; /* chosen by the asking end, repeated in the answer */
    int32_t level;   /* 2^-4 ns, positive = subject ahead of the answerer; 0 in a query */
    uint32_t noise;  /* 2^-4 ns, one sigma of level */
    enum probe_opinion opinion;
};
#define PROBE_BOUND_NONE UINT32_MAX
struct probe_measure {
    uint32_t run, packet;
    struct fleet_time heard; /* 0 in PROBE_MEASURE, and if bound_ns is PROBE_BOUND_NONE */
    uint32_t bound_ns;       /* of that clock; PROBE_BOUND_NONE: it has no fleet time */
    uint32_t count;          /* 0 in PROBE_MEASURE; 0: not known */
};
enum probe_hop { PROBE_HOP_ROUTER, PROBE_HOP_LEAF, PROBE_HOP_SPINE };
/* The observations of one path from the digest's `from`. Never a verdict. */
struct probe_observation {
    struct nic_id to;
    uint8_t path;      /* the sender's number */
    uint8_t lost;      /* trials since the last that came */
    bool answered;     /* the packet that came was an answer of the last hop; lost is 0 */
    uint8_t hop_count; /* 1 .. PATH_HOP_MAX */
    uint16_t age_ms; /* from the last that came until the digest was made; UINT16_MAX: or longer */
    struct {
        uint32_t name;
        uint8_t kind; /* enum probe_hop */
    } hops[PATH_HOP_MAX];
};
#define PROBE_OBSERVATION_MAX   6 /* in a digest, if paths are short */
#define PROBE_OBSERVATION_BYTES 88
struct probe_digest {
    struct fleet_time made;
    struct nic_id from;
    uint8_t count, reserved;
    uint16_t used; /* of the bytes, which hold the observations in the format of the packet */
    uint8_t bytes[PROBE_OBSERVATION_BYTES];
};
/* A packet that was heard. Its sender, if it sent it within the last seconds, sees that a packet with this echo was made
 * since. */
struct probe_echo {
    uint32_t seq;
    uint8_t path; /* the receiver's number */
};
struct probe_port {
    uint8_t gid[16];
    uint32_t qp, key;
    uint16_t lid;
    bool global, stamps;
    struct probe_echo echo;
};
struct probe_ud {
    uint32_t exchange; /* chosen by the asking end, repeated in the answer */
    uint32_t from_key, to_key;
    uint8_t step, way; /* enum probe_step, enum probe_way */
    struct fleet_time earliest;
    uint32_t width_ns, bound_ns; /* PROBE_BOUND_NONE: there is no moment */
};
struct probe_map {
    struct linear_map map;  /* |y| < 2^31 on the wire */
    uint32_t seq;           /* grows by one with each new map */
    int32_t line_minus_map; /* 2^-4 ns: what readers see minus what consensus uses, now */
};
struct probe_anchor {
    struct nic_id nic; /* NIC_NONE: no anchor */
    uint32_t bound_ns;
    int64_t utc_minus_fleet_ns;
    uint32_t age_ms;
};

struct probe {
    uint8_t version; /* encode: as agreed with the peer; 1 drops the anchor */
    uint8_t version_lowest;
    enum probe_type type;
    enum probe_state state;
    bool settled, tight, core; /* claims about the sender's place in the fleet */
    bool hardware;             /* the stamps in here come from the NIC */
    /* the sender itself was late: packets that it did not hear prove nothing */
    bool late;
    uint8_t wanted; /* bit k: "your path k is overdue: send a burst on it" */
    uint8_t dead;   /* bit k: "nothing comes through your path k" (proven) */
    bool second;    /* the second packet of a pair */
    uint8_t path;
    uint32_t key_id; /* set by decode: the key of the tag */
    bool pair;       /* set by decode: that key is the two hosts' own, so src is proven */
    struct nic_id src, dst;
    uint64_t timeline;
    uint32_t epoch;
    uint32_t timeline_age_s;
    union {
        struct {
            struct probe_stamps own, heard; /* in the first four types */
            union {
                struct probe_query query;     /* in PROBE_QUERY, PROBE_ANSWER */
                struct probe_measure measure; /* in PROBE_MEASURE, PROBE_MEASURED, PROBE_ROUND */
            };
            struct probe_map map;
        };
        struct probe_digest
            digest; /* in PROBE_DIGEST; then the four above, bounds and anchor are not valid */
        struct probe_port port; /* in PROBE_PORT; the same */
        struct probe_ud ud;     /* in PROBE_UD; the same */
    };
    uint16_t sqrt_p00; /* 0.1 ns */
    uint16_t scale;    /* 0.1 ns */
    uint32_t h_ns;     /* hard bound; UINT32_MAX = none */
    struct probe_anchor anchor;
    uint32_t seq;
    uint32_t received;
};

struct probe_key {
    uint32_t id; /* never 0 */
    uint8_t bytes[PROBE_KEY_SIZE];
    bool pair; /* for two hosts, made from the fleet's key of that id */
};

/* Why a packet was dropped; each reason is counted separately. */
enum probe_error {
    PROBE_OK,
    PROBE_ERROR_SIZE, /* not 160 bytes: truncated, or another program's */
    PROBE_ERROR_MAGIC,
    /* newer than this release: the sender will use an older version once it hears us */
    PROBE_ERROR_VERSION_NEWER,
    PROBE_ERROR_VERSION_OLDER, /* older than this release reads: it needs an upgrade */
    PROBE_ERROR_KEY,           /* a key id that is not in use here */
    PROBE_ERROR_TAG,           /* forged or damaged */
    PROBE_ERROR_LENGTH,        /* from here on: authentic, but malformed */
    PROBE_ERROR_RESERVED,      /* a bit or byte that must be 0 */
    PROBE_ERROR_TYPE,
    PROBE_ERROR_STATE,
    PROBE_ERROR_NIC,   /* src, dst, subject or anchor out of range, or src = dst */
    PROBE_ERROR_STAMP, /* a stamp or gap out of range, or given though `present` is false */
    PROBE_ERROR_MAP,
    PROBE_ERROR_ANCHOR,
    PROBE_ERROR_DIGEST, /* observations that don't fill it, or are out of range */
    PROBE_ERROR_COUNT
};

/* Adds an observation; false: no room. */
MUST_CHECK bool probe_digest_put(struct probe_digest *digest, const struct probe_observation *o);
/* The observation at *at, 0 at first; *at is moved to the next one. False: none left, or invalid (never after probe_decode). */
MUST_CHECK bool probe_digest_next(const struct probe_digest *digest, uint16_t *at,
                                  struct probe_observation *ret);

/* Writes PROBE_SIZE bytes. A value beyond its range in the packet is a bug of the caller: times, y and line saturate, path is
 * masked. src, dst must be in range. */
void probe_encode(uint8_t bytes[static PROBE_SIZE], const struct probe *probe,
                  const struct probe_key *key);

/* Writes key id and tag anew, over bytes that were changed: a host with the key could send them. */
void probe_seal(uint8_t bytes[static PROBE_SIZE], const struct probe_key *key);

/* Checks and reads. keys: those that are valid now, only a few. *ret is set on PROBE_OK only. */
MUST_CHECK enum probe_error probe_decode(const uint8_t *bytes, size_t size,
                                         const struct probe_key *keys, size_t key_count,
                                         struct probe *ret);

/* The key that a packet needs, before its tag is checked. False: not a probe. Nothing in it is proven. */
struct probe_claim {
    struct nic_id src, dst;
    bool pair;
};
MUST_CHECK bool probe_claim_read(const uint8_t *bytes, size_t size, struct probe_claim *ret);

/* A short English name, for counters in JSON: "size", "magic", "version_newer", ... */
const char *probe_error_name(enum probe_error error);
