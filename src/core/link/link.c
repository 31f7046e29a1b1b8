/* link.c: see link.h. */
#include "core/link/link.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

#define FLAP_MEMORY                                                                                \
    4096 /* times that are kept one by one; older flaps of the day are counted by the minute */
#define DAY_MINUTES 1440
#define MESSAGE_MAX 16
#define MINUTE_NS   (60 * NS_PER_S)
#define LASTING_NS  (2 * NS_PER_S)
#define ERROR_LIMIT 10 /* errors a minute that cause a message */

struct link {
    struct link_facts facts;
    bool known;
    uint32_t flap_limit;
    enum link_state state;
    struct mono since;
    uint64_t downs, ups;
    uint32_t speed_changes;
    uint64_t base_rx_errors, base_tx_errors, base_rx_drops, base_tx_drops;
    struct mono start;
    uint16_t minutes[DAY_MINUTES];   /* flaps in each minute since the start, a ring */
    int64_t minute;                  /* the newest minute of the ring */
    struct mono recent[FLAP_MEMORY]; /* times of the last flaps, for the count of a minute */
    uint32_t recent_head, recent_count;
    bool flapping, erring;
    /* times to judge again, and to report that the port is still down */
    struct mono flapping_next, down_due;
    bool down_open;
    uint32_t say_doubling;
    uint64_t window_errors;
    struct mono window_start;
    struct link_message messages[MESSAGE_MAX];
    uint32_t message_head, message_count;
};

struct link *link_new(uint32_t flap_limit, struct mono now)
{
    struct link *l = calloc(1, sizeof(*l));

    if (l) {
        l->flap_limit = flap_limit ? flap_limit : LINK_FLAP_LIMIT_DEFAULT;
        l->since = l->start = l->window_start = now;
        l->flapping_next = l->down_due = MONO_NEVER;
    }
    return l;
}

void link_limit(struct link *l, uint32_t flap_limit)
{
    l->flap_limit = flap_limit ? flap_limit : LINK_FLAP_LIMIT_DEFAULT;
}

void link_free(struct link *l)
{
    free(l);
}

static void say(struct link *l, enum link_message_kind kind, struct mono since, int64_t a,
                int64_t b, int64_t c)
{
    if (l->message_count == MESSAGE_MAX) { /* the caller takes the messages after each call */
        l->message_head = (l->message_head + 1) % MESSAGE_MAX;
        l->message_count--;
    }
    ASSERT(l->message_count < MESSAGE_MAX);
    l->messages[(l->message_head + l->message_count++) % MESSAGE_MAX] =
        (struct link_message){.kind = kind, .since = since, .numbers = {a, b, c, 0}};
}

bool link_next_message(struct link *l, struct link_message *ret_message)
{
    if (l->message_count == 0) {
        return false;
    }
    *ret_message = l->messages[l->message_head];
    l->message_head = (l->message_head + 1) % MESSAGE_MAX;
    l->message_count--;
    return true;
}

/* ---- counting ------------------------------------------------------------------------------- */

static int64_t minute_of(const struct link *l, struct mono now)
{
    return mono_sub(now, l->start).ns / MINUTE_NS;
}

static void minutes_advance(struct link *l, struct mono now)
{
    const int64_t minute = minute_of(l, now);

    for (int64_t gone = 0; l->minute < minute && gone < DAY_MINUTES; gone++) {
        l->minute++;
        l->minutes[l->minute % DAY_MINUTES] = 0;
    }
    if (l->minute < minute) { /* a clock that was set back must not damage the ring */
        l->minute = minute;
    }
}

static uint32_t flaps_minutes(const struct link *l, struct mono now, int64_t minutes)
{
    const int64_t newest = minute_of(l, now);
    uint32_t sum = 0;

    for (int64_t i = 0; i < minutes && l->minute - i >= 0; i++) {
        if (l->minute - i > newest - minutes) {
            sum += l->minutes[(l->minute - i) % DAY_MINUTES];
        }
    }
    return sum;
}

/* Exact while the flaps of the window are kept one by one. */
static uint32_t flaps_within(const struct link *l, struct mono now, struct span window)
{
    uint32_t count = 0;

    while (count < l->recent_count) {
        const struct mono at = l->recent[(l->recent_head + FLAP_MEMORY - 1 - count) % FLAP_MEMORY];
        if (mono_sub(now, at).ns >= window.ns) {
            return count;
        }
        count++;
    }
    if (l->recent_count == FLAP_MEMORY && window.ns >= MINUTE_NS) {
        const uint32_t rough = flaps_minutes(l, now, window.ns / MINUTE_NS);
        return rough > count ? rough : count;
    }
    return count;
}

