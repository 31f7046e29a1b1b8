/* scrub_file.c: what is kept of each file that a collector reads: only what the collector needs. See scrub.h. Answers and
 * results of tests are in scrub_answer.c.
 *
 * A collector that reads a new file needs a line here. test/audit/test_capture.py replays a capture and finds a missing line. */
#include <arpa/inet.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "service/inspect/collect.h"
#include "service/inspect/scrub_answer.h"

/* ---- whole files ---- */

/* Text of the kernel or of a driver. */
static int words(const struct scrub *s, char *text, FILE *out)
{
    scrub_words(s, text, out);
    return 0;
}

/* A count may have as many digits as an address, so it is kept. A text that is no number is scrubbed as text. */
static int number(const struct scrub *s, char *text, FILE *out)
{
    const char *digits = text + (text[0] == '-');
    const size_t n = strspn(digits, "0123456789"),
                 hexadecimal =
                     strncmp(digits, "0x", 2) == 0 ? 2 + strspn(digits + 2, "0123456789abcdef") : 0;

    if ((n > 0 && strcmp(digits + n, "\n") == 0 && (digits[0] != '0' || n == 1)) ||
        (hexadecimal > 2 && hexadecimal <= 10 && strcmp(digits + hexadecimal, "\n") == 0)) {
        fputs(text, out);
        return 0;
    }
    return words(s, text, out);
}

static int as_it_is(const struct scrub *s, char *text, FILE *out)
{
    (void)s;
    fputs(text, out);
    return 0;
}

static int hex(const struct scrub *s, char *text, FILE *out)
{
    text[strcspn(text, "\n")] = '\0';
    scrub_hex(s, text, out);
    putc('\n', out);
    return 0;
}

static int host_name(const struct scrub *s, char *text, FILE *out)
{
    char name[SCRUB_NAME_SIZE];

    text[strcspn(text, "\n")] = '\0';
    fprintf(out, "%s\n", scrub_name(s, "host", text, name));
    return 0;
}

static int device(const struct scrub *s, char *text, FILE *out)
{
    char name[SCRUB_NAME_SIZE];

    text[strcspn(text, "\n")] = '\0';
    fprintf(out, "%s\n", scrub_device(s, text, name));
    return 0;
}

static int devices(const struct scrub *s, char *text, FILE *out)
{
    char name[SCRUB_NAME_SIZE];

    text[strcspn(text, "\n")] = '\0';
    for (char *word; (word = strsep(&text, " ")) != NULL;) {
        fprintf(out, "%s%s", word[0] != '\0' ? scrub_device(s, word, name) : "",
                text != NULL ? " " : "\n");
    }
    return 0;
}

/* The kind of the GID is judged, so it is kept: an IPv4 address, a link-local address, another address, or none. An IPv4
 * address gets the same replacement as elsewhere, because lanes are found by it. */
static int gid(const struct scrub *s, char *text, FILE *out)
{
    char address[INET_ADDRSTRLEN], other[SCRUB_NAME_SIZE];
    unsigned high, low;
    const size_t kept = strncmp(text, "0000:0000:0000:0000:0000:ffff:", 30) == 0 ? 30
                        : strncmp(text, "fe80:0000:0000:0000:", 20) == 0         ? 20
                                                                                 : 0;

    fprintf(out, "%.*s", (int)kept, text);
    if (kept == 30 && sscanf(text + kept, "%4x:%4x", &high, &low) == 2) {
        struct in_addr bytes = {htonl(high << 16 | low)};
        (void)inet_ntop(AF_INET, &bytes, address, sizeof(address));
        (void)inet_pton(AF_INET, scrub_address(s, address, other), &bytes);
        high = ntohl(bytes.s_addr);
        fprintf(out, "%04x:%04x\n", high >> 16, high & 0xffff);
        return 0;
    }
    return hex(s, text + kept, out);
}

