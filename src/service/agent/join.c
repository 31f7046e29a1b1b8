/* join.c: a host joins the fleet with a token. */
#include "service/agent/join.h"

#include <arpa/inet.h>
#include <errno.h>
#include <foliot.pb-c.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fleet/member.h"
#include "platform/http/client.h"
#include "platform/message/message.h"
#include "platform/sysfs/sysfs.h"
#include "platform/tls/tls.h"
#include "service/agent/agent.h"
#include "service/agent/fleet_file.h"
#include "service/agent/members.h"

enum { ANSWER_MAX = 64 << 20, TIMEOUT_MS = 30000, PATH_SIZE = AGENT_PATH_SIZE + 64 };

struct nic {
    char name[IF_NAMESIZE];
    uint8_t address4[4], address6[16];
    bool has4, has6, physical;
    uint32_t speed_mbps;
};

struct join {
    const struct join_options *options;
    char address[AGENT_PATH_SIZE], secret[64], pin[80], host[TLS_NAME_MAX + 1];
    char identity[PATH_SIZE], key_path[PATH_SIZE];
    char *key;
    /* public half of the key that proves this host's probes */
    uint8_t pair_public[PAIR_PUBLIC_SIZE];
    struct nic nics[HOST_NIC_MAX];
    unsigned nic_count;
    uint32_t protocol;
    bool other_protocol; /* the controller refused the join for its protocol */
    int status;
};

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "foliot-agent join: %s: %s\n", what, why);
    return -EINVAL;
}

/* ---- the token ---- */

/* Splits "flj_SECRET.PIN" and converts PIN, the base64url SHA-256 of the controller's key, to libcurl's format. */
static int read_token(struct join *j)
{
    const char *token = j->options->token, *dot = strchr(token, '.');
    if (strncmp(token, "flj_", 4) != 0 || dot == NULL || dot - token - 4 != 43 ||
        strlen(dot + 1) != 43) {
        return fail("the token", "expected flj_ and two parts of 43 characters: copy all of it");
    }
    snprintf(j->secret, sizeof(j->secret), "%.43s", token + 4);
    snprintf(j->pin, sizeof(j->pin), "sha256//%.43s=", dot + 1);
    for (char *p = j->pin + 8; *p != 0; p++) {
        *p = *p == '-' ? '+' : *p == '_' ? '/' : *p;
    }
    return 0;
}

/* ---- this host's NICs ---- */

static bool wanted(const struct join *j, const char *name)
{
    for (unsigned i = 0; i < j->options->nic_count; i++) {
        if (strcmp(j->options->nics[i], name) == 0) {
            return true;
        }
    }
    return j->options->nic_count == 0;
}

static struct nic *nic_named(struct join *j, const char *name)
{
    for (unsigned i = 0; i < j->nic_count; i++) {
        if (strcmp(j->nics[i].name, name) == 0) {
            return &j->nics[i];
        }
    }
    if (j->nic_count == HOST_NIC_MAX) {
        return NULL;
    }
    struct nic *n = &j->nics[j->nic_count++];
    char path[SYSFS_PATH_SIZE];
    int64_t speed;
    *n = (struct nic){0};
    snprintf(n->name, sizeof(n->name), "%s", name);
    n->physical = sysfs_there(NULL, sysfs_path(path, "/sys/class/net/%s/device", name));
    sysfs_path(path, "/sys/class/net/%s/speed", name);
    if (sysfs_number(NULL, path, &speed) == 0 && speed > 0 && speed <= UINT32_MAX) {
        n->speed_mbps = (uint32_t)speed;
    }
    return n;
}

static int compare_nic(const void *a, const void *b)
{
    return strverscmp(((const struct nic *)a)->name, ((const struct nic *)b)->name);
}

