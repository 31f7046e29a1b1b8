/* host.c: kernel, processors, memory, sensors. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "service/inspect/collect.h"

#define CPUS  "/sys/devices/system/cpu"
#define NODES "/sys/devices/system/node"

static const struct attribute host_files[] = {
    {FACT_OS_KERNEL, "proc/sys/kernel/osrelease"},
    {FACT_OS_BOOT_ID, "proc/sys/kernel/random/boot_id"},
    {FACT_OS_MACHINE_ID, "etc/machine-id"},
    {FACT_OS_BIOS, "sys/class/dmi/id/bios_version"},
    {FACT_OS_BOARD, "sys/class/dmi/id/board_name"},
    {FACT_OS_NUMA_BALANCING, "proc/sys/kernel/numa_balancing"},
    {FACT_OS_RMEM_MAX, "proc/sys/net/core/rmem_max"},
    {FACT_OS_WMEM_MAX, "proc/sys/net/core/wmem_max"},
    {FACT_CPU_SMT, "sys/devices/system/cpu/smt/control"},
    {FACT_TIME_SOURCE, "sys/devices/system/clocksource/clocksource0/current_clocksource"},
};

/* Options that affect speed. Others (root=, console=) differ between hosts. */
bool cmdline_decides(const char *word)
{
    static const char *const keys[] = {"iommu",
                                       "intel_iommu",
                                       "amd_iommu",
                                       "pci",
                                       "pcie_aspm",
                                       "idle",
                                       "processor.",
                                       "intel_idle.",
                                       "isolcpus",
                                       "nohz_full",
                                       "rcu_nocbs",
                                       "mitigations",
                                       "hugepages",
                                       "hugepagesz",
                                       "default_hugepagesz",
                                       "tsc",
                                       "clocksource",
                                       "nosmt",
                                       "intel_pstate",
                                       "amd_pstate",
                                       "numa_balancing",
                                       "transparent_hugepage"};

    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        const size_t n = strlen(keys[i]);
        if (strncmp(word, keys[i], n) == 0 &&
            (keys[i][n - 1] == '.' || word[n] == '=' || word[n] == '\0')) {
            return true;
        }
    }
    return false;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void cmdline(struct collector *c)
{
    static const char path[] = "/proc/cmdline";
    char line[4096], text[FACT_VALUE_MAX] = "", *words[256], *at = line;
    const int r = collect_line(c, path, line, sizeof(line));
    size_t count = 0, used = 0;

    if (r < 0) {
        put_error(c, FACT_OS_CMDLINE, "", r, path);
        return;
    }
    for (char *word; (word = strsep(&at, " ")) != NULL;) {
        if (cmdline_decides(word) && count < ARRAY_COUNT(words)) {
            words[count++] = word;
        }
    }
    qsort(words, count, sizeof(words[0]), compare_words);
    for (size_t i = 0; i < count && used < sizeof(text); i++) {
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i > 0 ? " " : "", words[i]);
    }
    put(c, FACT_OS_CMDLINE, "", text, path);
}

static void uptime(struct collector *c)
{
    static const char path[] = "/proc/uptime";
    char line[64], *end = line;
    const int r = collect_line(c, path, line, sizeof(line));
    const double seconds = r < 0 ? 0 : strtod(line, &end);

    if (r < 0 || end == line || *end != ' ' || seconds < 0 || seconds > 1e12) {
        put_error(c, FACT_OS_UPTIME, "", r < 0 ? r : -EBADMSG, path);
    } else {
        put_number(c, FACT_OS_UPTIME, "", (int64_t)seconds, path);
    }
}

/* Looks for the word "hypervisor" in the first processor's flags. */
static void hypervisor(struct collector *c)
{
    static const char path[] = "/proc/cpuinfo";
    int r = collect_file(c, path);
    char *cursor = NULL;

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        if (strncmp(line, "flags\t", 6) == 0) {
            put_number(c, FACT_OS_VIRTUAL, "", strstr(line, " hypervisor") != NULL, path);
            return;
        }
    }
    put_error(c, FACT_OS_VIRTUAL, "", r < 0 ? r : -ENOENT, path);
}

