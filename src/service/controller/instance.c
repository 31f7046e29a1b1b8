/* instance.c: see instance.h. */
#include <errno.h>
#include <gnutls/crypto.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "service/controller/controller.h"
#include "service/controller/fleet/state.h"
#include "service/controller/instance.h"
#include "service/controller/place.h"

#define SAVED_NAME "instance"
#define MAC_SIZE   16 /* of the 32 bytes of SHA-256 */
#define OTHER_NS   (3600 * NS_PER_S)
/* for an answer that was being sent when this controller began */
#define OVERLAP_NS   (10 * NS_PER_S)
#define SAVED_FORMAT "%" PRIx64 " %" PRIx64

static const char purpose[] = "foliot controller instance";

static uint32_t start_of(uint64_t id)
{
    return (uint32_t)id;
}

static bool newer_than(struct instance_start x, struct instance_start y)
{
    return x.generation != y.generation ? x.generation > y.generation
                                        : start_of(x.id) > start_of(y.id);
}

/* ---- on the disk: "MOST NEWER-GENERATION NEWER-ID", then a line "GENERATION ID" for each start, newest first ---- */

static void parse(struct instance *n, const char *text)
{
    int used = 0;
    if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64 "%n", &n->most, &n->newer.generation,
               &n->newer.id, &used) != 3) {
        return;
    }
    while (n->count < INSTANCE_KEPT) {
        struct instance_start s;
        int more = 0;
        if (sscanf(text + used, "%" SCNx64 " %" SCNx64 "%n", &s.generation, &s.id, &more) != 2) {
            return;
        }
        n->starts[n->count++] = s;
        used += more;
    }
}

static int load(struct store *s, struct instance *ret)
{
    char *value = NULL;
    size_t size = 0;
    *ret = (struct instance){0};
    const int r = store_get(s, SAVED_NAME, &value, &size);
    if (r < 0) {
        return r == -ENOENT ? 0 : r; /* an older version wrote the store */
    }
    char *text = strndup(value, size);
    if (text != NULL) {
        parse(ret, text);
    }
    free(text);
    free(value);
    return text != NULL ? 0 : -ENOMEM;
}

static int save(struct store *s, const struct instance *n)
{
    char text[(INSTANCE_KEPT + 2) * 36];
    int used = snprintf(text, sizeof(text), "%" PRIx64 " " SAVED_FORMAT "\n", n->most,
                        n->newer.generation, n->newer.id);
    for (size_t i = 0; i < n->count; i++) {
        used += snprintf(text + used, sizeof(text) - (size_t)used, SAVED_FORMAT "\n",
                         n->starts[i].generation, n->starts[i].id);
    }
    const int r = store_put(s, SAVED_NAME, text, (size_t)used);
    return r < 0 ? r : store_commit(s);
}

/* ---- the token: generation, id, code ---- */

static int code(const struct controller *c, const uint8_t token[INSTANCE_TOKEN_SIZE],
                uint8_t ret[MAC_SIZE])
{
    uint8_t text[sizeof(purpose) + 16], whole[32];
    memcpy(text, purpose, sizeof(purpose));
    memcpy(text + sizeof(purpose), token, 16);
    if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, c->authority_key, strlen(c->authority_key), text,
                         sizeof(text), whole) < 0) {
        return -EIO;
    }
    memcpy(ret, whole, MAC_SIZE);
    return 0;
}

int instance_token(const struct controller *c, bool moment, uint8_t ret[INSTANCE_TOKEN_SIZE])
{
    const struct instance_start *s = &c->instance.starts[0];
    const int64_t later_ms = controller_utc_ns() / NS_PER_MS - (int64_t)s->generation;
    const int64_t slots =
        (later_ms < 0 ? later_ms - (INSTANCE_SLOT_MS - 1) : later_ms) / INSTANCE_SLOT_MS;
    const uint64_t id = (moment ? (uint64_t)slots << 32 : 0) | start_of(s->id);
    for (size_t i = 0; i < 8; i++) {
        ret[i] = (uint8_t)(s->generation >> (8 * i));
        ret[8 + i] = (uint8_t)(id >> (8 * i));
    }
    return code(c, ret, ret + 16);
}

/* ---- life ---- */

int instance_load(struct controller *c)
{
    struct instance *n = &c->instance;
    const int r = load(c->store, n);
    if (r < 0 || n->newer.generation == 0) {
        return r;
    }
    c->is_copy = true;
    controller_say(LOG_ERR,
                   "%s/store.db is an older copy: a newer controller of this fleet serves hosts "
                   "(start %" PRIu64 "). If that one is gone for good: foliot-controller takeover",
                   c->config.data_dir, n->newer.generation);
    return -ESTALE;
}

int instance_begin(struct controller *c)
{
    struct instance *n = &c->instance;
    struct instance_start s = {.generation = (uint64_t)(controller_utc_ns() / NS_PER_MS)};
    if (gnutls_rnd(GNUTLS_RND_NONCE, &s.id, sizeof(s.id)) < 0 ||
        gnutls_rnd(GNUTLS_RND_NONCE, &c->join_salt, sizeof(c->join_salt)) < 0) {
        return -EIO;
    }
    s.generation = s.generation > n->most ? s.generation : n->most + 1;
    n->most = s.generation;
    n->count = n->count < INSTANCE_KEPT ? n->count + 1 : INSTANCE_KEPT;
    memmove(&n->starts[1], &n->starts[0], (n->count - 1) * sizeof(n->starts[0]));
    n->starts[0] = s;
    n->since = controller_mono();
    return save(c->store, n);
}

