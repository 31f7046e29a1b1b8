/* ethtool_read.c: parses answers of ethtool.h. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>
#include <linux/ethtool_netlink.h>
#include <string.h>

#include "platform/netlink/ethtool.h"

_Static_assert(DCB_CLASSES == IEEE_8021QAZ_MAX_TCS, "as the kernel has it");
_Static_assert(DCB_SELECTOR_DSCP == IEEE_8021QAZ_APP_SEL_DSCP, "as the kernel has it");

enum { TYPES_MAX = 32 };

/* Attributes by type. Unknown types are skipped. */
struct by_type {
    const struct nlattr *of[TYPES_MAX];
};

/* -EBADMSG: the last attribute, or its padding to four bytes, is incomplete. */
static int sort(const void *attributes, size_t size, struct by_type *ret)
{
    const struct nlattr *a = attributes;
    int left = (int)size;

    *ret = (struct by_type){0};
    while (mnl_attr_ok(a, left)) {
        const unsigned type = mnl_attr_get_type(a);
        if (type < TYPES_MAX) {
            ret->of[type] = a;
        }
        left -= (int)MNL_ALIGN(mnl_attr_get_len(a));
        a = mnl_attr_next(a);
    }
    return left != 0 ? -EBADMSG : 0;
}

static int sort_nest(const struct nlattr *nest, struct by_type *ret)
{
    return sort(mnl_attr_get_payload(nest), mnl_attr_get_payload_len(nest), ret);
}

static int one_byte(const struct by_type *b, unsigned type, int *ret)
{
    *ret = -1;
    if (b->of[type] == NULL) {
        return 0;
    }
    if (mnl_attr_get_payload_len(b->of[type]) != 1) {
        return -EBADMSG;
    }
    *ret = mnl_attr_get_u8(b->of[type]);
    return 0;
}

static int number(const struct by_type *b, unsigned type, int64_t *ret)
{
    *ret = -1;
    if (b->of[type] == NULL) {
        return 0;
    }
    if (mnl_attr_get_payload_len(b->of[type]) != sizeof(uint32_t)) {
        return -EBADMSG;
    }
    *ret = mnl_attr_get_u32(b->of[type]);
    return 0;
}

/* The first number of an array is the sum of all lanes. */
static int sum(const struct by_type *b, unsigned type, int64_t *ret)
{
    uint64_t value;
    const struct nlattr *a = b->of[type];

    *ret = -1;
    if (a == NULL || mnl_attr_get_payload_len(a) == 0) {
        return 0;
    }
    if (mnl_attr_get_payload_len(a) % sizeof(value) != 0) {
        return -EBADMSG;
    }
    memcpy(&value, mnl_attr_get_payload(a), sizeof(value));
    if (value > INT64_MAX / 10) {
        /* such a large number comes from a driver that counts backwards */
        return -EBADMSG;
    }
    *ret = (int64_t)value;
    return 0;
}

int ethtool_read_fec(const void *attributes, size_t size, struct link_fec *ret)
{
    struct by_type b, stats;
    int64_t active;
    int r = sort(attributes, size, &b);

    *ret = (struct link_fec){-1, -1, -1, -1};
    r = r < 0 ? r : number(&b, ETHTOOL_A_FEC_ACTIVE, &active);
    if (r < 0 || (active == -1 && b.of[ETHTOOL_A_FEC_MODES] == NULL &&
                  b.of[ETHTOOL_A_FEC_HEADER] == NULL && b.of[ETHTOOL_A_FEC_AUTO] == NULL)) {
        return -EBADMSG; /* no attribute of FEC */
    }
    ret->active = (int)active;
    if (b.of[ETHTOOL_A_FEC_STATS] == NULL) {
        return 0;
    }
    r = sort_nest(b.of[ETHTOOL_A_FEC_STATS], &stats);
    r = r < 0 ? r : sum(&stats, ETHTOOL_A_FEC_STAT_CORR_BITS, &ret->corrected_bits);
    r = r < 0 ? r : sum(&stats, ETHTOOL_A_FEC_STAT_CORRECTED, &ret->corrected_blocks);
    return r < 0 ? r : sum(&stats, ETHTOOL_A_FEC_STAT_UNCORR, &ret->lost_blocks);
}

int ethtool_read_pause(const void *attributes, size_t size, struct link_pause *ret)
{
    struct by_type b;
    int r = sort(attributes, size, &b);

    r = r < 0 ? r : one_byte(&b, ETHTOOL_A_PAUSE_AUTONEG, &ret->autoneg);
    r = r < 0 ? r : one_byte(&b, ETHTOOL_A_PAUSE_RX, &ret->rx);
    r = r < 0 ? r : one_byte(&b, ETHTOOL_A_PAUSE_TX, &ret->tx);
    return r < 0 || ret->rx < 0 || ret->tx < 0 ? -EBADMSG : 0;
}

