/* audit.c: the machine's facts, and which hosts this host can reach (reach.h). The controller asks for them. foliot-inspect
 * reads the facts, for two reasons: the agent's unit may read nearly nothing of a machine, and a read that hangs must not stop
 * the clock. The sheet of facts is sent in parts. If a part has not changed since it was last sent, only its hash is sent.
 * Nothing in this file waits. */
#include <errno.h>
#include <foliot.pb-c.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/plain.h"
#include "core/audit/budget.h"
#include "core/audit/part.h"
#include "service/agent/agent.h"
#include "service/agent/program.h"
#include "service/agent/reach.h"
#include "service/audit/sheet.h"
#include "service/audit/sheet_json.h"

enum { HASH_SIZE = 32, TEXT_MAX = 8 << 20, READ_SIZE = 64 << 10 };
#define READING_US (75 * 1000000ULL) /* the controller waits a little longer */
#define REACH_US   20000ULL

struct agent_audit {
    uint64_t audit; /* of the look in progress, or of the last one that was answered; 0: none */
    uint32_t number;
    bool whole;
    struct allowance budget; /* limits how often the machine is read (core/audit/budget.h) */
    struct program program;
    sd_event_source *readable, *deadline, *reaching;
    struct agent_reach reach;
    bool read; /* foliot-inspect has ended; the agent waits for the hosts that it tries to reach */
    char *text;
    size_t used, room;
    bool sent[PART_COUNT];
    uint8_t hash[PART_COUNT][HASH_SIZE]; /* of the parts that were sent */
    int64_t gpu_users;                   /* -1: not known */
};

int64_t agent_gpu_users(const struct agent *a)
{
    return a->audit->gpu_users;
}

int agent_audit_open(struct agent *a)
{
    a->audit = calloc(1, sizeof(*a->audit));
    if (a->audit == NULL) {
        return -ENOMEM;
    }
    a->audit->program = PROGRAM_NONE;
    a->audit->gpu_users = -1;
    return 0;
}

static void end_reading(struct agent_audit *u)
{
    u->readable = sd_event_source_disable_unref(u->readable);
    u->deadline = sd_event_source_disable_unref(u->deadline);
    u->reaching = sd_event_source_disable_unref(u->reaching);
    reach_stop(&u->reach);
    u->read = false;
    program_close(&u->program);
    free(u->text);
    u->text = NULL;
    u->used = u->room = 0;
}

void agent_audit_close(struct agent *a)
{
    if (a->audit != NULL) {
        end_reading(a->audit);
        free(a->audit);
        a->audit = NULL;
    }
}

/* ---- the answer ---- */

static void answer(struct agent *a, Foliot__V1__Sheet *sheet)
{
    struct agent_audit *u = a->audit;
    sheet->audit = u->audit;
    sheet->number = u->number;
    const int r = agent_uplink_sheet(a, sheet);
    if (r < 0) {
        agent_say(LOG_WARNING, "this host's facts can't be sent: %s", strerror(-r));
        u->audit = 0; /* if the controller asks again, the agent tries again */
    }
}

static void refuse(struct agent *a, const char *why)
{
    Foliot__V1__Sheet sheet = FOLIOT__V1__SHEET__INIT;
    char words[200];
    snprintf(words, sizeof(words), "%s", why);
    agent_say(LOG_WARNING, "this host's facts can't be read: %s", words);
    sheet.refused = words;
    answer(a, &sheet);
}

struct parts {
    Foliot__V1__SheetPart part[PART_COUNT], *pointers[PART_COUNT];
    uint8_t hash[PART_COUNT][HASH_SIZE];
    unsigned number[PART_COUNT];
    size_t count;
};

/* Adds only the hash if the same part was sent before. */
static void add_part(const struct agent_audit *u, struct parts *p, unsigned number, char *text,
                     size_t size)
{
    Foliot__V1__SheetPart *part = &p->part[p->count];
    uint8_t *hash = p->hash[p->count];
    foliot__v1__sheet_part__init(part);
    part->name = (char *)(uintptr_t)sheet_part_name(number);
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, size, hash) == 0 && number != PART_NOW) {
        part->hash = (ProtobufCBinaryData){HASH_SIZE, hash};
    }
    if (u->whole || part->hash.len == 0 || !u->sent[number] ||
        memcmp(u->hash[number], hash, HASH_SIZE) != 0) {
        part->body = (ProtobufCBinaryData){size, (uint8_t *)text};
    }
    p->number[p->count] = number;
    p->pointers[p->count++] = part;
}

