/* agent.c: start, reload and end of the agent. */
#include "service/agent/agent.h"
#include "service/agent/members.h"

#include "base/arena.h"
#include "platform/http/server.h"
#include "platform/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

void agent_say(int priority, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    journal_say("foliot-agent", priority, NULL, format, arguments);
    va_end(arguments);
}

void agent_feed(struct agent *a, enum node_event_kind kind, const void *event)
{
    recorder_append(a->recorder, kind, a->now, event);
    if (node_on_event(a->node, a->now, kind, event) < 0) {
        agent_say(LOG_WARNING, "the peers list was refused: the old one stays in force");
    }
}

static int make_directory(const char *path)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST) {
        const int r = -errno;
        agent_say(LOG_ERR, "%s: expected a directory that can be made, found: %s", path,
                  strerror(-r));
        return r;
    }
    return 0;
}

#define LOCK_TRIES   100 /* a killed agent may hold its lock while its threads end */
#define LOCK_WAIT_US 10000

static bool locks(int fd)
{
    int tries = 0;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK || ++tries == LOCK_TRIES) {
            return false;
        }
        usleep(LOCK_WAIT_US);
    }
    return true;
}

/* One agent per runtime directory. The kernel releases the lock when the process ends. */
static int take_lock(struct agent *a)
{
    char path[AGENT_PATH_SIZE + 16];
    snprintf(path, sizeof(path), "%s/agent.lock", a->config->runtime_dir);
    a->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
    if (a->lock_fd < 0) {
        const int r = -errno;
        agent_say(LOG_ERR, "%s: %s", path, strerror(-r));
        return r;
    }
    if (!locks(a->lock_fd)) {
        char other[32] = "";
        const ssize_t n = pread(a->lock_fd, other, sizeof(other) - 1, 0);
        other[n > 0 ? n : 0] = 0;
        other[strcspn(other, "\n")] = 0;
        agent_say(
            LOG_ERR,
            "another foliot-agent (process %s) runs in %s: expected one agent per host. Stop it "
            "first "
            "(systemctl stop foliot-agent), or give this one its own runtime_dir, NICs and port",
            other[0] != 0 ? other : "unknown", a->config->runtime_dir);
        return -EBUSY;
    }
    char own[32];
    const int size = snprintf(own, sizeof(own), "%d\n", (int)getpid());
    if (ftruncate(a->lock_fd, 0) < 0 || pwrite(a->lock_fd, own, (size_t)size, 0) < 0) {
        agent_say(LOG_WARNING, "%s: %s", path, strerror(errno));
    }
    return 0;
}

static void fill_node_config(struct agent *a)
{
    const struct agent_config *c = a->config;
    struct node_config *n = &a->node_config;
    *n = (struct node_config){.host = c->host_id,
                              .nic_count = c->nic_count,
                              .edge_bound_ns = c->edge_bound_ns,
                              .delay_floor_ns = c->delay_floor_ns,
                              .diameter = c->diameter,
                              .flap_limit = c->flap_limit,
                              .path_limit = c->path_limit,
                              .ring_peers = c->ring_peers,
                              .grid_ms = 255, /* the agent's rounds are the grid */
                              .wall_minus_ns =
                                  time_source_wall_ns(a->source) - time_source_now(a->source).ns};
    for (uint32_t i = 0; i < c->nic_count; i++) {
        const uint8_t stamps = agent_nic_stamps(a, i);
        n->nics[i] = (struct node_nic){.nic = c->peers[c->nics[i].peer].nic,
                                       .stamps = stamps,
                                       .domain = a->nics[i].domain,
                                       .speed_mbps =
                                           link_monitor_get(a->links, a->nics[i].slot)->speed_mbps};
    }
    n->fleet = agent_config_fleet(c);
    if (getrandom(&n->seed, sizeof(n->seed), 0) != (ssize_t)sizeof(n->seed)) {
        n->seed = (uint64_t)time_source_now(a->source).ns;
    }
}

