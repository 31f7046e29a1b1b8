/* fault.c: see fault.h. The work is done in slices. The reports of 10,000 hosts are read within seconds while packets are
 * lost. Without loss there is no work. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/prng.h"
#include "core/brain/brain.h"
#include "core/fleet/fabric.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/claim.h"
#include "service/controller/fleet/fault.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/state.h"

enum {
    FAULT_PATHS = 16384, /* paths that are judged together */
    SLICE_PATHS = 20000, /* paths read at a time */
    SLICE_FINDINGS = 256,
};
#define LOOK_NS   (250 * NS_PER_MS)
#define RECALL_NS (10 * NS_PER_S) /* time to find a name after all hosts have reported twice */
#define AGAIN_NS  (10 * NS_PER_S) /* interval to try again if the store has not taken names */
#define SWEEP_NS  NS_PER_S        /* least interval between two sweeps through all hosts */
/* the pause is at least this many times the last duration: 2 % of a processor for each */
#define REST 50

struct faults {
    struct mono looked, swept;
    int64_t look_ns, sweep_ns; /* durations of the last look and sweep */
    /* sweep: the next host whose paths are read; host_count: the sweep is over */
    uint32_t round, sweep;
    uint32_t version, retell; /* retell: the next host whose findings get elements again */
    struct mono retold;       /* start of the last such pass */
    struct mono recalls;      /* until then, names from before the start are valid */
    bool recalled;            /* that time is over */
    bool written;             /* the open transaction has names */
    bool again;               /* names must be stored again */
    bool refused;             /* the store refused the last name */
};

int fault_open(struct controller *c)
{
    struct faults *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return -ENOMEM;
    }
    c->faults = f;
    f->sweep = f->retell = UINT32_MAX;
    const struct brain_inquiry terms = {FAULT_PATHS, span_ms(c->config.report_ms)};
    const struct mono now = controller_mono();
    f->recalls = mono_add(now, span_ns(2 * terms.report.ns + RECALL_NS));
    return brain_tell(c->brain, now, BRAIN_INQUIRY, &terms, NULL);
}

void fault_close(struct controller *c)
{
    free(c->faults);
    c->faults = NULL;
}

/* ---- evidence ---- */

/* Fills the route of a path. It has switches only if all of them are known. false: an end belongs to no member. */
static bool route_of(const struct controller *c, uint32_t from, uint32_t to, uint32_t port,
                     struct locate_route *ret)
{
    const struct fleet_nic *a = fleet_find_nic(c, from), *b = fleet_find_nic(c, to);
    const struct fabric_way *way = fleet_way(c, from, to, port);
    if (a == NULL || b == NULL) {
        return false;
    }
    *ret = (struct locate_route){.from_host = {a->host->index},
                                 .to_host = {b->host->index},
                                 .from = {from},
                                 .to = {to},
                                 .teller = {b->host->index}};
    fabric_route(c->fabric, way, ret);
    return true;
}

/* Gives a host's paths to the inquiry. all: also clean paths that the inquiry has not asked for. */
static void tell_paths(struct controller *c, const struct fleet_host *h, bool all)
{
    const struct inquiry *inquiry = brain_inquiry(c->brain);
    const struct mono now = controller_mono();
    const struct mono at = {now.ns - (controller_utc_ns() - h->paths_at_ns)};
    for (uint32_t i = 0; i < h->path_count; i++) {
        const struct fleet_path *p = &h->paths[i];
        struct brain_path told = {.at = at};
        told.path = (struct inquiry_path){
            .port = p->port,
            .dead = p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD,
            .lossy = p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_LOSSY,
            .loss_ppm = p->loss_ppm,
        };
        const bool lost = told.path.dead || told.path.lossy;
        if (!all && !lost &&
            !inquiry_has(inquiry, (struct nic_id){p->peer}, (struct nic_id){p->local}, p->port)) {
            continue;
        }
        const bool known = lost || p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_ALIVE;
        if (known && route_of(c, p->peer, p->local, p->port, &told.path.route)) {
            brain_tell(c->brain, now, BRAIN_PATH, &told, NULL);
        }
    }
}

void fault_on_paths(struct controller *c, const struct fleet_host *h)
{
    uint32_t round;
    if (c->faults != NULL &&
        (h->paths_dead + h->paths_lossy > 0 || inquiry_wants(brain_inquiry(c->brain), &round))) {
        tell_paths(c, h, false);
    }
}

static void sweep(struct controller *c, struct mono now)
{
    struct faults *f = c->faults;
    uint32_t round, paths = 0;
    if (inquiry_wants(brain_inquiry(c->brain), &round) && round != f->round &&
        f->sweep >= c->host_count && mono_sub(now, f->swept).ns >= SWEEP_NS + REST * f->sweep_ns) {
        f->round = round;
        f->swept = now;
        f->sweep_ns = 0;
        f->sweep = 0;
    }
    while (f->sweep < c->host_count && paths < SLICE_PATHS) {
        const struct fleet_host *h = c->hosts[f->sweep++];
        if (h->member && h->paths_at_ns != 0 && fleet_current(c, h, now)) {
            tell_paths(c, h, true);
            paths += h->path_count;
        }
    }
    f->sweep_ns += paths > 0 ? mono_sub(controller_mono(), now).ns : 0;
}

