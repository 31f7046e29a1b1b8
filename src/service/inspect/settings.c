/* settings.c: settings of interfaces in their drivers: FEC, pause, rings, transceivers, DCB. This machine is asked by netlink.
 * Below another root the answers are files, /answers/INTERFACE/QUESTION (platform/netlink/ethtool.h: "fec", …; a module's
 * pages are "module-PAGE-OFFSET"). Each holds the attributes as one line of hexadecimal digits, or "none" if the driver lacks
 * the feature. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "platform/netlink/ethtool.h"
#include "platform/netlink/module_memory.h"
#include "service/inspect/collect.h"

#define NET "/sys/class/net"

enum { FEC_NONE = 49, FEC_RS = 50, FEC_BASER = 51, FEC_LLRS = 74, LANES_PAGE = 0x11 };

struct asking {
    struct collector *c;
    struct ethtool *ethtool; /* NULL: files */
    const char *net;
    char source[SYSFS_PATH_SIZE];
    _Alignas(8) uint8_t answer[ETHTOOL_ANSWER_MAX];
};

static int hex(char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                          : -1;
}

static int read_answer(struct asking *a)
{
    char line[2 * ETHTOOL_ANSWER_MAX + 1];
    const int n = collect_line(a->c, a->source, line, sizeof(line));

    if (n < 0 || strcmp(line, "none") == 0) {
        return n < 0 ? n : -EOPNOTSUPP;
    }
    for (int i = 0; i < n; i += 2) {
        const int high = hex(line[i]), low = high < 0 ? -1 : hex(line[i + 1]);
        if (low < 0) {
            return -EBADMSG;
        }
        a->answer[i / 2] = (uint8_t)(high << 4 | low);
    }
    return n / 2;
}

/* For a capture: keeps the answer. */
static void keep(const struct asking *a, int r)
{
    char line[2 * ETHTOOL_ANSWER_MAX + 2] = "none\n";

    for (int i = 0; i < r; i++) {
        snprintf(line + 2 * i, 4, "%02x\n", a->answer[i]);
    }
    keep_answer(a->c, a->source, r == -EOPNOTSUPP || r >= 0 ? 0 : r, line);
}

/* Asks the question. Returns the size of a->answer. */
static int ask(struct asking *a, enum ethtool_question question, unsigned page, unsigned offset)
{
    const char *name = ethtool_question_name(question);

    if (question == ETHTOOL_MODULE) {
        sysfs_path(a->source, "/answers/%s/%s-%u-%u", a->net, name, page, offset);
    } else {
        sysfs_path(a->source, "/answers/%s/%s", a->net, name);
    }
    if (a->ethtool == NULL) {
        return read_answer(a);
    }
    const int r = ethtool_ask(a->ethtool, question, a->net, page, offset, a->answer);
    keep(a, r);
    snprintf(a->source, sizeof(a->source), "netlink: %s of %s", name, a->net);
    return r;
}

/* A driver without the feature has answered: "unsupported" is a value. */
static void put_refusal(struct asking *a, enum fact_id id, int r)
{
    if (r == -EOPNOTSUPP) {
        put(a->c, id, a->net, "unsupported", a->source);
    } else {
        put_error(a->c, id, a->net, r, a->source);
    }
}

static const char *fec_name(int active)
{
    return active == FEC_NONE    ? "off"
           : active == FEC_RS    ? "rs"
           : active == FEC_BASER ? "baser"
           : active == FEC_LLRS  ? "llrs"
                                 : "none";
}

/* A count; -1: the driver does not support it. */
static void put_count(struct asking *a, enum fact_id id, int r, int64_t value)
{
    if (r == 0 || r == -EOPNOTSUPP) {
        put_number(a->c, id, a->net, r == 0 ? value : -1, a->source);
    } else {
        put_error(a->c, id, a->net, r, a->source);
    }
}

static void put_fec(struct asking *a)
{
    char path[SYSFS_PATH_SIZE];
    struct link_fec fec = {0};
    int r = ask(a, ETHTOOL_FEC, 0, 0);

    r = r < 0 ? r : ethtool_read_fec(a->answer, (size_t)r, &fec);
    if (r < 0) {
        put_refusal(a, FACT_NET_FEC, r);
    } else {
        put(a->c, FACT_NET_FEC, a->net, fec_name(fec.active), a->source);
    }
    put_count(a, FACT_NET_FEC_CORRECTED, r, fec.corrected_bits);
    put_count(a, FACT_NET_FEC_LOST, r, fec.lost_blocks);
    put_file(a->c, FACT_NET_RX_BYTES, a->net,
             sysfs_path(path, NET "/%s/statistics/rx_bytes", a->net));
}