static int start_node(struct agent *a)
{
    fill_node_config(a);
    a->now = time_source_now(a->source);
    const int r = node_new(&a->node, &a->node_config, a->now);
    if (r < 0) {
        agent_say(LOG_ERR, "%s: the configuration contradicts itself: %s", a->config->path,
                  strerror(-r));
        return r;
    }
    recorder_start(a->recorder, &a->node_config, a->now);
    recorder_node(a->recorder,
                  arena_is_open() ? a->node : NULL); /* NULL: recorded from the start or not */
    agent_state_load(a);
    return 0;
}

/* ---- reload ---- */

static bool same_nics(const struct agent_config *x, const struct agent_config *y)
{
    if (x->nic_count != y->nic_count || strcmp(x->host, y->host) != 0 || x->port != y->port ||
        strcmp(x->runtime_dir, y->runtime_dir) != 0 || strcmp(x->controller, y->controller) != 0 ||
        strcmp(x->identity_dir, y->identity_dir) != 0 || x->edge_bound_ns != y->edge_bound_ns ||
        x->delay_floor_ns != y->delay_floor_ns || x->diameter != y->diameter ||
        x->flap_limit != y->flap_limit || x->path_limit != y->path_limit ||
        x->ring_peers != y->ring_peers || x->software_stamps != y->software_stamps) {
        return false;
    }
    for (uint32_t i = 0; i < x->nic_count; i++) {
        if (strcmp(x->nics[i].name, y->nics[i].name) != 0 ||
            x->peers[x->nics[i].peer].nic.index != y->peers[y->nics[i].peer].nic.index) {
            return false;
        }
    }
    return true;
}

/* Moves the list that was tried to its final place. */
static int put_in_force(const char *tried, const char *fleet_file)
{
    char to[AGENT_PATH_SIZE + 24];
    snprintf(to, sizeof(to), "%s" MEMBERS_SUFFIX, fleet_file);
    return rename(tried, to) < 0 ? -errno : 0;
}

static int load_fresh(struct agent *a, const char *fleet_file, struct agent_config **ret_fresh,
                      struct agent_keys *ret_keys, struct config_error *error)
{
    int r = agent_config_load(a->config->path, getenv("FOLIOT_RUNTIME_DIR"), fleet_file, ret_fresh,
                              error);
    if (r == 0 && fleet_file != NULL &&
        (r = put_in_force(fleet_file, (*ret_fresh)->fleet_file)) < 0) {
        snprintf(error->text, sizeof(error->text), "%.200s: %s", (*ret_fresh)->fleet_file,
                 strerror(-r));
    }
    r = r < 0 ? r : agent_keys_load((*ret_fresh)->key_file, ret_keys, error);
    if (r == 0 && !same_nics(a->config, *ret_fresh)) {
        snprintf(error->text, sizeof(error->text),
                 "%s: expected changes to peers, routers and keys only; own NICs, port, "
                 "directories and limits "
                 "take a restart",
                 (*ret_fresh)->path);
        r = -EINVAL;
    }
    return r;
}