static void count_flaps(struct link *l, struct mono now, struct mono at, uint32_t count)
{
    minutes_advance(l, now);
    l->downs += count;
    uint16_t *minute = &l->minutes[l->minute % DAY_MINUTES];
    ASSERT(l->minute >= 0 && l->recent_count <= FLAP_MEMORY);
    *minute = *minute + count > UINT16_MAX ? UINT16_MAX : (uint16_t)(*minute + count);
    for (uint32_t i = 0; i < count && i < FLAP_MEMORY; i++) {
        l->recent[l->recent_head] = at;
        l->recent_head = (l->recent_head + 1) % FLAP_MEMORY;
        l->recent_count += l->recent_count < FLAP_MEMORY;
    }
}

/* ---- messages ------------------------------------------------------------------------------- */

/* Reports once when the limit is passed, then whenever the number of flaps has doubled. A port that flaps all day gives about a
 * dozen messages. */
static void judge_flapping(struct link *l, struct mono now)
{
    const uint32_t hour = flaps_within(l, now, span_s(3600));

    if (!l->flapping && hour > l->flap_limit) {
        l->flapping = true;
        l->say_doubling = 2 * hour;
        say(l, LINK_MESSAGE_FLAPPING, now, hour, 3600, l->flap_limit);
    } else if (l->flapping && hour >= l->say_doubling) {
        l->say_doubling = 2 * hour;
        say(l, LINK_MESSAGE_FLAPPING, now, hour, 3600, l->flap_limit);
    } else if (l->flapping && hour <= l->flap_limit / 2) {
        l->flapping = false;
        say(l, LINK_MESSAGE_CALM, now, hour, 3600, l->flap_limit);
    }
    l->flapping_next = l->flapping ? mono_add(now, span_s(60)) : MONO_NEVER;
}

/* A port that flaps is reported as flapping. Its single downs are reported only if they last. */
static void said_down(struct link *l, struct mono at)
{
    if (l->flapping) {
        l->down_due = mono_add(at, span_ns(LASTING_NS));
        return;
    }
    if (!l->down_open) {
        l->down_open = true;
        say(l, LINK_MESSAGE_DOWN, at, (int64_t)l->downs, 0, 0);
    }
}

static void said_up(struct link *l, struct mono at)
{
    l->down_due = MONO_NEVER;
    if (l->down_open) {
        l->down_open = false;
        say(l, LINK_MESSAGE_UP, at, (int64_t)l->downs, 0, 0);
    }
}

static void move(struct link *l, struct mono at, enum link_state state)
{
    const enum link_state was = l->state;

    if (state == was) {
        return;
    }
    l->state = state;
    l->since = at;
    if (state == LINK_GONE) {
        say(l, LINK_MESSAGE_GONE, at, 0, 0, 0);
        l->down_open = false;
        l->down_due = MONO_NEVER;
    } else if (was == LINK_GONE) {
        say(l, LINK_MESSAGE_BACK, at, 0, 0, 0);
    }
    if (state == LINK_DOWN) {
        said_down(l, at);
    } else if (state == LINK_UP) {
        said_up(l, at);
    }
}

/* Drops are counted and shown, but they are no sign of a bad cable: a queue was full, or no program wanted the frame. */
static uint64_t errors_of(const struct link_facts *f)
{
    return f->rx_errors + f->tx_errors;
}

static uint64_t drops_of(const struct link_facts *f)
{
    return f->rx_drops + f->tx_drops;
}

static void judge_errors(struct link *l, struct mono now)
{
    const uint64_t count = errors_of(&l->facts);
    const uint64_t grown = count >= l->window_errors ? count - l->window_errors : count;

    if (!l->erring && grown >= ERROR_LIMIT) {
        l->erring = true;
        say(l, LINK_MESSAGE_ERRORS, l->window_start, (int64_t)grown,
            mono_sub(now, l->window_start).ns / NS_PER_S + 1, 0);
    }
    if (mono_sub(now, l->window_start).ns >= MINUTE_NS) {
        if (l->erring && grown < ERROR_LIMIT) {
            l->erring = false;
            say(l, LINK_MESSAGE_ERRORS_END, now, (int64_t)grown, 60, 0);
        }
        l->window_errors = count;
        l->window_start = now;
    }
}

static void first_facts(struct link *l, const struct link_facts *facts)
{
    l->known = true;
    l->base_rx_errors = facts->rx_errors;
    l->base_tx_errors = facts->tx_errors;
    l->base_rx_drops = facts->rx_drops;
    l->base_tx_drops = facts->tx_drops;
    l->window_errors = errors_of(facts);
}

/* A re-created device counts from 0. The earlier counts stay in the sums. */
static void rebase_errors(struct link *l, const struct link_facts *facts)
{
    l->base_rx_errors -= l->facts.rx_errors - facts->rx_errors;
    l->base_tx_errors -= l->facts.tx_errors - facts->tx_errors;
    l->base_rx_drops -= l->facts.rx_drops - facts->rx_drops;
    l->base_tx_drops -= l->facts.tx_drops - facts->tx_drops;
    l->window_errors = errors_of(facts);
}

