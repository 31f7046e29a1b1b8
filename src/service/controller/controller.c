/* controller.c: start, loop, commits and end of the controller. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "base/paths.h"
#include "platform/journal/journal.h"
#include "service/controller/api/live.h"
#include "service/controller/audit/audit.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fault.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/fleet_config.h"
#include "service/controller/fleet/levels.h"
#include "service/controller/fleet/measure.h"
#include "service/controller/fleet/recording.h"
#include "service/controller/fleet/state.h"
#include "service/controller/fleet/topology.h"
#include "service/controller/fleet/ways.h"
#include "service/controller/history/compaction.h"
#include "service/controller/history/remote.h"
#include "service/controller/history/worker.h"
#include "service/controller/job/job.h"
#include "service/controller/listen.h"
#include "service/controller/place.h"
#include "service/controller/trust/tenant.h"
#include "service/controller/trust/trust.h"

enum {
    JSON_MAX = 256 << 20,
    ARENA_SIZE = 24 << 20,
};

#define AGE_MAX_NS     (3660LL * 86400 * NS_PER_S)
#define BEFORE_JOIN_NS (86400 * NS_PER_S) /* an agent keeps ten hours of reports */

void controller_say(int priority, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    journal_say("foliot-controller", priority, NULL, format, arguments);
    va_end(arguments);
}

void controller_note(int priority, const struct journal_field *fields, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    journal_say("foliot-controller", priority, fields, format, arguments);
    va_end(arguments);
}

int64_t controller_utc_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

struct mono controller_mono(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (struct mono){t.tv_sec * NS_PER_S + t.tv_nsec};
}

int64_t controller_back(int64_t at_ns, int64_t later_ns, int64_t earlier_ns)
{
    int64_t age = 0;
    return __builtin_sub_overflow(later_ns, earlier_ns, &age) || age < 0 || age > AGE_MAX_NS
               ? at_ns
               : at_ns - age;
}

int64_t fleet_back(const struct fleet_host *h, int64_t at_ns, int64_t later_ns, int64_t earlier_ns)
{
    const int64_t at = controller_back(at_ns, later_ns, earlier_ns);
    return at < h->joined_ns - BEFORE_JOIN_NS ? at_ns : at;
}

int64_t controller_rate(uint64_t before, uint64_t now, int64_t passed_ns)
{
    if (passed_ns <= 0 || now < before) {
        return -1;
    }
    const double rate = (double)(now - before) * 8e9 / (double)passed_ns;
    return rate < 1e17 ? (int64_t)rate : -1;
}

/* ---- commits ---- */

struct log_job {
    struct worker_job job;
    struct controller *c;
    int rc;
};

static void run_log(struct worker_job *job, struct store *store)
{
    ((struct log_job *)job)->rc = store_checkpoint(store);
}

static void end_log(struct worker_job *job)
{
    struct log_job *l = (struct log_job *)job;
    struct controller *c = l->c;
    c->checkpointing = false;
    int r = l->rc;
    if (r == 0 && !store_dirty(c->store)) {
        r = store_checkpoint(c->store); /* only what came meanwhile: little */
    }
    if (r == -EUCLEAN) {
        controller_store_failed(c, r, "the log of commits");
    }
    free(l);
}

struct check_job {
    struct worker_job job;
    struct controller *c;
    int rc;
    char words[256];
};

static void run_check(struct worker_job *job, struct store *store)
{
    struct check_job *k = (struct check_job *)job;
    k->rc = store_check(store, k->words);
}

static void end_check(struct worker_job *job)
{
    struct check_job *k = (struct check_job *)job;
    if (k->rc == -EUCLEAN) {
        controller_store_failed(k->c, k->rc, k->words);
    }
    free(k);
}

/* Finishes the check of a small store in the keeper thread, so that nothing waits for it. The start made only a part of this
 * check. */
static void check_store(struct controller *c)
{
    struct store_sizes sizes;
    store_sizes(c->store, &sizes);
    struct check_job *k = sizes.file_bytes < STORE_CHECK_BYTES ? calloc(1, sizeof(*k)) : NULL;
    if (k != NULL) {
        *k = (struct check_job){
            .job = {.run = run_check, .done = end_check}, .c = c, .rc = -ECANCELED};
        worker_add(c->keeper, &k->job, false);
    }
}

