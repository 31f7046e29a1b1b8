/* The list of members on a host: random changes give the same list as a list of the whole, in memory and on the disk. Changes
 * that are cut off, forged, or of another list have no effect. */
#include "service/agent/members.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/fleet/member.h"

enum { HOSTS = 300, NICS = 3 };

/* The truth: the controller's list. */
struct truth {
    struct {
        bool member, key;
        uint32_t first_nic, nic_count;
    } host[HOSTS];
    uint32_t host_count, nic_count;
    uint64_t version;
};
static struct truth truth;
static struct prng prng;
static char path[64];

/* One message at a time. */
static struct {
    Foliot__V1__FleetHost hosts[HOSTS], *host_pointers[HOSTS];
    Foliot__V1__Nic nics[HOSTS][NICS], *nic_pointers[HOSTS][NICS];
    char names[HOSTS][24], leaves[HOSTS][24];
    uint8_t addresses[HOSTS * NICS][4], keys[HOSTS][32];
    uint32_t removed[HOSTS];
    Foliot__V1__Members m;
} message;

static Foliot__V1__FleetHost *host_of(uint32_t number)
{
    Foliot__V1__FleetHost *h = &message.hosts[number];
    foliot__v1__fleet_host__init(h);
    snprintf(message.names[number], sizeof(message.names[number]), "host%u", number);
    snprintf(message.leaves[number], sizeof(message.leaves[number]), "%s%u",
             number % 40 == 39 ? "odd-" : "leaf", number / 8);
    h->number = number;
    h->name = message.names[number];
    h->nics = message.nic_pointers[number];
    h->n_nics = truth.host[number].nic_count;
    if (truth.host[number].key) {
        memset(message.keys[number], (int)(number % 250 + 1), 32);
        h->pair_key = (ProtobufCBinaryData){32, message.keys[number]};
    }
    for (uint32_t i = 0; i < h->n_nics; i++) {
        Foliot__V1__Nic *n = &message.nics[number][i];
        const uint32_t id = truth.host[number].first_nic + i;
        foliot__v1__nic__init(n);
        message.nic_pointers[number][i] = n;
        memcpy(message.addresses[id], (uint8_t[]){10, 1, (uint8_t)(id >> 8), (uint8_t)id}, 4);
        n->id = id;
        n->name = (char *)(uintptr_t)(i == 0 ? "eth0" : i == 1 ? "eth1" : "eth2");
        n->rail = i;
        n->leaf = number % 50 == 49 ? (char *)(uintptr_t) "" : message.leaves[number];
        n->address4 = (ProtobufCBinaryData){4, message.addresses[id]};
    }
    return h;
}

static uint64_t digest_of_truth(void)
{
    uint64_t digest = 0;
    for (uint32_t i = 0; i < truth.host_count; i++) {
        const Foliot__V1__FleetHost *h = truth.host[i].member ? host_of(i) : NULL;
        digest += h != NULL ? member_host_digest(i, h->name,
                                                 h->pair_key.len > 0 ? h->pair_key.data : NULL)
                            : 0;
        for (size_t k = 0; h != NULL && k < h->n_nics; k++) {
            const struct member_nic nic = {.interface = h->nics[k]->name,
                                           .leaf = h->nics[k]->leaf,
                                           .rail = h->nics[k]->rail,
                                           .address4 = h->nics[k]->address4.data};
            digest += member_nic_digest(i, h->nics[k]->id, &nic);
        }
    }
    return digest;
}

static void begin(uint64_t from)
{
    foliot__v1__members__init(&message.m);
    message.m.from = from;
    message.m.hosts = message.host_pointers;
    message.m.removed = message.removed;
}

static void add_told(uint32_t number)
{
    if (truth.host[number].member) {
        message.host_pointers[message.m.n_hosts++] = host_of(number);
    } else {
        message.removed[message.m.n_removed++] = number;
    }
}

