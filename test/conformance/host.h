/* host.h: what the parts of the conformance host share.
 *
 * The host plays NCCL to any network plugin: a process per rank, with a service thread for listen, connect, accept, regMr and
 * close and a progress thread for isend, irecv and test; the handle's pointer stays the same from poll to poll, a NULL
 * request means the same call again. Every buffer has guards, is checked byte by byte the moment a receive is done, is filled
 * anew at once and looked at again later, so that a late write shows; send buffers are overwritten the moment a send
 * is done. A case that says nothing more for its time has hung, and what it was in is said.
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
#define SLOTS       8 /* requests in flight per stream, as NCCL has it */
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
/* Anything but success is a finding. */
void must(struct rank *r, enum nccl_result result, const char *what);
int64_t now_ms(void);
void sleep_ms(int ms);

/* -- ranks among each other: the bootstrap */
void mail_send(struct rank *r, int to, const void *data, size_t size);
void mail_receive(struct rank *r, int from, void *data, size_t size);
void barrier(struct rank *r);

/* -- a plugin in this process */
void rank_open(struct rank *r, int version); /* load, init, service thread */
void rank_close(struct rank *r);             /* and all of it back */
void serve(struct rank *r, void (*run)(void *),
           void *arg); /* on the service thread, waits for it */

/* -- links: one direction between two ranks */
struct link {
    struct rank *rank;
    int from, to;
    void *listen_comm, *comm; /* listen_comm stays set: this end receives */
    char handle[NCCL_HANDLE_SIZE];
    enum nccl_result result;
};
/* Listens if this rank receives, and hands the handle over; then polls until all are there. All ranks call it with
 * the same list. */
void links_open(struct rank *r, struct link *links, int count);
/* What links_open is made of. */
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
/* All of the box holds that byte and its guards are whole. */
bool box_is(const struct box *box, int byte);
/* Kept for a while after use; freed when there are too many. A changed one is a finding. */
void quarantine(struct rank *r, struct box box);
void quarantine_check(struct rank *r);
void quarantine_drain(struct rank *r); /* waits a moment, checks, frees */

/* -- streams: messages in order over a link, both ends knowing all of them from a seed */
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
    int group;  /* buffers per receive; 0 is 1 */
    bool roomy; /* buffers larger than their messages */
    bool register_all;
    int posted, done;
    struct slot slots[SLOTS * NET_GROUP_MAX];
    struct box retry[NET_GROUP_MAX]; /* of a call that said "not now" */
    bool retrying;
};
size_t stream_size(const struct stream *s, int message);
/* One look at it. NCCL_SUCCESS, or what the plugin said. */
enum nccl_result stream_progress(struct rank *r, struct stream *s);
bool stream_done(const struct stream *s);
/* Until all are done; an error is a finding. */
void streams_run(struct rank *r, struct stream *streams, int count);
/* Until one says an error, which is returned, or all are done. */
enum nccl_result streams_run_to_error(struct rank *r, struct stream *streams, int count);
/* The stream of each link of which this rank has an end; the number. */
int streams_of(struct rank *r, struct link *links, int count, const struct stream *like,
               struct stream *ret);

extern const struct test_case data_cases[], life_cases[], trouble_cases[];
extern const int data_case_count, life_case_count, trouble_case_count;