static void modules(struct collector *c)
{
    static const char *const names[] = {"mlx5_core", "mlx5_ib", "bnxt_en", "bnxt_re",  "ice",
                                        "irdma",     "ena",     "efa",     "rdma_rxe", "ib_uverbs"};
    char path[SYSFS_PATH_SIZE];
    bool any = false;

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        sysfs_path(path, "/sys/module/%s", names[i]);
        if (sysfs_there(c->tree, path)) {
            any = true;
            put(c, FACT_OS_MODULE, names[i], names[i], path);
            put_file(c, FACT_OS_MODULE_BUILD, names[i],
                     sysfs_path(path, "/sys/module/%s/srcversion", names[i]));
        }
    }
    if (!any) {
        put_error(c, FACT_OS_MODULE, "", sysfs_there(c->tree, "/sys/module") ? -ENOENT : -EIO,
                  "/sys/module");
    }
}

static void services(struct collector *c)
{
    static const char folder[] = "/sys/fs/cgroup/system.slice";
    struct names *names = names_of(c, folder);

    if (names->count < 0) {
        put_error(c, FACT_OS_SERVICE, "", names->count, folder);
    }
    for (int i = 0; i < names->count; i++) {
        char *end = strstr(names->name[i], ".service");
        if (end != NULL && end[8] == '\0') {
            *end = '\0';
            put(c, FACT_OS_SERVICE, names->name[i], names->name[i], folder);
        }
    }
    free(names);
}

/* The kernel's files have its release in their names. */
static void newest_kernel(struct collector *c)
{
    struct names *names = names_of(c, "/boot");
    const char *newest = NULL;

    for (int i = 0; i < names->count; i++) { /* sorted by version */
        if (strncmp(names->name[i], "vmlinuz-", 8) == 0 && strstr(names->name[i], ".old") == NULL) {
            newest = names->name[i] + 8;
        }
    }
    if (newest != NULL) {
        put(c, FACT_OS_KERNEL_NEWEST, "", newest, "/boot");
    } else {
        put_error(c, FACT_OS_KERNEL_NEWEST, "", names->count < 0 ? names->count : -ENOENT, "/boot");
    }
    free(names);
}

void put_library(struct collector *c, enum fact_id id, const char *library)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64", "/usr/lib", "/usr/local/lib"};
    char path[SYSFS_PATH_SIZE], name[128];
    int r = -ENOENT;

    for (size_t i = 0; i < ARRAY_COUNT(folders) && r < 0; i++) {
        r = collect_link(c, sysfs_path(path, "%s/%s", folders[i], library), name, sizeof(name));
        if (r < 0 && state_of(r) != FACT_ABSENT) {
            break;
        }
    }
    if (r < 0) {
        put_error(c, id, "", r, library);
    } else {
        put(c, id, "", name, path);
    }
}

/* "Tcp: RtoAlgorithm …" and below it "Tcp: 1 …": names, then numbers. */
static void segments(struct collector *c)
{
    static const char path[] = "/proc/net/snmp";
    const int r = collect_file(c, path);
    char *cursor = NULL, *names = NULL, *numbers = NULL, *name, *number;
    int found = 0;

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        if (strncmp(line, "Tcp: ", 5) == 0) {
            names = names == NULL ? line : names;
            numbers = names != line ? line : NULL;
        }
    }
    while (numbers != NULL && (name = strsep(&names, " ")) != NULL &&
           (number = strsep(&numbers, " ")) != NULL) {
        if (strcmp(name, "OutSegs") == 0 || strcmp(name, "RetransSegs") == 0) {
            put(c, name[0] == 'O' ? FACT_OS_SEGMENTS : FACT_OS_RETRANS, "", number, path);
            found++;
        }
    }
    if (found < 2) {
        put_error(c, FACT_OS_SEGMENTS, "", r < 0 ? r : -EBADMSG, path);
        put_error(c, FACT_OS_RETRANS, "", r < 0 ? r : -EBADMSG, path);
    }
}