int ethtool_read_rings(const void *attributes, size_t size, struct link_rings *ret)
{
    struct by_type b;
    int r = sort(attributes, size, &b);

    r = r < 0 ? r : number(&b, ETHTOOL_A_RINGS_RX, &ret->rx);
    r = r < 0 ? r : number(&b, ETHTOOL_A_RINGS_TX, &ret->tx);
    return r < 0 || (ret->rx < 0 && ret->tx < 0) ? -EBADMSG : 0;
}

int ethtool_read_channels(const void *attributes, size_t size, struct link_channels *ret)
{
    struct by_type b;
    int r = sort(attributes, size, &b);

    r = r < 0 ? r : number(&b, ETHTOOL_A_CHANNELS_RX_COUNT, &ret->rx);
    r = r < 0 ? r : number(&b, ETHTOOL_A_CHANNELS_TX_COUNT, &ret->tx);
    r = r < 0 ? r : number(&b, ETHTOOL_A_CHANNELS_COMBINED_COUNT, &ret->combined);
    return r < 0 || (ret->rx < 0 && ret->tx < 0 && ret->combined < 0) ? -EBADMSG : 0;
}

int ethtool_read_coalesce(const void *attributes, size_t size, struct link_coalesce *ret)
{
    struct by_type b;
    int r = sort(attributes, size, &b);

    r = r < 0 ? r : number(&b, ETHTOOL_A_COALESCE_RX_USECS, &ret->rx_us);
    r = r < 0 ? r : number(&b, ETHTOOL_A_COALESCE_TX_USECS, &ret->tx_us);
    r = r < 0 ? r : one_byte(&b, ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX, &ret->adaptive_rx);
    r = r < 0 ? r : one_byte(&b, ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX, &ret->adaptive_tx);
    return r < 0 || (b.of[ETHTOOL_A_COALESCE_HEADER] == NULL && ret->rx_us < 0 && ret->tx_us < 0)
               ? -EBADMSG
               : 0;
}

int ethtool_read_module(const void *attributes, size_t size, uint8_t ret[MODULE_PAGE_SIZE])
{
    struct by_type b;
    const int r = sort(attributes, size, &b);
    const struct nlattr *data = r == 0 ? b.of[ETHTOOL_A_MODULE_EEPROM_DATA] : NULL;

    if (data == NULL || mnl_attr_get_payload_len(data) != MODULE_PAGE_SIZE) {
        return -EBADMSG;
    }
    memcpy(ret, mnl_attr_get_payload(data), MODULE_PAGE_SIZE);
    return 0;
}

static int read_apps(const struct nlattr *table, struct link_dcb *ret)
{
    const struct nlattr *a = mnl_attr_get_payload(table);
    int left = mnl_attr_get_payload_len(table);

    for (; mnl_attr_ok(a, left); a = mnl_attr_next(a)) {
        struct dcb_app app;
        left -= (int)MNL_ALIGN(mnl_attr_get_len(a));
        if (mnl_attr_get_type(a) != DCB_ATTR_IEEE_APP) {
            continue;
        }
        if (mnl_attr_get_payload_len(a) < sizeof(app) || ret->app_count == DCB_APPS_MAX) {
            return -EBADMSG;
        }
        memcpy(&app, mnl_attr_get_payload(a), sizeof(app));
        ret->apps[ret->app_count].selector = app.selector;
        ret->apps[ret->app_count].priority = app.priority;
        ret->apps[ret->app_count++].protocol = app.protocol;
    }
    return left != 0 ? -EBADMSG : 0;
}

int ethtool_read_dcb(const void *attributes, size_t size, struct link_dcb *ret)
{
    struct by_type b, ieee;
    struct ieee_pfc pfc;
    struct ieee_ets ets;
    int r = sort(attributes, size, &b);

    *ret = (struct link_dcb){0};
    if (r < 0 || b.of[DCB_ATTR_IEEE] == NULL) {
        return -EBADMSG;
    }
    r = sort_nest(b.of[DCB_ATTR_IEEE], &ieee);
    const struct nlattr *of_pfc = ieee.of[DCB_ATTR_IEEE_PFC], *of_ets = ieee.of[DCB_ATTR_IEEE_ETS];
    if (r < 0 || (of_pfc != NULL && mnl_attr_get_payload_len(of_pfc) < sizeof(pfc)) ||
        (of_ets != NULL && mnl_attr_get_payload_len(of_ets) < sizeof(ets))) {
        return -EBADMSG;
    }
    if (of_pfc != NULL) {
        memcpy(&pfc, mnl_attr_get_payload(of_pfc), sizeof(pfc));
        ret->has_pfc = true;
        ret->pfc = pfc.pfc_en;
    }
    if (of_ets != NULL) {
        memcpy(&ets, mnl_attr_get_payload(of_ets), sizeof(ets));
        ret->has_ets = true;
        memcpy(ret->class_of, ets.prio_tc, sizeof(ret->class_of));
        memcpy(ret->share, ets.tc_tx_bw, sizeof(ret->share));
        memcpy(ret->algorithm, ets.tc_tsa, sizeof(ret->algorithm));
    }
    return ieee.of[DCB_ATTR_IEEE_APP_TABLE] != NULL
               ? read_apps(ieee.of[DCB_ATTR_IEEE_APP_TABLE], ret)
               : 0;
}
