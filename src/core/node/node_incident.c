/* node_incident.c: bad paths become findings, one for each cause.
 *
 * A cut trunk takes dozens of paths with it. Each waits a little until traces have shown where it ends. Then paths with one
 * suspect share a finding, and paths of the same moment without a suspect join it. Incoming paths can't be traced from here: they
 * wait longer, because the sender knows more. A finding closes when its last path works again. */
#include <string.h>

#include "core/node/internal.h"

#define SURE_NS        (40 * NS_PER_MS)  /* a certain suspect is reported so soon */
#define GUESS_NS       (170 * NS_PER_MS) /* at the latest after two rounds of traces */
#define IN_NS          (450 * NS_PER_MS)
#define AGAIN_NS       (250 * NS_PER_MS) /* an unknown suspect is looked at again after so long */
#define AGAIN_UNTIL_NS (3 * NS_PER_S)
#define NEWS_NS        (200 * NS_PER_MS) /* a neighbour's report, with further ones of that time */
/* later: ways are learned meanwhile, and paths come back */
#define AGAIN_LATE_NS NS_PER_S
#define SLOW_NS       NS_PER_S /* meanwhile the windows of the other paths fill */
#define ONE_CAUSE_NS                                                                               \
    (1500 * NS_PER_MS) /* paths that began within it, without a better suspect, are one fault */
#define ECHO_NS                                                                                    \
    (10 *                                                                                          \
     NS_PER_S) /* peers learn their ways anew, maybe into the same hole. What comes in can't be \
                       traced: a fault of its own is named by its sender */

static enum finding_other other_of(const struct path_report *r, bool known)
{
    if (!known) {
        return OTHER_UNKNOWN;
    }
    return r->state == PATH_DEAD    ? OTHER_DEAD
           : r->state == PATH_LOSSY ? OTHER_LOSSY
           : r->state == PATH_ALIVE ? OTHER_FINE
                                    : OTHER_UNKNOWN;
}

static uint16_t advice_for_one(const struct element *e)
{
    switch ((enum element_kind)e->kind) {
    case ELEMENT_NIC:
        return ADVICE_CHECK_CABLE;
    case ELEMENT_TRUNK:
        return ADVICE_CHECK_TRUNK;
    case ELEMENT_LEAF:
    case ELEMENT_SPINE:
    case ELEMENT_ROUTER:
        return ADVICE_CHECK_SWITCH;
    case ELEMENT_HOST:
        return ADVICE_CHECK_PEER_HOST;
    default:
        return ADVICE_NONE;
    }
}

/* For several elements, only advice that is right for each of them. */
static uint16_t advice_for(const struct element *suspect, const struct element_choice *choice)
{
    uint16_t advice = advice_for_one(choice->count > 0 ? &choice->one_of[0] : suspect);

    if (choice->count == 1) {
        return ADVICE_NONE; /* another element is as likely */
    }
    for (uint32_t i = 1; i < choice->count; i++) {
        const uint16_t other = advice_for_one(&choice->one_of[i]);
        const bool fabric = (advice == ADVICE_CHECK_TRUNK || advice == ADVICE_CHECK_SWITCH) &&
                            (other == ADVICE_CHECK_TRUNK || other == ADVICE_CHECK_SWITCH);
        advice = other == advice ? advice : fabric ? ADVICE_CHECK_SWITCH : ADVICE_NONE;
    }
    return advice;
}

static struct bad_path *bad_find(struct node *n, int edge, uint8_t path, uint8_t direction)
{
    ASSERT(edge >= 0 && edge < mesh_edge_capacity(n->mesh) && path < n->config.path_limit);
    return &n->bad[((size_t)edge * n->config.path_limit + path) * 2 + (direction == DIRECTION_IN)];
}

static struct open_finding *incident_by_number(struct node *n, uint32_t number)
{
    for (uint32_t i = 0; i < n->open_count; i++) {
        if (n->open[i].finding.number == number) {
            return &n->open[i];
        }
    }
    return NULL;
}

static bool is_path_kind(uint32_t kind)
{
    return kind == FINDING_PATH_DEAD || kind == FINDING_PATH_LOSSY || kind == FINDING_PATH_SLOW;
}

/* ---- paths go bad and good ------------------------------------------------------------------ */

static void path_bad(struct node *n, struct mono now, const struct mesh_verdict *v,
                     enum finding_kind kind)
{
    struct bad_path *b = bad_find(n, v->edge, v->path, v->direction);

