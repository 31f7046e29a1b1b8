/* claim.c: checks that a finding may come from this host, and writes its sentence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip.h"
#include "base/prng.h"
#include "core/finding/finding.h"
#include "platform/json/element.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/claim.h"
#include "service/controller/fleet/claim_words.h"
#include "service/controller/fleet/fleet.h"

/* if a host's UTC differs by more from the controller's, it is not shown */
#define SINCE_OFF_NS  (10 * NS_PER_S)
#define LENGTH_MAX_NS (3660LL * 86400 * NS_PER_S)
#define GONE          (UINT32_MAX - 1) /* a host that is no longer a member */

/* ---- who ---- */

struct end {
    struct nic_id nic;
    struct host_id host;
};

/* Reads one end. false: a host that was never a member. */
static bool read_end(const struct controller *c, uint32_t nic_plus_1, const char *host, bool over,
                     struct end *ret)
{
    *ret = (struct end){NIC_NONE, HOST_NONE};
    if (nic_plus_1 != 0) {
        const struct fleet_nic *n = fleet_find_nic(c, nic_plus_1 - 1);
        /* a NIC of a removed host is known by its number only */
        ret->nic = (struct nic_id){nic_plus_1 - 1};
        ret->host = n != NULL ? (struct host_id){n->host->index} : HOST_NONE;
        return true;
    }
    if (host[0] != 0) {
        const struct fleet_host *h = fleet_find_host(c, host);
        const bool known = h != NULL && h->member;
        ret->host = (struct host_id){known ? h->index : GONE};
        return known || over;
    }
    return true;
}

static bool is_none(const struct end *e)
{
    return nic_id_equal(e->nic, NIC_NONE) && host_id_equal(e->host, HOST_NONE);
}

static bool is_own(const struct end *e, const struct fleet_host *h)
{
    return host_id_equal(e->host, (struct host_id){h->index});
}

/* True if this host can observe such a finding. */
static bool may_report(const struct fleet_host *h, uint32_t kind, const struct end *from,
                       const struct end *to)
{
    switch ((enum finding_kind)kind) {
    case FINDING_LINK_DOWN:
    case FINDING_LINK_FLAPPING:
    case FINDING_LINK_SPEED:
    case FINDING_LINK_ERRORS:
    case FINDING_NIC_GONE:
        return is_own(from, h) && !nic_id_equal(from->nic, NIC_NONE) && is_none(to);
    case FINDING_RDMA_PORT:
        return is_own(from, h) && is_none(to);
    case FINDING_PATH_DEAD:
    case FINDING_PATH_LOSSY:
    case FINDING_PATH_SLOW:
    case FINDING_PATH_FLAPPING:
    case FINDING_PATH_NARROW:
    case FINDING_PEER_SILENT:
        return is_own(from, h) || is_own(to, h);
    case FINDING_CLOCK_LIAR:
    case FINDING_CLOCK_ASTRAY:
        return nic_id_equal(from->nic, NIC_NONE) && is_none(to);
    case FINDING_CLOCK_ASYMMETRY:
        return is_none(to) || is_own(to, h);
    default:
        return (is_none(from) || is_own(from, h)) && is_none(to);
    }
}

/* ---- the suspect ---- */

/* True if this host may accuse the other host: it must be one of the two ends. The reporting host can't know about others. */
static bool is_ours_to_accuse(const struct fleet_host *h, const struct fleet_host *accused,
                              const struct finding *f)
{
    return accused != NULL && accused->member &&
           (accused == h || accused->index == f->from_host.index ||
            accused->index == f->to_host.index);
}

