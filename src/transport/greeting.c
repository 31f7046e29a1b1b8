/* greeting.c: a program that connects says who it is, and proves it, before its connection becomes a lane.
 *
 * HELLO ─► HELLO_OK, with a nonce for this connection ─► PROOF ─► a lane, and its set if it is the first. Until the PROOF only
 * this connection exists: a recorded HELLO gets that far, and costs one descriptor for a while. A peer of version 3 or less has
 * no PROOF: its HELLO makes the lane. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/internal.h"

#define PROOF_NS (5 * NS_PER_S) /* a sender's process may have to wait for a processor */

static void refuse(struct transport *t, struct pending *pending, enum lane_no reason,
                   uint64_t context)
{
    const struct lane_refusal refusal = {.newest = t->config.version,
                                         .lowest = LANE_VERSION_LOWEST,
                                         .reason = reason,
                                         .context = context};
    uint8_t bytes[LANE_NO_SIZE];
    const struct iovec part = {bytes, sizeof(bytes)};
    char text[IO_ADDRESS_TEXT];

    lane_refusal_encode(bytes, &refusal);
    (void)!t->io->send(t->io, pending->conn, &part, 1);
    t->io->close(t->io, pending->conn, false);
    pending->conn = -1;
    say(t, reason == LANE_NO_FULL ? TRANSPORT_TRACE : TRANSPORT_INFO, "refused a lane from %s: %s",
        io_address_text(&pending->peer, text), lane_no_name(reason));
}

/* NCCL's own socket transport, or a plugin derived from it, begins with the cookie that it found in our handle. */
static bool is_foreign(struct transport *t, const struct pending *pending)
{
    bool found = false;
    uint64_t cookie;

    memcpy(&cookie, pending->bytes, sizeof(cookie));
    pthread_mutex_lock(&t->listen_lock);
    for (struct transport_listener *l = t->listeners; l != NULL; l = l->next) {
        if (l->cookie == cookie) {
            char text[IO_ADDRESS_TEXT];
            snprintf(l->why, sizeof(l->why),
                     "%s connects with another network plugin or NCCL's own: set "
                     "NCCL_NET_PLUGIN=foliot there, too",
                     io_address_text(&pending->peer, text));
            l->error = -EPROTONOSUPPORT;
            found = true;
            say(t, TRANSPORT_WARN, "%s", l->why);
        }
    }
    pthread_mutex_unlock(&t->listen_lock);
    return found;
}

/* The number of other connections of the same set that were answered and have no proof yet; *ret_twin: one is for the same lane,
 * too. */
static uint32_t waiting_for(const struct transport *t, const struct pending *pending,
                            bool *ret_twin)
{
    const struct lane_hello *hello = &pending->hello;
    uint32_t count = 0;

    *ret_twin = false;
    for (uint32_t i = 0; i < t->pending_count; i++) {
        const struct pending *other = t->pending[i];
        if (other->greeted && other->nic == pending->nic &&
            other->hello.own_context == hello->own_context && other->hello.set == hello->set) {
            count++;
            *ret_twin = *ret_twin ||
                        (other->hello.lane == hello->lane && other->hello.epoch == hello->epoch);
        }
    }
    return count;
}

/* Sends HELLO_OK, then waits for the PROOF. False: it is refused. */
static bool greet(struct transport *t, struct pending *pending, uint8_t version,
                  enum lane_no *ret_no)
{
    uint8_t bytes[LANE_HELLO_SIZE];
    bool twin;
    const uint32_t waiting = waiting_for(t, pending, &twin);

    *ret_no = LANE_NO_LANE;
    if (twin || in_admit(t, pending, version, waiting, ret_no) < 0) {
        return false;
    }
    if (!in_fence(t, pending)) {
        return false;
    }
    in_answer(t, pending, version, bytes);
    for (size_t said = 0; said < sizeof(bytes);) {
        const struct iovec part = {bytes + said, sizeof(bytes) - said};
        const ssize_t n = t->io->send(t->io, pending->conn, &part, 1);
        if (n <= 0) {
            return false; /* no room for the first bytes on a connection */
        }
        said += (size_t)n;
    }
    pending->greeted = true;
    pending->version = version;
    pending->until = mono_add(t->io->now(t->io), span_ns(PROOF_NS));
    pending->size = 0;
    ceiling_opened(t);
    return true;
}

/* HELLO is complete. True: the connection isn't pending any more. */
static bool on_hello(struct transport *t, struct pending *pending)
{
    struct lane_hello *hello = &pending->hello;
    uint64_t context = 0;
    enum lane_no no = LANE_NO_LANE;
    enum lane_error error = lane_hello_context(pending->bytes, pending->size, &context);

    pending->nic = 0;
    while (pending->nic < t->config.nic_count && t->nics[pending->nic].context != context) {
        pending->nic++;
    }
    if (error == LANE_ERROR_NONE && pending->nic == t->config.nic_count) {
        refuse(t, pending, LANE_NO_CONTEXT, 0);
        return true;
    }
    if (error == LANE_ERROR_NONE) {
        error = lane_hello_decode(pending->bytes, pending->size, t->nonce, t->key, hello, NULL);
    }
    if (error != LANE_ERROR_NONE) {
        refuse(t, pending,
               error == LANE_ERROR_VERSION ? LANE_NO_VERSION
               : error == LANE_ERROR_TAG   ? LANE_NO_KEY
                                           : LANE_NO_LANE,
               context);
        return true;
    }
    if (hello->answer || memcmp(hello->own_address, pending->peer.ip, 16) != 0) {
        refuse(t, pending, LANE_NO_KEY, context); /* it has another NIC than it says */
        return true;
    }
    t->io->random(t->io, pending->nonce, sizeof(pending->nonce));
    const uint8_t newest = hello->newest < t->config.version ? hello->newest : t->config.version;
    const uint8_t version = lane_version_agree(newest, hello->lowest);
    if (version >= 4 && greet(t, pending, version, &no)) {
        return false;
    }
    if (version >= 4 || in_admit(t, pending, version, 0, &no) < 0 ||
        in_attach(t, pending, version, &no) < 0) {
        refuse(t, pending, no, context);
    }
    return true;
}

static void on_proof(struct transport *t, struct pending *pending)
{
    const uint64_t context = t->nics[pending->nic].context;
    enum lane_no no;

    if (lane_proof_decode(pending->proof, pending->size, pending->bytes, pending->nonce, t->key,
                          &pending->fenced) != LANE_ERROR_NONE) {
        refuse(t, pending, LANE_NO_KEY, context);
    } else if (in_attach(t, pending, pending->version, &no) < 0) {
        refuse(t, pending, no, context);
    }
}

bool greeting_read(struct transport *t, struct pending *pending)
{
    uint8_t *bytes = pending->greeted ? pending->proof : pending->bytes;
    const uint32_t whole = pending->greeted ? LANE_PROOF_SIZE : LANE_HELLO_SIZE;
    const struct iovec part = {bytes + pending->size, whole - pending->size};
    const ssize_t n = t->io->receive(t->io, pending->conn, &part, 1, NULL);

    if (n <= 0) {
        return n != -EAGAIN;
    }
    pending->size += (uint32_t)n;
    if (!pending->greeted && bytes[0] != LANE_HELLO) {
        if (pending->size < sizeof(uint64_t)) {
            return false;
        }
        (void)is_foreign(t, pending);
        return true;
    }
    if (pending->size < whole) {
        return false;
    }
    if (!pending->greeted) {
        return on_hello(t, pending);
    }
    on_proof(t, pending);
    return true;
}