    if (b->kind == kind) {
        return;
    }
    const struct path_flaps flaps = b->flaps;
    *b = (struct bad_path){.kind = (uint8_t)kind,
                           .edge = v->edge,
                           .path = v->path,
                           .direction = v->direction,
                           .proof = v->proof,
                           .since = v->since,
                           .decided = now,
                           .numbers = {v->before_ns, v->after_ns, v->other_ns, v->bound_ns},
                           .flaps = flaps,
                           .waiting = true};
    if (kind == FINDING_PATH_DEAD) {
        node_flap_died(&b->flaps, v->since);
    }
    n->bad_waiting++;
    n->incident_due = mono_min(n->incident_due, mono_add(now, span_ns(SURE_NS)));
}

/* The possible error of the reported length; 0: not known. */
static int64_t length_error(const struct finding *f, struct mono over, struct mesh_length length)
{
    const int64_t told = mono_sub(over, f->since).ns, more = length.most.ns - told,
                  less = told - length.least.ns;

    return length.most.ns == 0 ? 0 : more > less ? more : less;
}

/* The time when the finding's last path works again: from all paths through the element that was gone, or when the first of its
 * own paths worked, or this one. */
static struct mono over_at(struct node *n, struct mono now, struct mono since,
                           struct open_finding *o)
{
    const struct finding *f = &o->finding;
    struct mesh_outage gone;
    int edge = -1;

    for (uint32_t i = 0; i < n->config.nic_count && f->direction == DIRECTION_OUT; i++) {
        edge =
            nic_id_equal(n->config.nics[i].nic, f->from) ? mesh_edge_find(n->mesh, i, f->to) : edge;
    }
    if (f->kind != FINDING_PATH_DEAD) {
        return since;
    }
    since = mono_sub(since, o->back).ns < ONE_CAUSE_NS ? mono_min(since, o->back) : since;
    if (edge < 0 || f->path >= n->config.path_limit ||
        !mesh_outage(n->mesh, now, edge, f->path, &gone)) {
        return since;
    }
    since = gone.over.ns > f->since.ns ? mono_min(since, gone.over) : since;
    if (gone.began.ns > f->since.ns && gone.began.ns < since.ns) {
        node_finding_since(n, &o->finding, gone.began);
    }
    o->finding.length_error_ns = length_error(f, since, gone.length);
    return since;
}

/* The path works again since `since`. */
static void path_good(struct node *n, struct mono now, struct mono since, struct bad_path *b)
{
    struct open_finding *o = incident_by_number(n, b->incident);

    ASSERT(n->bad_waiting >= b->waiting);
    ASSERT(o == NULL || b->incident == 0 || o->paths > 0); /* it was counted when it joined */
    n->bad_waiting -= b->waiting;
    b->kind = FINDING_NONE;
    b->waiting = false;
    if (o) {
        o->back = mono_min(o->back, since);
    }
    if (o && b->incident != 0 && --o->paths == 0 && !o->held) {
        node_finding_close_at(n, over_at(n, now, since, o), (uint32_t)(o - n->open));
    }
    b->incident = 0;
}

/* A path can be slow and alive; for a dead or lossy path that is reported, and not its delay. */
static bool slow_stays(const struct bad_path *b, const struct mesh_verdict *v,
                       enum finding_kind kind)
{
    if (v->kind == MESH_PATH_SLOW || v->kind == MESH_PATH_PACE) {
        return b->kind != FINDING_NONE && b->kind != FINDING_PATH_SLOW;
    }
    return b->kind == FINDING_PATH_SLOW && kind == FINDING_NONE;
}

void node_finding_path(struct node *n, struct mono now, const struct mesh_verdict *v)
{
    const enum finding_kind kind = v->kind == MESH_PATH_SLOW   ? FINDING_PATH_SLOW
                                   : v->kind == MESH_PATH_PACE ? FINDING_NONE
                                   : v->state == PATH_DEAD     ? FINDING_PATH_DEAD
                                   : v->state == PATH_LOSSY    ? FINDING_PATH_LOSSY
                                                               : FINDING_NONE;
    struct bad_path *b = v->edge >= 0 ? bad_find(n, v->edge, v->path, v->direction) : NULL;

    if (v->kind == MESH_TRACED) {
        n->incident_due = n->bad_waiting > 0 ? mono_min(n->incident_due, now) : n->incident_due;
        return;
    }
    if (b && slow_stays(b, v, kind)) {
        return;
    }
    if (b && b->kind != FINDING_NONE && b->kind != kind) {
        path_good(n, now, v->kind == MESH_PATH_STATE && kind == FINDING_NONE ? v->since : now, b);
    }
    if (b && kind != FINDING_NONE) {
        path_bad(n, now, v, kind);
    }
}