int agent_reload(struct agent *a, const char *fleet_file)
{
    struct agent_config *fresh = NULL;
    struct agent_keys keys;
    struct config_error error = {""};
    sd_notify(0, "RELOADING=1");
    int r = load_fresh(a, fleet_file, &fresh, &keys, &error);
    if (r == 0 && !host_id_equal(fresh->host_id, a->config->host_id)) {
        agent_say(LOG_NOTICE,
                  "this host has another number in the list of members: the agent starts again");
        agent_config_free(fresh);
        a->again = true;
        sd_event_exit(a->loop, EXIT_SUCCESS);
        return 0;
    }
    if (r == 0) {
        const struct mesh_fleet fleet = agent_config_fleet(fresh);
        recorder_append(a->recorder, NODE_EVENT_PEERS, a->now, &fleet);
        /* from here on the node borrows fresh's lists */
        r = node_on_peers(a->node, a->now, &fleet);
        a->node_config.fleet = r == 0 ? fleet : a->node_config.fleet;
        snprintf(error.text, sizeof(error.text), "%s: %s", fresh->path,
                 r == -EINVAL ? "the peers list contradicts the running one" : strerror(-r));
    }
    if (r < 0) {
        if (error.text[0] == 0) { /* no error in the files: an error of this machine */
            snprintf(error.text, sizeof(error.text), "%s can't be read: %s", a->config->path,
                     strerror(-r));
        }
        snprintf(a->config_error, sizeof(a->config_error), "%s", error.text);
        agent_say(LOG_ERR, "reload refused, the old configuration stays in force: %s", error.text);
        agent_config_free(fresh);
    } else {
        /* a new list of members changes no group */
        const bool group =
            fleet_file == NULL || strcmp(a->config->socket_group, fresh->socket_group) != 0;
        agent_config_free(a->config);
        a->config = fresh;
        if (group) {
            agent_server_group(a);
        }
        a->keys = keys;
        agent_pair_follow(a);
        a->config_error[0] = 0;
        agent_settings_publish(a);
        a->config_loaded_utc_ns = time_source_wall_ns(a->source);
        agent_say(LOG_INFO, "reloaded %s: %u NICs of %u hosts, %u key%s", fresh->path,
                  fresh->peer_count, agent_config_hosts(fresh), keys.count,
                  keys.count == 1 ? "" : "s");
    }
    sd_notify(0, "READY=1");
    return r;
}

/* This module owns the node's array of peers. The node changes that array when it gets the events; all other arrays are
 * changed here. */
void agent_members_change(struct agent *a, const struct Foliot__V1__Members *m,
                          const struct members_plan *plan)
{
    struct agent_config *c = a->config;
    members_apply(c, m, plan, false);
    for (uint32_t i = 0; i < plan->gone_count; i++) {
        const struct mesh_member member = {.peer = {.nic = {plan->gone[i]}}, .gone = 1};
        agent_feed(a, NODE_EVENT_MEMBER, &member);
    }
    for (uint32_t i = 0; i < plan->add_count; i++) {
        const struct mesh_member member = {.peer = plan->add[i].peer};
        agent_feed(a, NODE_EVENT_MEMBER, &member);
    }
    a->node_config.fleet = *node_fleet(a->node);
    ASSERT(a->node_config.fleet.peer_count == c->peer_count); /* the plan was made for this list */
    for (uint32_t i = 0; i < c->nic_count; i++) {
        const bool found = agent_config_find(c, a->node_config.nics[i].nic, &c->nics[i].peer);
        ASSERT(found); /* the plan removes none of the own NICs */
    }
    agent_pair_change(a, m);
    a->config_error[0] = 0;
    agent_say(LOG_INFO, "members, version %llu: %u NICs joined, %u left: %u NICs of %u hosts",
              (unsigned long long)c->fleet_version, plan->add_count, plan->gone_count,
              c->peer_count, agent_config_hosts(c));
}

/* ---- loop ---- */

static int on_timer(sd_event_source *source, int fd, uint32_t events, void *context)
{
    struct agent *a = context;
    agent_round(a);
    const int r = agent_arm(a); /* it also clears the event */
    if (r < 0) {
        agent_say(LOG_ERR, "the round's timer: %s", strerror(-r));
        return sd_event_exit(a->loop, EXIT_FAILURE);
    }
    if (!a->ready_said) {
        a->ready_said = true;
        sd_notifyf(0, "READY=1\nSTATUS=%u NICs probe a fleet of %u", a->config->nic_count,
                   a->config->peer_count);
    }
    return 0;
}

static int on_link_event(sd_event_source *source, int fd, uint32_t events, void *context)
{
    struct agent *a = context;
    if (link_monitor_receive(a->links) < 0) {
        agent_nics_poll(a);
    }
    a->now = time_source_now(a->source);
    agent_nics_follow(a);
    agent_drain_actions(a);
    agent_depart(a);
    return 0;
}

/* Edge-triggered: routers answer rarely, and only during discovery. */
static int on_hop(sd_event_source *source, int fd, uint32_t events, void *context)
{
    ((struct agent *)context)->hops_wait = true;
    return 0;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
    (void)agent_reload(context, NULL); /* a refusal was logged */
    return 0;
}

