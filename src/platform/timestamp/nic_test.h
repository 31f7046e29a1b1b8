/* nic_test.h: tests a NIC's stamps and its clock: `foliot selftest clock --nics`.
 *
 * Ten times a second a NIC sends one small UDP packet with a request for its stamp, and its clock is read. The packets go to a
 * peer that runs the same test, or else to all hosts of the link. (Those do not answer: then only sent packets are judged.) No
 * clock is steered. If the NIC can stamp all packets, this is enabled, as the agent does, and stays enabled. */
#pragma once
#include "platform/timestamp/source.h"

#define NIC_TEST_EVERY_NS   (100 * NS_PER_MS)
#define NIC_TEST_PORT       47830 /* the same on both hosts; the agent uses another one */
#define NIC_TEST_SAMPLES    8192  /* 13 minutes are kept */
#define NIC_TEST_FEW        20    /* fewer packets or reads than this give no result */
#define NIC_TEST_LOST_SHARE 0.5   /* if more stamps are missing, the agent uses software stamps */

/* The kind of stamps that a NIC has, at the end. */
enum nic_test_verdict {
    NIC_TEST_HARDWARE,      /* stamps of the NIC's clock, in every direction with packets */
    NIC_TEST_HARDWARE_LOST, /* the NIC promises them and does not give them */
    NIC_TEST_SOFTWARE,      /* the kernel's stamps */
    NIC_TEST_NONE,          /* no stamps of sent packets: this NIC can't be used */
    NIC_TEST_UNKNOWN,       /* too few packets were sent */
};
const char *nic_test_verdict_word(enum nic_test_verdict v);

struct nic_test_config {
    const char *interface;
    const char *peer; /* address of a host on this link that runs the same test; NULL: none */
    uint16_t port;    /* to send to and to receive on; 0: NIC_TEST_PORT */
};

/* Counts are numbers of packets. ns and ppm are NAN if not measured. */
struct nic_test_result {
    enum nic_test_verdict verdict;
    bool promises_hardware, promises_software; /* by the driver */
    int promise_error, enable_error; /* errno; 0: none. -ERANGE: the NIC stamps only some packets */
    int clock_index, clock_error;    /* /dev/ptpN, -1: none; errno of the first failed read */
    uint64_t sent, not_sent, stamped, missing;
    /* stamps that the NIC's clock can't have shown: they count as missing */
    uint64_t sent_wrong, received_wrong;
    double stamp_after_ns
        [2]; /* from the call to the stamp: median, 99th percentile (software stamps) */
    uint64_t received, received_stamped;
    uint64_t reads, refused;
    const char *way;      /* how the clock is read: "cross", "driver", "bracket"; "": not read */
    double read_cost_ns;  /* processor time of one read, median */
    double bracket_ns[3]; /* width: least, median, 99th percentile */
    double rate_ppm;      /* of the NIC's clock against the host's raw clock */
    uint64_t steps;       /* the NIC's clock jumped by more than brackets and 200 ppm allow */
    int steering_error;   /* errno: changes of its rate can't be read */
    double steering_ppb_most; /* largest change of its rate by another program */
};

struct nic_test;
/* -EADDRNOTAVAIL: no address; -EADDRINUSE: the port is in use; -EINVAL: no such peer address, …. *ret_what: the step that
 * failed. */
MUST_CHECK int nic_test_new(const struct nic_test_config *config, struct time_source *source,
                            struct nic_test **ret, const char **ret_what);
void nic_test_free(struct nic_test *t); /* accepts NULL */
/* Call it every few ms: sends and reads when it is time, and takes received packets and stamps. */
void nic_test_step(struct nic_test *t);
/* Sends no more packets; only takes what is still under way. */
void nic_test_stop(struct nic_test *t);
void nic_test_result(const struct nic_test *t, struct nic_test_result *ret);