/* The edge no longer exists: nothing reports its paths any more. */
void node_incident_forget(struct node *n, struct mono now, int edge)
{
    for (uint8_t p = 0; p < n->config.path_limit; p++) {
        for (uint32_t d = 0; d < 2; d++) {
            struct bad_path *b = bad_find(n, edge, p, d == 0 ? DIRECTION_OUT : DIRECTION_IN);
            if (b->kind != FINDING_NONE) {
                path_good(n, now, now, b);
            }
            b->flaps = (struct path_flaps){0};
        }
    }
}

/* ---- reports --------------------------------------------------------------------------------- */

static void fill(struct node *n, struct mono now, struct finding *f, const struct bad_path *b,
                 const struct mesh_edge_info *info)
{
    const bool out = b->direction == DIRECTION_OUT;
    const struct nic_id own = n->config.nics[info->local].nic;
    struct path_report report, other;

    f->direction = b->direction;
    f->path = b->path;
    f->path_count = out ? info->path_count : info->peer_path_count;
    f->from = out ? own : info->nic;
    f->to = out ? info->nic : own;
    f->from_host = out ? n->config.host : info->host;
    f->to_host = out ? info->host : n->config.host;
    bool known = mesh_path_report(n->mesh, now, b->edge, b->path,
                                  out ? DIRECTION_IN : DIRECTION_OUT, &other);
    f->other = (uint8_t)other_of(&other, known);
    if (f->kind == FINDING_PATH_SLOW) {
        memcpy(f->numbers, b->numbers, sizeof(f->numbers));
    } else {
        f->numbers[0] = b->proof;
    }
    if (mesh_path_report(n->mesh, now, b->edge, b->path, (enum finding_direction)b->direction,
                         &report)) {
        f->source_port = report.source_port;
        f->signature = report.signature;
        if (f->kind == FINDING_PATH_LOSSY) {
            f->numbers[0] = report.lost_recent;
            f->numbers[1] = report.sent_recent;
        }
    }
}

static void fill_place(struct finding *f, const struct mesh_location *where, uint32_t alike)
{
    const uint32_t at = f->kind == FINDING_PATH_LOSSY || f->kind == FINDING_PATH_NARROW ? 2 : 1;

    f->suspect = where->suspect;
    f->choice = where->choice;
    f->rules_out = where->rules_out;
    f->advice = advice_for(&where->suspect, &where->choice);
    if (f->kind == FINDING_PATH_SLOW) {
        const int64_t shift = f->numbers[1] - f->numbers[0], other = f->numbers[2];
        /* a clock's error would have moved the other direction by as much */
        f->rules_out |= other < shift / 4 && other > -shift / 4 ? RULES_OUT_CLOCK : 0;
        return;
    }
    f->numbers[at] = where->key == 0 ? alike : where->paths;
    f->numbers[at + 1] = where->key == 0 ? 1 : where->edges;
}

/* All hosts with the same digests compute the same moment. */
static void set_began(struct node *n, struct finding *f, const struct mesh_location *where)
{
    if (where->began.ns != MONO_NEVER.ns) {
        node_finding_since(n, f, where->began);
    }
}

static bool is_named(const struct finding *f)
{
    return f->suspect.kind != ELEMENT_UNKNOWN;
}

/* The open finding that this one belongs to; NULL: it is new. */
static struct open_finding *same_cause(struct node *n, const struct bad_path *b,
                                       const struct mesh_location *where, uint64_t cause)
{
    const bool any = b->direction == DIRECTION_IN && where->key == 0,
               sure = where->suspect.kind != ELEMENT_UNKNOWN;
    struct open_finding *moment = NULL;

    for (uint32_t i = 0; i < n->open_count; i++) {
        struct open_finding *o = &n->open[i];
        const int64_t apart = mono_sub(o->finding.since, b->since).ns;
        const bool open =
            !is_named(&o->finding) && (o->finding.choice.count == 0 ||
                                       element_choice_meets(&o->finding.choice, &where->choice));
        const int64_t echo = any || open ? ECHO_NS : ONE_CAUSE_NS;

        if (!is_path_kind(o->finding.kind) || !o->said ||
            (o->finding.kind == FINDING_PATH_SLOW) != (b->kind == FINDING_PATH_SLOW)) {
            continue;
        }
        if (where->key != 0 && o->cause == cause) {
            return o;
        }
        if ((!sure || !is_named(&o->finding)) && apart < ONE_CAUSE_NS && apart > -echo) {
            moment = moment && is_named(&moment->finding) ? moment : o;
        }
    }
    return moment;
}

