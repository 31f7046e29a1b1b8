/* record.c: reads recordings and replays them. */
#include "service/record/record.h"

#include "base/arena.h"
#include "base/prng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_SIZE_MAX = 1 << 30 };

struct fleet_memory {
    struct fleet_memory *next;
    struct mesh_peer *peers;
    struct mesh_router *routers;
};

struct record {
    uint8_t *bytes;
    size_t size, at;
    bool ended;
    uint64_t sum; /* checksum of this segment's bytes so far */
    struct record_head head;
    struct node_config config;
    const uint8_t *restored, *copy;
    struct fleet_memory *fleets;
    struct mesh_fleet fleet; /* of the last peers event */
    struct codec codec;
    uint64_t event[CODEC_WORD_MAX];
};

size_t record_fleet_size(const struct mesh_fleet *fleet)
{
    return 16 + fleet->peer_count * sizeof(*fleet->peers) +
           fleet->router_count * sizeof(*fleet->routers);
}

void record_fleet_write(const struct mesh_fleet *fleet, uint8_t *bytes)
{
    const size_t peers = fleet->peer_count * sizeof(*fleet->peers);
    memcpy(bytes, &fleet->seed, 8);
    memcpy(bytes + 8, &fleet->peer_count, 4);
    memcpy(bytes + 12, &fleet->router_count, 4);
    if (fleet->peer_count > 0) {
        memcpy(bytes + 16, fleet->peers, peers);
    }
    if (fleet->router_count > 0) {
        memcpy(bytes + 16 + peers, fleet->routers, fleet->router_count * sizeof(*fleet->routers));
    }
}

static bool fleet_good(const struct mesh_fleet *f)
{
    for (uint32_t i = 0; i < f->peer_count; i++) {
        if (f->peers[i].nic.index >= FLEET_NIC_MAX ||
            (i > 0 && f->peers[i].nic.index <= f->peers[i - 1].nic.index)) {
            return false;
        }
    }
    return true;
}

/* Reads a fleet at r->at into new memory. */
static int read_fleet(struct record *r, struct mesh_fleet *ret_fleet)
{
    struct mesh_fleet f = {0};
    if (r->size - r->at < 16) {
        return -ENODATA;
    }
    memcpy(&f.seed, r->bytes + r->at, 8);
    memcpy(&f.peer_count, r->bytes + r->at + 8, 4);
    memcpy(&f.router_count, r->bytes + r->at + 12, 4);
    if (f.peer_count > FLEET_NIC_MAX || f.router_count > FLEET_NIC_MAX) {
        return -EPROTO;
    }
    if (record_fleet_size(&f) > r->size - r->at) {
        return -ENODATA;
    }
    struct fleet_memory *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return -ENOMEM;
    }
    m->next = r->fleets;
    r->fleets = m;
    m->peers = calloc(fleet_room(f.peer_count), sizeof(*m->peers));
    m->routers = calloc(f.router_count + 1, sizeof(*m->routers));
    if (m->peers == NULL || m->routers == NULL) {
        return -ENOMEM;
    }
    const size_t peers = f.peer_count * sizeof(*m->peers);
    memcpy(m->peers, r->bytes + r->at + 16, peers);
    memcpy(m->routers, r->bytes + r->at + 16 + peers, f.router_count * sizeof(*m->routers));
    f.peers = f.room = m->peers;
    f.peer_capacity = fleet_room(f.peer_count);
    f.routers = m->routers;
    r->at += record_fleet_size(&f);
    if (!fleet_good(&f)) {
        return -EPROTO;
    }
    *ret_fleet = f;
    return 0;
}

static int read_head(struct record *r)
{
    if (r->size < sizeof(r->head) + sizeof(r->config)) {
        return -EPROTO;
    }
    memcpy(&r->head, r->bytes, sizeof(r->head));
    if (r->head.magic != RECORD_MAGIC) {
        return -EPROTO;
    }
    if (r->head.version != RECORD_VERSION || r->head.layout != codec_layout()) {
        return -ESTALE;
    }
    if (r->head.birth_ns < -TIME_NS_MAX || r->head.birth_ns > TIME_NS_MAX) {
        return -EPROTO;
    }
    memcpy(&r->config, r->bytes + sizeof(r->head), sizeof(r->config));
    r->at = sizeof(r->head) + sizeof(r->config);
    const int rc = read_fleet(r, &r->config.fleet);
    if (rc < 0) {
        return rc == -ENODATA ? -EPROTO : rc;
    }
    if (r->head.restored_size > r->size - r->at ||
        r->head.copy_size > r->size - r->at - r->head.restored_size) {
        return -EPROTO;
    }
    r->restored = r->bytes + r->at;
    r->at += r->head.restored_size;
    r->copy = r->bytes + r->at;
    r->at += r->head.copy_size;
    return r->config.nic_count >= 1 && r->config.nic_count <= HOST_NIC_MAX ? 0 : -EPROTO;
}

