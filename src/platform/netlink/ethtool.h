/* ethtool.h: what a driver has set of an interface: generic netlink's family "ethtool"
 * (Documentation/networking/ethtool-netlink.rst), and DCB by rtnetlink (IEEE 802.1Qaz, dcbnl).
 *
 * A question gives the attributes of the answer as they came; what reads them is apart from it, so that attributes can be kept
 * and read elsewhere. Every reader refuses attributes that are cut or of another size: -EBADMSG. Numbers that the driver did
 * not give are -1. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ethtool_question {
    ETHTOOL_FEC,
    ETHTOOL_PAUSE,
    ETHTOOL_RINGS,
    ETHTOOL_CHANNELS,
    ETHTOOL_COALESCE,
    ETHTOOL_MODULE, /* 128 bytes of its memory: page, offset */
    ETHTOOL_DCB,
    ETHTOOL_QUESTION_COUNT
};
const char *ethtool_question_name(enum ethtool_question question); /* "fec", … */

enum { ETHTOOL_ANSWER_MAX = 16384, MODULE_PAGE_SIZE = 128 };

struct ethtool;
/* -EAFNOSUPPORT, -EPERM …: netlink can't be had. What is missing of it is told by the questions. */
int ethtool_open(struct ethtool **ret_ethtool);
struct ethtool *ethtool_close(struct ethtool *e); /* accepts NULL, returns NULL */
/* Size of the answer's attributes. -EOPNOTSUPP: the driver does not have it; -ENODEV: no such interface; -EPERM;
 * -ETIMEDOUT. page and offset: of ETHTOOL_MODULE. */
int ethtool_ask(struct ethtool *e, enum ethtool_question question, const char *interface,
                unsigned page, unsigned offset, uint8_t ret_answer[ETHTOOL_ANSWER_MAX]);

/* Readers of answers of ethtool_ask(): attributes, size bytes of them. -EBADMSG: damaged, or not the answer to that question.
 * A number that the driver doesn't tell is -1. */
struct link_fec {
    int active; /* the kernel's number of a link mode: 50 is RS; -1: none is in force */
    int64_t corrected_bits, corrected_blocks, lost_blocks;
};
int ethtool_read_fec(const void *attributes, size_t size, struct link_fec *ret);
struct link_pause {
    int autoneg, rx, tx;
};
int ethtool_read_pause(const void *attributes, size_t size, struct link_pause *ret);
struct link_rings {
    int64_t rx, tx;
};
int ethtool_read_rings(const void *attributes, size_t size, struct link_rings *ret);
struct link_channels {
    int64_t rx, tx, combined;
};
int ethtool_read_channels(const void *attributes, size_t size, struct link_channels *ret);
struct link_coalesce {
    int64_t rx_us, tx_us;
    int adaptive_rx, adaptive_tx;
};
int ethtool_read_coalesce(const void *attributes, size_t size, struct link_coalesce *ret);
int ethtool_read_module(const void *attributes, size_t size, uint8_t ret[MODULE_PAGE_SIZE]);

enum { DCB_APPS_MAX = 256, DCB_CLASSES = 8, DCB_SELECTOR_DSCP = 5 };
struct link_dcb {
    bool has_pfc, has_ets;
    uint8_t pfc; /* bit P: priority P */
    uint8_t class_of[DCB_CLASSES], share[DCB_CLASSES], algorithm[DCB_CLASSES];
    int app_count;
    struct {
        uint8_t selector, priority;
        uint16_t protocol; /* DSCP of DCB_SELECTOR_DSCP */
    } apps[DCB_APPS_MAX];
};
int ethtool_read_dcb(const void *attributes, size_t size, struct link_dcb *ret);