/* Finds NICs that have an address of more than link scope. If there are NICs of hardware, only these. */
static int find_nics(struct join *j)
{
    struct ifaddrs *list = NULL;
    bool physical = false;
    unsigned kept = 0;
    if (getifaddrs(&list) < 0) {
        return fail("this host's NICs", strerror(errno));
    }
    for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        if (i->ifa_addr == NULL || (i->ifa_flags & IFF_LOOPBACK) != 0 || !wanted(j, i->ifa_name)) {
            continue;
        }
        const struct sockaddr_in6 *in6 = (const void *)i->ifa_addr;
        const bool is4 = i->ifa_addr->sa_family == AF_INET,
                   is6 = i->ifa_addr->sa_family == AF_INET6 &&
                         !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
        struct nic *n = is4 || is6 ? nic_named(j, i->ifa_name) : NULL;
        if (n != NULL && is4 && !n->has4) {
            memcpy(n->address4, &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr,
                   4);
            n->has4 = true;
        } else if (n != NULL && is6 && !n->has6) {
            memcpy(n->address6, &in6->sin6_addr, 16);
            n->has6 = true;
        }
    }
    freeifaddrs(list);
    for (unsigned i = 0; i < j->nic_count; i++) {
        physical = physical || j->nics[i].physical;
    }
    for (unsigned i = 0; i < j->nic_count; i++) {
        if (j->options->nic_count > 0 || !physical || j->nics[i].physical) {
            j->nics[kept++] = j->nics[i];
        }
    }
    j->nic_count = kept;
    qsort(j->nics, kept, sizeof(j->nics[0]), compare_nic);
    if (kept == 0 || kept < j->options->nic_count) {
        return fail("this host's NICs",
                    "expected a NIC with an address, and an address on each --nic");
    }
    return 0;
}

/* ---- asking ---- */

static int make_folder(const char *path, mode_t mode)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST) {
        return fail(path, strerror(errno));
    }
    return 0;
}

/* Called before the controller is asked. Otherwise a host could become a member and then fail to write its configuration. */
static int make_folders(const struct join *j)
{
    char config[PATH_SIZE];
    snprintf(config, sizeof(config), "%s", j->options->config_path);
    char *slash = strrchr(config, '/');
    if (slash != NULL) {
        *slash = 0;
    }
    int r = slash == NULL || slash == config ? 0 : make_folder(config, 0755);
    r = r < 0 ? r : make_folder(j->options->state_dir, 0700);
    return r < 0 ? r : make_folder(j->identity, 0700);
}

static int load_key(struct join *j)
{
    snprintf(j->key_path, sizeof(j->key_path), "%.200s/host.key", j->identity);
    if (tls_read_file(j->key_path, &j->key) == 0) {
        return 0;
    }
    int r = tls_key_new(TLS_KEY_ED25519, &j->key);
    r = r < 0 ? r : tls_write_file(j->key_path, j->key, strlen(j->key), 0600);
    return r < 0 ? fail(j->key_path, strerror(-r)) : 0;
}

/* The key is made before the join, so that the members list has it together with the host. */
static int load_pair_key(struct join *j)
{
    char path[PATH_SIZE];
    uint8_t secret[PAIR_SECRET_SIZE];
    bool made = false;
    snprintf(path, sizeof(path), "%.200s/" AGENT_PAIR_FILE, j->options->state_dir);
    int r = agent_pair_secret(path, secret, &made);
    r = r == 0 && !pair_public(secret, j->pair_public) ? -EINVAL : r;
    sodium_memzero(secret, sizeof(secret));
    return r < 0 ? fail(path, strerror(-r)) : 0;
}

static const char *leaf_of(const struct join_options *o, const char *nic)
{
    for (unsigned i = 0; i < o->nic_count && o->leaf_count > 1; i++) {
        if (strcmp(o->nics[i], nic) == 0) {
            return o->leaves[i];
        }
    }
    return o->leaf_count > 0 ? o->leaves[0] : "";
}

static int encode_request(struct join *j, struct message_buffer *ret)
{
    Foliot__V1__JoinRequest m = FOLIOT__V1__JOIN_REQUEST__INIT;
    Foliot__V1__Nic nics[HOST_NIC_MAX], *pointers[HOST_NIC_MAX];
    char *request = NULL, words[MEMBER_WORDS_SIZE];
    int r = tls_request_new(j->key, j->host, &request);
    if (r < 0) {
        return fail(j->key_path, strerror(-r));
    }
    for (unsigned i = 0; i < j->nic_count; i++) {
        struct nic *n = &j->nics[i];
        foliot__v1__nic__init(&nics[i]);
        nics[i].name = n->name;
        nics[i].rail = i;
        nics[i].leaf = (char *)(uintptr_t)leaf_of(j->options, n->name);
        nics[i].speed_mbps = n->speed_mbps;
        nics[i].address4 = (ProtobufCBinaryData){n->has4 ? 4 : 0, n->address4};
        nics[i].address6 = (ProtobufCBinaryData){n->has6 ? 16 : 0, n->address6};
        pointers[i] = &nics[i];
        const struct member_nic member = {.interface = n->name,
                                          .leaf = nics[i].leaf,
                                          .rail = i,
                                          .address4 = n->has4 ? n->address4 : NULL,
                                          .address6 = n->has6 ? n->address6 : NULL};
        if (!member_nic_good(&member, words)) {
            free(request);
            return fail("this host's NICs", words);
        }
    }
    m.protocol = j->protocol;
    m.pair_key = (ProtobufCBinaryData){sizeof(j->pair_public), j->pair_public};
    m.token = (ProtobufCBinaryData){strlen(j->secret), (uint8_t *)j->secret};
    m.host = j->host;
    m.request = (ProtobufCBinaryData){strlen(request), (uint8_t *)request};
    m.nics = pointers;
    m.n_nics = j->nic_count;
    m.version = (char *)(uintptr_t)FOLIOT_VERSION;
    r = message_encode(&m.base, ret);
    free(request);
    return r;
}

