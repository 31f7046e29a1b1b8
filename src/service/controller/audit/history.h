/* history.h: the incidents that a host was the cause of, as a fact of it: who is ill again and again is a lemon, though it is
 * well whenever somebody looks. An incident counts half after two weeks and nothing after a month. */
#pragma once
#include "platform/store/store.h"

struct sheet;
struct audit_history;

/* In the keeper: what the store has of the last month. -ENOMEM, or the store's. */
MUST_CHECK int audit_history_new(struct store *store, int64_t now_ns,
                                 struct audit_history **ret_history);
struct audit_history *audit_history_free(struct audit_history *h);
/* The fact `history` of this host into its sheet; its text stays the history's own. -ENOMEM. */
MUST_CHECK int audit_history_fact(struct audit_history *h, const char *host, struct sheet *sheet);