/* Writes the log into the store's file in the keeper thread: writing and syncing some 16 MiB would block the loop. */
static void see_to_log(struct controller *c)
{
    struct log_job *l =
        c->keeper != NULL && !c->checkpointing && store_log_pages(c->store) >= STORE_LOG_PAGES
            ? calloc(1, sizeof(*l))
            : NULL;
    if (l != NULL) {
        *l = (struct log_job){.job = {.run = run_log, .done = end_log}, .c = c, .rc = -ECANCELED};
        c->checkpointing = true;
        worker_add(c->keeper, &l->job, true);
    }
}

/* An empty commit does not show that the disk has room again. So as many bytes are written as a report may need. */
static int attempt(struct controller *c)
{
    static const char zeros[64 << 10];
    return store_put(c->store, "attempt", zeros, sizeof(zeros));
}

void controller_commit(struct controller *c)
{
    const struct mono before = controller_mono();
    bool back = false;
    int r = c->store_broken && !store_dirty(c->store) ? attempt(c) : 0;
    r = r < 0 ? r : store_commit(c->store);
    const int64_t took = mono_sub(controller_mono(), before).ns;
    c->count.commits++;
    c->count.commit_ns_last = took;
    c->count.commit_ns_max = took > c->count.commit_ns_max ? took : c->count.commit_ns_max;
    if (r < 0) {
        controller_store_failed(c, r, "a commit");
        return;
    }
    if (c->store_broken) {
        c->store_broken = false;
        controller_say(LOG_NOTICE, "the store can be written again");
        back = true;
    }
    state_committed(c, true);
    ingest_answer_waiting(c, 0);
    audit_on_commit(c);
    see_to_log(c);
    r = back ? store_put(c->store, "attempt", "", 0) : 0; /* goes with the next commit */
    if (r < 0) {
        controller_store_failed(c, r, "a setting");
    } else if (back) {
        controller_touch(c);
    }
}

static int on_commit(sd_event_source *source, uint64_t at, void *context)
{
    struct controller *c = context;
    c->commit_armed = false;
    controller_commit(c);
    return 0;
}

void controller_touch(struct controller *c)
{
    uint64_t now = 0;
    if (!c->commit_armed && c->commit_timer != NULL &&
        sd_event_now(c->loop, CLOCK_MONOTONIC, &now) >= 0) {
        c->commit_armed = true;
        sd_event_source_set_time(c->commit_timer, now + CONTROLLER_COMMIT_MS * 1000);
        sd_event_source_set_enabled(c->commit_timer, SD_EVENT_ONESHOT);
    }
}

void controller_store_failed(struct controller *c, int r, const char *doing)
{
    c->count.commit_failures++;
    store_rollback(c->store);
    state_committed(c, false);
    audit_on_rollback(c);
    ingest_answer_waiting(c, r);
    if (!c->store_broken) {
        c->store_broken = true;
        controller_say(LOG_ERR,
                       "%s can't be stored: %s. Nothing is acknowledged until it can; agents keep "
                       "their reports",
                       doing, strerror(-r));
    }
    if (r == -EUCLEAN) {
        controller_say(LOG_CRIT,
                       "%s/store.db is damaged: stopping. Restore: foliot-controller restore "
                       "BACKUP",
                       c->config.data_dir);
        c->exit_code = EXIT_FAILURE;
        if (c->loop != NULL) {
            sd_event_exit(c->loop, EXIT_FAILURE);
        }
    }
}

/* All connections end; agents connect again. Connections that wait in the listening socket stay there. */
static void reopen_agents(struct controller *c)
{
    if (!c->reopen || c->agents == NULL) {
        return;
    }
    if (c->wait_count > 0) {
        controller_commit(c); /* after this no answer is being sent */
    }
    const int r = http_server_reopen(&c->agents, c->server_certificate, c->authority);
    if (r < 0) {
        controller_say(LOG_ERR, "the agents' port can't be opened under the new authority: %s",
                       strerror(-r));
        c->exit_code = EXIT_FAILURE;
        sd_event_exit(c->loop, EXIT_FAILURE);
    }
    c->reopen = false;
}

/* Tokens expire without an event, and a new host may make another scope the widest. */
static void tenants_watch(struct controller *c)
{
    if (c->seconds % 60 == 0 && tenant_refresh(c) < 0) {
        controller_say(LOG_WARNING, "out of memory: hosts stay with the tenants that they had");
    }
}