/* A port's LID in its subnet; 0: it has none. */
static int lid(const struct scrub *s, char *text, FILE *out)
{
    int64_t number;
    char name[SCRUB_NAME_SIZE];

    text[strcspn(text, "\n")] = '\0';
    if (!fact_number(text, &number)) {
        return -EBADMSG;
    }
    scrub_name(s, "", text, name);
    fprintf(out, "0x%x\n", number == 0 ? 0 : 1 + (unsigned)(strtoul(name, NULL, 16) % 0xbfff));
    return 0;
}

/* ---- lines ---- */

/* Keeps the lines that begin with one of these texts. */
static int lines_of(char *text, const char *const *beginnings, const struct scrub *s, FILE *out)
{
    for (char *line; (line = scrub_line(&text)) != NULL;) {
        for (int i = 0; beginnings[i] != NULL; i++) {
            if (strncmp(line, beginnings[i], strlen(beginnings[i])) == 0) {
                scrub_words(s, line, out);
                putc('\n', out);
                break;
            }
        }
    }
    return 0;
}

static int cpuinfo(const struct scrub *s, char *text, FILE *out)
{
    char *flags = strstr(text, "\nflags\t");

    if (flags != NULL) {
        flags[1 + strcspn(flags + 1, "\n")] = '\0';
        fprintf(out, "flags\t\t:%s\n", strstr(flags, " hypervisor") != NULL ? " hypervisor" : "");
    }
    (void)s;
    return flags != NULL ? 0 : -EBADMSG;
}

static int snmp(const struct scrub *s, char *text, FILE *out)
{
    static const char *const kept[] = {"Tcp: ", NULL};
    return lines_of(text, kept, s, out);
}

static int gpu_information(const struct scrub *s, char *text, FILE *out)
{
    static const char *const kept[] = {"Model:", "Video BIOS:", NULL};
    return lines_of(text, kept, s, out);
}

static int first_line(const struct scrub *s, char *text, FILE *out)
{
    text[strcspn(text, "\n")] = '\0';
    scrub_words(s, text, out);
    putc('\n', out);
    return 0;
}

static int memory_limit(const struct scrub *s, char *text, FILE *out)
{
    static const char *const kept[] = {"Limit", "Max locked memory", NULL};
    return lines_of(text, kept, s, out);
}

static int command_line(const struct scrub *s, char *text, FILE *out)
{
    text[strcspn(text, "\n")] = '\0';
    fputs("BOOT_IMAGE=/vmlinuz", out);
    for (char *word; (word = strsep(&text, " ")) != NULL;) {
        if (cmdline_decides(word)) {
            putc(' ', out);
            scrub_words(s, word, out);
        }
    }
    putc('\n', out);
    return 0;
}

static int swaps(const struct scrub *s, char *text, FILE *out)
{
    int number = 0;

    for (char *line; (line = scrub_line(&text)) != NULL; number++) {
        if (number == 0) {
            fprintf(out, "%s\n", line);
        } else {
            fprintf(out, "/swap%d\n", number);
        }
    }
    (void)s;
    return 0;
}

/* Of the device or server only the kind is kept. */
static int mounts(const struct scrub *s, char *text, FILE *out)
{
    char from[512], place[512], kind[64], options[1024], other[SYSFS_PATH_SIZE];

    for (char *line; (line = scrub_line(&text)) != NULL;) {
        if (sscanf(line, "%511s %511s %63s %1023s", from, place, kind, options) != 4) {
            return -EBADMSG;
        }
        const char *size = strstr(options, "size=");
        const bool local = strncmp(from, "/dev/", 5) == 0;
        fprintf(out, "%s %s %s rw%s%.*s 0 0\n",
                !local                               ? "none"
                : strncmp(from, "/dev/loop", 9) == 0 ? "/dev/loop0"
                                                     : "/dev/disk",
                scrub_path(s, place, other, sizeof(other)), kind, size != NULL ? "," : "",
                size != NULL ? (int)strcspn(size, ",") : 0, size != NULL ? size : "");
    }
    return 0;
}