/* Joins, removals, keys: the changed hosts, each once, ascending. */
static const Foliot__V1__Members *change(uint32_t times)
{
    static bool told[HOSTS];
    memset(told, 0, sizeof(told));
    begin(truth.version);
    while (times-- > 0) {
        const uint32_t what = (uint32_t)prng_below(&prng, 10),
                       host = (uint32_t)prng_below(&prng, truth.host_count + 1);
        uint32_t which = host;
        if ((what < 5 || host == truth.host_count) && truth.host_count < HOSTS) {
            which = truth.host_count++;
            truth.host[which].member = true;
            truth.host[which].key = prng_below(&prng, 2) == 0;
            truth.host[which].first_nic = truth.nic_count;
            truth.host[which].nic_count = 1 + (uint32_t)prng_below(&prng, NICS);
            truth.nic_count += truth.host[which].nic_count;
        } else if (host == 0 || host >= truth.host_count || !truth.host[host].member) {
            continue;
        } else if (what < 8) {
            truth.host[host].member = false;
        } else {
            truth.host[host].key = !truth.host[host].key;
        }
        told[which] = true;
        truth.version++;
    }
    for (uint32_t i = 0; i < truth.host_count; i++) {
        if (told[i]) {
            add_told(i);
        }
    }
    message.m.version = truth.version;
    message.m.digest = digest_of_truth();
    return &message.m;
}

static struct agent_config *new_list(void)
{
    struct agent_config *c = calloc(1, sizeof(*c));
    assert_int_equal(members_room(c), 0);
    return c;
}

static void take(struct agent_config *c, const Foliot__V1__Members *m)
{
    struct members_plan plan;
    char words[MEMBERS_WORDS];
    const int r = members_plan(c, m, m->from == 0 ? HOST_NONE : (struct host_id){0}, &plan, words);
    if (r != 0) {
        fail_msg("%d: %s", r, words);
    }
    members_apply(c, m, &plan, true);
    members_plan_done(&plan);
}

/* The whole truth, in pages of some hosts. */
static struct agent_config *whole(void)
{
    struct agent_config *c = new_list();
    for (uint32_t at = 0; at < truth.host_count; at += 7) {
        begin(0);
        message.m.version = truth.version;
        for (uint32_t i = at; i < at + 7 && i < truth.host_count; i++) {
            if (truth.host[i].member) {
                add_told(i);
            }
        }
        take(c, &message.m);
    }
    c->fleet_version = truth.version;
    return c;
}

static const char *leaf(const struct agent_config *c, uint32_t i)
{
    return c->more[i].leaf == LEAF_UNKNOWN ? "" : c->leaf_names[c->more[i].leaf];
}

static void same(const struct agent_config *x, const struct agent_config *y)
{
    assert_int_equal(x->fleet_version, y->fleet_version);
    assert_int_equal(x->members_digest, y->members_digest);
    assert_int_equal(members_digest(x), x->members_digest);
    assert_int_equal(x->peer_count, y->peer_count);
    for (uint32_t i = 0; i < x->peer_count; i++) {
        assert_memory_equal(&x->peers[i], &y->peers[i], sizeof(x->peers[i]));
        assert_memory_equal(&x->more[i].address4, &y->more[i].address4, 20);
        assert_string_equal(x->more[i].nic_name, y->more[i].nic_name);
        assert_string_equal(leaf(x, i), leaf(y, i));
    }
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_string_equal(x->host_names[i], y->host_names[i]);
        assert_memory_equal(x->host_keys[i], y->host_keys[i], 32);
    }
}

static struct agent_config *loaded(void)
{
    struct agent_config *c = new_list();
    char words[MEMBERS_WORDS];
    const int r = members_load(c, path, words);
    if (r != 0) {
        fail_msg("%d: %s", r, words);
    }
    return c;
}

static void start(uint64_t seed)
{
    prng_init(&prng, seed);
    memset(&truth, 0, sizeof(truth));
    truth.version = 1;
    snprintf(path, sizeof(path), "/tmp/foliot-members-%d", (int)getpid());
}

static void changes_come_to_the_whole(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        start(seed);
        (void)change(5);
        struct agent_config *c = whole();
        assert_int_equal(members_save(c, path), 0);
        for (int i = 0; i < 60; i++) {
            const uint64_t before = truth.version;
            const Foliot__V1__Members *m = change(1 + (uint32_t)prng_below(&prng, 6));
            if (truth.version == before) {
                continue;
            }
            assert_int_equal(members_append(c, path, m), 0);
            take(c, m);
            struct agent_config *at_once = whole(), *again = loaded();
            same(c, at_once);
            same(again, at_once);
            agent_config_free(at_once);
            agent_config_free(again);
        }
        agent_config_free(c);
    }
    unlink(path);
}

