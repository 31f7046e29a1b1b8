/* past.h: what was never the same twice, kept of each audit for some days, and of accepted ones for good: a host's counters of a
 * day before, and what was measured when somebody accepted an audit, beside its sheet of now (core/audit/past.h). */
#pragma once
#include "core/audit/fact.h"
#include "service/controller/audit/audit.h"

#define AUDIT_PAST_NS (8 * 86400 * NS_PER_S) /* audits of the last week can be judged anew */

/* The accepted audit that hosts are compared with; run 0: there is none. */
struct audit_accepted {
    int64_t run, began_ns, ended_ns;
    char words[AUDIT_WORDS_SIZE]; /* for people: which, of when */
};
MUST_CHECK int audit_accepted_newest(struct store *store, struct audit_accepted *ret);

/* The sheet's facts that are never the same twice, packed; with those that the controller put there. */
MUST_CHECK int audit_past_pack(const struct sheet *s, struct audit_past *ret);
/* The same of a host at a moment, in memory of its own; keep: which facts (NULL: all). NULL: there are none. */
MUST_CHECK int audit_past_sheet(struct store *store, int64_t host, int64_t from_ns, int64_t to_ns,
                                bool (*keep)(enum fact_id), struct sheet **ret_sheet);
/* A host's sheet as it was judged at that moment, with what is beside it. NULL: what was never the same twice is not kept. */
MUST_CHECK int audit_past_whole(struct store *store, int64_t host, const char *name, int64_t at_ns,
                                const struct audit_accepted *accepted, struct sheet **ret_sheet);
/* s->was and s->accepted. */
MUST_CHECK int audit_past_add(struct store *store, int64_t host,
                              const struct audit_accepted *accepted, struct sheet *s);