static bool take_place(const struct controller *c, const struct fleet_host *h,
                       const Foliot__V1__Place *m, const struct finding *f, struct place *ret)
{
    *ret = (struct place){.kind = m->kind, .number = m->number - 1}; /* 0 becomes UINT32_MAX */
    if (m->kind == PLACE_HOST) {
        const struct fleet_host *accused = fleet_find_host(c, m->host);
        ret->number = accused != NULL ? accused->index : UINT32_MAX;
        return is_ours_to_accuse(h, accused, f);
    }
    if (m->kind == PLACE_NIC) {
        const struct fleet_nic *n = fleet_find_nic(c, ret->number);
        return n != NULL && is_ours_to_accuse(h, n->host, f);
    }
    if (m->address.len == sizeof(ret->address)) {
        memcpy(ret->address, m->address.data, sizeof(ret->address));
    }
    return m->kind > PLACE_NIC && m->kind < PLACE_KIND_COUNT;
}

bool claim_is_place_of(enum element_kind kind, uint32_t place)
{
    switch (kind) {
    case ELEMENT_HOST:
        return place == PLACE_HOST;
    case ELEMENT_NIC:
        return place == PLACE_NIC;
    case ELEMENT_LEAF:
        return place == PLACE_LEAF;
    case ELEMENT_SPINE:
        return place == PLACE_SPINE;
    case ELEMENT_ROUTER:
        return place == PLACE_ROUTER;
    case ELEMENT_TRUNK:
        return place >= PLACE_LEAF && place <= PLACE_ROUTER;
    default:
        return false;
    }
}

static struct element take_element(const struct controller *c, const struct fleet_host *h,
                                   const Foliot__V1__Element *m, const struct finding *f)
{
    const bool trunk = m->kind == ELEMENT_TRUNK;
    struct element e = element_unknown();
    e.kind = m->kind;
    e.direction = m->direction <= DIRECTION_BOTH ? m->direction : DIRECTION_NONE;
    const bool good = m->a != NULL && claim_is_place_of((enum element_kind)m->kind, m->a->kind) &&
                      take_place(c, h, m->a, f, &e.a) &&
                      (!trunk || (m->b != NULL && claim_is_place_of(ELEMENT_TRUNK, m->b->kind) &&
                                  take_place(c, h, m->b, f, &e.b)));
    return good ? e : element_unknown();
}

/* Older agents send one element, and a flag if it is a guess. */
static void take_suspect(const struct controller *c, const struct fleet_host *h,
                         const Foliot__V1__Finding *m, struct finding *f)
{
    const struct element e =
        m->element != NULL ? take_element(c, h, m->element, f) : claim_words_suspect(c, h, m, f);
    f->suspect = m->confident ? e : element_unknown();
    f->choice = (struct element_choice){0};
    if (e.kind != ELEMENT_UNKNOWN && !m->confident) {
        element_choice_add(&f->choice, &e);
        f->choice.total++;
        return;
    }
    bool others = m->others != 0;
    for (size_t i = 0; i < m->n_one_of && i < ELEMENT_ONE_OF; i++) {
        const struct element one = take_element(c, h, m->one_of[i], f);
        others = others || one.kind == ELEMENT_UNKNOWN;
        if (one.kind != ELEMENT_UNKNOWN && f->suspect.kind == ELEMENT_UNKNOWN) {
            element_choice_add(&f->choice, &one);
        }
    }
    f->choice.total += others && f->choice.count > 0;
}

/* ---- the sentence ---- */

struct wording { /* for one sentence; it owns the texts of its names */
    const struct controller *c;
    char nics[4][TLS_NAME_MAX + IF_NAMESIZE + 2], port[160];
    unsigned turn;
};

static const char *name_of(const struct controller *c, struct host_id host)
{
    return host.index == GONE           ? "a host that is gone"
           : host.index < c->host_count ? c->hosts[host.index]->name
                                        : NULL;
}

static const char *host_name(void *context, struct host_id host)
{
    const struct wording *w = context;
    return name_of(w->c, host);
}

static const char *nic_name(void *context, struct nic_id nic)
{
    struct wording *w = context;
    const struct fleet_nic *n = fleet_find_nic(w->c, nic.index);
    char *text = w->nics[w->turn++ % ARRAY_COUNT(w->nics)];
    if (n == NULL) {
        return NULL;
    }
    snprintf(text, sizeof(w->nics[0]), "%s/%s", n->host->name, n->name);
    return text;
}