static int open_loop(struct agent *a)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    int r = sd_event_default(&a->loop);
    r = r < 0 ? r
              : sd_event_add_signal(a->loop, NULL, SIGTERM, NULL, NULL); /* NULL: exits the loop */
    r = r < 0 ? r : sd_event_add_signal(a->loop, NULL, SIGINT, NULL, NULL);
    r = r < 0 ? r : sd_event_add_signal(a->loop, NULL, SIGHUP, on_hangup, a);
    r = r < 0 ? r : sd_event_set_watchdog(a->loop, true);
    a->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    a->period_ns = AGENT_ROUND_NS;
    r = r < 0 ? r : a->timer_fd < 0 ? -errno : agent_arm(a);
    r = r < 0 ? r : sd_event_add_io(a->loop, NULL, a->timer_fd, EPOLLIN, on_timer, a);
    if (r >= 0 && a->hops.fd4 >= 0) {
        r = sd_event_add_io(a->loop, NULL, a->hops.fd4, EPOLLIN | EPOLLET, on_hop, a);
    }
    if (r >= 0 && a->hops.fd6 >= 0) {
        r = sd_event_add_io(a->loop, NULL, a->hops.fd6, EPOLLIN | EPOLLET, on_hop, a);
    }
    r = r < 0
            ? r
            : sd_event_add_io(a->loop, NULL, link_monitor_fd(a->links), EPOLLIN, on_link_event, a);
    return r < 0 ? r : 0;
}

static int load_files(struct agent *a, const struct agent_options *options)
{
    struct config_error error = {""};
    int r = agent_config_load(options->config_path, options->runtime_dir, NULL, &a->config, &error);
    if (r == 0) {
        journal_about("FOLIOT_HOST", a->config->host);
        r = agent_keys_load(a->config->key_file, &a->keys, &error);
    }
    if (r < 0) {
        agent_say(LOG_ERR, "%s", error.text[0] != 0 ? error.text : strerror(-r));
    }
    return r;
}

/* Jobs of any user may put their page into this directory; the sticky bit keeps users from removing pages of others. In a lab
 * each agent has its own runtime directory. The agent with the default runtime directory also reads /dev/shm: containers
 * without this directory, and processes that started before the agent, put their pages there. */
static int open_jobs(struct agent *a)
{
    char own[AGENT_PATH_SIZE + 16];
    const char *const folders[JOBS_FOLDER_MAX] = {own, "/dev/shm"};
    const bool host = strcmp(a->config->runtime_dir, AGENT_RUNTIME_DEFAULT) == 0;
    snprintf(own, sizeof(own), "%s/jobs", a->config->runtime_dir);
    const int r = make_directory(own);
    if (r < 0 || chmod(own, 01777) < 0) {
        agent_say(LOG_WARNING, "%s: jobs can't leave their pages there: %s", own, strerror(errno));
    }
    return jobs_new(&a->jobs, folders, host ? 2 : 1);
}

static int open_clocks(struct agent *a)
{
    agent_lldp_open(a);
    agent_clocks_open(a);
    return 0;
}

/* The steps of the start after the configuration is read. An error names the step that failed. */
static int open_parts(struct agent *a)
{
    static const struct {
        const char *what;
        int (*open)(struct agent *a);
    } steps[] = {{"NICs and links", agent_nics_open},
                 {"clocks", open_clocks},
                 {"the node", start_node},
                 {"shared pages", agent_pages_open},
                 {"the event loop", open_loop},
                 {"RDMA ports", agent_verbs_open},
                 {"probes between queue pairs", agent_ud_open},
                 {"agent.sock", agent_server_open},
                 {"the fleet's settings", agent_settings_open},
                 {"measurements on demand", agent_measure_open},
                 {"facts of this machine", agent_audit_open},
                 {"rounds of a matrix", agent_matrix_open},
                 {"tests of an audit", agent_perf_open},
                 {"reports to the controller", agent_uplink_open},
                 {"jobs' pages", open_jobs},
                 {"metrics", agent_metrics_open}};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        const int r = steps[i].open(a);
        if (r < 0) {
            agent_say(LOG_ERR, "cannot start: %s: %s", steps[i].what, strerror(-r));
            return r;
        }
    }
    return 0;
}

