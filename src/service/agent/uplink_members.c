/* uplink_members.c: takes the list of members from the controller. Changes are applied in place; pages become a new list.
 *
 * A list is tried before it is in force. If it is refused, the old list stays in force, in memory and on the disk, and the
 * controller gets the reason. If the list differs from the controller's, the agent asks for the whole list, at most once a
 * minute. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "service/agent/members.h"
#include "service/agent/uplink_internal.h"

#define AGAIN_NS (60 * NS_PER_S)

static void beside(const struct agent *a, const char *suffix, char path[static PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%.190s" MEMBERS_SUFFIX "%s", a->config->fleet_file, suffix);
}

static void refuse(struct uplink *u, uint64_t version, const char *why)
{
    struct agent *a = u->agent;
    u->refused.version = version;
    u->refused.again_at = uplink_now() + AGAIN_NS;
    snprintf(u->refused.why, sizeof(u->refused.why), "%.159s", why);
    snprintf(a->config_error, sizeof(a->config_error),
             "the controller's list of members, version %" PRIu64
             ", is refused, the one before stays in force: %s",
             version, why);
    agent_say(LOG_ERR, "%s", a->config_error);
    u->echo = true; /* send the next beat at once: the controller waits for the result */
}

/* ---- a whole list ---- */

static void drop_pages(struct uplink *u)
{
    u->pages.list = agent_config_free(u->pages.list);
    u->pages.next = 0;
}

static int begin_pages(struct uplink *u, uint64_t base)
{
    drop_pages(u);
    u->pages.base = base;
    u->pages.list = calloc(1, sizeof(*u->pages.list));
    return u->pages.list == NULL ? -ENOMEM : members_room(u->pages.list);
}

/* The new list is in a file of its own while it is tried. The list in force stays on the disk until then. So a restart never
 * finds a list that this agent refuses. */
static void try_pages(struct uplink *u)
{
    struct agent *a = u->agent;
    char path[PATH_SIZE];
    const uint64_t version = u->pages.list->fleet_version;
    beside(a, ".new", path);
    const int r = members_save(u->pages.list, path);
    drop_pages(u);
    u->pages.wanted = false;
    u->pages.tried_at = uplink_now();
    if (r < 0) {
        char words[160];
        snprintf(words, sizeof(words), "%.100s can't be written: %s", path, strerror(-r));
        refuse(u, version, words);
    } else if (agent_reload(a, path) < 0) {
        char words[160];
        snprintf(words, sizeof(words), "%.159s", a->config_error);
        refuse(u, version, words);
    } else {
        u->refused.why[0] = 0;
        u->echo = true; /* send a beat at once: the list may have changed meanwhile */
    }
}

static void take_page(struct uplink *u, const Foliot__V1__Members *m)
{
    struct members_plan plan;
    char words[MEMBERS_WORDS];
    const bool first = m->cursor == 1;
    if (!first &&
        (u->pages.list == NULL || m->cursor != u->pages.next || m->version != u->pages.base)) {
        u->pages.wanted = u->pages.list != NULL; /* wrong order: start again with the first page */
        drop_pages(u);
        return;
    }
    int r = first ? begin_pages(u, m->version) : 0;
    snprintf(words, sizeof(words), "%s", strerror(-r));
    r = r < 0 ? r : members_plan(u->pages.list, m, HOST_NONE, &plan, words);
    if (r < 0) {
        drop_pages(u);
        refuse(u, m->version, words);
        return;
    }
    members_apply(u->pages.list, m, &plan, true);
    members_plan_done(&plan);
    u->pages.next = m->next;
    if (m->next == 0) {
        try_pages(u);
    } else {
        u->echo = true; /* ask for the next page at once */
    }
}

/* ---- what changed ---- */

/* The change is written to the file before it is applied. So the list in force is on the disk, unless the file can't be
 * written. */
static int keep(struct uplink *u, const Foliot__V1__Members *m)
{
    char path[PATH_SIZE];
    beside(u->agent, "", path);
    const int r = members_append(u->agent->config, path, m);
    if (r < 0 && r != -EFBIG) {
        agent_say(LOG_WARNING, "%s: changes of the list of members can't be kept: %s", path,
                  strerror(-r));
        u->agent->config->members_end = 0; /* the next change writes the whole file */
    }
    return r;
}

