/* cases_data.c: each message arrives once, complete, in order, in its buffer. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

/* Makes `times` links in each direction between each two of `ranks`. Returns their number. */
static int pairs(int ranks, int times, struct link *links)
{
    int n = 0;

    memset(links, 0, sizeof(*links) * LINKS_MAX);
    for (int t = 0; t < times; t++) {
        for (int from = 0; from < ranks; from++) {
            for (int to = 0; to < ranks; to++) {
                if (from != to && n < LINKS_MAX) {
                    links[n++] = (struct link){.from = from, .to = to};
                }
            }
        }
    }
    return n;
}

static struct link links[LINKS_MAX];
static struct stream streams[LINKS_MAX];

static void exchange(struct rank *r, int times, int version, const struct stream *like)
{
    const int link_count = pairs(r->ranks, times, links);

    rank_open(r, version);
    if (like->group > r->group_max) {
        skip(r, "the plugin takes %d buffer(s) per receive", r->group_max);
    }
    links_open(r, links, link_count);
    int count = streams_of(r, links, link_count, like, streams);
    streams_run(r, streams, count);
    quarantine_drain(r);
    barrier(r);
    for (int i = 0; i < link_count; i++) {
        link_close(r, &links[i]);
    }
    rank_close(r);
}

static void sizes(struct rank *r)
{
    exchange(r, 1, r->options->version,
             &(struct stream){.sizes = SIZES_EDGES, .count = 34 * 4, .seed = 1});
}
static void stream(struct rank *r)
{
    exchange(r, 1, r->options->version,
             &(struct stream){.sizes = SIZES_MIXED, .count = 2000, .seed = 2});
}
static void large(struct rank *r)
{
    exchange(r, 1, r->options->version,
             &(struct stream){.sizes = SIZES_LARGE, .count = 100, .seed = 3});
}
static void roomy(struct rank *r)
{
    exchange(r, 1, r->options->version,
             &(struct stream){.sizes = SIZES_MIXED, .count = 600, .seed = 4, .roomy = true});
}
static void groups(struct rank *r)
{
    exchange(r, 1, r->options->version,
             &(struct stream){
                 .sizes = SIZES_MIXED, .count = 1200, .seed = 5, .roomy = true, .group = 4});
}
static void many(struct rank *r)
{
    exchange(r, 4, r->options->version,
             &(struct stream){.sizes = SIZES_MIXED, .count = 100, .seed = 6, .register_all = true});
}

/* Each version's table gives the same devices and moves data. */
static void versions(struct rank *r)
{
    struct nccl_net_properties_v12 newest = {0}, p;
    char why[4300];
    int tables = 0;

    for (int version = NET_VERSION_MAX; version >= NET_VERSION_MIN; version--) {
        doing(r, "looking for a table");
        if (net_client_open(&r->net, r->options->plugin, version, why, sizeof(why)) < 0) {
            continue;
        }
        net_client_close(&r->net);
        rank_open(r, version);
        must(r, net_properties(&r->net, 0, &p), "getProperties");
        if (tables++ == 0) {
            newest = p;
        } else if (strcmp(newest.name, p.name) != 0 || newest.speed_mbps != p.speed_mbps ||
                   newest.pointer_support != p.pointer_support || newest.guid != p.guid) {
            found(r, "v%d names another device or speed than the newest table", version);
        }
        rank_close(r);
        exchange(r, 1, version, &(struct stream){.sizes = SIZES_EDGES, .count = 33, .seed = 7});
    }
    if (tables < 2) {
        found(r, "only %d table(s) of v6 to v12", tables);
    }
}

static void properties(struct rank *r)
{
    struct nccl_net_properties_v12 p[16];
    int count = 0;

    rank_open(r, r->options->version);
    must(r, net_devices(&r->net, &count), "devices");
    if (count < 1) {
        found(r, "no device");
    }
    for (int i = 0; i < count && i < 16; i++) {
        must(r, net_properties(&r->net, i, &p[i]), "getProperties");
        if (p[i].name == NULL || *p[i].name == '\0') {
            found(r, "device %d has no name", i);
        }
        for (int k = 0; k < i; k++) {
            if (strcmp(p[k].name, p[i].name) == 0) {
                found(r, "two devices are named %s", p[i].name);
            }
        }
        if (p[i].speed_mbps <= 0 || p[i].comm_max <= 0 || p[i].receive_max < 1 ||
            (p[i].pointer_support & NCCL_POINTER_HOST) == 0 ||
            p[i].device_type != NCCL_DEVICE_HOST ||
            !(p[i].latency_us >= 0 && p[i].latency_us < 1e6)) {
            found(r, "device %d: a property makes no sense", i);
        }
        if (p[i].pci_path != NULL && access(p[i].pci_path, F_OK) != 0) {
            found(r, "device %d: pciPath %s isn't there", i, p[i].pci_path);
        }
        if (r->net.version == 12 && (p[i].rail < -1 || p[i].plane < -1 || p[i].merged.count < 1 ||
                                     p[i].merged.count > NCCL_DEVICES_PER_NIC_V12)) {
            found(r, "device %d: rail, plane or vProps weren't filled", i);
        }
    }
    rank_close(r);
}

/* -- the early-completion hint: the data are read in the buffer, as a GPU does */

#define LINES 256
struct line_of_ll {
    uint32_t data, flag;
};

