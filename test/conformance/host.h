/* host.h: shared by the parts of the conformance host.
 *
 * The host plays NCCL for any network plugin. Each rank is a process. Its service thread calls listen, connect, accept, regMr and
 * close. Its progress thread calls isend, irecv and test. The handle's pointer stays the same from poll to poll, and a NULL
 * request means that the same call is made again. Every buffer has guards. When a receive is done, its buffer is checked byte by
 * byte at once, filled anew, and checked again later, so that a late write is found. A send's buffer is overwritten as soon as
 * the send is done. A case in which no message moves for its time has hung; the output names the last call.
 *
 * host.c runs the cases; rank.c is a rank's toolbox; cases_*.c are the cases. */
#pragma once
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "app/perf/net_client.h"
#include "base/bug.h"

#define RANKS_MAX   8
#define SLOTS       8 /* requests in flight per stream: NCCL's number */
#define LINKS_MAX   256
#define GUARD       64
#define GUARD_BYTE  0xc7
#define EMPTY_BYTE  0x5c /* a receive buffer before its message */
#define REUSED_BYTE 0xe1 /* after it */
#define SENT_BYTE   0xd3 /* a send buffer after it */

struct host_options {
    const char *plugin;
    int version, churn, patience_s;
    double timeout_scale;
};

/* Shared by all processes of a case. */
struct world {
    struct {
        char doing[64];
        char finding[400];
        bool dies; /* by intent */
        int messages;
    } rank[RANKS_MAX];
    char skip[160];
};

struct service {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    void (*run)(void *);
    void *arg;
    int64_t slept_ms; /* in its last call */
    bool stop;
};

struct rank {
    int rank, ranks, mail[RANKS_MAX];
    const struct host_options *options;
    struct world *world;
    struct net_client net;
    void *context;
    int group_max; /* of the device */
    struct service service;
};

struct test_case {
    const char *name;
    int ranks, seconds;
    void (*run)(struct rank *);
    const char *what;
};

/* -- saying */
_Noreturn void found(struct rank *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void skip(struct rank *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void doing(struct rank *r, const char *what);
/* Any result but success is a finding. */
void must(struct rank *r, enum nccl_result result, const char *what);
int64_t now_ms(void);
void sleep_ms(int ms);

/* -- ranks among each other: the bootstrap */
void mail_send(struct rank *r, int to, const void *data, size_t size);
void mail_receive(struct rank *r, int from, void *data, size_t size);
void barrier(struct rank *r);

/* -- a plugin in this process */
void rank_open(struct rank *r, int version); /* load, init, service thread */
void rank_close(struct rank *r);             /* undoes rank_open */
void serve(struct rank *r, void (*run)(void *),
           void *arg); /* runs on the service thread; the caller waits */

/* -- links: each one direction between two ranks */
struct link {
    struct rank *rank;
    int from, to;
    void *listen_comm, *comm; /* listen_comm stays set at the receiving end */
    char handle[NCCL_HANDLE_SIZE];
    enum nccl_result result;
};
/* Listens if this rank receives, and passes the handle to the sender. Then polls until all links are open. All ranks call it with
 * the same list. */
void links_open(struct rank *r, struct link *links, int count);
/* The steps of links_open. */
void link_listen(struct rank *r, struct link *link);
void link_poll(struct rank *r, struct link *link);
void link_close(struct rank *r, struct link *link);

/* -- buffers */
struct box {
    char *base; /* GUARD, then data, then GUARD */
    size_t capacity;
    void *mhandle;
};
struct box box_new(size_t capacity, int byte);
void box_free(struct box *box);
char *box_data(const struct box *box);
void box_fill(struct box *box, int byte);
void pattern_fill(uint64_t seed, char *data, size_t size);
/* Offset of the first wrong byte, or -1. */
long pattern_wrong(uint64_t seed, const char *data, size_t size);
/* True if the whole box has that byte and its guards are intact. */
bool box_is(const struct box *box, int byte);
/* Keeps a box for a while after use. It is freed when there are too many. A changed box is a finding. */
void quarantine(struct rank *r, struct box box);
void quarantine_check(struct rank *r);
void quarantine_drain(struct rank *r); /* waits a moment, checks and frees the boxes */

/* -- streams: messages in order over a link; both ends compute all messages from a seed */
enum sizes { SIZES_SMALL, SIZES_MIXED, SIZES_EDGES, SIZES_LARGE };
struct slot {
    void *request;
    struct box box[NET_GROUP_MAX];
    int index;
};
struct stream {
    struct link *link;
    bool sends;
    uint64_t seed;
    enum sizes sizes;
    int count;  /* messages; a multiple of group */
    int group;  /* buffers of one receive; 0 means 1 */
    bool roomy; /* buffers larger than their messages */
    bool register_all;
    int posted, done;
    struct slot slots[SLOTS * NET_GROUP_MAX];
    struct box retry[NET_GROUP_MAX]; /* of the call to be repeated */
    bool retrying;
};
size_t stream_size(const struct stream *s, int message);
/* One poll of it. Returns NCCL_SUCCESS, or the plugin's error. */
enum nccl_result stream_progress(struct rank *r, struct stream *s);
bool stream_done(const struct stream *s);
/* Polls until all are done; an error is a finding. */
void streams_run(struct rank *r, struct stream *streams, int count);
/* Polls until one has an error, which is returned, or all are done. */
enum nccl_result streams_run_to_error(struct rank *r, struct stream *streams, int count);
/* Makes the stream of each link with an end at this rank. Returns their number. */
int streams_of(struct rank *r, struct link *links, int count, const struct stream *like,
               struct stream *ret);

extern const struct test_case data_cases[], life_cases[], trouble_cases[];
extern const int data_case_count, life_case_count, trouble_case_count;