static void save_anew(struct uplink *u)
{
    char path[PATH_SIZE];
    beside(u->agent, "", path);
    const int r = members_save(u->agent->config, path);
    if (r < 0) {
        agent_say(LOG_WARNING, "%s: the list of members can't be kept: %s", path, strerror(-r));
    }
}

/* The change is too large to apply NIC by NIC, or it can't be applied in place: it is taken as a new list. */
static void take_as_whole(struct uplink *u, const Foliot__V1__Members *m,
                          const struct members_plan *plan)
{
    const struct agent_config *c = u->agent->config;
    if (begin_pages(u, m->version) < 0) {
        refuse(u, m->version, "out of memory");
        return;
    }
    struct agent_config *list = u->pages.list;
    memcpy(list->peers, c->peers, c->peer_count * sizeof(*c->peers));
    memcpy(list->more, c->more, c->peer_count * sizeof(*c->more));
    memcpy(list->host_names, c->host_names, c->host_count * sizeof(*c->host_names));
    memcpy(list->host_keys, c->host_keys, c->host_count * sizeof(*c->host_keys));
    memcpy(list->leaf_names, c->leaf_names, c->leaf_count * sizeof(*c->leaf_names));
    list->peer_count = c->peer_count;
    list->host_count = c->host_count;
    list->leaf_count = c->leaf_count;
    members_apply(list, m, plan, true);
    try_pages(u);
}

static void take_changes(struct uplink *u, const Foliot__V1__Members *m)
{
    struct agent *a = u->agent;
    struct members_plan plan;
    char words[MEMBERS_WORDS];
    const int64_t now = uplink_now();
    int r = members_plan(a->config, m, a->config->host_id, &plan, words);
    if (r == -EBADMSG && (u->pages.tried_at == 0 || now - u->pages.tried_at > AGAIN_NS)) {
        agent_say(LOG_NOTICE, "the list of members, version %" PRIu64 ": %s", m->version, words);
        u->pages.wanted = u->echo = true;
        return;
    }
    if (r < 0) {
        refuse(u, m->version, words);
        return;
    }
    if (!plan.apart || a->config->peer_count + plan.add_count > a->config->peer_capacity) {
        take_as_whole(u, m, &plan);
    } else {
        r = keep(u, m);
        agent_members_change(a, m, &plan);
        if (r < 0) {
            save_anew(u);
        }
        u->refused.why[0] = 0;
    }
    members_plan_done(&plan);
}

static bool refused_lately(const struct uplink *u, uint64_t version)
{
    return u->refused.why[0] != 0 && u->refused.version == version &&
           uplink_now() < u->refused.again_at;
}

void uplink_take_members(struct uplink *u, const Foliot__V1__Members *m)
{
    if (u->agent->config->fleet_file[0] == 0 || refused_lately(u, m->version)) {
        return;
    }
    if (m->from == 0) {
        take_page(u, m);
    } else if (m->from == u->agent->config->fleet_version) {
        take_changes(u, m);
    } /* otherwise the changes belong to a late answer */
}

void uplink_take_fleet(struct uplink *u, Foliot__V1__Fleet *fleet)
{
    const struct agent *a = u->agent;
    if (a->config->fleet_file[0] == 0 || fleet->version == a->config->fleet_version ||
        refused_lately(u, fleet->version)) {
        return;
    }
    const Foliot__V1__Members *m = members_of_fleet(&u->arena, fleet);
    if (m == NULL) {
        refuse(u, fleet->version, "out of memory");
    } else {
        take_page(u, m);
    }
}

void uplink_members_close(struct uplink *u)
{
    drop_pages(u);
}

void uplink_ask_members(const struct uplink *u, Foliot__V1__Batch *m)
{
    const struct agent_config *c = u->agent->config;
    /* If a whole list came lately and still differs from the controller's, the digest is not sent. So the controller doesn't
     * send the whole list again at once. */
    const bool lately = c->fleet_version != 0 && u->pages.tried_at != 0 &&
                        uplink_now() - u->pages.tried_at < AGAIN_NS;
    m->fleet_version = c->fleet_version;
    m->members_digest = c->fleet_file[0] != 0 && !lately ? c->members_digest : 0;
    m->members_cursor = u->pages.list != NULL ? u->pages.next : u->pages.wanted;
    m->members_base = u->pages.list != NULL ? u->pages.base : 0;
    if (u->refused.why[0] != 0) {
        m->fleet_refused = (char *)(uintptr_t)u->refused.why;
        m->fleet_refused_version = uplink_now() < u->refused.again_at ? u->refused.version : 0;
    }
}