static int finish_open(struct record *r, struct record **ret_record)
{
    const int rc = read_head(r);
    if (rc < 0) {
        record_close(r);
        return rc;
    }
    codec_init(&r->codec);
    r->sum = CODEC_SUM_EMPTY;
    *ret_record = r;
    return 0;
}

int record_open_memory(struct record **ret_record, const void *bytes, size_t size)
{
    struct record *r = calloc(1, sizeof(*r));
    if (r == NULL || (r->bytes = malloc(size + 1)) == NULL) {
        free(r);
        return -ENOMEM;
    }
    memcpy(r->bytes, bytes, size);
    r->size = size;
    return finish_open(r, ret_record);
}

int record_open(struct record **ret_record, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0) {
        return -errno;
    }
    int rc = fstat(fd, &st) < 0           ? -errno
             : !S_ISREG(st.st_mode)       ? -EPROTO
             : st.st_size > FILE_SIZE_MAX ? -EFBIG
                                          : 0;
    struct record *r = rc == 0 ? calloc(1, sizeof(*r)) : NULL;
    if (r != NULL) {
        r->bytes = malloc((size_t)st.st_size + 1);
    }
    if (rc == 0 && (r == NULL || r->bytes == NULL)) {
        rc = -ENOMEM;
    }
    while (rc == 0 && r->size < (size_t)st.st_size) {
        const ssize_t n = read(fd, r->bytes + r->size, (size_t)st.st_size - r->size);
        if (n < 0 && errno != EINTR) {
            rc = -errno;
        }
        if (n == 0) {
            break;
        }
        r->size += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (rc < 0) {
        record_close(r);
        return rc;
    }
    return finish_open(r, ret_record);
}

struct record *record_close(struct record *r)
{
    if (r != NULL) {
        for (struct fleet_memory *m = r->fleets, *next; m != NULL; m = next) {
            next = m->next;
            free(m->peers);
            free(m->routers);
            free(m);
        }
        free(r->bytes);
        free(r);
    }
    return NULL;
}

struct mono record_birth(const struct record *r)
{
    return (struct mono){r->head.birth_ns};
}

bool record_whole(const struct record *r)
{
    return (r->head.flags & RECORD_WHOLE) != 0;
}

/* Called at a segment's end. */
static int next_segment(struct record *r)
{
    const int rc = codec_decode_end(r->bytes + r->at, r->size - r->at, r->sum, &r->ended);
    if (rc < 0) {
        return rc;
    }
    r->at += CODEC_END_SIZE;
    r->sum = CODEC_SUM_EMPTY;
    codec_init(&r->codec);
    return r->ended && r->at != r->size ? -EPROTO : 0;
}

/* Takes the event at r->at; used: its size by the codec. */
static int take_event(struct record *r, size_t used, enum node_event_kind kind,
                      const void **ret_event)
{
    const size_t from = r->at;
    int rc = 0;
    r->at += used;
    *ret_event = r->event;
    if (kind == NODE_EVENT_PEERS) {
        rc = read_fleet(r, &r->fleet);
        *ret_event = &r->fleet;
    } else if (kind < CODEC_DRAIN) {
        rc = codec_check(&r->config, kind, r->event);
    }
    if (rc < 0) {
        r->at = from;
        return rc;
    }
    r->sum = hash_bytes(r->sum, r->bytes + from, r->at - from);
    return 1;
}

