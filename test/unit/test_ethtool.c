/* Drivers' settings: answers built by libmnl, each cut at every byte; a module's memory; and a real veth if that is allowed. */
#include "platform/netlink/ethtool.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>
#include <linux/ethtool_netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "own_network.h"
#include "platform/netlink/module_memory.h"

struct message {
    _Alignas(8) uint8_t bytes[2048];
    struct nlmsghdr *h;
};

static void begin(struct message *m)
{
    memset(m, 0, sizeof(*m));
    m->h = mnl_nlmsg_put_header(m->bytes);
}

static const void *attributes(const struct message *m)
{
    return mnl_nlmsg_get_payload(m->h);
}

static size_t size_of(const struct message *m)
{
    return mnl_nlmsg_get_payload_len(m->h);
}

/* If the end is missing, the reader neither reads beyond it nor takes it for complete. Between two attributes it may be a shorter
 * answer. */
#define REFUSES_CUTS(m, read, type)                                                                \
    for (size_t size = 0; size < size_of(m); size++) {                                             \
        void *copy = malloc(size + 1);                                                             \
        type value;                                                                                \
        memcpy(copy, attributes(m), size);                                                         \
        const int r = read(copy, size, &value);                                                    \
        assert_true(r == -EBADMSG || (r == 0 && size % 4 == 0));                                   \
        free(copy);                                                                                \
    }

static void put_counts(struct nlmsghdr *h, uint16_t type, uint64_t first)
{
    const uint64_t counts[] = {first, first / 2, first / 2};

    mnl_attr_put(h, type, sizeof(counts), counts);
}

static void test_fec(void **state)
{
    struct message m;
    struct link_fec fec;

    begin(&m);
    mnl_attr_put_u8(m.h, ETHTOOL_A_FEC_AUTO, 1);
    mnl_attr_put_u32(m.h, ETHTOOL_A_FEC_ACTIVE, 50);
    struct nlattr *nest = mnl_attr_nest_start(m.h, ETHTOOL_A_FEC_STATS);
    put_counts(m.h, ETHTOOL_A_FEC_STAT_CORRECTED, 7);
    put_counts(m.h, ETHTOOL_A_FEC_STAT_UNCORR, 3);
    put_counts(m.h, ETHTOOL_A_FEC_STAT_CORR_BITS, 40);
    mnl_attr_nest_end(m.h, nest);
    assert_int_equal(ethtool_read_fec(attributes(&m), size_of(&m), &fec), 0);
    assert_int_equal(fec.active, 50);
    assert_int_equal(fec.corrected_bits, 40);
    assert_int_equal(fec.corrected_blocks, 7);
    assert_int_equal(fec.lost_blocks, 3);
    REFUSES_CUTS(&m, ethtool_read_fec, struct link_fec)

    begin(&m); /* a driver without counters */
    mnl_attr_put_u32(m.h, ETHTOOL_A_FEC_ACTIVE, 49);
    assert_int_equal(ethtool_read_fec(attributes(&m), size_of(&m), &fec), 0);
    assert_int_equal(fec.lost_blocks, -1);

    begin(&m); /* a counter of another size, and an attribute that is no counter */
    mnl_attr_put_u32(m.h, ETHTOOL_A_FEC_ACTIVE, 50);
    nest = mnl_attr_nest_start(m.h, ETHTOOL_A_FEC_STATS);
    mnl_attr_put_u32(m.h, ETHTOOL_A_FEC_STAT_UNCORR, 3);
    mnl_attr_nest_end(m.h, nest);
    assert_int_equal(ethtool_read_fec(attributes(&m), size_of(&m), &fec), -EBADMSG);
    begin(&m);
    mnl_attr_put_u32(m.h, ETHTOOL_A_FEC_ACTIVE, 50);
    nest = mnl_attr_nest_start(m.h, ETHTOOL_A_FEC_STATS);
    mnl_attr_put_u64(m.h, ETHTOOL_A_FEC_STAT_UNCORR, UINT64_MAX - 5);
    mnl_attr_nest_end(m.h, nest);
    assert_int_equal(ethtool_read_fec(attributes(&m), size_of(&m), &fec), -EBADMSG);
}