/* An agent is killed at any moment while it writes: then the disk has the earlier list or the later one. */
static void cut_anywhere(void **state)
{
    start(77);
    (void)change(20);
    struct agent_config *c = whole(), *before = whole();
    assert_int_equal(members_save(c, path), 0);
    const size_t base = c->members_end;
    const Foliot__V1__Members *m = change(6);
    assert_int_equal(members_append(c, path, m), 0);
    take(c, m);
    for (size_t end = c->members_end; end >= base; end--) {
        assert_int_equal(truncate(path, (off_t)end), 0);
        struct agent_config *again = loaded();
        same(again, end == c->members_end ? c : before);
        agent_config_free(again);
    }
    /* and goes on after the good part */
    FILE *file = fopen(path, "ae");
    fputs("rubbish, from a disk that lost its power", file);
    fclose(file);
    struct agent_config *again = loaded();
    same(again, before);
    assert_int_equal(members_append(again, path, m), 0);
    agent_config_free(again);
    again = loaded();
    same(again, c);
    agent_config_free(again);
    /* the arrays are damaged: that is reported */
    char words[MEMBERS_WORDS];
    for (size_t at = 0; at < base; at += 4099) {
        file = fopen(path, "r+e");
        fseek(file, (long)at, SEEK_SET);
        const int was = fgetc(file);
        fseek(file, (long)at, SEEK_SET);
        fputc(was ^ 16, file);
        fclose(file);
        again = new_list();
        const int r = members_load(again, path, words);
        assert_true(r == -EBADMSG ||
                    (at > 48 && at < 65536 && r == 0)); /* nothing is after the head */
        agent_config_free(again);
        file = fopen(path, "r+e");
        fseek(file, (long)at, SEEK_SET);
        fputc(was, file);
        fclose(file);
    }
    agent_config_free(c);
    agent_config_free(before);
    unlink(path);
}

static void refused(const struct agent_config *c, int expected, const char *why)
{
    struct members_plan plan;
    char words[MEMBERS_WORDS];
    const int r = members_plan(c, &message.m, (struct host_id){0}, &plan, words);
    if (r != expected || strstr(words, why) == NULL) {
        fail_msg("%d '%s', expected %d '%s'", r, words, expected, why);
    }
}

static void forged_or_out_of_order(void **state)
{
    start(5);
    (void)change(30);
    struct agent_config *c = whole(), *as_it_was = whole();
    (void)change(1);
    message.m.from++;
    refused(c, -EBADMSG, "expected some of");
    message.m.from--;
    message.m.digest ^= 1;
    refused(c, -EBADMSG, "the agent asks for the whole list");
    message.m.digest ^= 1;
    begin(c->fleet_version);
    message.m.version = c->fleet_version + 1;
    message.removed[message.m.n_removed++] = 0;
    refused(c, -EINVAL, "own NICs");
    truth.host[0].member = true;
    for (int what = 0; what < 11; what++) {
        begin(c->fleet_version);
        message.m.version = c->fleet_version + 1;
        struct truth was = truth;
        const uint32_t fresh = truth.host_count++;
        truth.host[fresh].member = true;
        truth.host[fresh].nic_count = 2;
        truth.host[fresh].first_nic = truth.nic_count;
        add_told(fresh);
        Foliot__V1__FleetHost *h = message.host_pointers[0];
        static const char *const why[] = {
            "a name of",     "an interface of",   "a leaf of",       "an IPv4 address of one",
            "each NIC's id", "each address once", "addresses of 4",  "a rail below",
            "1 to 16 NICs",  "key of 32",         "ascending number"};
        switch (what) {
        case 0:
            h->name = (char *)(uintptr_t) "Host X";
            break;
        case 1:
            h->nics[0]->name = (char *)(uintptr_t) "a name that is too long";
            break;
        case 2:
            h->nics[1]->leaf = (char *)(uintptr_t) "rack 12";
            break;
        case 3:
            h->nics[0]->address4.data[0] = 224;
            break;
        case 4:
            h->nics[1]->id = h->nics[0]->id;
            break;
        case 5:
            memcpy(h->nics[1]->address4.data, h->nics[0]->address4.data, 4);
            break;
        case 6:
            h->nics[1]->address4.len = 3;
            break;
        case 7:
            h->nics[1]->rail = 65535;
            break;
        case 8:
            h->n_nics = 0;
            break;
        case 9:
            h->pair_key = (ProtobufCBinaryData){31, message.keys[0]};
            break;
        default:
            message.host_pointers[message.m.n_hosts++] = h;
        }
        refused(c, -EINVAL, why[what]);
        truth = was;
    }
    same(c, as_it_was);
    agent_config_free(c);
    agent_config_free(as_it_was);
}

