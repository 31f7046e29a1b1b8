/* mode.c: the lesser of FOLIOT_MODE and the host's switch; running jobs obey it.
 *
 * The switch is a page in shared memory (wire/switch_page.h). The housekeeping reads one word of it whenever it is awake, at
 * least every 10 ms while anything is active. Every 5 s it checks whether the path names another file. Under a running job OFF
 * acts as a silent OBSERVE, because the job's peers must not be left alone.
 *
 * observe   chunks stay on their lane while it lives; nobody is accused, nothing is sent twice failover  lanes are left when they
 * die, and come back; chunks go round robin; no repath full      everything */
#include "transport/internal.h"
#include "wire/switch_page.h"

static const char *const words[] = {"observe", "failover", "full"};

enum transport_mode mode_now(const struct transport *t)
{
    return (enum transport_mode)__atomic_load_n(&t->mode, __ATOMIC_RELAXED);
}

static enum transport_mode allowed(const struct transport *t)
{
    switch (t->host_switch.memory != NULL ? switch_page_read(t->host_switch.memory)
                                          : SWITCH_UNSET) {
    case SWITCH_OFF:
    case SWITCH_OBSERVE:
        return TRANSPORT_OBSERVE;
    case SWITCH_FAILOVER:
        return TRANSPORT_FAILOVER;
    default:
        return TRANSPORT_FULL;
    }
}

void mode_look(struct transport *t, struct mono now)
{
    const enum transport_mode before = mode_now(t);

    if (t->config.switch_file == NULL) {
        return;
    }
    (void)follow_look(&t->host_switch, now, t->config.switch_file, sizeof(struct switch_page),
                      sizeof(struct switch_page));
    enum transport_mode mode = allowed(t);
    mode = mode < t->config.mode ? mode : t->config.mode;
    if (mode != before) {
        __atomic_store_n(&t->mode, mode, __ATOMIC_RELAXED);
        say(t, TRANSPORT_INFO, "the host's switch: %s (was %s)", words[mode], words[before]);
    }
}

void mode_apply(struct lane_set *set)
{
    const enum transport_mode mode = mode_now(set->transport);

    if (set->mode != mode) {
        set->mode = mode;
        watch_observe(set->watch, mode == TRANSPORT_OBSERVE);
        scheduler_round_robin(&set->scheduler, mode != TRANSPORT_FULL);
    }
}

uint32_t mode_lanes(struct lane_set *set, uint32_t usable, uint32_t connected)
{
    if (set->mode != TRANSPORT_OBSERVE || usable == 0) {
        return usable;
    }
    if ((connected >> set->only & 1) == 0 || (usable >> set->only & 1) == 0) {
        set->only = (uint8_t)__builtin_ctz(usable);
    }
    return 1u << set->only;
}