static void test_numbers(void **state)
{
    struct message m;
    struct link_pause pause;
    struct link_rings rings;
    struct link_channels channels;
    struct link_coalesce coalesce;

    begin(&m);
    mnl_attr_put_u8(m.h, ETHTOOL_A_PAUSE_AUTONEG, 0);
    mnl_attr_put_u8(m.h, ETHTOOL_A_PAUSE_RX, 1);
    mnl_attr_put_u8(m.h, ETHTOOL_A_PAUSE_TX, 0);
    assert_int_equal(ethtool_read_pause(attributes(&m), size_of(&m), &pause), 0);
    assert_int_equal(pause.rx, 1);
    assert_int_equal(pause.tx, 0);
    REFUSES_CUTS(&m, ethtool_read_pause, struct link_pause)

    begin(&m);
    mnl_attr_put_u32(m.h, ETHTOOL_A_RINGS_RX_MAX, 8192);
    mnl_attr_put_u32(m.h, ETHTOOL_A_RINGS_RX, 1024);
    mnl_attr_put_u32(m.h, ETHTOOL_A_RINGS_TX, 512);
    assert_int_equal(ethtool_read_rings(attributes(&m), size_of(&m), &rings), 0);
    assert_int_equal(rings.rx, 1024);
    assert_int_equal(rings.tx, 512);
    REFUSES_CUTS(&m, ethtool_read_rings, struct link_rings)

    begin(&m);
    mnl_attr_put_u32(m.h, ETHTOOL_A_CHANNELS_COMBINED_COUNT, 63);
    assert_int_equal(ethtool_read_channels(attributes(&m), size_of(&m), &channels), 0);
    assert_int_equal(channels.combined, 63);
    assert_int_equal(channels.rx, -1);

    begin(&m);
    mnl_attr_put_u32(m.h, ETHTOOL_A_COALESCE_RX_USECS, 8);
    mnl_attr_put_u8(m.h, ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX, 1);
    assert_int_equal(ethtool_read_coalesce(attributes(&m), size_of(&m), &coalesce), 0);
    assert_int_equal(coalesce.rx_us, 8);
    assert_int_equal(coalesce.adaptive_rx, 1);
    assert_int_equal(coalesce.adaptive_tx, -1);

    begin(&m); /* nothing of the request */
    mnl_attr_put_u8(m.h, 1, 1);
    assert_int_equal(ethtool_read_pause(attributes(&m), size_of(&m), &pause), -EBADMSG);
    assert_int_equal(ethtool_read_rings(attributes(&m), size_of(&m), &rings), -EBADMSG);
    assert_int_equal(ethtool_read_channels(attributes(&m), size_of(&m), &channels), -EBADMSG);
}

static void test_dcb(void **state)
{
    struct ieee_pfc pfc = {.pfc_cap = 8, .pfc_en = 0x28};
    struct ieee_ets ets = {.tc_tx_bw = {0, 0, 0, 50, 0, 50}, .prio_tc = {0, 1, 2, 3, 4, 5, 6, 7}};
    const struct dcb_app app = {.selector = 5, .priority = 3, .protocol = 26};
    struct link_dcb dcb;
    struct message m;

    memset(ets.tc_tsa, 2, sizeof(ets.tc_tsa));
    begin(&m);
    mnl_attr_put_strz(m.h, DCB_ATTR_IFNAME, "eth0");
    struct nlattr *ieee = mnl_attr_nest_start(m.h, DCB_ATTR_IEEE);
    mnl_attr_put(m.h, DCB_ATTR_IEEE_ETS, sizeof(ets), &ets);
    mnl_attr_put(m.h, DCB_ATTR_IEEE_PFC, sizeof(pfc), &pfc);
    struct nlattr *table = mnl_attr_nest_start(m.h, DCB_ATTR_IEEE_APP_TABLE);
    mnl_attr_put(m.h, DCB_ATTR_IEEE_APP, sizeof(app), &app);
    mnl_attr_nest_end(m.h, table);
    mnl_attr_nest_end(m.h, ieee);
    assert_int_equal(ethtool_read_dcb(attributes(&m), size_of(&m), &dcb), 0);
    assert_true(dcb.has_pfc && dcb.has_ets);
    assert_int_equal(dcb.pfc, 0x28);
    assert_int_equal(dcb.share[3], 50);
    assert_int_equal(dcb.algorithm[3], 2);
    assert_int_equal(dcb.class_of[7], 7);
    assert_int_equal(dcb.app_count, 1);
    assert_int_equal(dcb.apps[0].protocol, 26);
    REFUSES_CUTS(&m, ethtool_read_dcb, struct link_dcb)

    begin(&m); /* a shorter structure than the kernel's */
    ieee = mnl_attr_nest_start(m.h, DCB_ATTR_IEEE);
    mnl_attr_put(m.h, DCB_ATTR_IEEE_PFC, 3, &pfc);
    mnl_attr_nest_end(m.h, ieee);
    assert_int_equal(ethtool_read_dcb(attributes(&m), size_of(&m), &dcb), -EBADMSG);
}