/* ---- keeping ---- */

static int keep(const char *folder, const char *name, const ProtobufCBinaryData *data,
                unsigned mode)
{
    char path[PATH_SIZE + 32];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int r = tls_write_file(path, data->data, data->len, mode);
    return r < 0 ? fail(path, strerror(-r)) : 0;
}

static int keep_config(const struct join *j)
{
    const struct join_options *o = j->options;
    char *text = NULL;
    if (access(o->config_path, F_OK) == 0) {
        printf("%s is there already and stays as it is: it should have\n"
               "  host: %s\n  controller: %s\n  key_file: %s/fleet.key\n"
               "  fleet_file: %s/fleet.yaml\n",
               o->config_path, j->host, j->address, o->state_dir, o->state_dir);
        return 0;
    }
    if (asprintf(&text,
                 "# Written by foliot-agent join.\n"
                 "host: \"%s\"\ncontroller: \"%s\"\nstate_dir: \"%s\"\nkey_file: \"%s/fleet.key\"\n"
                 "fleet_file: \"%s/fleet.yaml\"\n",
                 j->host, j->address, o->state_dir, o->state_dir, o->state_dir) < 0) {
        return -ENOMEM;
    }
    const int r = tls_write_file(o->config_path, text, strlen(text), 0644);
    free(text);
    return r < 0 ? fail(o->config_path, strerror(-r)) : 0;
}

/* Writes the list in the agent's format: this host with its number. */
static int keep_own(const char *path, Foliot__V1__FleetHost *own)
{
    Foliot__V1__Members m = FOLIOT__V1__MEMBERS__INIT;
    struct agent_config *list = calloc(1, sizeof(*list));
    struct members_plan plan;
    char words[MEMBERS_WORDS] = "out of memory";
    m.hosts = &own;
    m.n_hosts = 1;
    int r = list == NULL ? -ENOMEM : members_room(list);
    r = r < 0 ? r : members_plan(list, &m, HOST_NONE, &plan, words);
    if (r == 0) {
        members_apply(list, &m, &plan, true);
        members_plan_done(&plan);
        r = members_save(list, path);
        snprintf(words, sizeof(words), "%s", strerror(-r));
    }
    agent_config_free(list);
    return r < 0 ? fail(path, words) : 0;
}

/* Writes the list that the agent starts with: only this host. The controller sends the other hosts later. A controller of
 * protocol 1 sends all hosts at once. The list is also written in YAML, for older agents. */
static int keep_list(struct join *j, const Foliot__V1__JoinReply *m)
{
    char path[PATH_SIZE], kept[PATH_SIZE + 16], words[200];
    Foliot__V1__FleetHost *own = m->host;
    Foliot__V1__Fleet alone = FOLIOT__V1__FLEET__INIT;
    alone.hosts = &own;
    alone.n_hosts = 1;
    snprintf(path, sizeof(path), "%s/fleet.yaml", j->options->state_dir);
    snprintf(kept, sizeof(kept), "%s" MEMBERS_SUFFIX, path);
    if (unlink(kept) < 0 && errno != ENOENT) { /* the list of an earlier membership */
        return fail(kept, strerror(errno));
    }
    if (fleet_file_write(path, own != NULL ? &alone : m->fleet, words) < 0) {
        return fail(path, words);
    }
    return own != NULL ? keep_own(kept, own) : 0;
}