static void put_pause(struct asking *a)
{
    struct link_pause pause = {0};
    char text[64];
    int r = ask(a, ETHTOOL_PAUSE, 0, 0);

    r = r < 0 ? r : ethtool_read_pause(a->answer, (size_t)r, &pause);
    if (r < 0) {
        put_refusal(a, FACT_NET_PAUSE, r);
        return;
    }
    snprintf(text, sizeof(text), "rx %s, tx %s", pause.rx != 0 ? "on" : "off",
             pause.tx != 0 ? "on" : "off");
    put(a->c, FACT_NET_PAUSE, a->net, text, a->source);
}

static void append(char *text, size_t size, const char *name, int64_t value)
{
    const size_t used = strlen(text);

    if (value >= 0) {
        snprintf(text + used, size - used, "%s%s %lld", used > 0 ? ", " : "", name,
                 (long long)value);
    }
}

/* Puts the answers to three questions. An answer that the driver lacks is left out. The first error is the reason for no
 * value. */
static void put_rings(struct asking *a)
{
    char text[256] = "", file[SYSFS_PATH_SIZE] = "";
    struct link_rings rings = {0};
    struct link_channels channels = {0};
    struct link_coalesce coalesce = {0};
    int n, r = ask(a, ETHTOOL_RINGS, 0, 0);

    r = r < 0 ? r : ethtool_read_rings(a->answer, (size_t)r, &rings);
    if (r == 0) {
        append(text, sizeof(text), "rx", rings.rx);
        append(text, sizeof(text), "tx", rings.tx);
    }
    memcpy(file, a->source, sizeof(file));
    if (r == 0 || r == -EOPNOTSUPP) {
        n = ask(a, ETHTOOL_CHANNELS, 0, 0);
        r = n < 0 ? n : ethtool_read_channels(a->answer, (size_t)n, &channels);
        if (r == 0) {
            append(text, sizeof(text), "rx channels", channels.rx > 0 ? channels.rx : -1);
            append(text, sizeof(text), "tx channels", channels.tx > 0 ? channels.tx : -1);
            append(text, sizeof(text), "channels", channels.combined);
        }
    }
    if (r == 0 || r == -EOPNOTSUPP) {
        n = ask(a, ETHTOOL_COALESCE, 0, 0);
        r = n < 0 ? n : ethtool_read_coalesce(a->answer, (size_t)n, &coalesce);
        if (r == 0) { /* an adaptive driver changes its times */
            append(text, sizeof(text), "adaptive", coalesce.adaptive_rx);
            append(text, sizeof(text), "rx us", coalesce.adaptive_rx == 1 ? -1 : coalesce.rx_us);
            append(text, sizeof(text), "tx us", coalesce.adaptive_tx == 1 ? -1 : coalesce.tx_us);
        }
    }
    if ((r < 0 && r != -EOPNOTSUPP) || text[0] == '\0') {
        put_refusal(a, FACT_NET_RINGS, r < 0 ? r : -EBADMSG);
    } else {
        if (a->ethtool == NULL) { /* the answers come from three files */
            sysfs_path(file, "/answers/%s/[rc]*", a->net);
        }
        put(a->c, FACT_NET_RINGS, a->net, text, file);
    }
}

static int page(struct asking *a, unsigned number, unsigned offset, uint8_t ret[MODULE_PAGE_SIZE])
{
    const int r = ask(a, ETHTOOL_MODULE, number, offset);

    return r < 0 ? r : ethtool_read_module(a->answer, (size_t)r, ret);
}

static void put_module(struct asking *a)
{
    uint8_t lower[MODULE_PAGE_SIZE], upper[MODULE_PAGE_SIZE], lanes[MODULE_PAGE_SIZE];
    struct module_memory m = {0};
    bool has_lanes = false;
    int r = page(a, 0, 0, lower);

    if (r == 0) {
        r = page(a, 0, MODULE_PAGE_SIZE, upper);
    }
    if (r == 0) {
        has_lanes = module_has_lanes(lower);
        r = has_lanes ? page(a, LANES_PAGE, MODULE_PAGE_SIZE, lanes) : 0;
    }
    r = r < 0 ? r : module_read(lower, upper, has_lanes ? lanes : NULL, &m);
    if (r == 0 && a->ethtool == NULL) {
        sysfs_path(a->source, "/answers/%s/module-*", a->net);
    }
    put_count(a, FACT_NET_MODULE_RX, r, m.rx);
    if (r < 0) {
        put_refusal(a, FACT_NET_MODULE, r);
        put_refusal(a, FACT_NET_MODULE_ALARM, r);
        return;
    }
    put(a->c, FACT_NET_MODULE, a->net, m.part, a->source);
    put(a->c, FACT_NET_MODULE_ALARM, a->net, m.alarm, a->source);
}

