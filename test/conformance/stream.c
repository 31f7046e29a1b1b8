/* stream.c: messages in order over a link. Sizes, tags and contents follow from a seed, so the receiver can compute each
 * message. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

static uint64_t hash(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15ull ^ b;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static int group_of(const struct stream *s)
{
    return s->group > 1 ? s->group : 1;
}

size_t stream_size(const struct stream *s, int message)
{
    static const size_t edges[] = {
        0,      1,      2,      7,    8,      9,       63,      64,   65,    127,    128,   129,
        511,    1024,   4095,   4096, 4097,   8191,    8192,    8193, 16384, 65535,  65536, 65537,
        131072, 262143, 262145, 0,    524288, 1048575, 1048579, 0,    3,     5242883};
    const uint64_t h = hash(s->seed, (uint64_t)message);

    switch (s->sizes) {
    case SIZES_EDGES:
        return edges[(size_t)message % ARRAY_COUNT(edges)];
    case SIZES_SMALL:
        return h % 4096;
    case SIZES_LARGE:
        return 262144 + h % 1048576;
    default:
        return h % 8 == 0 ? h / 8 % 300000 : h % 8 < 4 ? h / 8 % 20000 : h / 8 % 200;
    }
}

/* The place of the i-th sent message in its group: receivers post in order, senders send in another order. */
static int place_of(const struct stream *s, int message)
{
    const int n = group_of(s), turn = (int)(hash(s->seed, (uint64_t)(message / n)) % 8);

    return (n - 1 - message % n + turn) % n;
}

static int buffer_of(const struct stream *s, int message)
{
    const int n = group_of(s);

    return message - message % n + place_of(s, message);
}

static uint64_t content(const struct stream *s, int buffer)
{
    return hash(s->seed + 17, (uint64_t)buffer) & ~7ull;
}

static int tag_of(const struct stream *s, int buffer)
{
    return 100 + buffer % group_of(s);
}

static void new_request(struct rank *r, struct stream *s, void *request, int index)
{
    const int n = SLOTS;

    for (int i = 0; i < n; i++) {
        if (s->slots[i].request == request) {
            found(r, "the request of message %d was handed out for message %d, too",
                  s->slots[i].index, index);
        }
    }
}

/* -- sending */

static enum nccl_result post_send(struct rank *r, struct stream *s)
{
    const int buffer = buffer_of(s, s->posted);
    const size_t size = stream_size(s, buffer);
    struct slot *slot = &s->slots[s->posted % SLOTS];
    void *request = NULL;

    if (!s->retrying) {
        s->retry[0] = box_new(size, SENT_BYTE);
        pattern_fill(content(s, buffer), box_data(&s->retry[0]), size);
        if (s->register_all) {
            must(r,
                 net_register(&r->net, s->link->comm, box_data(&s->retry[0]), size,
                              &s->retry[0].mhandle),
                 "regMr");
        }
    }
    doing(r, "isend");
    enum nccl_result result = net_isend(&r->net, s->link->comm, box_data(&s->retry[0]), size,
                                        tag_of(s, buffer), s->retry[0].mhandle, &request);
    s->retrying = request == NULL;
    if (result == NCCL_SUCCESS && request != NULL) {
        new_request(r, s, request, s->posted);
        *slot = (struct slot){.request = request, .box = {s->retry[0]}, .index = s->posted++};
    }
    return result;
}

static enum nccl_result finish_send(struct rank *r, struct stream *s)
{
    struct slot *slot = &s->slots[s->done % SLOTS];
    int done = 0, size = -1;

    doing(r, "test of a send");
    enum nccl_result result =
        net_test(&r->net, slot->request, &done, slot->index % 2 == 0 ? &size : NULL);
    if (result != NCCL_SUCCESS || !done) {
        return result;
    }
    if (slot->box[0].mhandle != NULL) {
        must(r, net_deregister(&r->net, s->link->comm, slot->box[0].mhandle), "deregMr");
    }
    box_fill(&slot->box[0], SENT_BYTE); /* the plugin is done with it */
    box_free(&slot->box[0]);
    slot->request = NULL;
    s->done++;
    return NCCL_SUCCESS;
}

/* -- receiving */

static enum nccl_result post_receive(struct rank *r, struct stream *s)
{
    const int n = group_of(s), group = s->posted;
    struct slot *slot = &s->slots[group % SLOTS];
    struct net_receive receive = {.count = n};
    void *request = NULL;

    for (int i = 0; i < n; i++) {
        const int buffer = group * n + i;
        const size_t size = stream_size(s, buffer);
        if (!s->retrying) {
            s->retry[i] = box_new(
                size + (s->roomy ? 1 + hash(s->seed, (uint64_t)buffer) % 5000 : 0), EMPTY_BYTE);
        }
        if (!s->retrying && s->register_all) {
            must(r,
                 net_register(&r->net, s->link->comm, box_data(&s->retry[i]), s->retry[i].capacity,
                              &s->retry[i].mhandle),
                 "regMr");
        }
        receive.data[i] = box_data(&s->retry[i]);
        receive.sizes[i] = s->retry[i].capacity;
        receive.tags[i] = tag_of(s, buffer);
        receive.mhandles[i] = s->retry[i].mhandle;
    }
    doing(r, "irecv");
    enum nccl_result result = net_irecv(&r->net, s->link->comm, &receive, &request);
    s->retrying = request == NULL;
    if (result == NCCL_SUCCESS && request != NULL) {
        new_request(r, s, request, group);
        slot->request = request;
        slot->index = group;
        memcpy(slot->box, s->retry, sizeof(slot->box));
        s->posted++;
    }
    return result;
}