static void hint_send(struct rank *r, struct link *link, int rounds)
{
    struct box box = box_new(LINES * sizeof(struct line_of_ll), SENT_BYTE);
    struct line_of_ll *lines = (struct line_of_ll *)(void *)box_data(&box);

    for (int round = 1; round <= rounds; round++) {
        void *request = NULL;
        int done = 0;
        for (int i = 0; i < LINES; i++) {
            lines[i] = (struct line_of_ll){(uint32_t)(round * 1000003 + i), (uint32_t)round};
        }
        while (request == NULL) {
            doing(r, "isend");
            must(r, net_isend(&r->net, link->comm, lines, box.capacity, 0, NULL, &request),
                 "isend");
        }
        while (!done) {
            doing(r, "test of a send");
            must(r, net_test(&r->net, request, &done, NULL), "test");
        }
    }
    box_free(&box);
}

static void hint_receive(struct rank *r, struct link *link, int rounds)
{
    struct box box = box_new(LINES * sizeof(struct line_of_ll), 0);
    atomic_ullong *words = (atomic_ullong *)(void *)box_data(&box);
    struct net_receive receive = {
        .count = 1, .data = {words}, .sizes = {box.capacity}, .tags = {0}};

    for (int round = 1; round <= rounds; round++) {
        void *request = NULL;
        int done = 0, seen = 0;
        while (request == NULL) {
            request = NCCL_OPTIONAL_COMPLETION;
            doing(r, "irecv with the hint");
            must(r, net_irecv(&r->net, link->comm, &receive, &request), "irecv");
            if (request == NCCL_OPTIONAL_COMPLETION) {
                found(r, "irecv with the hint gave no request of its own");
            }
        }
        /* another thread (the service thread) drives test while this one looks */
        while (seen < LINES || !done) {
            if (!done) {
                doing(r, "test of a receive with the hint");
                must(r, net_test(&r->net, request, &done, NULL), "test");
            }
            for (; seen < LINES; seen++) {
                const unsigned long long word = atomic_load(&words[seen]);
                struct line_of_ll line;
                memcpy(&line, &word, sizeof(line));
                if (line.flag != (uint32_t)round) {
                    break;
                }
                if (line.data != (uint32_t)(round * 1000003 + seen)) {
                    found(r, "torn: the flag of line %d was there before its data", seen);
                }
            }
        }
    }
    box_free(&box);
}

struct watcher {
    atomic_ullong *words;
    atomic_int round, torn, stop;
};

/* Plays the GPU: reads each line while the plugin writes. */
static void *watch(void *arg)
{
    struct watcher *w = arg;

    while (!atomic_load(&w->stop)) {
        for (int i = 0; i < LINES; i++) {
            const unsigned long long word = atomic_load(&w->words[i]);
            struct line_of_ll line;
            memcpy(&line, &word, sizeof(line));
            if (line.flag != 0 && line.data != line.flag * 1000003u + (uint32_t)i) {
                atomic_store(&w->torn, i + 1);
            }
        }
    }
    return NULL;
}

static void hint_watched(struct rank *r, struct link *link, int rounds)
{
    struct box box = box_new(LINES * sizeof(struct line_of_ll), 0);
    struct watcher w = {.words = (atomic_ullong *)(void *)box_data(&box)};
    struct net_receive receive = {
        .count = 1, .data = {w.words}, .sizes = {box.capacity}, .tags = {0}};
    pthread_t thread;

    if (pthread_create(&thread, NULL, watch, &w) != 0) {
        found(r, "no thread");
    }
    for (int round = 1; round <= rounds; round++) {
        void *request = NULL;
        int done = 0;
        while (request == NULL) {
            request = NCCL_OPTIONAL_COMPLETION;
            must(r, net_irecv(&r->net, link->comm, &receive, &request), "irecv");
        }
        while (!done) {
            doing(r, "test of a receive with the hint");
            must(r, net_test(&r->net, request, &done, NULL), "test");
        }
    }
    /* with early completion the last flags may come later */
    for (int i = 0; i < LINES;) {
        doing(r, "waiting for flags");
        i += atomic_load(&w.words[i]) >> 32 == (unsigned long long)rounds;
    }
    atomic_store(&w.stop, 1);
    pthread_join(thread, NULL);
    if (atomic_load(&w.torn) != 0) {
        found(r, "torn: the flag of line %d was there before its data", atomic_load(&w.torn) - 1);
    }
    box_free(&box);
}

static void hint(struct rank *r)
{
    struct link two[2] = {{.from = 0, .to = 1}, {.from = 0, .to = 1}};

    rank_open(r, r->options->version);
    links_open(r, two, 2);
    if (r->rank == 0) {
        hint_send(r, &two[0], 60);
        hint_send(r, &two[1], 60);
    } else {
        hint_receive(r, &two[0], 60);
        hint_watched(r, &two[1], 60);
    }
    barrier(r);
    link_close(r, &two[0]);
    link_close(r, &two[1]);
    rank_close(r);
}

const struct test_case data_cases[] = {
    {"properties", 1, 10, properties, "devices have names, speeds and places that make sense"},
    {"sizes", 2, 20, sizes, "0, 1, 7, 8 … bytes to 5 MiB, both ways"},
    {"stream", 2, 20, stream, "2,000 messages of all sizes, both ways at once"},
    {"large", 2, 30, large, "messages of 256 KiB to 1.25 MiB"},
    {"short", 2, 20, roomy, "buffers larger than their messages"},
    {"groups", 2, 20, groups, "grouped receives, tags sent in another order"},
    {"many", 4, 40, many, "4 ranks, 48 communicators at once, every buffer registered by itself"},
    {"hint", 2, 20, hint, "the early-completion hint: flags never before their data"},
    {"versions", 2, 40, versions, "every table, v6 to v12"},
};
const int data_case_count = ARRAY_COUNT(data_cases);