static int open_all(struct agent *a, const struct agent_options *options)
{
    /* opened before the objects that lie in it; without an arena they lie on the heap */
    int r = arena_open();
    if (r < 0) {
        agent_say(LOG_WARNING, "recordings go back to the start or not at all: %s", strerror(-r));
    }
    r = load_files(a, options);
    if (r == 0 && a->config->members_trouble[0] != 0) {
        agent_say(LOG_WARNING,
                  "%s: begins with the list in %s, and asks the controller for the rest",
                  a->config->members_trouble, a->config->fleet_file);
    }
    r = r < 0 ? r : make_directory(a->config->runtime_dir);
    r = r < 0 ? r : make_directory(a->config->state_dir);
    r = r < 0 ? r : take_lock(a);
    if (r < 0) {
        return r; /* the step that failed has logged the reason */
    }
    r = time_source_open(&a->source);
    if (r < 0) {
        agent_say(
            LOG_ERR,
            "FOLIOT_LAB_OSCILLATOR=%s: expected a lab's page of clocks and a host in it, found: %s",
            getenv("FOLIOT_LAB_OSCILLATOR"), strerror(-r));
        return r;
    }
    a->config_loaded_utc_ns = a->started_utc_ns = time_source_wall_ns(a->source);
    a->started = a->now = time_source_now(a->source);
    agent_pair_open(a);
    r = recorder_open(&a->recorder, a->config->state_dir, a->config->record_bytes_max);
    if (r < 0) {
        agent_say(LOG_WARNING, "%s: no recording: %s", a->config->state_dir, strerror(-r));
    }
    return open_parts(a);
}

static void close_all(struct agent *a)
{
    http_server_close(a->metrics);
    agent_uplink_close(a);
    agent_measure_close(a);
    agent_audit_close(a);
    agent_matrix_close(a);
    agent_perf_close(a);
    agent_server_close(a);
    if (a->node != NULL) {
        agent_state_save(a);
    }
    agent_settings_close(a);
    jobs_free(a->jobs);
    agent_pages_close(a);
    agent_clocks_close(a);
    agent_verbs_close(a);
    agent_ud_close(a);
    agent_nics_close(a);
    lldp_close(&a->lldp);
    node_free(a->node);
    recorder_close(a->recorder);
    agent_config_free(a->config);
    arena_close();
    time_source_close(a->source);
    pair_table_free(a->pairs);
    sd_event_unref(a->loop);
    if (a->timer_fd >= 0) {
        close(a->timer_fd);
    }
    if (a->lock_fd >= 0) {
        close(a->lock_fd);
    }
}

/* software_nics: the result of an earlier run. */
static int run_once(const struct agent_options *options, uint32_t *software_nics, bool *ret_again)
{
    struct agent *a = calloc(1, sizeof(*a));
    *ret_again = false;
    if (a == NULL) {
        return EXIT_FAILURE;
    }
    a->lock_fd = a->timer_fd = -1;
    a->software_nics = *software_nics;
    a->hops = (struct hop_listener){-1, -1};
    a->lldp.fd = -1;
    int r = open_all(a, options);
    if (r == 0) {
        agent_say(LOG_INFO,
                  "foliot-agent " FOLIOT_VERSION ": host %s, %u NICs, fleet of %u NICs on %u hosts",
                  a->config->host, a->config->nic_count, a->config->peer_count,
                  agent_config_hosts(a->config));
        agent_nics_follow(a);
        r = sd_event_loop(a->loop);
        sd_notify(0, a->again ? "RELOADING=1" : "STOPPING=1");
    }
    close_all(a);
    *software_nics = a->software_nics;
    *ret_again = r >= 0 && a->again;
    free(a);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int agent_run(const struct agent_options *options)
{
    uint32_t software_nics = 0;
    bool again = false;
    int r;

    do {
        r = run_once(options, &software_nics, &again);
    } while (again);
    return r;
}
