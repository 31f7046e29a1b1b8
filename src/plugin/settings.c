/* settings.c: the environment variables FOLIOT_*. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "core/traffic/priority.h"
#include "plugin/plugin.h"

#define WARN(logger, ...)                                                                          \
    do {                                                                                           \
        if ((logger) != NULL) {                                                                    \
            (logger)(NCCL_LOG_WARN, NCCL_LOG_ENV, __FILE__, __LINE__, __VA_ARGS__);                \
        }                                                                                          \
    } while (0)

/* Returns the word's index, or `otherwise`. */
static int choice(nccl_logger logger, const char *variable, const char *const *words, int otherwise)
{
    const char *value = getenv(variable);

    if (value == NULL || value[0] == 0) {
        return otherwise;
    }
    for (int i = 0; words[i] != NULL; i++) {
        if (strcasecmp(value, words[i]) == 0) {
            return i;
        }
    }
    WARN(logger, "NET/" PLUGIN_NAME ": %s=%s is not known: taken as %s", variable, value,
         words[otherwise]);
    return otherwise;
}

static double number(nccl_logger logger, const char *variable, double low, double high,
                     double otherwise)
{
    const char *value = getenv(variable);
    char *end;

    if (value == NULL || value[0] == 0) {
        return otherwise;
    }
    double number = strtod(value, &end);
    if (*end != 0 || !(number >= low && number <= high)) {
        WARN(logger,
             "NET/" PLUGIN_NAME ": %s=%s is not a number from %g to %g: its default is taken",
             variable, value, low, high);
        return otherwise;
    }
    return number;
}

static void ports(nccl_logger logger, struct settings *settings)
{
    const char *value = getenv("FOLIOT_PORT_RANGE");
    char *end;

    if (value == NULL || value[0] == 0) {
        return;
    }
    unsigned long low = strtoul(value, &end, 10);
    unsigned long high = *end == '-' ? strtoul(end + 1, &end, 10) : low;
    if (*end != 0 || low < 1 || high > UINT16_MAX || low > high) {
        WARN(logger, "NET/" PLUGIN_NAME ": FOLIOT_PORT_RANGE=%s is not LOW-HIGH: any port", value);
        return;
    }
    settings->port_low = (uint16_t)low;
    settings->port_high = (uint16_t)high;
}

/* A number from 0 to `most`, in C's notation, and the text after it. Negative: it isn't a number. */
static long whole(const char *text, long most, char **ret_end)
{
    const long value = text[0] >= '0' && text[0] <= '9' ? strtol(text, ret_end, 0) : -1;

    return value <= most ? value : -1;
}

/* For queue pairs: one number, or three with commas, for low, normal and high priority. -1: it isn't set. */
static int by_priority(nccl_logger logger, const char *variable, uint8_t priority, long most)
{
    const char *value = getenv(variable);
    long numbers[3];
    int count = 0;
    char *end = NULL;

    if (value == NULL || value[0] == 0) {
        return -1;
    }
    for (const char *at = value; count < 3; at = end + 1) {
        numbers[count] = whole(at, most, &end);
        if (numbers[count++] < 0 || *end != ',') {
            break;
        }
    }
    if (numbers[count - 1] < 0 || *end != 0 || count == 2) {
        WARN(logger,
             "NET/" PLUGIN_NAME ": %s=%s is not a number from 0 to %ld, nor three of them with "
             "commas (low, normal, high priority): it does nothing",
             variable, value, most);
        return -1;
    }
    return (int)numbers[count == 3 ? priority : 0];
}

/* A variable of NCCL's, which itself warns of bad values. -1: it isn't set. */
static int nccls(const char *variable, long most)
{
    const char *value = getenv(variable);
    char *end = NULL;
    const long number = value != NULL ? whole(value, most, &end) : -1;

    return number >= 0 && *end == 0 ? (int)number : -1;
}

/* The marks of queue pairs' packets, and their partition: by FOLIOT's variable, else by NCCL's for its own InfiniBand network. */
static void pairs(nccl_logger logger, struct settings *settings)
{
    const int class = by_priority(logger, "FOLIOT_IB_TC", settings->priority, UINT8_MAX);
    const int sl = by_priority(logger, "FOLIOT_IB_SL", settings->priority, 15);
    const int nccls_class = nccls("NCCL_IB_TC", UINT8_MAX), nccls_sl = nccls("NCCL_IB_SL", 15);
    const int nth = nccls("NCCL_IB_PKEY", UINT16_MAX - 1);
    const char *partition = getenv("FOLIOT_IB_PKEY");
    char *end = NULL;

    settings->pair_class = settings->traffic_class; /* from FOLIOT_MARK */
    if (class >= 0 || (settings->traffic_class == 0 && nccls_class >= 0)) {
        settings->pair_class = (uint8_t)(class >= 0 ? class : nccls_class);
    }
    settings->pair_sl = (uint8_t)(sl >= 0 ? 1 + sl : 1 + nccls_sl);
    settings->pkey_nth = (uint16_t)(1 + nth);
    if (partition == NULL || partition[0] == 0) {
        return;
    }
    const long key = whole(partition, UINT16_MAX, &end);
    if (key < 0 || *end != 0 || (key & 0x7fff) == 0) {
        WARN(logger,
             "NET/" PLUGIN_NAME ": FOLIOT_IB_PKEY=%s is not a P_Key from 0x0001 to 0xffff, by its "
             "value: it does nothing",
             partition);
        return;
    }
    settings->partition = (uint16_t)(key & 0x7fff);
}