static void send_sheet(struct agent *a, const struct sheet *s)
{
    struct agent_audit *u = a->audit;
    Foliot__V1__Sheet sheet = FOLIOT__V1__SHEET__INIT;
    struct parts *p = calloc(1, sizeof(*p));
    char *texts = malloc(AUDIT_SHEET_MAX);
    size_t used = 0;
    for (unsigned number = 0; p != NULL && texts != NULL && number < PART_COUNT; number++) {
        const size_t size = sheet_part_encode(s, number, texts + used, AUDIT_SHEET_MAX - used);
        if (size > AUDIT_SHEET_MAX - used) {
            sheet.left_out++; /* a whole part is missing: such a sheet is not judged */
        } else if (size > 0) {
            add_part(u, p, number, texts + used, size);
            used += size;
        }
    }
    if (p == NULL || texts == NULL) {
        refuse(a, "out of memory");
    } else {
        sheet.left_out += s->left_out;
        sheet.n_parts = p->count;
        sheet.parts = p->pointers;
        answer(a, &sheet);
        for (size_t i = 0; i < p->count && u->audit != 0; i++) {
            u->sent[p->number[i]] = true;
            memcpy(u->hash[p->number[i]], p->hash[i], HASH_SIZE);
        }
    }
    free(texts);
    free(p);
}

static int64_t gpu_users_of(const struct sheet *s)
{
    const struct fact *f = sheet_find(s, FACT_GPU_USERS, "");
    int64_t count = -1;
    return f != NULL && f->state == FACT_VALUE && fact_number(f->value, &count) ? count : -1;
}

static void read_answer(struct agent *a)
{
    struct agent_audit *u = a->audit;
    json_t *tree = u->used > 0 ? json_loadb(u->text, u->used, JSON_REJECT_DUPLICATES, NULL) : NULL;
    struct sheet *s = sheet_new();
    const char *why = "foliot-inspect gave no sheet: expected JSON";
    const int r = tree == NULL ? -EINVAL : s == NULL ? -ENOMEM : sheet_read(tree, s, &why);
    if (r == 0) {
        reach_facts(&u->reach, s);
        sheet_finish(s);
        u->gpu_users = gpu_users_of(s);
        send_sheet(a, s);
    } else {
        refuse(a, r == -ENOMEM ? "out of memory" : why);
    }
    json_decref(tree);
    sheet_free(s);
}

/* ---- hosts that are tried ---- */

static int64_t now_of(struct agent *a)
{
    return time_source_now(a->source).ns;
}

static void answer_if_all_is_there(struct agent *a)
{
    struct agent_audit *u = a->audit;
    if (u->read && u->reaching == NULL) {
        read_answer(a);
        end_reading(u);
    }
}

static int on_reaching(sd_event_source *source, uint64_t at, void *context)
{
    struct agent *a = context;
    struct agent_audit *u = a->audit;
    if (!reach_look(&u->reach, now_of(a))) {
        (void)sd_event_source_set_time(source, at + REACH_US);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    }
    u->reaching = sd_event_source_disable_unref(u->reaching);
    answer_if_all_is_there(a);
    return 0;
}

static bool take_peer(const Foliot__V1__Reach *from, struct reach_peer *p)
{
    struct sockaddr_in *four = (struct sockaddr_in *)&p->to;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&p->to;
    *p = (struct reach_peer){.tcp = -1, .udp = -1};
    plain_text(from->host, p->host, sizeof(p->host));
    if (from->address.len == 4) {
        *four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(REACH_PORT)};
        memcpy(&four->sin_addr, from->address.data, 4);
        p->size = sizeof(*four);
    } else if (from->address.len == 16) {
        *six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(REACH_PORT)};
        memcpy(&six->sin6_addr, from->address.data, 16);
        p->size = sizeof(*six);
    }
    return p->size > 0 && p->host[0] != 0;
}

