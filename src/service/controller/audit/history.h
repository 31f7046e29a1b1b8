/* history.h: the incidents that a host caused, as a fact of this host. A host with repeated incidents is a lemon, although
 * each inspection may find it well. After two weeks an incident counts half; after a month it counts nothing. */
#pragma once
#include "platform/store/store.h"

struct sheet;
struct audit_history;

/* Called in the keeper thread: reads the incidents of the last month from the store. -ENOMEM, or an error of the store. */
MUST_CHECK int audit_history_new(struct store *store, int64_t now_ns,
                                 struct audit_history **ret_history);
struct audit_history *audit_history_free(struct audit_history *h);
/* Adds the fact `history` of this host to its sheet. The history owns the fact's text. -ENOMEM. */
MUST_CHECK int audit_history_fact(struct audit_history *h, const char *host, struct sheet *sheet);
