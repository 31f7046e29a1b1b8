/* nic_test.h: what is true of a NIC's stamps and of its clock, found by trying: `foliot selftest clock --nics`.
 *
 * Ten times a second a NIC sends one small UDP packet, is asked for its stamp, and has its clock read. The packets go to a peer
 * that runs the same test, or else to all hosts of the link (nobody answers: then only what is sent is judged). Nothing is
 * steered; where the NIC can stamp all packets it is told to, as the agent does, and left so. */
#pragma once
#include "platform/timestamp/source.h"

#define NIC_TEST_EVERY_NS   (100 * NS_PER_MS)
#define NIC_TEST_PORT       47830 /* both hosts' the same; the agent's is another */
#define NIC_TEST_SAMPLES    8192  /* kept: 13 minutes */
#define NIC_TEST_FEW        20    /* packets or reads that tell nothing yet */
#define NIC_TEST_LOST_SHARE 0.5 /* of stamps: with more missing the agent falls back to software */

/* What a NIC gives, in the end. */
enum nic_test_verdict {
    NIC_TEST_HARDWARE,      /* stamps of the NIC's clock, in every direction that had packets */
    NIC_TEST_HARDWARE_LOST, /* it promises them and doesn't give them */
    NIC_TEST_SOFTWARE,      /* the kernel's stamps */
    NIC_TEST_NONE,          /* no stamps of what is sent: this NIC can't be used */
    NIC_TEST_UNKNOWN,       /* too few packets were sent */
};
const char *nic_test_verdict_word(enum nic_test_verdict v);

struct nic_test_config {
    const char *interface;
    const char *peer; /* address of a host on this link that runs the same test; NULL: none */
    uint16_t port;    /* to send to and to hear on; 0: NIC_TEST_PORT */
};

/* Counts are of packets; ns and ppm NAN: not measured. */
struct nic_test_result {
    enum nic_test_verdict verdict;
    bool promises_hardware, promises_software; /* the driver, when asked */
    int promise_error,
        enable_error;             /* errno; 0: none. -ERANGE: fewer than all packets are stamped */
    int clock_index, clock_error; /* /dev/ptpN, -1: none; errno of the first read that failed */
    uint64_t sent, not_sent, stamped, missing;
    uint64_t sent_wrong, received_wrong; /* stamps that the NIC's clock can't have shown: none */
    double stamp_after_ns
        [2]; /* from the call to the stamp: median, 99th percentile (software stamps) */
    uint64_t received, received_stamped;
    uint64_t reads, refused;
    const char *way;      /* how the clock is read: "cross", "driver", "bracket"; "": not at all */
    double read_cost_ns;  /* of the processor, median of one read */
    double bracket_ns[3]; /* width: narrowest, median, 99th percentile */
    double rate_ppm;      /* of the NIC's clock against the host's raw one */
    uint64_t steps;       /* the NIC's clock jumped by more than brackets and 200 ppm allow */
    int steering_error;   /* errno: whether somebody steers it can't be asked */
    double steering_ppb_most; /* the largest change of its rate by somebody */
};

struct nic_test;
/* -EADDRNOTAVAIL: no address; -EADDRINUSE: the port is in use, -EINVAL: no such peer address, … *ret_what: what failed. */
MUST_CHECK int nic_test_new(const struct nic_test_config *config, struct time_source *source,
                            struct nic_test **ret, const char **ret_what);
void nic_test_free(struct nic_test *t); /* NULL is fine */
/* Every few ms: sends and reads when it is time, takes what came. */
void nic_test_step(struct nic_test *t);
/* Sends no more: waits for what is on its way only. */
void nic_test_stop(struct nic_test *t);
void nic_test_result(const struct nic_test *t, struct nic_test_result *ret);