static int on_second(sd_event_source *source, uint64_t at, void *context)
{
    struct controller *c = context;
    state_watch(c);
    fault_run(c);
    fleet_config_watch(c);
    rotate_watch(c);
    tenants_watch(c);
    ingest_second(c);
    levels_watch(c);
    measure_watch(c);
    audit_second(c);
    reopen_agents(c);
    alarm_second(c);
    api_watch_streams(c);
    alarm_save(c);
    c->seconds++;
    job_keep_second(c);
    remote_on_second(c->remote);
    recording_second(c);
    if (c->store_broken) {
        /* try a commit: there may be nothing to write, but healthz needs the state of the disk */
        controller_touch(c);
    } else if (c->keeper != NULL) {
        compaction_some(c);
        compaction_expire(c);
    }
    uint64_t now = 0;
    sd_event_now(c->loop, CLOCK_MONOTONIC, &now);
    sd_event_source_set_time(source, now + 1000000);
    sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

/* ---- opening ---- */

static int read_place(struct controller *c)
{
    char path[CONTROLLER_PATH_SIZE + 32];
    snprintf(path, sizeof(path), "%s/store.db", c->config.data_dir);
    return place_check(c->store, path, &c->is_copy);
}

/* Reads the store into memory. An error names the step that failed. */
static int read_store(struct controller *c, const char *path, bool read_only)
{
    static const struct {
        const char *what;
        int (*read)(struct controller *c);
        bool writes; /* skipped if the store is only read */
    } steps[] = {{"the store's own place", read_place, true},
                 {"the controller's generation", instance_load, true},
                 {"jobs", job_open, false},
                 {"hosts and NICs", fleet_load, false},
                 {"jobs' pasts", job_keep_load, true},
                 {"tokens", tokens_load, false},
                 {"tenants", tenant_refresh, false},
                 {"the fleet's configuration", fleet_config_load, false},
                 {"the authority's rotation", rotate_load, false}};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        const int r = read_only && steps[i].writes ? 0 : steps[i].read(c);
        if (r < 0) {
            if (!c->is_copy) { /* a copy was logged already */
                controller_say(LOG_ERR, "%s: %s can't be read: %s", path, steps[i].what,
                               strerror(-r));
            }
            return r;
        }
    }
    return 0;
}

int controller_open(struct controller *c, const struct controller_options *options, bool read_only)
{
    struct config_error error;
    char path[CONTROLLER_PATH_SIZE + 32], words[256];
    json_writer_init(&c->json, JSON_MAX);
    int r = controller_config_load(options->config_path, options->config_given, &c->config, &error);
    if (r < 0) {
        controller_say(LOG_ERR, "%s", error.text);
        return r;
    }
    const char *dir = getenv("FOLIOT_CONTROLLER_DIR");
    if (dir != NULL) {
        snprintf(c->config.data_dir, sizeof(c->config.data_dir), "%s", dir);
    }
    snprintf(path, sizeof(path), "%s/store.db", c->config.data_dir);
    if (message_arena_init(&c->batch_arena, ARENA_SIZE) < 0 ||
        message_arena_init(&c->report_arena, ARENA_SIZE) < 0) {
        controller_say(LOG_ERR, "cannot start: room for agents' messages: out of memory");
        return -ENOMEM;
    }
    r = authority_load(c);
    if (r < 0) {
        return r;
    }
    r = api_certificate_load(c);
    if (r < 0) {
        return r;
    }
    const struct store_options store = {.path = path, .read_only = read_only, .create = !read_only};
    r = store_open(&store, &c->store, words);
    if (r < 0) {
        controller_say(LOG_ERR, "%s", words);
        return r;
    }
    r = recording_open(c);
    return r < 0 ? r : read_store(c, path, read_only);
}

void controller_close(struct controller *c)
{
    store_close(c->store);
    levels_free(c);
    measures_close(c);
    audits_close(c);
    declared_free(c);
    ways_close(c);
    fault_close(c);
    fleet_config_free(c);
    fleet_free(c);
    recording_close(c);
    job_close(c);
    tenant_close(c);
    authority_free(c);
    api_certificate_free(c);
    free(c->tokens);
    free(c->waits);
    for (size_t i = 0; i < CONTROLLER_RECENT; i++) {
        free(c->recent[i].text);
        free(c->recent[i].body);
    }
    json_writer_done(&c->json);
    message_arena_done(&c->batch_arena);
    message_arena_done(&c->report_arena);
    message_buffer_done(&c->body);
    message_buffer_done(&c->unpacked);
    message_buffer_done(&c->encoded);
    message_buffer_done(&c->packed);
}