/* True if paths of this host died at that moment, and are dead by an open finding. */
bool node_incident_at(const struct node *n, struct mono since)
{
    for (uint32_t i = 0; i < n->open_count; i++) {
        const struct open_finding *o = &n->open[i];
        const int64_t apart = mono_sub(o->finding.since, since).ns;

        if (o->finding.kind == FINDING_PATH_DEAD && o->said && apart < ONE_CAUSE_NS &&
            apart > -ONE_CAUSE_NS) {
            return true;
        }
    }
    return false;
}

/* It was reported as unknown; now the element is known, or the list is shorter. It is reported again, under its number. */
static void improve(struct node *n, struct open_finding *o, const struct mesh_location *where,
                    uint64_t cause)
{
    const uint32_t total = o->finding.choice.total;
    const bool fewer = where->choice.count > 0 && (total == 0 || where->choice.total < total);

    if (is_named(&o->finding) || (where->suspect.kind == ELEMENT_UNKNOWN && !fewer)) {
        return;
    }
    o->cause = cause;
    fill_place(&o->finding, where, o->paths);
    set_began(n, &o->finding, where);
    o->finding.phase = o->quiet ? FINDING_OPENED : FINDING_UPDATED;
    if (!o->quiet) {
        node_finding_push(n, &o->finding);
    }
}

static void settle(struct node *n, struct mono now, struct bad_path *b,
                   const struct mesh_location *where)
{
    const uint64_t cause = node_finding_key((enum finding_kind)b->kind, where->key, 0, 0);
    struct open_finding *o = same_cause(n, b, where, cause);
    struct mesh_edge_info info;

    ASSERT(b->waiting && n->bad_waiting > 0); /* the round goes on while any path waits */
    b->waiting = false;
    n->bad_waiting--;
    if (!mesh_edge_info(n->mesh, now, b->edge, &info)) {
        b->kind = FINDING_NONE;
        return;
    }
    if (o) {
        o->paths++;
        b->incident = o->finding.number;
        improve(n, node_flap_joins(n, b, o), where, cause);
        return;
    }
    o = node_finding_open(n,
                          node_finding_key((enum finding_kind)b->kind,
                                           (uint64_t)b->edge << 8 | b->path, b->direction,
                                           info.generation),
                          (enum finding_kind)b->kind, b->since, MONO_NEVER);
    if (!o) {
        return;
    }
    o->cause = cause;
    o->paths = 1;
    o->said = true;
    b->incident = o->finding.number;
    fill(n, now, &o->finding, b, &info);
    fill_place(&o->finding, where, n->bad_waiting + 1);
    set_began(n, &o->finding, where);
    if (b->kind == FINDING_PATH_DEAD) {
        node_incident_note(n, &o->finding, cause);
    }
    o = node_flap_joins(n, b, o);
    if (!o->quiet) {
        node_finding_push(n, &o->finding);
    }
    if (!is_named(&o->finding) && b->kind == FINDING_PATH_DEAD) {
        n->incident_again = mono_min(n->incident_again, mono_add(now, span_ns(AGAIN_NS)));
        n->incident_until = mono_add(now, span_ns(AGAIN_UNTIL_NS));
    }
}

/* First all outgoing paths, then all incoming ones: the inference's input for one direction serves all its paths, and giving it
 * again takes milliseconds. */
static struct bad_path *bad_in_turn(const struct node *n, uint32_t i)
{
    const uint32_t paths = (uint32_t)mesh_edge_capacity(n->mesh) * n->config.path_limit;

    return &n->bad[i < paths ? 2 * i : 2 * (i - paths) + 1];
}

