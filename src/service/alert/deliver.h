/* deliver.h: sends notices to receivers (HTTP, SMTP, a command), and retries until a receiver takes them.
 *
 * It has its own thread, so a receiver that hangs delays neither the fleet's reports nor the other receivers. Each receiver
 * gets its notices in order, one at a time, on a connection that stays open. A notice that isn't taken is sent again after 1
 * s, 2 s, 4 s … at most 60 s. So a receiver may get a notice twice, and recognises the second copy by its key. A refusal (HTTP
 * 4xx other than 408, 425, 429) is final. At most DELIVER_QUEUE_MAX notices wait for a receiver. If there are more, the oldest
 * repetition is dropped, or else the oldest notice. A dropped notice is counted and reported to `on_trouble`. A heartbeat is
 * not sent again, because the next one follows soon. */
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
/* The thread calls it; it must not call deliver functions. */
typedef void (*deliver_on_trouble)(void *context, const struct deliver_trouble *trouble);

/* Receivers are copied. -ENOMEM, -EAGAIN (no thread). */
MUST_CHECK int deliver_new(const struct alert_receiver *receivers, size_t count,
                           deliver_on_trouble on_trouble, void *context, struct deliver **ret);
/* Waits at most `wait_ms` for notices that are being sent. NULL is allowed. Notices that still wait go to the receiver of the
 * same name in `heir` (NULL: there is no heir). Nothing was put to that receiver yet. Returns how many notices were left. */
size_t deliver_free(struct deliver *d, unsigned wait_ms, struct deliver *heir);
/* Any thread may call it. The notice is copied. */
void deliver_put(struct deliver *d, uint32_t receivers, const struct alert_notice *notice);

struct deliver_counters {
    uint64_t delivered, failed, given_up; /* notices taken; attempts that failed; notices lost */
    uint32_t waiting;
};
void deliver_counters(struct deliver *d, size_t receiver, struct deliver_counters *ret);