/* Small virtual machines have no DMI tables. All of them count as one product. */
static void product(struct collector *c)
{
    static const char path[] = "/sys/class/dmi/id/product_name";

    if (!sysfs_there(c->tree, "/sys/class/dmi") && sysfs_there(c->tree, "/sys/class/net")) {
        put(c, FACT_OS_PRODUCT, "", "without DMI", "/sys/class/dmi");
    } else {
        put_file(c, FACT_OS_PRODUCT, "", path);
    }
}

void collect_host(struct collector *c)
{
    product(c);
    put_attributes(c, host_files, ARRAY_COUNT(host_files), "", "");
    cmdline(c);
    uptime(c);
    hypervisor(c);
    modules(c);
    services(c);
    newest_kernel(c);
    put_library(c, FACT_OS_RDMA_CORE, "libibverbs.so.1");
    put_library(c, FACT_JOB_NCCL, "libnccl.so.2");
    segments(c);
}

/* ---- processors ---- */

static bool is_cpu(const char *name)
{
    return strncmp(name, "cpu", 3) == 0 && name[3] >= '0' && name[3] <= '9';
}

/* The wake-up latency of the deepest idle state that is enabled. */
static int deepest(struct collector *c, const char *cpu, int64_t *most)
{
    char path[SYSFS_PATH_SIZE];
    struct names *states = names_of(c, sysfs_path(path, CPUS "/%s/cpuidle", cpu));
    int r = states->count < 0 ? states->count : 0;

    for (int i = 0; r == 0 && i < states->count; i++) {
        int64_t latency, off;
        r = collect_number(c, sysfs_path(path, CPUS "/%s/cpuidle/%s/latency", cpu, states->name[i]),
                           &latency);
        if (r == 0) {
            r = collect_number(
                c, sysfs_path(path, CPUS "/%s/cpuidle/%s/disable", cpu, states->name[i]), &off);
        }
        if (r == 0 && off == 0 && latency > *most) {
            *most = latency;
        }
    }
    free(states);
    return r;
}

/* Adds a word of a processor, unless the text has it already. */
static void add_word(char *text, size_t size, const char *word)
{
    const size_t used = strlen(text);

    if (strstr(text, word) == NULL) {
        snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "", word);
    }
}

void collect_cpu(struct collector *c)
{
    char path[SYSFS_PATH_SIZE], line[64], governors[256] = "";
    uint64_t packages = 0;
    int64_t package, cstate = 0;
    int governor = 0, idle = 0, topology = 0;
    struct names *cpus = names_of(c, CPUS);

    if (cpus->count < 0) {
        governor = idle = topology = cpus->count;
    }
    for (int i = 0; i < cpus->count; i++) {
        const char *cpu = cpus->name[i];
        if (!is_cpu(cpu)) {
            continue;
        }
        int r = collect_line(c, sysfs_path(path, CPUS "/%s/cpufreq/scaling_governor", cpu), line,
                             sizeof(line));
        governor = r < 0 && governor == 0 ? r : governor;
        add_word(governors, sizeof(governors), r < 0 ? "" : line);
        r = deepest(c, cpu, &cstate);
        idle = r < 0 && idle == 0 ? r : idle;
        r = collect_number(c, sysfs_path(path, CPUS "/%s/topology/physical_package_id", cpu),
                           &package);
        r = r == 0 && (package < 0 || package > 63) ? -EBADMSG : r;
        topology = r < 0 && topology == 0 ? r : topology;
        packages |= r < 0 ? 0 : UINT64_C(1) << package;
    }
    free(cpus);
    if (governor < 0) {
        put_error(c, FACT_CPU_GOVERNOR, "", governor, CPUS "/cpu*/cpufreq/scaling_governor");
    } else {
        put(c, FACT_CPU_GOVERNOR, "", governors, CPUS "/cpu*/cpufreq/scaling_governor");
    }
    if (idle < 0) {
        put_error(c, FACT_CPU_CSTATE_US, "", idle, CPUS "/cpu*/cpuidle/state*/*");
    } else {
        put_number(c, FACT_CPU_CSTATE_US, "", cstate, CPUS "/cpu*/cpuidle/state*/*");
    }
    if (topology < 0) {
        put_error(c, FACT_CPU_PACKAGES, "", topology, CPUS "/cpu*/topology/physical_package_id");
    } else {
        put_number(c, FACT_CPU_PACKAGES, "", __builtin_popcountll(packages),
                   CPUS "/cpu*/topology/physical_package_id");
    }
}