int record_next(struct record *r, enum node_event_kind *ret_kind, struct mono *ret_now,
                const void **ret_event)
{
    while (!r->ended) {
        const long used =
            codec_decode(&r->codec, r->bytes + r->at, r->size - r->at, ret_kind, ret_now, r->event);
        if (used < 0) {
            return (int)used;
        }
        if (used > 0) {
            return take_event(r, (size_t)used, *ret_kind, ret_event);
        }
        const int rc = next_segment(r);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Makes the node in its state at the beginning of the events. */
static int make_node(struct record *r, bool trust_copy, struct node **ret_node)
{
    if (r->head.copy_size != 0) {
        if (!trust_copy) {
            return -EACCES;
        }
        const int rc = arena_open_copy(r->copy, r->head.copy_size);
        if (rc < 0) {
            return rc;
        }
        if (r->head.node < ARENA_ADDRESS || r->head.node >= ARENA_ADDRESS + r->head.copy_size) {
            arena_close();
            return -EPROTO;
        }
        *ret_node = (struct node *)(uintptr_t)r->head.node;
        return 0;
    }
    if (!record_whole(r)) {
        return -ENOTSUP;
    }
    int rc = node_new(ret_node, &r->config, record_birth(r));
    if (rc == 0 && r->head.restored_size != 0) {
        rc = node_restore(*ret_node, record_birth(r), r->restored, r->head.restored_size);
        if (rc < 0) {
            *ret_node = node_free(*ret_node);
        }
    }
    return rc;
}

enum { FINDING_PENDING_MAX = 256 };

struct player {
    struct node *node;
    void (*on_action)(void *context, struct mono now, const struct node_action *);
    void *context;
    struct record_outcome outcome;
    struct finding said[FINDING_PENDING_MAX]; /* recorded findings since the last drain */
    size_t said_count;
};

/* Takes the node's actions at the same points as the agent. */
static void drain(struct player *p, struct mono now)
{
    struct node_action action;
    size_t given = 0;
    while (node_next_action(p->node, &action)) {
        p->outcome.actions++;
        if (action.kind == NODE_FINDING) {
            if (given >= p->said_count ||
                memcmp(&action.finding, &p->said[given], sizeof(action.finding)) != 0) {
                p->outcome.different++;
            }
            given++;
        }
        p->on_action(p->context, now, &action);
    }
    if (given < p->said_count) {
        p->outcome.different += (long)(p->said_count - given);
    }
    p->said_count = 0;
}

static int play_event(struct player *p, enum node_event_kind kind, struct mono now,
                      const void *event)
{
    if (kind == CODEC_DRAIN) {
        drain(p, now);
        return 0;
    }
    if (kind == (enum node_event_kind)CODEC_FINDING) {
        p->outcome.findings++;
        if (p->said_count < FINDING_PENDING_MAX) {
            memcpy(&p->said[p->said_count++], event, sizeof(p->said[0]));
        }
        return 0;
    }
    p->outcome.events++;
    const int r = node_on_event(p->node, now, kind, event);
    return r == -EINVAL && (kind == NODE_EVENT_PEERS || kind == NODE_EVENT_SETTINGS ||
                            kind == NODE_EVENT_MEMBER)
               ? 0
               : r; /* the agent's node refused it, too */
}

/* The events end here, or are damaged. Damage is part of the outcome. */
static void note_end(struct player *p, const struct record *r, int *rc)
{
    if (*rc == -EPROTO || *rc == -ENODATA) {
        p->outcome.damage = *rc;
        p->outcome.damage_at = r->at;
        p->outcome.findings -= (long)p->said_count; /* these were not compared */
        *rc = 0;
    }
}

int record_play(struct record *r, bool trust_copy,
                void (*on_action)(void *context, struct mono now, const struct node_action *),
                void *context, struct node **ret_node, struct record_outcome *ret_outcome)
{
    struct player *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return -ENOMEM;
    }
    p->on_action = on_action;
    p->context = context;
    int rc = make_node(r, trust_copy, &p->node);
    while (rc == 0) {
        enum node_event_kind kind;
        struct mono now;
        const void *event = NULL;
        rc = record_next(r, &kind, &now, &event);
        if (rc <= 0) {
            note_end(p, r, &rc);
            break;
        }
        rc = play_event(p, kind, now, event);
    }
    if (rc == 0) {
        *ret_node = p->node;
        *ret_outcome = p->outcome;
    } else if (arena_is_open()) {
        arena_close();
    } else {
        node_free(p->node);
    }
    free(p);
    return rc;
}