/* "dscp 24-31:3 46:6": ranges of DSCP with one priority each. Without any range the VLAN tag decides. */
static void put_trust(struct asking *a, const struct link_dcb *dcb)
{
    int priority[64];
    char text[FACT_VALUE_MAX] = "";
    bool any = false;

    for (int i = 0; i < 64; i++) {
        priority[i] = -1;
    }
    for (int i = 0; i < dcb->app_count; i++) {
        if (dcb->apps[i].selector == DCB_SELECTOR_DSCP && dcb->apps[i].protocol < 64) {
            priority[dcb->apps[i].protocol] = dcb->apps[i].priority;
            any = true;
        }
    }
    for (int from = 0, to; from < 64; from = to + 1) {
        const size_t used = strlen(text);
        for (to = from; to < 63 && priority[to + 1] == priority[from]; to++) {
        }
        if (priority[from] >= 0 && from == to) {
            snprintf(text + used, sizeof(text) - used, " %d:%d", from, priority[from]);
        } else if (priority[from] >= 0) {
            snprintf(text + used, sizeof(text) - used, " %d-%d:%d", from, to, priority[from]);
        }
    }
    char value[FACT_VALUE_MAX + 8];
    snprintf(value, sizeof(value), "dscp%s", text);
    put(a->c, FACT_NET_TRUST, a->net, any ? value : "pcp", a->source);
}

static void put_dcb(struct asking *a)
{
    static struct link_dcb dcb;
    char priorities[64] = "", classes[256] = "";
    int r = ask(a, ETHTOOL_DCB, 0, 0);

    r = r < 0 ? r : ethtool_read_dcb(a->answer, (size_t)r, &dcb);
    if (r < 0) {
        put_refusal(a, FACT_NET_PFC, r);
        put_refusal(a, FACT_NET_TRUST, r);
        put_refusal(a, FACT_NET_ETS, r);
        return;
    }
    for (int i = 0; i < DCB_CLASSES; i++) {
        size_t used = strlen(priorities);
        if ((dcb.pfc >> i & 1) != 0) {
            snprintf(priorities + used, sizeof(priorities) - used, "%s%d", used > 0 ? " " : "", i);
        }
        used = strlen(classes);
        snprintf(classes + used, sizeof(classes) - used, "%s%d:%d %s %d %%", used > 0 ? ", " : "",
                 i, dcb.class_of[i],
                 dcb.algorithm[i] == 0   ? "strict"
                 : dcb.algorithm[i] == 2 ? "ets"
                                         : "other",
                 dcb.share[i]);
    }
    put(a->c, FACT_NET_PFC, a->net,
        !dcb.has_pfc            ? "unsupported"
        : priorities[0] != '\0' ? priorities
                                : "none",
        a->source);
    put(a->c, FACT_NET_ETS, a->net, dcb.has_ets ? classes : "unsupported", a->source);
    put_trust(a, &dcb);
}

/* Calls `read` for each interface of a device. Without netlink all the facts get its error. */
static void each(struct collector *c, void (*read)(struct asking *a), const uint16_t *facts,
                 size_t count)
{
    char path[SYSFS_PATH_SIZE];
    struct asking *a = calloc(1, sizeof(*a));
    struct names *nets = names_of(c, NET);

    if (a == NULL) {
        abort();
    }
    a->c = c;
    const int r = c->tree == NULL ? ethtool_open(&a->ethtool) : 0;
    for (int i = 0; i < nets->count; i++) {
        a->net = nets->name[i];
        if (!sysfs_there(c->tree, sysfs_path(path, NET "/%s/device", a->net))) {
            continue;
        }
        for (size_t k = 0; r < 0 && k < count; k++) {
            put_error(c, facts[k], a->net, r, "netlink");
        }
        if (r == 0) {
            read(a);
        }
    }
    ethtool_close(a->ethtool);
    free(nets);
    free(a);
}

static void read_settings(struct asking *a)
{
    put_fec(a);
    put_pause(a);
    put_rings(a);
    put_dcb(a);
}

void collect_settings(struct collector *c)
{
    static const uint16_t facts[] = {
        FACT_NET_FEC,   FACT_NET_FEC_CORRECTED, FACT_NET_FEC_LOST, FACT_NET_PAUSE,
        FACT_NET_RINGS, FACT_NET_PFC,           FACT_NET_TRUST,    FACT_NET_ETS};

    each(c, read_settings, facts, ARRAY_COUNT(facts));
}

/* Modules are a collector of their own, because a module's memory is read over a slow bus. */
void collect_modules(struct collector *c)
{
    static const uint16_t facts[] = {FACT_NET_MODULE, FACT_NET_MODULE_ALARM, FACT_NET_MODULE_RX};

    each(c, put_module, facts, ARRAY_COUNT(facts));
}