/* Certain ones first: paths that are unknown or can't be traced then find them reported. */
static void settle_round(struct node *n, struct mono now, bool sure)
{
    const uint32_t count = (uint32_t)mesh_edge_capacity(n->mesh) * n->config.path_limit * 2u;

    for (uint32_t i = 0; i < count && n->bad_waiting > 0; i++) {
        struct bad_path *b = bad_in_turn(n, i);
        const int64_t wait = b->kind == FINDING_PATH_SLOW    ? SLOW_NS
                             : sure                          ? SURE_NS
                             : b->direction == DIRECTION_OUT ? GUESS_NS
                                                             : IN_NS;
        struct mesh_location where;

        if (b->kind == FINDING_NONE || !b->waiting) {
            continue;
        }
        if (mono_sub(now, b->decided).ns >= wait) {
            mesh_locate(n->mesh, now, b->edge, b->path, (enum finding_direction)b->direction, !sure,
                        &where);
            if (!sure || where.suspect.kind != ELEMENT_UNKNOWN) {
                settle(n, now, b, &where);
                continue;
            }
        }
        n->incident_due = mono_min(n->incident_due, mono_add(b->decided, span_ns(wait)));
    }
}

void node_incident_news(struct node *n, struct mono now)
{
    const struct mono soon = mono_add(now, span_ns(NEWS_NS));

    for (uint32_t i = 0; i < n->open_count; i++) {
        if (n->open[i].finding.kind == FINDING_PATH_DEAD && !is_named(&n->open[i].finding)) {
            n->incident_again = mono_min(n->incident_again, soon);
        }
    }
}

/* Findings that were reported as unknown: later evidence may name them. */
static void look_again(struct node *n, struct mono now)
{
    const uint32_t count = (uint32_t)mesh_edge_capacity(n->mesh) * n->config.path_limit * 2u;
    bool any = false;

    for (uint32_t i = 0; i < count; i++) {
        const struct bad_path *b = &n->bad[i];
        struct open_finding *o =
            b->kind == FINDING_PATH_DEAD && !b->waiting ? incident_by_number(n, b->incident) : NULL;
        struct mesh_location where;

        if (o && o->said && !is_named(&o->finding) && o->looked.ns != now.ns) {
            mesh_locate(n->mesh, now, b->edge, b->path, (enum finding_direction)b->direction, true,
                        &where);
            o->looked = where.key != 0 ? now : o->looked; /* one path of a finding suffices */
            improve(n, o, &where, node_finding_key(FINDING_PATH_DEAD, where.key, 0, 0));
            any = any || !is_named(&o->finding);
        }
    }
    n->incident_again = now.ns < n->incident_until.ns ? mono_add(now, span_ns(AGAIN_NS))
                        : any                         ? mono_add(now, span_ns(AGAIN_LATE_NS))
                                                      : MONO_NEVER;
}

/* ---- faults that no single path shows ---------------------------------------------------------- */

void node_incident_note(struct node *n, const struct finding *f, uint64_t cause)
{
    n->deaths[n->death_count++ % DEATHS_MAX] =
        (struct said_death){.since = f->since,
                            .over = MONO_NEVER,
                            .cause = cause,
                            .number = f->number,
                            .named = f->kind == FINDING_PATH_DEAD && is_named(f)};
}

void node_incident_over(struct node *n, struct mono now, uint32_t number)
{
    for (uint32_t i = 0; i < DEATHS_MAX && i < n->death_count; i++) {
        n->deaths[i].over = n->deaths[i].number == number ? now : n->deaths[i].over;
    }
}

/* What has no name because the fabric fell into parts isn't reported by a death that began long before it, nor by a named one
 * that began long after it. */
bool node_incident_says(const struct node *n, const struct mesh_fault *f, struct mono until)
{
    const uint64_t cause = node_finding_key(FINDING_PATH_DEAD, f->where.key, 0, 0);

    for (uint32_t i = 0; i < DEATHS_MAX && i < n->death_count; i++) {
        const struct said_death *d = &n->deaths[i];
        const int64_t earlier_ns = mono_sub(f->began, d->since).ns;
        const bool apart =
            f->parted && (earlier_ns >= ONE_CAUSE_NS || (d->named && -earlier_ns >= ONE_CAUSE_NS));
        const bool other =
            apart || (d->named && f->where.suspect.kind != ELEMENT_UNKNOWN && d->cause != cause);

        if (!other && mono_sub(d->since, until).ns < ONE_CAUSE_NS &&
            (d->over.ns == MONO_NEVER.ns || mono_sub(f->began, d->over).ns < ONE_CAUSE_NS)) {
            return true;
        }
    }
    return false;
}

static struct open_finding *fault_open(struct node *n, struct mono now, const struct mesh_fault *f,
                                       enum finding_kind kind, uint64_t key)
{
    const struct bad_path b = {
        .path = f->path, .direction = f->direction, .edge = f->edge, .proof = f->lost};
    struct mesh_edge_info info;