static void test_module(void **state)
{
    uint8_t lower[128] = {0x19, 0x50}, upper[128] = {0}, lanes[128] = {0};
    struct module_memory m;

    memcpy(upper + 1, "NVIDIA          ", 16);
    memcpy(upper + 20, "MMA4Z00-NS400   ", 16);
    memcpy(upper + 36, "A1", 2);
    for (int i = 0; i < 8; i++) {
        lanes[58 + 2 * i] = 0x27;
    }
    lanes[60] = 0x01; /* the second lane is dark */
    assert_true(module_has_lanes(lower));
    assert_int_equal(module_read(lower, upper, lanes, &m), 0);
    assert_string_equal(m.part, "NVIDIA MMA4Z00-NS400 A1");
    assert_string_equal(m.alarm, "none");
    assert_int_equal(m.rx, 0x100);
    lanes[147 - 128] = 2;
    lower[9] = 1;
    assert_int_equal(module_read(lower, upper, lanes, &m), 0);
    assert_string_equal(m.alarm, "temperature high, rx loss of signal");

    uint8_t copper[128] = {0x11}, names[128] = {0};
    memcpy(names + 20, "Mellanox        ", 16);
    memcpy(names + 40, "MCP1600-C003    ", 16);
    names[147 - 128] = 0xa0;
    copper[3] = 0x0f; /* a cable without light has lost no light */
    assert_false(module_has_lanes(copper));
    assert_int_equal(module_read(copper, names, NULL, &m), 0);
    assert_string_equal(m.part, "Mellanox MCP1600-C003");
    assert_string_equal(m.alarm, "none");
    assert_int_equal(m.rx, -1);
    names[147 - 128] = 0;
    assert_int_equal(module_read(copper, names, NULL, &m), 0);
    assert_string_equal(m.alarm, "rx loss of signal");

    names[22] = 0x1b; /* a name that can't be seen; a module of no known kind; one without a name */
    assert_int_equal(module_read(copper, names, NULL, &m), -EBADMSG);
    copper[0] = 0x7f;
    assert_int_equal(module_read(copper, names, NULL, &m), -EBADMSG);
    memset(names, 0, sizeof(names));
    copper[0] = 0x11;
    assert_int_equal(module_read(copper, names, NULL, &m), -EBADMSG);
}

/* This kernel's own answers: a veth has channels and no FEC. 0: they are right. */
static int ask_veth(void)
{
    _Alignas(8) static uint8_t answer[ETHTOOL_ANSWER_MAX];
    struct ethtool *e = NULL;
    struct link_channels channels;
    int wrong = 0;

    if (ethtool_open(&e) < 0) {
        return 3;
    }
    const int r = ethtool_ask(e, ETHTOOL_CHANNELS, "v0", 0, 0, answer);
    if (r == -EOPNOTSUPP) { /* a kernel without ethtool's netlink */
        ethtool_close(e);
        return 0;
    }
    wrong |= r <= 0 || ethtool_read_channels(answer, (size_t)r, &channels) < 0 ||
             (channels.rx < 1 && channels.combined < 1);
    wrong |= (ethtool_ask(e, ETHTOOL_FEC, "v0", 0, 0, answer) != -EOPNOTSUPP) << 2;
    wrong |= (ethtool_ask(e, ETHTOOL_MODULE, "v0", 0, 0, answer) != -EOPNOTSUPP) << 3;
    wrong |= (ethtool_ask(e, ETHTOOL_DCB, "v0", 0, 0, answer) != -EOPNOTSUPP) << 4;
    wrong |= (ethtool_ask(e, ETHTOOL_PAUSE, "nothing", 0, 0, answer) != -ENODEV) << 5;
    ethtool_close(e);
    return wrong;
}

static void test_real(void **state)
{
    in_own_network("ip link add v0 type veth peer name v1", ask_veth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fec),    cmocka_unit_test(test_numbers), cmocka_unit_test(test_dcb),
        cmocka_unit_test(test_module), cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