/* The controller admits both: an IPv6 address that begins with another host's IPv4 address and continues with ones is a different
 * address. */
static void one_address_in_the_other(void **state)
{
    start(6);
    (void)change(30);
    struct agent_config *c = whole();
    uint8_t address6[16];
    const uint32_t fresh = truth.host_count++;
    truth.host[fresh].member = true;
    truth.host[fresh].nic_count = 1;
    truth.host[fresh].first_nic = truth.nic_count;
    memset(address6, 0xff, sizeof(address6));
    memcpy(address6, &c->more[0].address4, 4);
    begin(0);
    message.m.version = c->fleet_version;
    add_told(fresh);
    message.host_pointers[0]->nics[0]->address6 = (ProtobufCBinaryData){16, address6};
    take(c, &message.m);
    assert_memory_equal(&c->more[c->peer_count - 1].address6, address6, sizeof(address6));
    agent_config_free(c);
}

/* A host of an earlier page has left, and another one has its address: the page has both changes. */
static void a_list_that_changes_between_its_pages(void **state)
{
    start(8);
    (void)change(30);
    struct agent_config *c = whole();
    uint8_t address[4];
    const uint32_t gone = c->peers[0].host.index, fresh = truth.host_count++;
    memcpy(address, &c->more[0].address4, sizeof(address));
    truth.host[gone].member = false;
    truth.host[fresh].member = true;
    truth.host[fresh].nic_count = 1;
    truth.host[fresh].first_nic = truth.nic_count;
    begin(0);
    message.m.version = c->fleet_version;
    add_told(gone);
    add_told(fresh);
    memcpy(message.host_pointers[0]->nics[0]->address4.data, address, sizeof(address));
    take(c, &message.m);
    assert_string_equal(c->host_names[gone], "");
    assert_memory_equal(&c->more[c->peer_count - 1].address4, address, sizeof(address));
    assert_int_equal(members_digest(c), c->members_digest);
    agent_config_free(c);
}

/* A host in each possible leaf. One of them leaves and another one comes, in a new leaf: the whole list has room. */
static void as_many_leaves_as_there_may_be(void **state)
{
    struct agent_config *c = new_list();
    for (uint32_t i = 0; i <= FLEET_LEAF_MAX; i++) {
        char name[24], leaf[24], words[MEMBERS_WORDS];
        uint8_t address[4] = {10, 1, (uint8_t)(i >> 8), (uint8_t)i};
        uint32_t gone = 0;
        struct members_plan plan;
        Foliot__V1__Members m = FOLIOT__V1__MEMBERS__INIT;
        Foliot__V1__FleetHost host = FOLIOT__V1__FLEET_HOST__INIT, *hosts = &host;
        Foliot__V1__Nic nic = FOLIOT__V1__NIC__INIT, *nics = &nic;
        snprintf(name, sizeof(name), "host%u", i);
        snprintf(leaf, sizeof(leaf), "leaf%u", i);
        nic.id = host.number = i;
        nic.name = host.name = name;
        nic.leaf = leaf;
        nic.address4 = (ProtobufCBinaryData){4, address};
        host.nics = &nics;
        host.n_nics = m.n_hosts = m.version = 1;
        m.hosts = &hosts;
        if (i == FLEET_LEAF_MAX) {
            assert_int_equal(members_plan(c, &m, HOST_NONE, &plan, words), -EINVAL);
            m.from = 1;
            m.version = 2;
            m.removed = &gone;
            m.n_removed = 1;
            m.digest = members_digest(c);
            const struct member_nic now = {.interface = name, .leaf = leaf, .address4 = address};
            const struct member_nic was = {
                .interface = "host0", .leaf = "leaf0", .address4 = (uint8_t[4]){10, 1, 0, 0}};
            m.digest += member_host_digest(i, name, NULL) + member_nic_digest(i, i, &now);
            m.digest -= member_host_digest(0, "host0", NULL) + member_nic_digest(0, 0, &was);
            assert_int_equal(members_plan(c, &m, HOST_NONE, &plan, words), -EBADMSG);
            assert_non_null(strstr(words, "at most 4096 leaves"));
        } else {
            take(c, &m);
        }
    }
    agent_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_come_to_the_whole),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(forged_or_out_of_order),
        cmocka_unit_test(one_address_in_the_other),
        cmocka_unit_test(a_list_that_changes_between_its_pages),
        cmocka_unit_test(as_many_leaves_as_there_may_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
