/* gate.c: see gate.h. */
#include "core/audit/gate.h"

#include <stdio.h>

struct gate gate_of(const struct audit *a, uint32_t sheet)
{
    struct gate g = {.status = AUDIT_UNKNOWN, .unread = true};

    for (uint32_t i = 0; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        if (r->sheet == sheet && r->severity == SEVERITY_BLOCK) {
            g.counts[r->status]++;
            g.worst = g.worst == NULL || r->status < g.worst->status ? r : g.worst;
            g.unread = g.unread && r->status == AUDIT_UNKNOWN && r->reason == g.worst->reason;
        }
    }
    if (g.worst != NULL && g.worst->status != AUDIT_SKIP) {
        g.status = g.worst->status;
    }
    if (g.worst != NULL) {
        device_name(&a->sheets[sheet], g.worst->subject, g.device);
    }
    return g;
}

const char *gate_line(const struct gate *g, char ret_text[GATE_LINE_SIZE])
{
    const struct audit_result *r = g->worst;

    if (r == NULL) {
        snprintf(ret_text, GATE_LINE_SIZE, "nothing was judged");
    } else if (g->status == AUDIT_PASS) {
        snprintf(ret_text, GATE_LINE_SIZE, "%u blocking checks pass, %u do not apply",
                 g->counts[AUDIT_PASS], g->counts[AUDIT_SKIP]);
    } else if (g->unread && r->note[0] != '\0') {
        snprintf(ret_text, GATE_LINE_SIZE, "not read (%s): %.200s", audit_reason_name(r->reason),
                 r->note);
    } else {
        const bool found = r->found[0] != '\0', expected = r->expected[0] != '\0';
        snprintf(ret_text, GATE_LINE_SIZE, "%s%s%.120s%s%.100s%s: %.100s%s%s%.100s%s%.40s%s%.100s",
                 r->check->id, r->subject[0] != '\0' ? " " : "", r->subject,
                 g->device[0] != 0 ? " (" : "", g->device, g->device[0] != 0 ? ")" : "", r->found,
                 found && expected ? ", " : "", expected ? "expected " : "", r->expected,
                 r->basis[0] != '\0' ? ", " : "", r->basis,
                 r->note[0] != '\0' && (found || expected) ? "; " : "", r->note);
    }
    return ret_text;
}