/* Iface Destination Gateway Flags RefCnt Use Metric Mask: addresses in hexadecimal. */
static int route(const struct scrub *s, char *text, FILE *out)
{
    char net[64], name[SCRUB_NAME_SIZE], address[SCRUB_NAME_SIZE];
    char *line = scrub_line(&text);

    fputs("Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n",
          out);
    if (line == NULL || strncmp(line, "Iface", 5) != 0) {
        return -EBADMSG;
    }
    while ((line = scrub_line(&text)) != NULL) {
        unsigned to, gateway, flags, metric, mask;
        struct in_addr other;
        if (sscanf(line, "%63s %x %x %x %*d %*d %u %x", net, &to, &gateway, &flags, &metric,
                   &mask) != 6) {
            return -EBADMSG;
        }
        other.s_addr = to;
        (void)inet_pton(AF_INET, scrub_address(s, inet_ntoa(other), address), &other);
        fprintf(out, "%s\t%08X\t%08X\t%04X\t0\t0\t%u\t%08X\t0\t0\t0\n", scrub_device(s, net, name),
                (unsigned)other.s_addr, gateway != 0 ? 1U : 0U, flags, metric, mask);
    }
    return 0;
}

static int arp(const struct scrub *s, char *text, FILE *out)
{
    char address[64], net[64], name[SCRUB_NAME_SIZE], other[SCRUB_NAME_SIZE];
    char *line = scrub_line(&text);
    unsigned flags;

    if (line == NULL || strncmp(line, "IP address", 10) != 0) {
        return -EBADMSG;
    }
    fputs("IP address       HW type     Flags       HW address            Mask     Device\n", out);
    while ((line = scrub_line(&text)) != NULL) {
        if (sscanf(line, "%63s %*s 0x%x %*s %*s %63s", address, &flags, net) != 3) {
            return -EBADMSG;
        }
        fprintf(out, "%s 0x1 0x%x 00:00:00:00:00:00 * %s\n", scrub_address(s, address, other),
                flags, scrub_device(s, net, name));
    }
    return 0;
}

/* This host's own addresses. */
static int fib_trie(const struct scrub *s, char *text, FILE *out)
{
    char address[64] = "", other[SCRUB_NAME_SIZE];

    fputs("Main:\n", out);
    for (char *line; (line = scrub_line(&text)) != NULL;) {
        const char *at = strstr(line, "|-- ");
        if (at != NULL) {
            snprintf(address, sizeof(address), "%.63s", at + 4);
        } else if (strstr(line, "/32 host LOCAL") != NULL) {
            fprintf(out, "   |-- %s\n      /32 host LOCAL\n", scrub_address(s, address, other));
        }
    }
    return 0;
}

static int name_servers(const struct scrub *s, char *text, FILE *out)
{
    char server[64], other[SCRUB_NAME_SIZE];

    fputs("#\n", out);
    for (char *line; (line = scrub_line(&text)) != NULL;) {
        if (sscanf(line, "nameserver %63s", server) == 1) {
            fprintf(out, "nameserver %s\n", scrub_address(s, server, other));
        }
    }
    return 0;
}

