/* fault_act.c: how each fault acts on the kernel, the agents and the clocks, and how it is undone. */
#include "base/time.h"
#include "lab/agents.h"
#include "lab/fault.h"
#include "lab/machine.h"
#include "lab/relay.h"
#include "lab/spot.h"
#include "platform/oscillator/oscillator.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLOCK_LEAD_NS (5 * NS_PER_MS) /* a clock's event takes effect so long after it is written */

/* Waits until a raw time, or for ever (0). true: it was stopped early. */
static bool wait_until(int64_t raw_ns, int stop_fd)
{
    struct pollfd p = {.fd = stop_fd, .events = POLLIN};
    for (;;) {
        int64_t left_ns = raw_ns == 0 ? NS_PER_S * 3600 : raw_ns - lab_raw_ns();
        if (left_ns <= 0) {
            return false;
        }
        struct timespec t = {.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
        if (ppoll(&p, 1, &t, NULL) > 0) {
            return true;
        }
    }
}

/* ---- links ---- */

static int port_set(const struct lab_port *port, bool is_up)
{
    int r = machine_enter_network(port->space);
    return r < 0 ? r : machine_link_set(port->interface, is_up);
}

struct holders {
    const struct lab *lab;
    const struct lab_port *port;
    int except_id;
    bool is_held;
};

static void visit_holder(const struct lab_fault *state, void *data)
{
    struct holders *h = data;
    static struct lab_port port[LAB_SPOT_MAX];
    int count = state->id == h->except_id || !state->is_on
                    ? 0
                    : lab_link_ports(h->lab, &state->fault, port);
    for (int i = 0; i < count; i++) {
        h->is_held = h->is_held || (strcmp(port[i].space, h->port->space) == 0 &&
                                    strcmp(port[i].interface, h->port->interface) == 0);
    }
}

/* Sets the port up again, unless another fault keeps it down. */
static int port_release(const struct lab *lab, const struct lab_port *port, int id)
{
    struct holders h = {.lab = lab, .port = port, .except_id = id};
    lab_fault_each(lab, visit_holder, &h);
    return h.is_held ? 0 : port_set(port, true);
}

static int links_set(const struct lab *lab, const struct lab_fault *state, bool is_up)
{
    static struct lab_port port[LAB_SPOT_MAX];
    int count = lab_link_ports(lab, &state->fault, port);
    int r = 0;
    for (int i = 0; i < count && r == 0; i++) {
        r = is_up ? port_release(lab, &port[i], state->id) : port_set(&port[i], false);
    }
    return r;
}

static bool is_trunk_fault(const struct scenario_fault *f)
{
    return f->kind == FAULT_TRUNK || f->kind == FAULT_SPINE ||
           (f->kind == FAULT_FLAP && f->target.kind == TARGET_TRUNK);
}

/* ---- packets ---- */

static int filters_set(const struct lab *lab, const struct lab_fault *state, bool is_on)
{
    static struct lab_spot spot[LAB_SPOT_MAX];
    int count = lab_spots(lab, &state->fault, spot);
    int r = 0;
    for (int i = 0; i < count && r == 0; i++) {
        struct machine_filter f = {.match = spot[i].match,
                                   .verdict = VERDICT_DROP,
                                   .probability =
                                       state->fault.kind == FAULT_LOSS ? state->fault.loss : 1.0};
        f.match.above_bytes = (uint16_t)state->fault.above_bytes;
        r = machine_enter_network(spot[i].port.space);
        if (r == 0 && is_on) {
            r = machine_filter_add(spot[i].port.interface, spot[i].hook, (uint16_t)state->id, &f);
        } else if (r == 0) {
            (void)!machine_filter_delete(spot[i].port.interface, spot[i].hook, (uint16_t)state->id);
        }
    }
    return r;
}

static int shapers_set(const struct lab *lab, const struct lab_fault *state, bool is_on)
{
    static struct lab_port port[LAB_SPOT_MAX];
    const struct scenario_fabric *f = &lab->scenario.fabric;
    int count = lab_shaper_ports(lab, &state->fault, port);
    double normal_mbps =
        state->fault.target.kind == TARGET_NIC ? f->link_mbps : scenario_trunk_mbps(f);
    long kbit = (long)((is_on ? state->fault.rate_mbps : normal_mbps) * 1000.0);
    char rate[32];
    char low_rate[32]; /* as in fabric.c: the low class borrows */
    int r = 0;
    snprintf(rate, sizeof(rate), "%ldkbit", kbit);
    snprintf(low_rate, sizeof(low_rate), "%ldkbit", kbit / 100 > 8 ? kbit / 100 : 8);
    for (int i = 0; i < count && r == 0; i++) {
        static const char *const class[] = {"1:1", "1:10", "1:20"};
        static const char *const parent[] = {"1:", "1:1", "1:1"};
        r = machine_enter_network(port[i].space);
        /* for the job's class only the low class is changed: the probes' class keeps the whole rate */
        for (int c = state->fault.net_class == CLASS_JOB ? 2 : 0; c < 3 && r == 0; c++) {
            const char *argv[] = {"tc",
                                  "class",
                                  "change",
                                  "dev",
                                  port[i].interface,
                                  "parent",
                                  parent[c],
                                  "classid",
                                  class[c],
                                  "htb",
                                  "rate",
                                  c == 2 ? low_rate : rate,
                                  "ceil",
                                  rate,
                                  "burst",
                                  c == 2 ? "3k" : "16k",
                                  "cburst",
                                  "16k",
                                  "quantum",
                                  "3000",
                                  "prio",
                                  c == 2 ? "1" : "0",
                                  NULL};
            r = machine_run(argv, NULL);
        }
    }
    return r;
}

/* ---- clocks ---- */

static int clock_event(const struct lab *lab, const struct lab_fault *state, double sign)
{
    char file[LAB_TEXT_SIZE];
    static int host[LAB_HOST_MAX];
    struct oscillator o;
    lab_oscillators_file(lab, file);
    int r = oscillator_open_write(file, &o);
    if (r < 0) {
        return r;
    }
    const struct scenario_fault *f = &state->fault;
    int count = lab_target_hosts(lab, &f->target, host);
    struct oscillator_event e = {
        .effect_raw_ns = lab_raw_ns() + CLOCK_LEAD_NS,
        .clock = f->target.kind == TARGET_NIC ? (uint32_t)f->target.from.nic + 1 : 0};
    if (f->kind == FAULT_CLOCK_STEP) {
        e.step_ns = sign > 0 ? f->step_ns : -f->step_ns;
    } else if (f->kind == FAULT_CLOCK_FREQ) {
        e.freq_ppb = sign * f->ppm * 1000.0;
    } else {
        e.suspend_ns = f->for_ns;
    }
    for (int i = 0; i < count && r == 0; i++) {
        r = oscillator_append(&o.page->host[host[i]], &e);
    }
    oscillator_close(&o);
    wait_until(e.effect_raw_ns, -1);
    return r;
}

/* ---- agents ---- */

static int agents_signal(const struct lab *lab, const struct lab_fault *state, int signal)
{
    int host[LAB_HOST_MAX];
    int count = lab_target_hosts(lab, &state->fault.target, host);
    for (int i = 0; i < count; i++) {
        int r = lab_agent_signal(lab, host[i], signal);
        if (r < 0 && r != -ESRCH) {
            return r;
        }
    }
    return 0;
}

static int agents_start(const struct lab *lab, const struct lab_fault *state)
{
    int host[LAB_HOST_MAX];
    int count = lab_target_hosts(lab, &state->fault.target, host);
    for (int i = 0; i < count; i++) {
        int r = lab_agent_start(lab, host[i]);
        if (r < 0 && r != -EALREADY) {
            return r;
        }
    }
    return 0;
}

/* ---- the table of faults ---- */

int lab_fault_apply(const struct lab *lab, const struct lab_fault *state)
{
    switch (state->fault.kind) {
    case FAULT_CARRIER:
    case FAULT_FLAP:
    case FAULT_TRUNK:
        return links_set(lab, state, false);
    case FAULT_SPINE:
        /* Leaves would avoid their own dead trunks at once. So the spine drops packets with its links up, until the routing
         * reacts. */
        return state->fault.reroute_ns > 0 ? filters_set(lab, state, true)
                                           : links_set(lab, state, false);
    case FAULT_BLACKHOLE:
    case FAULT_LOSS:
        return filters_set(lab, state, true);
    case FAULT_BROWNOUT:
        return shapers_set(lab, state, true);
    case FAULT_AGENT_KILL:
    case FAULT_AGENT_RESTART:
        return agents_signal(lab, state, SIGKILL);
    case FAULT_AGENT_STOP:
    case FAULT_AGENT_STARVE:
        return agents_signal(lab, state, SIGSTOP);
    case FAULT_CLOCK_STEP:
    case FAULT_CLOCK_FREQ:
        return clock_event(lab, state, 1.0);
    case FAULT_SUSPEND: {
        int r = agents_signal(lab, state, SIGSTOP);
        return r < 0 ? r : clock_event(lab, state, 1.0);
    }
    default:
        return -EOPNOTSUPP;
    }
}

int lab_fault_unapply(const struct lab *lab, const struct lab_fault *state)
{
    static struct lab_spot spot[LAB_SPOT_MAX];
    int r;
    switch (state->fault.kind) {
    case FAULT_CARRIER:
    case FAULT_FLAP:
    case FAULT_TRUNK:
    case FAULT_SPINE:
        r = state->fault.kind == FAULT_SPINE ? filters_set(lab, state, false) : 0;
        r = r == 0 ? links_set(lab, state, true) : r;
        return r == 0 && is_trunk_fault(&state->fault) ? lab_fabric_reroute(lab) : r;
    case FAULT_BLACKHOLE:
    case FAULT_LOSS:
        return filters_set(lab, state, false);
    case FAULT_BROWNOUT:
        return shapers_set(lab, state, false);
    case FAULT_DELAY:
        for (int i = lab_spots(lab, &state->fault, spot) - 1; i >= 0; i--) {
            r = machine_enter_network(spot[i].port.space);
            if (r == 0) {
                relay_clear(&spot[i], state->id);
            }
        }
        return 0;
    case FAULT_AGENT_KILL:
    case FAULT_AGENT_RESTART:
        return agents_start(lab, state);
    case FAULT_AGENT_STOP:
    case FAULT_AGENT_STARVE:
    case FAULT_SUSPEND:
        return agents_signal(lab, state, SIGCONT);
    case FAULT_CLOCK_STEP:
    case FAULT_CLOCK_FREQ:
        return clock_event(lab, state, -1.0);
    default:
        return 0;
    }
}

/* ---- faults over time ---- */

static int apply_said(const struct lab *lab, struct lab_fault *state)
{
    int64_t before_ns = lab_raw_ns();
    int r = lab_fault_apply(lab, state);
    if (r == 0) {
        lab_event(lab, state, "on", before_ns);
        if (!state->is_on) {
            lab_fault_ready(state);
        }
    }
    return r;
}

static int unapply_said(const struct lab *lab, const struct lab_fault *state)
{
    int64_t before_ns = lab_raw_ns();
    int r = lab_fault_unapply(lab, state);
    lab_event(lab, state, "off", before_ns);
    return r;
}

/* A trunk is down from down_ns on. reroute_ns later this does what a routing protocol would do. */
static bool wait_rerouting(const struct lab *lab, const struct lab_fault *state, int64_t down_ns,
                           int64_t end_ns, int stop_fd)
{
    int64_t reroute_ns = down_ns + state->fault.reroute_ns;
    if (is_trunk_fault(&state->fault) && (end_ns == 0 || reroute_ns < end_ns)) {
        if (wait_until(reroute_ns, stop_fd)) {
            return true;
        }
        int64_t before_ns = lab_raw_ns();
        if (state->fault.kind == FAULT_SPINE &&
            (links_set(lab, state, false) < 0 || filters_set(lab, state, false) < 0)) {
            return wait_until(end_ns, stop_fd);
        }
        if (lab_fabric_reroute(lab) == 0) {
            lab_event(lab, state, "rerouted", before_ns);
        }
    }
    return wait_until(end_ns, stop_fd);
}

static int play_flaps(const struct lab *lab, struct lab_fault *state, int stop_fd)
{
    int64_t up_ns = state->fault.up_ns > 0 ? state->fault.up_ns : state->fault.down_ns;
    int64_t begin_ns = lab_raw_ns();
    int r = 0;
    bool is_stopped = false;
    for (int i = 0; i < state->fault.count && r == 0 && !is_stopped; i++) {
        int64_t down_ns = begin_ns + i * (state->fault.down_ns + up_ns);
        r = apply_said(lab, state);
        if (r == 0) {
            is_stopped =
                wait_rerouting(lab, state, down_ns, down_ns + state->fault.down_ns, stop_fd);
            r = unapply_said(lab, state);
        }
        is_stopped = is_stopped || wait_until(down_ns + state->fault.down_ns + up_ns, stop_fd);
    }
    return r;
}

static int play_starving(const struct lab *lab, struct lab_fault *state, int stop_fd)
{
    int64_t stopped_ns = (int64_t)((double)state->fault.turn_ns * state->fault.share);
    int64_t turn_ns = lab_raw_ns();
    int r = 0;
    bool is_stopped = false;
    while (r == 0 && !is_stopped && (state->end_raw_ns == 0 || lab_raw_ns() < state->end_raw_ns)) {
        r = lab_fault_apply(lab, state);
        if (!state->is_on) {
            lab_event(lab, state, "on", turn_ns);
            lab_fault_ready(state);
        }
        is_stopped = wait_until(turn_ns + stopped_ns, stop_fd);
        r = r == 0 ? lab_fault_unapply(lab, state) : r;
        turn_ns += state->fault.turn_ns;
        is_stopped = is_stopped || wait_until(turn_ns, stop_fd);
    }
    int last = unapply_said(lab, state);
    return r < 0 ? r : last;
}

/* Restarts one host's agent after another. */
static int play_restarts(const struct lab *lab, struct lab_fault *state, int stop_fd)
{
    int host[LAB_HOST_MAX];
    int count = lab_target_hosts(lab, &state->fault.target, host);
    int64_t next_ns = lab_raw_ns();
    for (int i = 0; i < count; i++) {
        struct lab_fault one = *state;
        one.fault.target =
            (struct scenario_target){.kind = TARGET_HOSTS, .first = host[i], .last = host[i]};
        one.is_on = 1;
        int r = apply_said(lab, &one);
        bool is_stopped = r == 0 && wait_until(lab_raw_ns() + state->fault.for_ns, stop_fd);
        r = r == 0 ? unapply_said(lab, &one) : r;
        if (r < 0) {
            return r;
        }
        if (!state->is_on) {
            lab_fault_ready(state);
        }
        next_ns += state->fault.every_ns;
        if (is_stopped || (i + 1 < count && wait_until(next_ns, stop_fd))) {
            break;
        }
    }
    return 0;
}

/* Each relay is its own process: a namespace, a scheduling class and a packet's time belong to a process. */
struct relay_place {
    struct relay_log *log;
    pid_t pid;
};

static void relay_ready(void *data)
{
    eventfd_write(*(const int *)data, 1);
}

/* The relay ends when the fault's process ends, for any reason. */
static pid_t relay_start(const struct lab_spot *spot, int id, struct relay_log *log, int stop_fd,
                         int ready_fd)
{
    const pid_t parent = getpid(), pid = fork();
    if (pid != 0) {
        return pid;
    }
    int r = prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent
                ? -ESRCH
                : machine_enter_network(spot->port.space);
    r = r == 0 ? relay_run(spot, id, log, stop_fd, relay_ready, &ready_fd) : r;
    _exit(r < 0 ? -r : 0);
}

/* The number of relays that reported packets within 2 s. */
static int relays_ready(int ready_fd, int count)
{
    int ready = 0;
    for (int i = 0; i < 2000 && ready < count; i++) {
        eventfd_t more = 0;
        if (eventfd_read(ready_fd, &more) == 0) {
            ready += (int)more;
        } else {
            usleep(1000);
        }
    }
    return ready;
}

static int relays_join(struct relay_place *place, int count, int r)
{
    for (int i = 0; i < count; i++) {
        int status = 0;
        while (waitpid(place[i].pid, &status, 0) < 0 && errno == EINTR) {
        }
        if (r == 0 && status != 0) {
            r = WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
        }
        munmap(place[i].log, sizeof(*place[i].log));
    }
    return r;
}

static int play_relays(const struct lab *lab, struct lab_fault *state, int stop_fd)
{
    static struct lab_spot spot[LAB_SPOT_MAX];
    struct relay_place place[RELAY_SPOT_MAX];
    int count = lab_spots(lab, &state->fault, spot);
    int r = count > RELAY_SPOT_MAX ? -E2BIG : 0;
    int relay_stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int started = 0;
    while (started < count && r == 0) {
        struct relay_place *p = &place[started];
        p->log = lab_relay_map(lab, state->id, started, true);
        if (p->log == NULL) {
            r = -EIO;
            break;
        }
        p->log->delay_ns = state->fault.delay_ns;
        p->log->jitter_ns = state->fault.jitter_ns;
        p->pid = relay_start(&spot[started], state->id, p->log, relay_stop_fd, ready_fd);
        if (p->pid < 0) {
            r = -errno;
            munmap(p->log, sizeof(*p->log));
            break;
        }
        started++;
    }
    if (r == 0 && relays_ready(ready_fd, count) == count) {
        lab_event(lab, state, "on", lab_raw_ns());
        lab_fault_ready(state);
        wait_until(state->end_raw_ns, stop_fd);
    }
    eventfd_write(relay_stop_fd, 1);
    r = relays_join(place, started, r);
    close(relay_stop_fd);
    close(ready_fd);
    lab_event(lab, state, "off", lab_raw_ns());
    return r;
}

/* ---- a delay at a place with a relay ---- */

struct relay_search {
    const struct lab *lab;
    const struct lab_fault *wanted;
    int found_id;
};

static void visit_relay(const struct lab_fault *state, void *data)
{
    struct relay_search *s = data;
    char a[LAB_TEXT_SIZE];
    char b[LAB_TEXT_SIZE];
    scenario_target_text(&state->fault.target, a, sizeof(a));
    scenario_target_text(&s->wanted->fault.target, b, sizeof(b));
    if (state->fault.kind == FAULT_DELAY && state->is_on && state->id != s->wanted->id &&
        strcmp(a, b) == 0 && state->fault.direction == s->wanted->fault.direction) {
        /* Only the first delay at this place has a relay. Later delays change that relay's delay, and so will this one. */
        struct relay_log *log = lab_relay_map(s->lab, state->id, 0, false);
        s->found_id = log != NULL ? state->id : s->found_id;
        (void)(log != NULL && munmap(log, sizeof(*log)));
    }
}

static int play_relay_change(const struct lab *lab, struct lab_fault *state, int relay_id,
                             int stop_fd)
{
    struct relay_log *log[RELAY_SPOT_MAX];
    int64_t delay_ns[RELAY_SPOT_MAX];
    int64_t jitter_ns[RELAY_SPOT_MAX];
    int count = 0;
    int64_t before_ns = lab_raw_ns();
    while (count < RELAY_SPOT_MAX &&
           (log[count] = lab_relay_map(lab, relay_id, count, false)) != NULL) {
        delay_ns[count] = log[count]->delay_ns;
        jitter_ns[count] = log[count]->jitter_ns;
        __atomic_store_n(&log[count]->delay_ns, state->fault.delay_ns, __ATOMIC_RELAXED);
        __atomic_store_n(&log[count]->jitter_ns, state->fault.jitter_ns, __ATOMIC_RELAXED);
        count++;
    }
    lab_event(lab, state, "on", before_ns);
    lab_fault_ready(state);
    wait_until(state->end_raw_ns, stop_fd);
    before_ns = lab_raw_ns();
    while (count-- > 0) {
        __atomic_store_n(&log[count]->delay_ns, delay_ns[count], __ATOMIC_RELAXED);
        __atomic_store_n(&log[count]->jitter_ns, jitter_ns[count], __ATOMIC_RELAXED);
        munmap(log[count], sizeof(*log[count]));
    }
    lab_event(lab, state, "off", before_ns);
    return 0;
}

static int play_delay(const struct lab *lab, struct lab_fault *state, int stop_fd)
{
    struct relay_search s = {.lab = lab, .wanted = state};
    lab_fault_each(lab, visit_relay, &s);
    return s.found_id != 0 ? play_relay_change(lab, state, s.found_id, stop_fd)
                           : play_relays(lab, state, stop_fd);
}

int lab_fault_play(const struct lab *lab, struct lab_fault *state, int stop_fd)
{
    switch (state->fault.kind) {
    case FAULT_FLAP:
        return play_flaps(lab, state, stop_fd);
    case FAULT_AGENT_STARVE:
        state->end_raw_ns = state->fault.for_ns > 0 ? lab_raw_ns() + state->fault.for_ns : 0;
        return play_starving(lab, state, stop_fd);
    case FAULT_AGENT_RESTART:
        return play_restarts(lab, state, stop_fd);
    case FAULT_DELAY:
        return play_delay(lab, state, stop_fd);
    default: {
        int r = apply_said(lab, state);
        if (r < 0) {
            return r;
        }
        wait_rerouting(lab, state, state->begin_raw_ns, state->end_raw_ns, stop_fd);
        return unapply_said(lab, state);
    }
    }
}
