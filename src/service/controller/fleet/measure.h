/* measure.h: measurements on demand: who is asked to probe which pairs of NICs, in which waves, and what came of it.
 *
 * One runs at a time; the last MEASUREMENT_KEPT are remembered, in memory only. A measurement is a list of ordered pairs by the
 * host that sends. Each host gets the next few of its own with the answer to a report (proto/foliot.proto, Measure), which
 * core/fleet/wave decides.
 *
 * Bounded by: pairs and packets of a wave and packets a second (base/limits.h, kept by agents themselves too), one measurement
 * at a time, MEASUREMENT_S_MAX for all of it, and the order of the pairs: at any moment hosts send to different ones. */
#pragma once
#include "core/fleet/wave.h"
#include "service/controller/controller.h"

#define MEASUREMENT_KEPT    8
#define MEASUREMENT_S_MAX   1800
#define MEASUREMENT_RATE    500  /* packets a second and host */
#define MEASUREMENT_NIC_MAX 2048 /* of a full matrix */
#define CHECK_PEER_MAX      8    /* hosts near, and as many far */
#define CHECK_PORTS         4
#define CHECK_S_DEFAULT     10
#define CHECK_S_MAX         60
#define MATRIX_PACKETS      10

enum measurement_kind { MEASUREMENT_CHECK, MEASUREMENT_MATRIX };
enum measurement_state { MEASUREMENT_RUNNING, MEASUREMENT_DONE, MEASUREMENT_STOPPED };

struct latency_matrix;
struct measured_pair {
    uint32_t from, to; /* NICs */
};
struct measurement_asker {
    struct fleet_host *host;
    uint32_t first; /* of its pairs */
    struct wave_asker asks;
    char trouble[120]; /* why the rest isn't measured; empty: none */
};

struct measurement {
    uint32_t id;
    enum measurement_kind kind;
    enum measurement_state state;
    char who[64], why[120]; /* why it was stopped */
    int64_t started_ns, ended_ns;
    struct mono started;
    struct fleet_host *host; /* of a check */
    struct wave_plan plan;
    uint32_t port, bound_ns;
    struct measured_pair *pairs;
    struct wave_row *rows; /* ports of each pair */
    uint32_t pair_count, pair_capacity;
    struct measurement_asker *askers;
    uint32_t asker_count, asker_capacity;
    char (*skipped)[160]; /* hosts that could have been asked, and why they weren't */
    uint32_t skipped_count;
};

struct measure_request {
    Foliot__V1__Measure message;
    uint32_t local[MEASURE_PAIR_MAX], peer[MEASURE_PAIR_MAX];
};
struct measures {
    struct measure_request request;             /* that is being told */
    struct measurement *kept[MEASUREMENT_KEPT]; /* newest first */
    uint32_t next_id, next_run;
};

MUST_CHECK int measures_open(struct controller *c);
void measures_close(struct controller *c);
/* NULL: it can take part; else why not, in words. */
const char *measure_unfit(const struct controller *c, const struct fleet_host *h);
struct measurement *measurement_running(const struct controller *c); /* NULL: none */
struct measurement *measurement_find(const struct controller *c, uint32_t id);

/* Making one: new, pairs by sending host (ascending: all of one, then all of another), begin. -ENOMEM. */
struct measurement *measurement_new(enum measurement_kind kind, const char *who);
struct measurement *measurement_free(struct measurement *m);
MUST_CHECK int measurement_add(struct measurement *m, struct fleet_host *by, uint32_t from,
                               uint32_t to);
MUST_CHECK int measurement_skip(struct measurement *m, const struct fleet_host *h, const char *why);
/* Owned by the controller from here on, whatever is returned: -EBUSY: one is running; -ENODATA: no pairs. */
MUST_CHECK int measurement_begin(struct controller *c, struct measurement *m);
void measurement_stop(struct controller *c, struct measurement *m, const char *why);
/* What is still to be sent and heard takes about this long; 0: nothing. */
int64_t measurement_left_ns(const struct controller *c, const struct measurement *m);
uint64_t measurement_packets(const struct measurement *m);      /* all of them */
uint64_t measurement_packets_sent(const struct measurement *m); /* so far */
/* Cells of what is measured so far. */
void measurement_fill_matrix(const struct measurement *m, struct latency_matrix *matrix);

/* ---- by ingest.c ---- */
void measure_heard(struct controller *c, struct fleet_host *h, const Foliot__V1__Batch *batch);
/* NULL: nothing for this host. Valid until it is asked again. */
Foliot__V1__Measure *measure_for(struct controller *c, const struct fleet_host *h);
void measure_watch(struct controller *c); /* once a second */

/* ---- check.c: may this host join? ---- */
/* NULL: it can't be checked now: *ret_code, ret_words say why. */
struct measurement *check_plan(struct controller *c, struct fleet_host *host, const char *who,
                               uint32_t seconds, const char **ret_code, char ret_words[200]);
/* "answer", "sentence", "reasons", "paths" of a check, into the object that is open. -ENOMEM. */
MUST_CHECK int check_put(struct controller *c, struct json_writer *j, const struct measurement *m);
