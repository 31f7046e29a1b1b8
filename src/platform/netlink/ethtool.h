/* ethtool.h: a driver's settings of an interface: generic netlink's family "ethtool"
 * (Documentation/networking/ethtool-netlink.rst), and DCB by rtnetlink (IEEE 802.1Qaz, dcbnl).
 *
 * A question returns the attributes of the answer unparsed. Separate functions parse them, so that attributes can be kept and
 * parsed elsewhere. Every parser refuses incomplete attributes, or attributes of a wrong size: -EBADMSG. Numbers that the
 * driver did not give are -1. */
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
    ETHTOOL_MODULE, /* 128 bytes of the module's memory: page, offset */
    ETHTOOL_DCB,
    ETHTOOL_QUESTION_COUNT
};
const char *ethtool_question_name(enum ethtool_question question); /* "fec", … */

enum { ETHTOOL_ANSWER_MAX = 16384, MODULE_PAGE_SIZE = 128 };

struct ethtool;
/* -EAFNOSUPPORT, -EPERM …: netlink can't be used. If only a part is missing, the questions return errors. */
int ethtool_open(struct ethtool **ret_ethtool);
struct ethtool *ethtool_close(struct ethtool *e); /* accepts NULL, returns NULL */
/* Returns the size of the answer's attributes. -EOPNOTSUPP: the driver does not have it; -ENODEV: no such interface; -EPERM;
 * -ETIMEDOUT. page and offset: only for ETHTOOL_MODULE. */
int ethtool_ask(struct ethtool *e, enum ethtool_question question, const char *interface,
                unsigned page, unsigned offset, uint8_t ret_answer[ETHTOOL_ANSWER_MAX]);

/* Parse answers of ethtool_ask(): `size` bytes of attributes. -EBADMSG: damaged, or not the answer to that question. A number
 * that the driver did not give is -1. */
struct link_fec {
    int active; /* the kernel's number of a link mode, e.g. 50 for RS; -1: no FEC is active */
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
    uint8_t pfc; /* bit P: for priority P */
    uint8_t class_of[DCB_CLASSES], share[DCB_CLASSES], algorithm[DCB_CLASSES];
    int app_count;
    struct {
        uint8_t selector, priority;
        uint16_t protocol; /* for DCB_SELECTOR_DSCP: the DSCP */
    } apps[DCB_APPS_MAX];
};
int ethtool_read_dcb(const void *attributes, size_t size, struct link_dcb *ret);