    if (!mesh_edge_info(n->mesh, now, f->edge, &info)) {
        return NULL;
    }
    struct open_finding *o = node_finding_open(n, key, kind, f->began, MONO_NEVER);
    if (o) {
        o->cause = node_finding_key(kind, f->where.key, 0, 0);
        o->held = true;
        o->said = true;
        fill(n, now, &o->finding, &b, &info);
        if (kind == FINDING_PATH_LOSSY) {
            o->finding.numbers[0] = f->lost;
            o->finding.numbers[1] = f->sent;
        } else if (kind == FINDING_PATH_NARROW) {
            o->finding.numbers[0] = f->apart_ns;
            o->finding.numbers[1] = f->usual_ns;
        }
        fill_place(&o->finding, &f->where, f->where.paths);
        o->finding.advice = f->narrow      ? ADVICE_CHECK_RATE
                            : f->full_size ? ADVICE_CHECK_SIZE
                            : f->job_class ? ADVICE_CHECK_CLASS
                                           : o->finding.advice;
        node_finding_push(n, &o->finding);
    }
    return o;
}

/* An element that lost everything for a while: it is reported when it ends. */
static void outage(struct node *n, struct mono now, const struct mesh_fault *f)
{
    const uint64_t key = node_finding_key(FINDING_PATH_DEAD, f->number, 1, 1);

    if (!f->ended || node_incident_says(n, f, f->over)) {
        return;
    }
    struct open_finding *o = fault_open(n, now, f, FINDING_PATH_DEAD, key);
    if (o) {
        struct finding over = o->finding;

        o->said = false; /* its end is reported here */
        node_finding_close_at(n, now, (uint32_t)(o - n->open));
        over.phase = FINDING_CLOSED;
        over.ended_ns = f->over.ns;
        over.length_error_ns = length_error(&over, f->over, f->length);
        node_finding_push(n, &over);
    }
}

/* Gray loss. Paths whose own tests find it later join its finding. */
static void gray(struct node *n, struct mono now, const struct mesh_fault *f)
{
    const uint64_t key = node_finding_key(FINDING_PATH_LOSSY, f->number, 1, 1);
    const uint64_t cause = node_finding_key(FINDING_PATH_LOSSY, f->where.key, 0, 0);
    struct open_finding *o = node_finding_find(n, key);

    if (f->ended && o) {
        o->held = false;
        if (o->paths == 0) {
            node_finding_close_at(n, now, (uint32_t)(o - n->open));
        }
        return;
    }
    for (uint32_t i = 0; i < n->open_count; i++) {
        const struct finding *said = &n->open[i].finding;
        if (said->kind == FINDING_PATH_LOSSY && n->open[i].cause == cause && n->open[i].said) {
            return;
        }
    }
    if (!f->ended && !o && f->named && !node_incident_says(n, f, now)) {
        fault_open(n, now, f, FINDING_PATH_LOSSY, key);
    }
}

/* A link at a fraction of its rate. */
static void narrow(struct node *n, struct mono now, const struct mesh_fault *f)
{
    const uint64_t key = node_finding_key(FINDING_PATH_NARROW, f->number, 1, 1);
    struct open_finding *o = node_finding_find(n, key);

    if (f->ended && o) {
        o->held = false;
        node_finding_close_at(n, now, (uint32_t)(o - n->open));
    } else if (!f->ended && !o && f->named) {
        fault_open(n, now, f, FINDING_PATH_NARROW, key);
    }
}

static void faults(struct node *n, struct mono now)
{
    struct mesh_fault f;

    while (mesh_next_fault(n->mesh, &f)) {
        if (f.narrow) {
            narrow(n, now, &f);
            continue;
        }
        if (f.hole) {
            outage(n, now, &f);
        }
        /* a fault that lost a share at first and everything in the end has an end, too */
        if (!f.hole || f.ended) {
            gray(n, now, &f);
        }
    }
}

void node_incident_tick(struct node *n, struct mono now)
{
    faults(n, now);
    if (n->incident_again.ns <= now.ns) {
        look_again(n, now);
    }
    if (n->incident_due.ns > now.ns) {
        return;
    }
    n->incident_due = MONO_NEVER;
    settle_round(n, now, true);
    /* a certain one that isn't yet is looked at when its trace is answered, or at the end */
    n->incident_due = MONO_NEVER;
    settle_round(n, now, false);
    if (n->incident_due.ns <= now.ns) {
        n->incident_due = mono_add(now, span_ms(10));
    }
}