/* At most half of what the process may open: the rest is the application's. */
static uint32_t sockets(double wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < (rlim_t)wanted) {
        wanted = (double)(limit.rlim_cur / 2);
    }
    return wanted < 16 ? 16 : (uint32_t)wanted;
}

/* FOLIOT_NIC; else the choice for NCCL's own sockets. */
static const char *interfaces(void)
{
    const char *own = getenv("FOLIOT_NIC"), *nccls = getenv("NCCL_SOCKET_IFNAME");

    return own != NULL && own[0] != 0 ? own : nccls != NULL ? nccls : "";
}

/* As NCCL reads it: only the beginning counts, and NCCL warns of unknown values. */
static int family(void)
{
    const char *value = getenv("NCCL_SOCKET_FAMILY");

    return value == NULL                        ? AF_UNSPEC
           : strncmp(value, "AF_INET6", 8) == 0 ? AF_INET6
           : strncmp(value, "AF_INET", 7) == 0  ? AF_INET
                                                : AF_UNSPEC;
}

/* The environment is the application's: its strings may change. */
static void keep(char *to, size_t size, const char *value)
{
    snprintf(to, size, "%s", value);
}

void settings_read(struct settings *ret, nccl_logger logger)
{
    static const char *const modes[] = {"off", "observe", "failover", "full", NULL};
    static const char *const carriers[] = {"tcp", "auto", "roce", NULL};
    static const char *const writes[] = {"copy", "direct", NULL};
    static const char *const gpus[] = {"host", "dmabuf", NULL};
    static const char *const priorities[] = {"low", "normal", "high", NULL};
    static const char *const marks[] = {"none", "dscp", NULL};
    const char *sysfs = getenv("FOLIOT_SYSFS"), *verbs = getenv("FOLIOT_VERBS");
    const char *hints = getenv("NCCL_NET_OPTIONAL_RECV_COMPLETION");

    *ret = (struct settings){
        .mode = (enum plugin_mode)choice(logger, "FOLIOT_MODE", modes, PLUGIN_FULL),
        .carrier = (enum plugin_carrier)choice(logger, "FOLIOT_TRANSPORT", carriers, PLUGIN_TCP),
        .writes = (enum plugin_writes)choice(logger, "FOLIOT_RDMA", writes, PLUGIN_COPY),
        .gpu = (enum plugin_gpu)choice(logger, "FOLIOT_GPU", gpus, PLUGIN_HOST),
        .lanes = (uint32_t)number(logger, "FOLIOT_LANES_PER_SET", 1, LANE_MAX / 2, 0),
        .standbys = (uint32_t)number(logger, "FOLIOT_STANDBYS", 0, 4, 2),
        .sockets = sockets(number(logger, "FOLIOT_LANES", 16, 1000000, PROCESS_LANES_MAX)),
        .patience =
            span_ns((int64_t)(number(logger, "FOLIOT_PATIENCE", 0.1, 86400, 60) * NS_PER_S)),
        .checksum = (uint8_t)number(logger, "FOLIOT_CHECKSUM", 0, 2, 1),
        .credit = number(logger, "FOLIOT_CREDIT", 0, 1, 1) > 0,
        .repath = number(logger, "FOLIOT_REPATH", 0, 1, 1) > 0,
        .priority = (uint8_t)choice(logger, "FOLIOT_PRIORITY", priorities, 1),
        .traffic_class = (uint8_t)(choice(logger, "FOLIOT_MARK", marks, 0) == 1
                                       ? priority_dscp((enum priority_class)choice(
                                             logger, "FOLIOT_PRIORITY", priorities, 1))
                                             << 2
                                       : 0),
        .family = family(),
        .unhinted = hints != NULL && strcmp(hints, "0") == 0,
    };
    keep(ret->nic, sizeof(ret->nic), interfaces());
    keep(ret->sysfs, sizeof(ret->sysfs), sysfs != NULL && sysfs[0] != 0 ? sysfs : "/sys");
    keep(ret->verbs, sizeof(ret->verbs), verbs != NULL ? verbs : "");
    ports(logger, ret);
    pairs(logger, ret);
    if (ret->writes == PLUGIN_DIRECT && ret->carrier == PLUGIN_TCP) {
        WARN(logger,
             "NET/" PLUGIN_NAME ": FOLIOT_RDMA=direct does nothing: lanes are TCP connections; "
             "expected FOLIOT_TRANSPORT=auto or roce beside it");
    }
    if (ret->gpu == PLUGIN_DMABUF && ret->writes != PLUGIN_DIRECT) {
        WARN(logger, "NET/" PLUGIN_NAME ": FOLIOT_GPU=dmabuf does nothing: NICs copy; expected "
                     "FOLIOT_RDMA=direct beside it");
    }
}
