/* past.h: facts that change each time: counters and measurements. They are kept for some days for each audit, and for good for
 * accepted audits. So a host's sheet can be compared with its counters of a day before, and with the measurements of the
 * accepted audit (core/audit/past.h). */
#pragma once
#include "core/audit/fact.h"
#include "service/controller/audit/audit.h"

#define AUDIT_PAST_NS (8 * 86400 * NS_PER_S) /* so audits of the last week can be judged again */

/* The accepted audit for comparison; run 0: there is none. */
struct audit_accepted {
    int64_t run, began_ns, ended_ns;
    char words[AUDIT_WORDS_SIZE]; /* for people: which audit, and when */
};
MUST_CHECK int audit_accepted_newest(struct store *store, struct audit_accepted *ret);

/* Packs the sheet's facts that change each time, including those that the controller added. Facts of more than STORE_BODY_MAX
 * bytes are not kept, and *ret stays as it is: such a host is later compared with nothing. */
MUST_CHECK int audit_past_pack(const struct sheet *s, struct audit_past *ret);
/* Reads such facts of a host at a moment. The caller owns the sheet. keep: chooses facts (NULL: all). NULL: there are none. */
MUST_CHECK int audit_past_sheet(struct store *store, int64_t host, int64_t from_ns, int64_t to_ns,
                                bool (*keep)(enum fact_id), struct sheet **ret_sheet);
/* A host's sheet as it was judged at that moment, with the facts to compare with. NULL: the facts that change each time are
 * not kept. */
MUST_CHECK int audit_past_whole(struct store *store, int64_t host, const char *name, int64_t at_ns,
                                const struct audit_accepted *accepted, struct sheet **ret_sheet);
/* Sets s->was and s->accepted. */
MUST_CHECK int audit_past_add(struct store *store, int64_t host,
                              const struct audit_accepted *accepted, struct sheet *s);
