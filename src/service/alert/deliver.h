/* deliver.h: brings notices to receivers: HTTP, SMTP, a command; again and again until they are taken.
 *
 * One thread of its own, so that a receiver that hangs holds up neither the fleet's reports nor the other
 * receivers. To each receiver its notices go in order, one at a time, on a connection that is kept. What isn't taken is
 * tried again after 1 s, 2 s, 4 s … at most 60 s: at least once; the key in it lets a receiver drop a
 * second copy. A refusal (HTTP 4xx other than 408, 425, 429) is final. At most DELIVER_QUEUE_MAX wait for a
 * receiver: then the oldest repetition goes, else the oldest. What was given up is counted and told to `on_trouble`.
 * A heartbeat is never tried again: the next one comes. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "service/alert/notice.h"

#define DELIVER_QUEUE_MAX 256

struct deliver;

struct deliver_trouble {
    const char *receiver, *key;
    const char *words; /* what went wrong; no URL, no secret */
    unsigned attempts;
    bool given_up;
};
/* From the thread; must not call back. */
typedef void (*deliver_on_trouble)(void *context, const struct deliver_trouble *trouble);

/* Receivers are copied. -ENOMEM, -EAGAIN (no thread). */
MUST_CHECK int deliver_new(const struct alert_receiver *receivers, size_t count,
                           deliver_on_trouble on_trouble, void *context, struct deliver **ret);
/* Waits at most so long for what is on its way; NULL is fine. What still waits goes to the receiver of the same name of `heir`
 * (NULL: nobody), to which nothing was put yet. Returns how many notices were left. */
size_t deliver_free(struct deliver *d, unsigned wait_ms, struct deliver *heir);
/* Any thread. The notice is copied. */
void deliver_put(struct deliver *d, uint32_t receivers, const struct alert_notice *notice);

struct deliver_counters {
    uint64_t delivered, failed, given_up; /* notices taken; attempts that failed; notices lost */
    uint32_t waiting;
};
void deliver_counters(struct deliver *d, size_t receiver, struct deliver_counters *ret);