static const char *host_of_nic(void *context, struct nic_id nic)
{
    const struct wording *w = context;
    const struct fleet_nic *n = fleet_find_nic(w->c, nic.index);
    return n != NULL ? n->host->name : NULL;
}

static const char *port_name(void *context, struct nic_id nic)
{
    struct wording *w = context;
    const struct fleet_nic *n = fleet_find_nic(w->c, nic.index);
    if (n == NULL || n->neighbour[0] == 0) {
        return NULL;
    }
    snprintf(w->port, sizeof(w->port), "%s port %s", n->neighbour, n->neighbour_port);
    return w->port;
}

static struct finding_names names_of(struct wording *w)
{
    return (struct finding_names){.host = host_name,
                                  .nic = nic_name,
                                  .context = w,
                                  .host_of = host_of_nic,
                                  .port = port_name};
}

void claim_put_named(const struct controller *c, struct json_writer *j, const struct element *e)
{
    struct wording wording = {.c = c};
    const struct finding_names names = names_of(&wording);
    json_put_element(j, NULL, e, &names, NULL);
}

void claim_put_element(const struct controller *c, struct json_writer *j, const struct claim *claim)
{
    struct wording wording = {.c = c};
    const struct finding_names names = names_of(&wording);
    json_put_element(j, "element", &claim->element, &names, NULL);
    json_put_choice(j, &claim->choice, &names);
    json_put_hex64(j, "fault", finding_fault(&claim->element, &claim->choice));
}

static uint8_t other_of(const char *text)
{
    static const char *const words[] = {"", "fine", "lossy", "dead"};
    uint8_t other = OTHER_FINE;
    while (other < ARRAY_COUNT(words) && strcmp(words[other], text) != 0) {
        other++;
    }
    return other < ARRAY_COUNT(words) ? other : OTHER_UNKNOWN;
}

static uint32_t kind_of(const char *word)
{
    uint32_t kind = FINDING_NONE + 1;
    while (kind < FINDING_KIND_COUNT && strcmp(finding_kind_word(kind), word) != 0) {
        kind++;
    }
    return kind < FINDING_KIND_COUNT ? kind : FINDING_NONE;
}

/* Takes the length of the finding, if the host's numbers are plausible. */
static void take_length(const Foliot__V1__Finding *m, struct finding *f)
{
    int64_t length;
    const bool good = !__builtin_sub_overflow(m->ended_mono, m->since_mono, &length) &&
                      length >= 0 && length <= LENGTH_MAX_NS;
    f->ended_ns = good ? m->ended_mono : m->since_mono;
    f->length_error_ns =
        good && m->length_error > 0 && m->length_error <= LENGTH_MAX_NS ? m->length_error : 0;
}

/* Copies all fields except the ends and the suspect. */
static struct finding facts_of(const Foliot__V1__Finding *m, uint32_t kind, int64_t since_ns)
{
    struct finding f;
    finding_init(&f, (enum finding_kind)kind, (struct mono){m->since_mono});
    f.phase = m->phase == 2 ? FINDING_CLOSED : m->phase == 1 ? FINDING_UPDATED : FINDING_OPENED;
    f.direction = m->direction < 4 ? (uint8_t)m->direction : DIRECTION_NONE;
    f.other = other_of(m->other_direction);
    f.path = (uint8_t)m->path;
    f.path_count = (uint8_t)m->path_count;
    f.source_port = (uint16_t)m->port;
    f.signature = m->signature;
    f.rules_out = (uint16_t)m->rules_out;
    f.advice = m->advice_number == 0                           ? claim_words_advice(m->advice)
               : finding_advice_text(m->advice_number)[0] != 0 ? (uint16_t)m->advice_number
                                                               : ADVICE_NONE;
    take_length(m, &f);
    f.since_fleet_ns = m->since_fleet != 0 ? m->since_fleet : FINDING_NO_TIME;
    const int64_t off = m->since_utc - since_ns;
    if (m->since_utc > 0 && off < SINCE_OFF_NS && off > -SINCE_OFF_NS) {
        f.since_utc_ns = m->since_utc;
    }
    for (size_t i = 0; i < m->n_numbers && i < ARRAY_COUNT(f.numbers); i++) {
        f.numbers[i] = m->numbers[i];
    }
    return f;
}