static void check_received(struct rank *r, struct stream *s, struct box *box, int buffer, int size)
{
    const size_t expected = stream_size(s, buffer);
    const char *data = box_data(box);

    if ((size_t)size != expected) {
        found(r, "message %d of %zu bytes into a buffer of %zu: the plugin says %d", buffer,
              expected, box->capacity, size);
    }
    long wrong = pattern_wrong(content(s, buffer), data, expected);
    if (wrong >= 0) {
        for (int other = buffer - 64; other < buffer + 64; other++) {
            if (other != buffer && other >= 0 && expected >= 8 &&
                pattern_wrong(content(s, other), data, expected < 64 ? 8 : 64) < 0) {
                found(r, "message %d holds the bytes of message %d", buffer, other);
            }
        }
        found(r, "message %d of %zu bytes: byte %ld is wrong (0x%02x%s)", buffer, expected, wrong,
              (unsigned char)data[wrong],
              (unsigned char)data[wrong] == EMPTY_BYTE ? ": never written"
              : (unsigned char)data[wrong] == SENT_BYTE
                  ? ": the sender's buffer after its send was done"
                  : "");
    }
    for (size_t i = expected; i < box->capacity; i++) {
        if ((unsigned char)data[i] != EMPTY_BYTE) {
            found(r, "message %d of %zu bytes: the plugin wrote byte %zu of the buffer", buffer,
                  expected, i);
        }
    }
}

static enum nccl_result finish_receive(struct rank *r, struct stream *s)
{
    struct slot *slot = &s->slots[s->done % SLOTS];
    const int n = group_of(s);
    int done = 0, sizes[NET_GROUP_MAX];

    memset(sizes, -1, sizeof(sizes));
    doing(r, "test of a receive");
    enum nccl_result result = net_test(&r->net, slot->request, &done, sizes);
    if (result != NCCL_SUCCESS || !done) {
        return result;
    }
    slot->request = NULL;
    for (int i = 0; i < n; i++) {
        struct box *box = &slot->box[i];
        check_received(r, s, box, slot->index * n + i, sizes[i]);
        if (box->mhandle != NULL) {
            must(r, net_deregister(&r->net, s->link->comm, box->mhandle), "deregMr");
        }
        quarantine(r, *box);
    }
    if (slot->index % 64 == 0) {
        quarantine_check(r);
    }
    s->done++;
    r->world->rank[r->rank].messages++;
    return NCCL_SUCCESS;
}

/* -- both */

static int turns(const struct stream *s)
{
    return s->sends ? s->count : s->count / group_of(s);
}

bool stream_done(const struct stream *s)
{
    return s->done == turns(s);
}

enum nccl_result stream_progress(struct rank *r, struct stream *s)
{
    enum nccl_result result = NCCL_SUCCESS;
    int before = s->done;

    while (result == NCCL_SUCCESS && s->done < s->posted) {
        result = s->sends ? finish_send(r, s) : finish_receive(r, s);
        if (s->done == before) {
            break;
        }
        before = s->done;
    }
    before = s->posted;
    while (result == NCCL_SUCCESS && s->posted < turns(s) && s->posted - s->done < SLOTS) {
        result = s->sends ? post_send(r, s) : post_receive(r, s);
        if (s->posted == before) {
            break;
        }
        before = s->posted;
    }
    return result;
}

enum nccl_result streams_run_to_error(struct rank *r, struct stream *streams, int count)
{
    for (bool all = false; !all;) {
        int before = 0, after = 0;
        all = true;
        for (int i = 0; i < count; i++) {
            before += streams[i].posted + streams[i].done;
            const enum nccl_result result = stream_progress(r, &streams[i]);
            if (result != NCCL_SUCCESS) {
                return result;
            }
            after += streams[i].posted + streams[i].done;
            all = all && stream_done(&streams[i]);
        }
        if (before == after) {
            usleep(20);
        }
    }
    return NCCL_SUCCESS;
}

void streams_run(struct rank *r, struct stream *streams, int count)
{
    must(r, streams_run_to_error(r, streams, count), "data");
}

int streams_of(struct rank *r, struct link *links, int count, const struct stream *like,
               struct stream *ret)
{
    int n = 0;

    for (int i = 0; i < count; i++) {
        for (int end = 0; end < 2; end++) {
            if ((end == 0 ? links[i].from : links[i].to) == r->rank &&
                links[i].from != links[i].to) {
                ret[n] = *like;
                ret[n].link = &links[i];
                ret[n].sends = end == 0;
                ret[n++].seed = like->seed + (uint64_t)i * 1000003;
            }
        }
    }
    return n;
}