/* ---- memory ---- */

/* "MemTotal:       1056 kB", or with "Node 0 " before it. */
static bool kilobytes(const char *line, const char *key, int64_t *ret)
{
    char unit[4];
    long long value;
    const char *at = strstr(line, key);

    if (at == NULL || (at != line && at[-1] != ' ') ||
        sscanf(at + strlen(key), ": %lld %3s", &value, unit) != 2 || strcmp(unit, "kB") != 0) {
        return false;
    }
    *ret = value;
    return true;
}

static void meminfo(struct collector *c)
{
    static const char path[] = "/proc/meminfo";
    const int r = collect_file(c, path);
    int64_t total = -1, available = -1;
    char *cursor = NULL;

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        (void)(kilobytes(line, "MemTotal", &total) || kilobytes(line, "MemAvailable", &available));
    }
    if (total < 0) {
        put_error(c, FACT_MEM_TOTAL, "", r < 0 ? r : -EBADMSG, path);
    } else {
        put_number(c, FACT_MEM_TOTAL, "", total, path);
    }
    if (available < 0) {
        put_error(c, FACT_MEM_AVAILABLE, "", r < 0 ? r : -EBADMSG, path);
    } else {
        put_number(c, FACT_MEM_AVAILABLE, "", available, path);
    }
}

static void swaps(struct collector *c)
{
    static const char path[] = "/proc/swaps";
    const int r = collect_file(c, path);
    char *cursor = NULL, *line = r < 0 ? NULL : next_line(c, &cursor);
    int64_t count = 0;

    if (line == NULL || strncmp(line, "Filename", 8) != 0) {
        put_error(c, FACT_MEM_SWAPS, "", r < 0 ? r : -EBADMSG, path);
        return;
    }
    while (next_line(c, &cursor) != NULL) {
        count++;
    }
    put_number(c, FACT_MEM_SWAPS, "", count, path);
}

/* "Node 0, zone   Normal      1      2 …": free blocks by order; from the tenth on they hold 2 MiB and more. */
static void free_blocks(struct collector *c, unsigned node, const char *name)
{
    static const char path[] = "/proc/buddyinfo";
    const int r = collect_file(c, path);
    char *cursor = NULL, zone[32];
    int64_t blocks = -1;

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        unsigned number;
        int end = 0;
        if (sscanf(line, "Node %u, zone %31s%n", &number, zone, &end) != 2 || number != node) {
            continue;
        }
        blocks = blocks < 0 ? 0 : blocks;
        char *at = line + end, *after = at;
        for (int order = 0; (void)strtoll(at, &after, 10), after != at; order++, at = after) {
            blocks += order >= 9 ? strtoll(at, NULL, 10) : 0;
        }
    }
    if (blocks < 0) {
        put_error(c, FACT_MEM_BLOCKS, name, r < 0 ? r : -EBADMSG, path);
    } else {
        put_number(c, FACT_MEM_BLOCKS, name, blocks, path);
    }
}

static void nodes(struct collector *c)
{
    char path[SYSFS_PATH_SIZE];
    struct names *names = names_of(c, NODES);

    if (names->count < 0) {
        put_error(c, FACT_MEM_NODE, "", names->count, NODES);
    }
    for (int i = 0; i < names->count; i++) {
        const char *name = names->name[i];
        unsigned number;
        int64_t total = -1;
        char *cursor = NULL;
        if (sscanf(name, "node%u", &number) != 1) {
            continue;
        }
        put(c, FACT_MEM_NODE, name, name, NODES);
        const int r = collect_file(c, sysfs_path(path, NODES "/%s/meminfo", name));
        for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
            (void)kilobytes(line, "MemTotal", &total);
        }
        if (total < 0) {
            put_error(c, FACT_MEM_NODE_TOTAL, name, r < 0 ? r : -EBADMSG, path);
        } else {
            put_number(c, FACT_MEM_NODE_TOTAL, name, total, path);
        }
        free_blocks(c, number, name);
    }
    free(names);
}

