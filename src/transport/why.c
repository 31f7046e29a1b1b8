/* why.c: text for people: why the last call failed, and what happened. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "transport/internal.h"
#include "transport/lane_pair.h"

static _Thread_local char last[WHY_SIZE];

const char *transport_why(void)
{
    return last;
}

void why(const char *format, ...)
{
    char text[WHY_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    plain_text(text, last, sizeof(last));
}

/* The text for errors that come without one. */
static const char *meaning(int error)
{
    switch (error) {
    case -ECONNABORTED:
        return "the peer closed the communicator";
    case -EINVAL:
        return "expected up to 1 GiB, sent by the end that connected or received by the one that "
               "accepted";
    case -ENOBUFS:
        return "there are as many peers (16,384), or communicators to this one (1,024), as there "
               "may be";
    case -ENOMEM:
        return "out of memory";
    case -ENOTRECOVERABLE:
        return "a bug of Foliot's own ended all that goes to this peer";
    default:
        return strerror(-error);
    }
}

int why_error(int error)
{
    if (error < 0) {
        why("%s", meaning(error));
    }
    return error;
}

int why_child(void)
{
    why("a child of fork() can't use the communicators of its parent: it may initialise anew");
    return -ECHILD;
}

/* With seven retries (lane_offer.c) a NIC asks a peer without a posted cell for ever: such a peer looks silent, and gives no
 * error. */
static const char *broke_by(enum io_qp_status status)
{
    switch (status) {
    case IO_QP_RETRIES:
        return "nothing came back from the peer's NIC; look at the links and routers between the "
               "two NICs, and at PFC";
    case IO_QP_RNR:
        return "the peer had no receive posted, and this NIC gave up though told to ask for ever "
               "(rnr_retry 7); look at its driver's log";
    case IO_QP_REFUSED:
        return "the peer's NIC refused a request; look at the peer's log";
    case IO_QP_BROKEN:
        return "this NIC failed or refused a request; look at its driver's log";
    default:
        return "this NIC gave no reason; look at its driver's log";
    }
}

const char *why_lane(const struct stream *stream, char text[LANE_WHY_SIZE])
{
    const struct lane_pair *qp = stream->qp;

    text[0] = '\0';
    if (qp != NULL && qp->broke.status != IO_QP_OK) {
        snprintf(text, LANE_WHY_SIZE,
                 ": its queue pair ended with ibv_wc_status %u, vendor 0x%x: %s", qp->broke.number,
                 qp->broke.vendor, broke_by(qp->broke.status));
    }
    return text;
}

void say(const struct transport *t, enum transport_level level, const char *format, ...)
{
    char text[WHY_SIZE], plain[WHY_SIZE];
    va_list arguments;

    if (t->config.say == NULL) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    plain_text(text, plain, sizeof(plain)); /* an interface may have any name */
    t->config.say(t->config.say_context, level, plain);
}