/* The number of carrier losses between two reads. */
static uint32_t new_downs(const struct link *l, const struct link_facts *was,
                          const struct link_facts *is)
{
    if (!was->present) {
        return 0; /* a returned device counts anew; its removal is no flap */
    }
    if (is->carrier_down_count > was->carrier_down_count) {
        return is->carrier_down_count - was->carrier_down_count;
    }
    /* the device was re-created between two reads */
    if (is->carrier_down_count < was->carrier_down_count) {
        return is->carrier_down_count + (l->state == LINK_UP);
    }
    return was->carrier && !is->carrier; /* a driver without counters */
}

static uint32_t new_ups(const struct link *l, uint32_t downs, bool carrier)
{
    if (l->state == LINK_UP) {
        return downs - (downs > 0 && !carrier);
    }
    return downs + (carrier && l->state == LINK_DOWN);
}

static void note_speed(struct link *l, struct mono at, const struct link_facts *was,
                       const struct link_facts *is)
{
    const bool speed = is->speed_mbps != was->speed_mbps && is->speed_mbps && was->speed_mbps;
    const bool width = is->width != was->width && is->width && was->width;

    if (speed || width) {
        l->speed_changes++;
        say(l, LINK_MESSAGE_SPEED, at, was->speed_mbps,
            is->speed_mbps ? is->speed_mbps : was->speed_mbps, was->width);
        l->messages[(l->message_head + l->message_count - 1) % MESSAGE_MAX].numbers[3] = is->width;
    }
}

void link_on_facts(struct link *l, struct mono now, const struct link_facts *facts)
{
    const struct link_facts was = l->facts;
    /* an event may be late, but not in the future, and not before the last event */
    const struct mono at = mono_before(now, facts->at)      ? now
                           : mono_before(facts->at, was.at) ? was.at
                                                            : facts->at;

    if (!facts->present) {
        move(l, at, LINK_GONE);
        l->facts.present = 0;
        return;
    }
    if (!l->known) {
        first_facts(l, facts);
    } else if (!was.present ||
               errors_of(facts) + drops_of(facts) < errors_of(&was) + drops_of(&was)) {
        rebase_errors(l, facts);
    } else if (!was.carrier || !facts->carrier) { /* errors while the port is down are no news */
        l->window_errors += errors_of(facts) - errors_of(&was);
    }
    note_speed(l, at, &was, facts);
    uint32_t downs = new_downs(l, &was, facts);
    l->ups += new_ups(l, downs, facts->carrier);
    count_flaps(l, now, at, downs);
    l->facts = *facts;
    l->facts.speed_mbps =
        facts->speed_mbps ? facts->speed_mbps : was.speed_mbps; /* unknown while the port is down */
    l->facts.width = facts->width ? facts->width : was.width;
    judge_flapping(l, now);
    /* the carrier was lost between two reads */
    if (downs > 0 && facts->carrier && l->state == LINK_UP) {
        said_down(l, at);
        said_up(l, at);
    }
    move(l, at, facts->carrier ? LINK_UP : LINK_DOWN);
    judge_errors(l, now);
}

void link_tick(struct link *l, struct mono now)
{
    if (l->down_due.ns <= now.ns) {
        l->down_due = MONO_NEVER;
        if (!l->down_open) {
            l->down_open = true;
            say(l, LINK_MESSAGE_DOWN, l->since, (int64_t)l->downs, 0, 0);
        }
    }
    if (l->flapping_next.ns <= now.ns) {
        judge_flapping(l, now);
    }
    if (l->known && l->facts.present && mono_sub(now, l->window_start).ns >= MINUTE_NS) {
        judge_errors(l, now);
    }
}

struct mono link_deadline(const struct link *l)
{
    const struct mono errors =
        l->known ? mono_add(l->window_start, span_ns(MINUTE_NS)) : MONO_NEVER;

    return mono_min(mono_min(l->flapping_next, l->down_due), errors);
}

void link_report_get(const struct link *l, struct mono now, struct link_report *ret_report)
{
    *ret_report = (struct link_report){
        .state = l->state,
        .speed_mbps = l->facts.speed_mbps,
        .width = l->facts.width,
        .flapping = l->flapping,
        .since = l->since,
        .downs = l->downs,
        .ups = l->ups,
        .flaps_minute = flaps_within(l, now, span_s(60)),
        .flaps_hour = flaps_within(l, now, span_s(3600)),
        .flaps_day = flaps_within(l, now, span_s(86400)),
        .speed_changes = l->speed_changes,
        .rx_errors = l->facts.rx_errors - l->base_rx_errors,
        .tx_errors = l->facts.tx_errors - l->base_tx_errors,
        .rx_drops = l->facts.rx_drops - l->base_rx_drops,
        .tx_drops = l->facts.tx_drops - l->base_tx_drops,
    };
}