static void write_texts(const struct controller *c, const struct fleet_host *h,
                        const struct finding *f, int64_t since_ns, struct claim *ret)
{
    struct wording wording = {.c = c};
    struct finding_names names = names_of(&wording);
    Foliot__V1__Finding *m = &ret->finding;
    struct finding shown = *f;
    if (nic_id_equal(f->from, NIC_NONE) && host_id_equal(f->from_host, HOST_NONE)) {
        /* the reporting host's own finding says "this host": here its name is needed */
        shown.from_host = (struct host_id){h->index};
    }
    const bool others = (f->from_host.index != UINT32_MAX && f->from_host.index != h->index) ||
                        (f->to_host.index != UINT32_MAX && f->to_host.index != h->index);
    names.receiver = "the controller's";
    names.received_since_ns = since_ns;
    finding_text(&shown, &names, ret->text, sizeof(ret->text) - TLS_NAME_MAX - 20);
    const size_t length = strlen(ret->text);
    if (others) {
        snprintf(ret->text + length, sizeof(ret->text) - length, "; reported by %s", h->name);
    }
    finding_what_text(f, ret->what, sizeof(ret->what));
    ret->suspect[0] = 0;
    if (f->suspect.kind != ELEMENT_UNKNOWN) {
        element_text(&f->suspect, &names, ret->suspect, sizeof(ret->suspect));
    }
    m->what = ret->what;
    m->suspect = ret->suspect;
    m->suspect_kind =
        (char *)(uintptr_t)(f->suspect.kind != ELEMENT_UNKNOWN ? element_kind_word(f->suspect.kind)
                                                               : protobuf_c_empty_string);
    m->advice = (char *)(uintptr_t)finding_advice_text(f->advice);
    m->other_direction =
        f->other == OTHER_UNKNOWN ? (char *)(uintptr_t)protobuf_c_empty_string : m->other_direction;
    const char *from = name_of(c, f->from_host), *to = name_of(c, f->to_host);
    m->from_host = (char *)(uintptr_t)(from != NULL ? from : protobuf_c_empty_string);
    m->to_host = (char *)(uintptr_t)(to != NULL ? to : protobuf_c_empty_string);
}

bool claim_take(const struct controller *c, const struct fleet_host *h,
                const Foliot__V1__Event *said, int64_t since_ns, struct claim *ret)
{
    const Foliot__V1__Finding *m = said->finding;
    const uint32_t kind = kind_of(m->kind);
    struct finding f = facts_of(m, kind, since_ns);
    const bool over = f.phase == FINDING_CLOSED;
    struct end from, to;
    if (!read_end(c, m->from_nic, m->from_host, over, &from) ||
        !read_end(c, m->to_nic, m->to_host, over, &to) || !may_report(h, kind, &from, &to)) {
        return false;
    }
    f.from = from.nic;
    f.to = to.nic;
    f.from_host = from.host;
    f.to_host = to.host;
    take_suspect(c, h, m, &f);
    ret->finding = *m;
    ret->finding.confident = f.suspect.kind != ELEMENT_UNKNOWN;
    ret->finding.ended_mono = f.ended_ns;
    ret->finding.length_error = f.length_error_ns;
    ret->element = f.suspect;
    ret->choice = f.choice;
    write_texts(c, h, &f, since_ns, ret);
    if (kind == FINDING_NONE) { /* a newer agent about itself: its own words are used */
        snprintf(ret->text, sizeof(ret->text), "%s", said->text);
        snprintf(ret->what, sizeof(ret->what), "%s", m->what);
    }
    return true;
}