/* Keeps numbers, devices and NCCL's own words. Replaces paths and the site's words, each the same way everywhere. */
static void put_setting(const struct scrub *s, const char *key, char *value, FILE *out)
{
    static const char *const own[] = {
        "foliot", "none", "IB",   "Socket", "Ring",    "Tree",    "LL",    "LL128",
        "Simple", "WARN", "INFO", "TRACE",  "VERSION", "SYS",     "PHB",   "PXB",
        "PIX",    "NVL",  "LOC",  "mlx5",   "mlx4",    "bnxt_re", "irdma", "eth",
        "en",     "ens",  "eno",  "enp",    "ib",      "bond",    "rail",  "lo"};
    char name[SCRUB_NAME_SIZE], path[SYSFS_PATH_SIZE];

    fprintf(out, "%s=", key);
    if (value[0] == '/') {
        fputs(scrub_path(s, value, path, sizeof(path)), out);
        value = strchr(value, '\0');
    }
    while (*value != '\0') {
        const size_t n = strcspn(value, ",:=^ ");
        char word[SCRUB_NAME_SIZE];
        snprintf(word, sizeof(word), "%.*s", (int)n, value);
        bool kept = n == 0 || strspn(word, "0123456789.") == n;
        for (size_t i = 0; i < ARRAY_COUNT(own); i++) {
            kept = kept || strcmp(own[i], word) == 0;
        }
        fputs(kept ? word : scrub_device(s, word, name), out);
        value += n;
        if (*value != '\0') {
            putc(*value++, out);
        }
    }
    putc('\n', out);
}

static int nccl_conf(const struct scrub *s, char *text, FILE *out)
{
    fputs("#\n", out);
    for (char *line; (line = scrub_line(&text)) != NULL;) {
        line += strspn(line, " \t");
        char *value = strchr(line, '=');
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        if (value == NULL) {
            return -EBADMSG;
        }
        *value = '\0';
        if (strncmp(line, "NCCL_", 5) == 0 &&
            strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(line)) {
            put_setting(s, line, value + 1, out);
        }
    }
    return 0;
}

static int process(const struct scrub *s, char *text, FILE *out)
{
    const char *name = strchr(text, '('), *end = strrchr(text, ')');
    unsigned long long user, kernel;
    char state;

    if (name == NULL || end == NULL || end < name ||
        sscanf(end, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user,
               &kernel) != 3) {
        return -EBADMSG;
    }
    char own[64];
    snprintf(own, sizeof(own), "%.*s", (int)(end - name - 1), name + 1);
    fprintf(out, "%.*s (%s) %c 1 1 1 0 -1 0 0 0 0 0 %llu %llu 0 0 20 0 1 0 1 0 0 0\n",
            (int)strspn(text, "0123456789"), text, process_matters(own) ? own : "process", state,
            user, kernel);
    (void)s;
    return 0;
}

/* Keeps the first record and the judged ones, and of each only the judged part. */
static int kernel_log(const struct scrub *s, char *text, FILE *out)
{
    bool first = true;

    for (char *line; (line = scrub_line(&text)) != NULL;) {
        char *message = strchr(line, ';');
        if (line[0] == ' ' || line[0] == '\0') {
            continue;
        }
        unsigned level;
        unsigned long long number, at;
        if (message == NULL || sscanf(line, "%u,%llu,%llu,", &level, &number, &at) != 3) {
            return -EBADMSG;
        }
        if (log_matters(message) || first) {
            fprintf(out, "%u,%llu,%llu,-;", level, number, at);
            log_keep(message, out);
            putc('\n', out);
        }
        first = false;
    }
    (void)s;
    return 0;
}

/* ---- the function for each file ---- */