static void memory_controllers(struct collector *c)
{
    static const struct attribute counts[] = {{FACT_MEM_CE, "ce_count"}, {FACT_MEM_UE, "ue_count"}};
    static const char folder[] = "/sys/devices/system/edac/mc";
    char path[SYSFS_PATH_SIZE];
    struct names *names = names_of(c, folder);
    int found = 0;

    for (int i = 0; i < names->count; i++) {
        const char *name = names->name[i];
        if (strncmp(name, "mc", 2) == 0 && name[2] >= '0' && name[2] <= '9') {
            put(c, FACT_MEM_CONTROLLER, name, name, folder);
            put_attributes(c, counts, ARRAY_COUNT(counts), name,
                           sysfs_path(path, "%s/%s", folder, name));
            found++;
        }
    }
    if (found == 0) {
        put_error(c, FACT_MEM_CONTROLLER, "", names->count < 0 ? names->count : -ENOENT, folder);
    }
    free(names);
}

/* A tmpfs without a size option gets half of the memory. */
static void shared_memory(struct collector *c)
{
    static const char path[] = "/proc/mounts";
    int r = collect_file(c, path);
    char *cursor = NULL, place[256], kind[64], options[512];
    int64_t size = -1;

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        if (sscanf(line, "%*s %255s %63s %511s", place, kind, options) == 3 &&
            strcmp(place, "/dev/shm") == 0 && strcmp(kind, "tmpfs") == 0) {
            const char *at = strstr(options, "size=");
            char *end = NULL;
            size = at == NULL ? 0 : strtoll(at + 5, &end, 10);
            r = at != NULL && (end == at + 5 || *end != 'k') ? -EBADMSG : r;
        }
    }
    if (r < 0 || size < 0) {
        put_error(c, FACT_MEM_SHM, "", r < 0 ? r : -ENOENT, path);
        return;
    }
    const struct fact *total = &c->sheet->facts[0];
    for (uint32_t i = 0; size == 0 && i < c->sheet->count; i++) {
        total = c->sheet->facts[i].id == FACT_MEM_TOTAL ? &c->sheet->facts[i] : total;
    }
    if (size > 0) {
        put_number(c, FACT_MEM_SHM, "", size, path);
    } else if (total->id == FACT_MEM_TOTAL && fact_number(total->value, &size)) {
        put_number(c, FACT_MEM_SHM, "", size / 2, path);
    } else {
        put_error(c, FACT_MEM_SHM, "", -EIO, path);
    }
}

void collect_memory(struct collector *c)
{
    meminfo(c);
    swaps(c);
    shared_memory(c);
    nodes(c);
    memory_controllers(c);
}

/* Sensors that have a critical temperature. */
void collect_sensors(struct collector *c)
{
    static const char folder[] = "/sys/class/hwmon";
    char path[SYSFS_PATH_SIZE], subject[160];
    struct names *chips = names_of(c, folder);
    int found = 0;

    for (int i = 0; i < chips->count; i++) {
        struct names *files = names_of(c, sysfs_path(path, "%s/%s", folder, chips->name[i]));
        for (int k = 0; k < files->count; k++) {
            char *end = strstr(files->name[k], "_crit");
            if (strncmp(files->name[k], "temp", 4) != 0 || end == NULL || end[5] != '\0') {
                continue;
            }
            *end = '\0';
            snprintf(subject, sizeof(subject), "%s/%s", chips->name[i], files->name[k]);
            put(c, FACT_SENSOR, subject, subject, path);
            put_file(c, FACT_SENSOR_C, subject, sysfs_path(path, "%s/%s_input", folder, subject));
            put_file(c, FACT_SENSOR_LIMIT, subject,
                     sysfs_path(path, "%s/%s_crit", folder, subject));
            found++;
        }
        free(files);
    }
    if (found == 0) {
        put_error(c, FACT_SENSOR, "", chips->count < 0 ? chips->count : -ENOENT, folder);
    }
    free(chips);
}
