/* measure.h: measurements on demand: which hosts probe which pairs of NICs, in which waves, and the results.
 *
 * One measurement runs at a time. The last MEASUREMENT_KEPT are kept, in memory only. A measurement is a list of pairs,
 * ordered by the sending host. Each host gets its next few pairs with the answer to a report (proto/foliot.proto, Measure).
 * core/fleet/wave chooses them.
 *
 * Limits: pairs and packets of a wave and packets per second (base/limits.h; agents enforce these, too); one measurement at a
 * time; MEASUREMENT_S_MAX for the whole; and the order of pairs: at any moment hosts send to different hosts. */
#pragma once
#include "core/fleet/wave.h"
#include "service/controller/controller.h"

#define MEASUREMENT_KEPT    8
#define MEASUREMENT_S_MAX   1800
#define MEASUREMENT_RATE    500  /* packets per second and host */
#define MEASUREMENT_NIC_MAX 2048 /* for a full matrix */
#define CHECK_PEER_MAX      8    /* near hosts, and as many far ones */
#define CHECK_PORTS         4
#define CHECK_S_DEFAULT     10
#define CHECK_S_MAX         60
#define MATRIX_PACKETS      10

enum measurement_kind { MEASUREMENT_CHECK, MEASUREMENT_MATRIX };
enum measurement_state { MEASUREMENT_RUNNING, MEASUREMENT_DONE, MEASUREMENT_STOPPED };

struct latency_matrix;
struct measured_pair {
    uint32_t from, to; /* ids of NICs */
};
struct measurement_asker {
    struct fleet_host *host;
    uint32_t first; /* index of the first of its pairs */
    struct wave_asker asks;
    char trouble[120]; /* why its other pairs are not measured; empty: all are */
};

struct measurement {
    uint32_t id;
    enum measurement_kind kind;
    enum measurement_state state;
    char who[64], why[120]; /* why: reason of a stop */
    int64_t started_ns, ended_ns;
    struct mono started;
    struct fleet_host *host; /* the host of a check */
    struct wave_plan plan;
    uint32_t port, bound_ns;
    struct measured_pair *pairs;
    struct wave_row *rows; /* by pair and port */
    uint32_t pair_count, pair_capacity;
    struct measurement_asker *askers;
    uint32_t asker_count, asker_capacity;
    char (*skipped)[160]; /* hosts that could take part but don't, with the reason */
    uint32_t skipped_count;
};

struct measure_request {
    Foliot__V1__Measure message;
    uint32_t local[MEASURE_PAIR_MAX], peer[MEASURE_PAIR_MAX];
};
struct measures {
    struct measure_request request;             /* the request being sent */
    struct measurement *kept[MEASUREMENT_KEPT]; /* newest first */
    uint32_t next_id, next_run;
};

MUST_CHECK int measures_open(struct controller *c);
void measures_close(struct controller *c);
/* NULL: it can take part; else the reason, in words. */
const char *measure_unfit(const struct controller *c, const struct fleet_host *h);
struct measurement *measurement_running(const struct controller *c); /* NULL: none */
struct measurement *measurement_find(const struct controller *c, uint32_t id);

/* How to make one: measurement_new(), then pairs by sending host (all pairs of one host, then all of the next), then
 * measurement_begin(). -ENOMEM. */
struct measurement *measurement_new(enum measurement_kind kind, const char *who);
struct measurement *measurement_free(struct measurement *m);
MUST_CHECK int measurement_add(struct measurement *m, struct fleet_host *by, uint32_t from,
                               uint32_t to);
MUST_CHECK int measurement_skip(struct measurement *m, const struct fleet_host *h, const char *why);
/* The controller owns m from now on, also after an error. -EBUSY: one is running; -ENODATA: no pairs. */
MUST_CHECK int measurement_begin(struct controller *c, struct measurement *m);
void measurement_stop(struct controller *c, struct measurement *m, const char *why);
/* Estimated time for the remaining packets; 0: none are left. */
int64_t measurement_left_ns(const struct controller *c, const struct measurement *m);
uint64_t measurement_packets(const struct measurement *m);      /* in all */
uint64_t measurement_packets_sent(const struct measurement *m); /* so far */
/* Adds cells of the pairs measured so far. */
void measurement_fill_matrix(const struct measurement *m, struct latency_matrix *matrix);

/* ---- by ingest.c ---- */
void measure_heard(struct controller *c, struct fleet_host *h, const Foliot__V1__Batch *batch);
/* NULL: no pairs for this host. Valid until the next call. */
Foliot__V1__Measure *measure_for(struct controller *c, const struct fleet_host *h);
void measure_watch(struct controller *c); /* once a second */

/* ---- check.c: may this host join? ---- */
/* NULL: it can't be checked now: *ret_code and ret_words have the reason. */
struct measurement *check_plan(struct controller *c, struct fleet_host *host, const char *who,
                               uint32_t seconds, const char **ret_code, char ret_words[200]);
/* Writes "answer", "sentence", "reasons", "paths" of a check into the open object. -ENOMEM. */
MUST_CHECK int check_put(struct controller *c, struct json_writer *j, const struct measurement *m);