static void close_workers(struct controller *c)
{
    worker_close(c->history);
    worker_close(c->keeper);
    remote_close(c->remote);
    c->history = c->keeper = NULL;
    c->remote = NULL;
}

static int open_workers(struct controller *c)
{
    char path[CONTROLLER_PATH_SIZE + 32];
    snprintf(path, sizeof(path), "%s/store.db", c->config.data_dir);
    int r = worker_open(c->loop, path, &c->history);
    r = r < 0 ? r : worker_open(c->loop, path, &c->keeper);
    if (r < 0) {
        controller_say(LOG_ERR, "threads beside %s can't be started: %s", path, strerror(-r));
    } else {
        store_has_helper(c->store);
    }
    return r < 0 ? r : remote_open(c, &c->remote);
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
    alarm_reload(context);
    levels_load(context); /* a refused file was logged, and the old levels stay */
    return 0;
}

static int open_loop(struct controller *c)
{
    sigset_t signals;
    uint64_t now = 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    int r = sd_event_default(&c->loop);
    r = r < 0 ? r : sd_event_add_signal(c->loop, NULL, SIGTERM, NULL, NULL);
    r = r < 0 ? r : sd_event_add_signal(c->loop, NULL, SIGINT, NULL, NULL);
    r = r < 0 ? r : sd_event_add_signal(c->loop, NULL, SIGHUP, on_hangup, c);
    r = r < 0 ? r : sd_event_set_watchdog(c->loop, true);
    r = r < 0 ? r : sd_event_now(c->loop, CLOCK_MONOTONIC, &now);
    r = r < 0 ? r
              : sd_event_add_time(c->loop, &c->commit_timer, CLOCK_MONOTONIC, UINT64_MAX, 1,
                                  on_commit, c);
    r = r < 0 ? r
              : sd_event_add_time(c->loop, &c->second_timer, CLOCK_MONOTONIC, now + 1000000, 1,
                                  on_second, c);
    return r < 0 ? r : 0;
}

/* The steps of the start after the store is open. An error names the step that failed. */
static int open_all(struct controller *c)
{
    static const struct {
        const char *what;
        int (*open)(struct controller *c);
    } steps[] = {{"the event loop", open_loop},
                 {"threads beside the store", open_workers},
                 {"service levels", levels_load},
                 {"measurements on demand", measures_open},
                 {"audits", audits_open},
                 {"the declared topology", declared_load},
                 {"the fabric", ways_open},
                 {"faults", fault_open},
                 {"alert rules and incidents", alarm_open},
                 {"which controller of the fleet this is", instance_begin},
                 {"the agents' port", listen_agents},
                 {"the API's port", listen_api}};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        const int r = steps[i].open(c);
        if (r < 0) {
            controller_say(LOG_ERR, "cannot start: %s: %s", steps[i].what, strerror(-r));
            return r;
        }
    }
    return 0;
}

int controller_run(const struct controller_options *options)
{
    struct controller *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return EXIT_FAILURE;
    }
    c->started_ns = controller_utc_ns();
    c->serves = true;
    int r = controller_open(c, options, false);
    r = r < 0 ? r : open_all(c);
    if (r == 0) {
        listen_local(c);
        listen_write_ports(c);
        check_store(c);
        controller_say(LOG_INFO,
                       "foliot-controller " FOLIOT_VERSION
                       ": %u hosts; agents on port %u, API on http%s port %u",
                       c->member_count, http_server_port(c->agents), c->api_plain ? "" : "s",
                       http_server_port(c->api));
        sd_notifyf(0, "READY=1\nSTATUS=%u hosts", c->member_count);
        r = sd_event_loop(c->loop);
        sd_notify(0, "STOPPING=1");
        close_workers(c);
        alarm_save(c);
        job_keep_all(c);
        controller_commit(c);
    }
    close_workers(c);
    http_server_close(c->agents);
    http_server_close(c->api);
    http_server_close(c->api_local);
    alarm_close(c);
    sd_event_source_disable_unref(c->commit_timer);
    sd_event_source_disable_unref(c->second_timer);
    controller_close(c);
    sd_event_unref(c->loop);
    const int code = c->is_copy                   ? CONTROLLER_EXIT_COPY
                     : r < 0 || c->exit_code != 0 ? EXIT_FAILURE
                                                  : EXIT_SUCCESS;
    free(c);
    return code;
}