/* If no timer can be made, no host is tried. */
static void begin_reaching(struct agent *a, const Foliot__V1__Look *look)
{
    struct agent_audit *u = a->audit;
    uint64_t now = 0;
    for (size_t i = 0; i < look->n_reach && u->reach.count < AGENT_REACH_MAX; i++) {
        u->reach.count += take_peer(look->reach[i], &u->reach.peers[u->reach.count]);
    }
    if (u->reach.count == 0 || sd_event_now(a->loop, CLOCK_MONOTONIC, &now) < 0 ||
        sd_event_add_time(a->loop, &u->reaching, CLOCK_MONOTONIC, now, 1, on_reaching, a) < 0) {
        u->reach.count = 0;
        return;
    }
    reach_begin(&u->reach, now_of(a));
}

/* ---- foliot-inspect ---- */

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *context)
{
    struct agent *a = context;
    struct agent_audit *u = a->audit;
    if (u->room - u->used < READ_SIZE) {
        char *larger = u->room < TEXT_MAX ? realloc(u->text, u->room * 2 + READ_SIZE) : NULL;
        if (larger == NULL) {
            refuse(a, "foliot-inspect's answer is too large");
            end_reading(u);
            return 0;
        }
        u->text = larger;
        u->room = u->room * 2 + READ_SIZE;
    }
    const ssize_t n = read(fd, u->text + u->used, READ_SIZE);
    if (n > 0) {
        u->used += (size_t)n;
    } else if (n == 0) {
        u->read = true;
        u->readable = sd_event_source_disable_unref(u->readable);
        answer_if_all_is_there(a);
    } else if (errno != EAGAIN && errno != EINTR) {
        refuse(a, strerror(errno));
        end_reading(u);
    }
    return 0;
}

static int on_deadline(sd_event_source *source, uint64_t at, void *context)
{
    struct agent *a = context;
    refuse(a, "foliot-inspect did not answer in time");
    end_reading(a->audit);
    return 0;
}

static void start(struct agent *a)
{
    struct agent_audit *u = a->audit;
    struct agent_config *c = a->config;
    static char option[] = "--root", of_agent[] = "--agent";
    char socket[AGENT_PATH_SIZE + 16];
    char *const of_root[] = {c->inspect, option, c->inspect_root, NULL};
    /* this agent's own socket: an installed agent may have another one */
    char *const plain[] = {c->inspect, of_agent, socket, NULL};
    uint64_t now = 0;
    snprintf(socket, sizeof(socket), "%s/agent.sock", c->runtime_dir);
    int r = program_open(&u->program, c->inspect_root[0] != 0 ? of_root : plain);
    r = r < 0 ? r : sd_event_add_io(a->loop, &u->readable, u->program.fd, EPOLLIN, on_readable, a);
    r = r < 0 ? r : sd_event_now(a->loop, CLOCK_MONOTONIC, &now);
    r = r < 0 ? r
              : sd_event_add_time(a->loop, &u->deadline, CLOCK_MONOTONIC, now + READING_US, 1,
                                  on_deadline, a);
    if (r < 0) {
        char why[160];
        snprintf(why, sizeof(why),
                 r == -ENOENT ? "%.100s is not there: systemctl enable --now foliot-inspect.socket"
                              : "%.100s: %s",
                 c->inspect, strerror(-r));
        refuse(a, why);
        end_reading(u);
    }
}

void agent_audit_take(struct agent *a, const Foliot__V1__Look *look)
{
    struct agent_audit *u = a->audit;
    if (look == NULL || look->audit == 0 || u->program.fd >= 0 || program_is_left(&u->program) ||
        (look->audit == u->audit && look->number == u->number)) {
        return;
    }
    u->audit = look->audit;
    u->number = look->number;
    u->whole = look->whole;
    u->gpu_users = -1;
    const char *wrong = budget_read(&u->budget, a->now);
    if (wrong != NULL) {
        refuse(a, wrong);
        return;
    }
    begin_reaching(a, look);
    start(a);
}