int instance_take(struct store *s)
{
    struct instance n;
    const int r = load(s, &n);
    n.newer = (struct instance_start){0};
    return r < 0 ? r : save(s, &n);
}

/* ---- agents' tokens ---- */

static bool read_token(const struct controller *c, const void *token, size_t size,
                       struct instance_start *ret)
{
    uint8_t good[MAC_SIZE];
    const uint8_t *bytes = token;
    if (size != INSTANCE_TOKEN_SIZE || code(c, bytes, good) < 0 ||
        gnutls_memcmp(good, bytes + 16, MAC_SIZE) != 0) {
        return false;
    }
    *ret = (struct instance_start){0};
    for (size_t i = 0; i < 8; i++) {
        ret->generation |= (uint64_t)bytes[i] << (8 * i);
        ret->id |= (uint64_t)bytes[8 + i] << (8 * i);
    }
    return true;
}

/* True if it is this start, an earlier start of this controller, or a start that is older than all kept ones. */
static bool own(const struct instance *n, struct instance_start s)
{
    for (size_t i = 0; i < n->count; i++) {
        if (n->starts[i].generation == s.generation &&
            start_of(n->starts[i].id) == start_of(s.id)) {
            return true;
        }
    }
    return n->count == INSTANCE_KEPT && s.generation < n->starts[n->count - 1].generation;
}

static void stop(struct controller *c, const char *host, struct instance_start newer)
{
    struct instance *n = &c->instance;
    n->newer = newer;
    n->most = newer.generation > n->most ? newer.generation : n->most;
    /* reports that are not acknowledged here go to the newer controller */
    store_rollback(c->store);
    state_committed(c, false);
    ingest_answer_waiting(c, -ESTALE);
    const int r = save(c->store, n);
    controller_say(LOG_CRIT,
                   "stopping: host %s has spoken with a newer controller of this fleet (start "
                   "%" PRIu64 ", this one is %" PRIu64 "). Two controllers serve copies of one "
                   "store. If the other one is gone for good: foliot-controller takeover",
                   host, newer.generation, n->starts[0].generation);
    if (r < 0) {
        controller_say(LOG_ERR, "this stop can't be stored: %s", strerror(-r));
    }
    c->is_copy = true;
    sd_event_exit(c->loop, CONTROLLER_EXIT_COPY);
}

static void note_other(struct instance *n, const char *host, struct instance_start other,
                       uint64_t ago_ms)
{
    const struct mono now = controller_mono();
    const int64_t served_ns = mono_sub(now, n->since).ns;
    if (ago_ms == 0 || ago_ms > (uint64_t)(served_ns / NS_PER_MS) ||
        served_ns - (int64_t)ago_ms * NS_PER_MS < OVERLAP_NS) {
        /* the time is not known, or it is before this controller served: a restore or a takeover */
        return;
    }
    const int64_t answered_ms =
        (int64_t)other.generation + (int64_t)(int32_t)(other.id >> 32) * INSTANCE_SLOT_MS;
    const int64_t since_ms = controller_utc_ns() / NS_PER_MS - answered_ms;
    if (served_ns / NS_PER_MS - since_ms < OVERLAP_NS / NS_PER_MS ||
        since_ms > OTHER_NS / NS_PER_MS || since_ms < -OTHER_NS / NS_PER_MS) {
        return; /* the answer is older, or of a version that sends no time */
    }
    if (!n->other_known) {
        controller_say(LOG_ERR,
                       "host %s spoke with another controller of this fleet %" PRIu64
                       " s ago, while this one serves (start %" PRIu64 ", this one is %" PRIu64
                       "). It serves an older copy of the store: stop it",
                       host, ago_ms / 1000, other.generation, n->starts[0].generation);
    }
    const struct mono answered = {now.ns - (since_ms > 0 ? since_ms * NS_PER_MS : 0)};
    n->other = n->other_known && mono_before(answered, n->other) ? n->other : answered;
    n->other_known = true;
}

enum instance_verdict instance_hear(struct controller *c, const char *host, const void *token,
                                    size_t size, uint64_t ago_ms)
{
    struct instance *n = &c->instance;
    struct instance_start told;
    if (c->is_copy) {
        return INSTANCE_STOP;
    }
    if (!read_token(c, token, size, &told) || own(n, told)) {
        return INSTANCE_GO_ON;
    }
    if (newer_than(told, n->starts[0])) {
        stop(c, host, told);
        return INSTANCE_STOP;
    }
    note_other(n, host, told, ago_ms);
    return INSTANCE_GO_ON;
}

unsigned instance_others(const struct controller *c)
{
    const struct instance *n = &c->instance;
    return n->other_known && mono_sub(controller_mono(), n->other).ns < OTHER_NS;
}