static int keep_all(struct join *j, const Foliot__V1__JoinReply *m)
{
    if ((m->fleet == NULL && m->host == NULL) || m->certificate.len == 0 || m->authority.len == 0 ||
        m->keys.len == 0) {
        return fail("the controller's answer", "something is missing in it");
    }
    int r = keep(j->identity, "host.pem", &m->certificate, 0644);
    r = r < 0 ? r : keep(j->identity, "authority.pem", &m->authority, 0644);
    r = r < 0 ? r : keep(j->options->state_dir, "fleet.key", &m->keys, 0600);
    r = r < 0 ? r : keep_list(j, m);
    return r < 0 ? r : keep_config(j);
}

static void on_answer(void *context, const struct http_result *result)
{
    struct join *j = context;
    struct message_buffer raw = {0};
    struct message_arena arena = {0};
    const void *bytes = result->body;
    size_t size = result->size;
    char words[300];
    if (result->error < 0 || result->status != 200) {
        if (result->error < 0) {
            snprintf(words, sizeof(words), "%s%s", result->words,
                     result->error == -EACCES ? " (is the token from this controller?)" : "");
        } else {
            snprintf(words, sizeof(words), "%s", (const char *)result->body);
            words[strcspn(words, "\n")] = 0;
        }
        j->other_protocol =
            result->error == 0 && result->status == 409 && j->protocol > MESSAGE_PROTOCOL_OLDEST;
        j->status = j->other_protocol ? -EPROTO : fail(j->address, words);
        return;
    }
    int r = 0;
    if (size >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0) {
        r = message_unpack(bytes, size, ANSWER_MAX, &raw);
        bytes = raw.bytes;
        size = raw.size;
    }
    r = r < 0 ? r : message_arena_init(&arena, size * 8 + 65536);
    const Foliot__V1__JoinReply *m =
        r < 0 ? NULL : message_decode(&arena, &foliot__v1__join_reply__descriptor, bytes, size);
    j->status = m == NULL ? fail(j->address, "its answer can't be read") : keep_all(j, m);
    if (j->status == 0) {
        printf("Host %s is a member: %u NICs; the fleet has %zu hosts. Start the agent: systemctl "
               "enable --now "
               "foliot-agent\n",
               j->host, j->nic_count, m->fleet != NULL ? m->fleet->n_hosts : (size_t)m->hosts);
    }
    message_buffer_done(&raw);
    message_arena_done(&arena);
}

static int set_names(struct join *j)
{
    const struct join_options *o = j->options;
    const char *colon = strrchr(o->address, ':');
    const bool port = colon != NULL && (strchr(o->address, ':') == colon || colon[-1] == ']');
    snprintf(j->address, sizeof(j->address), port ? "%.150s" : "%.150s:7638", o->address);
    if (o->host != NULL) {
        snprintf(j->host, sizeof(j->host), "%s", o->host);
    } else if (gethostname(j->host, sizeof(j->host) - 1) < 0) {
        return fail("this host's name", strerror(errno));
    }
    for (char *p = j->host; *p != 0; p++) {
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    }
    snprintf(j->identity, sizeof(j->identity), "%.180s/identity", o->state_dir);
    if (o->leaf_count > 1 && o->leaf_count != o->nic_count) {
        return fail("--leaf", "expected one for all NICs, or one for each --nic");
    }
    return tls_name_good(j->host)
               ? 0
               : fail("this host's name", "expected 1 to 63 of [a-z0-9.-]: give one with --host");
}

static int ask(struct join *j)
{
    struct message_buffer body = {0};
    int r = encode_request(j, &body);
    const struct http_call call = {.url = "https://" TLS_SERVER_NAME "/agent/v1/join",
                                   .connect_to = j->address,
                                   .pin = j->pin,
                                   .body = body.bytes,
                                   .size = body.size,
                                   .answer_max = ANSWER_MAX,
                                   .timeout_ms = TIMEOUT_MS};
    j->other_protocol = false;
    r = r < 0 ? r : http_call_now(&call, on_answer, j);
    message_buffer_done(&body);
    return r;
}

int agent_join(const struct join_options *options)
{
    struct join j = {.options = options, .status = -EIO, .protocol = MESSAGE_PROTOCOL};
    int r = read_token(&j);
    r = r < 0 ? r : set_names(&j);
    r = r < 0 ? r : find_nics(&j);
    r = r < 0 ? r : make_folders(&j);
    r = r < 0 ? r : load_key(&j);
    r = r < 0 ? r : load_pair_key(&j);
    r = r < 0 ? r : ask(&j);
    if (r == 0 && j.other_protocol) { /* an older controller */
        j.protocol--;
        r = ask(&j);
    }
    tls_wipe(j.key);
    return r < 0 || j.status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