/* ---- names ---- */

bool fault_recalls(const struct controller *c)
{
    return c->faults != NULL && mono_before(controller_mono(), c->faults->recalls);
}

static int store_name(struct controller *c, const struct fleet_host *h,
                      const struct alert_finding *f, bool placed)
{
    struct json_writer j;
    const char *text = "";
    size_t size;
    json_writer_init(&j, 4096);
    if (placed) {
        claim_put_named(c, &j, &f->suspect);
    }
    int r = placed ? json_writer_finish(&j, &text, &size) : 0;
    r = r < 0 ? r : store_finding_name(c->store, h->id, f->run, f->number, text);
    json_writer_done(&j);
    return r;
}

void fault_keep_name(struct controller *c, const struct fleet_host *h,
                     const struct alert_finding *f, bool placed)
{
    struct faults *faults = c->faults;
    struct open_finding *o = state_finding(c->hosts[h->index], f->number);
    const uint64_t named =
        placed ? hash_u64(finding_fault(&f->suspect, &f->choice), f->suspect.direction) | 1 : 0;
    if (o == NULL || o->run != f->run || o->named == named) {
        return;
    }
    const int r = store_name(c, h, f, placed);
    if (r < 0) {
        if (!faults->refused) {
            controller_say(LOG_WARNING,
                           "the name of a fault can't be stored: %s; it is tried again",
                           strerror(-r));
        }
        faults->again = true;
    } else {
        o->named = named;
        faults->written = true;
        controller_touch(c);
    }
    faults->refused = r < 0;
}

void fault_committed(struct controller *c, bool ok)
{
    struct faults *f = c->faults;
    const bool lost = f != NULL && f->written && !ok;
    for (uint32_t i = 0; lost && i < c->host_count; i++) {
        for (uint32_t k = 0; k < c->hosts[i]->finding_count; k++) {
            c->hosts[i]->findings[k].named = FINDING_NAMED_SOMEHOW;
        }
    }
    if (f != NULL) {
        f->again = f->again || lost;
        f->written = false;
    }
}

void fault_place(struct controller *c, const struct fleet_host *h, struct alert_finding *f,
                 const struct element *named)
{
    struct brain_place place = {.since = f->since};
    struct brain_answer is;
    if (c->faults == NULL || (f->kind != FINDING_PATH_DEAD && f->kind != FINDING_PATH_LOSSY) ||
        f->from_nic == ALERT_NO_ID || f->to_nic == ALERT_NO_ID ||
        !route_of(c, f->from_nic, f->to_nic, f->port, &place.route)) {
        return;
    }
    place.worded =
        f->suspect.kind != ELEMENT_UNKNOWN && fabric_locate(c->fabric, &f->suspect, &place.word);
    const bool placed = brain_tell(c->brain, controller_mono(), BRAIN_PLACE, &place, &is) == 1;
    const bool recalled =
        !placed && named != NULL && named->kind != ELEMENT_UNKNOWN && fault_recalls(c);
    if (placed || recalled) {
        f->suspect = placed ? fabric_element(c->fabric, &is.element) : *named;
        f->choice = (struct element_choice){0};
    }
    if (!recalled) {
        fault_keep_name(c, h, f, placed);
    }
}

/* Open findings that another element explains now move to the incident of that element. Names that the store has lost are
 * stored again. */
static void retell(struct controller *c)
{
    struct faults *f = c->faults;
    const uint32_t version = inquiry_version(brain_inquiry(c->brain));
    const bool recalled = !fault_recalls(c);
    uint32_t findings = 0;
    const bool again =
        f->again && !c->store_broken && mono_sub(controller_mono(), f->retold).ns >= AGAIN_NS;
    if ((version != f->version || recalled != f->recalled || again) && f->retell >= c->host_count) {
        f->retold = controller_mono();
        f->again = false;
        f->version = version;
        f->recalled = recalled;
        f->retell = 0;
    }
    while (f->retell < c->host_count && findings < SLICE_FINDINGS) {
        const struct fleet_host *h = c->hosts[f->retell++];
        findings += h->finding_count;
        if (h->member && h->finding_count > 0) {
            alarm_retell(c, h, NULL);
        }
    }
}

void fault_run(struct controller *c)
{
    const struct mono now = controller_mono();
    struct faults *f = c->faults;
    if (f == NULL || mono_sub(now, f->looked).ns < LOOK_NS + REST * f->look_ns) {
        return;
    }
    f->looked = now;
    sweep(c, now);
    const struct mono begin = controller_mono();
    brain_tell(c->brain, begin, BRAIN_LOOK, NULL, NULL);
    f->look_ns = mono_sub(controller_mono(), begin).ns;
    retell(c);
}