static const struct {
    const char *pattern;
    int (*keep)(const struct scrub *s, char *text, FILE *out);
} files[] = {
    {"/proc/sys/kernel/hostname", host_name},
    {"/proc/sys/kernel/random/boot_id", hex},
    {"/etc/machine-id", hex},
    {"/proc/sys/*", words},
    {"/proc/cmdline", command_line},
    {"/proc/uptime", words},
    {"/proc/cpuinfo", cpuinfo},
    {"/proc/meminfo", as_it_is},
    {"/proc/buddyinfo", as_it_is},
    {"/proc/swaps", swaps},
    {"/proc/mounts", mounts},
    {"/proc/net/snmp", snmp},
    {"/proc/net/route", route},
    {"/proc/net/arp", arp},
    {"/proc/net/fib_trie", fib_trie},
    {"/proc/irq/*", words},
    {"/proc/[0-9]*/stat", process},
    {"/proc/[0-9]*/limits", memory_limit},
    {"/proc/driver/nvidia/version", first_line},
    {"/proc/driver/nvidia/gpus/*/information", gpu_information},
    {"/etc/resolv.conf", name_servers},
    {"/etc/nccl.conf", nccl_conf},
    {"/opt/rocm/.info/version", words},
    {"/dev/kmsg", kernel_log},
    {"/answers/nvml", scrub_library},
    {"/answers/amdsmi", scrub_library},
    {"/answers/used", scrub_used},
    {"/answers/ipmi", scrub_controller},
    {"/answers/agent/*", scrub_agent},
    {"/var/lib/foliot/tests/*.txt", scrub_runs},
    {"/var/lib/foliot/tests/dcgm.json", scrub_dcgm},
    {"/var/lib/foliot/tests/values", scrub_values},
    {"/sys/module/*/srcversion", as_it_is},
    {"/sys/class/infiniband/*/node_guid", hex},
    {"/sys/class/infiniband/*/gids/*", gid},
    {"/sys/class/infiniband/*/ndevs/*", device},
    {"/sys/class/infiniband/*/lid", lid},
    {"/sys/class/infiniband/*/sm_lid", lid},
    {"/sys/class/infiniband_*/ibdev", device},
    {"/sys/class/net/*/bonding/slaves", devices},
};

/* Files of /sys that collectors read, by the last part of their paths. Any other file of a driver could identify the machine. */
static const struct {
    const char *name;
    int (*keep)(const struct scrub *s, char *text, FILE *out);
} sys_files[] = {
    {"[0-9]*", words}, /* of gid_attrs/types, pkeys, enable */
    {"aer_dev_*", words},
    {"bios_version", words},
    {"board_id", words},
    {"board_name", words},
    {"carrier", number},
    {"carrier_down_count", number},
    {"ce_count", number},
    {"class", number},
    {"cnp_*", number},
    {"control", words},
    {"core_throttle_count", number},
    {"cpulist", words},
    {"current_clocksource", words},
    {"current_link_*", words},
    {"default_roce_tos", number},
    {"device", number},
    {"disable", number},
    {"fw_ver", words},
    {"hca_type", words},
    {"latency", number},
    {"link_downed", number},
    {"link_layer", words},
    {"max_link_*", words},
    {"meminfo", words},
    {"mii_status", words},
    {"mode", words},
    {"mtu", number},
    {"numa_node", number},
    {"operstate", words},
    {"package_throttle_count", number},
    {"phys_state", words},
    {"physical_package_id", number},
    {"port_xmit_discards", number},
    {"product_name", words},
    {"rate", words},
    {"rx_bytes", number},
    {"scaling_governor", words},
    {"speed", number},
    {"srcversion", as_it_is},
    {"state", words},
    {"symbol_error", number},
    {"temp*_crit", number},
    {"temp*_input", number},
    {"tx_bytes", number},
    {"type", words},
    {"ue_count", number},
    {"umc_err_count", words},
    {"vbios_version", words},
    {"vendor", number},
    {"version", words},
};

static int sys_file(const struct scrub *s, const char *path, char *text, FILE *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(sys_files); i++) {
        if (fnmatch(sys_files[i].name, strrchr(path, '/') + 1, 0) == 0) {
            return sys_files[i].keep(s, text, out);
        }
    }
    return -ENOTSUP;
}

int scrub_file(const struct scrub *s, const char *path, char *text, FILE *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        if (fnmatch("/answers/*/*", path, 0) == 0 && strstr(path, "/agent/") == NULL) {
            return scrub_answer(strrchr(path, '/') + 1, text, out);
        }
        if (fnmatch(files[i].pattern, path, 0) == 0) {
            return files[i].keep(s, text, out);
        }
    }
    return strncmp(path, "/sys/", 5) == 0 ? sys_file(s, path, text, out) : -ENOTSUP;
}
