/* scrub_binary.c: scrubs configuration space and netlink attributes. See scrub.h. */
#include <linux/dcbnl.h>
#include <linux/ethtool_netlink.h>
#include <string.h>

#include "base/bug.h"
#include "platform/netlink/ethtool.h"
#include "service/inspect/scrub.h"

enum { SPACE = 4096, EXPRESS = 0x10, EXPRESS_SIZE = 0x3c, ACS = 0x0d, ACS_SIZE = 8, HEADER = 4 };

static unsigned word_at(const uint8_t *bytes, unsigned at)
{
    return bytes[at] | (unsigned)bytes[at + 1] << 8;
}

/* A serial number is a capability (Device Serial Number, 0x0003), and vendors have their own. So only two capabilities are
 * kept whole. Of the others only the head is kept, which links to the next one. */
void scrub_pci(uint8_t *config, size_t size)
{
    uint8_t left[SPACE] = {0};
    unsigned at = size > 0x34 ? config[0x34] & 0xfc : 0;

    if (size > sizeof(left) || size < 0x40) {
        memset(config, 0, size);
        return;
    }
    memcpy(left, config, 0x10); /* vendor, device, class */
    left[0x34] = config[0x34];
    for (int i = 0; i < 48 && at >= 0x40 && at + EXPRESS_SIZE <= 0x100 && at + EXPRESS_SIZE <= size;
         i++) {
        memcpy(left + at, config + at, config[at] == EXPRESS ? EXPRESS_SIZE : 2);
        at = config[at + 1] & 0xfc;
    }
    at = 0x100;
    for (int i = 0; i < 256 && size == SPACE && at >= 0x100 && at <= SPACE - ACS_SIZE; i++) {
        memcpy(left + at, config + at, word_at(config, at) == ACS ? ACS_SIZE : HEADER);
        at = word_at(config, at + 2) >> 4;
    }
    memcpy(config, left, size);
}

/* ---- transceivers: SFF-8636 6.3, CMIS 5.2 8.3, SFF-8472 table 4-1 ---- */

/* After the part's number and revision follow its serial number and its date. */
static void scrub_module(const char *question, uint8_t page[MODULE_PAGE_SIZE])
{
    enum { SFP = 0x03, QSFP = 0x0c, QSFP_PLUS = 0x0d, QSFP28 = 0x11 };
    const bool lower = strcmp(question, "module-0-0") == 0,
               upper = strcmp(question, "module-0-128") == 0;
    const bool qsfp = page[0] == QSFP || page[0] == QSFP_PLUS || page[0] == QSFP28;
    const size_t kept = lower && page[0] == SFP ? 60
                        : lower                 ? 107
                        : upper && qsfp         ? 186 - 128
                        : upper                 ? 166 - 128
                                                : MODULE_PAGE_SIZE;

    memset(page + kept, 0, MODULE_PAGE_SIZE - kept);
}

/* ---- attributes ---- */

static const struct {
    const char *question;
    uint16_t kept[6];
} questions[] = {
    {"fec", {ETHTOOL_A_FEC_AUTO, ETHTOOL_A_FEC_ACTIVE, ETHTOOL_A_FEC_STATS}},
    {"pause", {ETHTOOL_A_PAUSE_AUTONEG, ETHTOOL_A_PAUSE_RX, ETHTOOL_A_PAUSE_TX}},
    {"rings", {ETHTOOL_A_RINGS_RX, ETHTOOL_A_RINGS_TX}},
    {"channels",
     {ETHTOOL_A_CHANNELS_RX_COUNT, ETHTOOL_A_CHANNELS_TX_COUNT, ETHTOOL_A_CHANNELS_COMBINED_COUNT}},
    {"coalesce",
     {ETHTOOL_A_COALESCE_RX_USECS, ETHTOOL_A_COALESCE_TX_USECS, ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX,
      ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX}},
    {"module", {ETHTOOL_A_MODULE_EEPROM_DATA}},
    {"dcb", {DCB_ATTR_IEEE}},
};

static bool is_kept(const char *question, unsigned type)
{
    for (size_t i = 0; i < ARRAY_COUNT(questions); i++) {
        if (strncmp(question, questions[i].question, strlen(questions[i].question)) == 0) {
            for (size_t k = 0; k < ARRAY_COUNT(questions[i].kept); k++) {
                if (questions[i].kept[k] == type && type != 0) {
                    return true;
                }
            }
        }
    }
    return false;
}

size_t scrub_attributes(const char *question, uint8_t *answer, size_t size)
{
    size_t at = 0, used = 0;

    while (at + HEADER <= size) {
        const unsigned length = word_at(answer, (unsigned)at),
                       type = word_at(answer, (unsigned)at + 2) & 0x3fff;
        const size_t whole = (length + 3U) & ~3U;
        if (length < HEADER || at + length > size) {
            break; /* the answer is cut: its reader reports that */
        }
        if (is_kept(question, type)) {
            if (type == ETHTOOL_A_MODULE_EEPROM_DATA && length == HEADER + MODULE_PAGE_SIZE) {
                scrub_module(question, answer + at + HEADER);
            }
            memmove(answer + used, answer + at, whole <= size - at ? whole : length);
            used += whole <= size - at ? whole : length;
        } else if (type == 1 && strcmp(question, "dcb") != 0) {
            /* the header attribute, without the interface's number and name: its presence is part of the answer */
            const uint8_t empty[HEADER] = {HEADER, 0, 1, 0x80};
            memcpy(answer + used, empty, HEADER);
            used += HEADER;
        }
        at += whole;
    }
    return used;
}
