/* pci.c: NICs, GPUs and disks on PCI, and the bridges above them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bug.h"
#include "service/inspect/collect.h"

#define DEVICES "/sys/bus/pci/devices"

enum { MODELS_MAX = 64, BRIDGES_MAX = 256, CONFIG_WHOLE = 4096 };

struct inventory {
    int error;
    struct {
        char model[16];
        unsigned count;
    } models[MODELS_MAX];
    unsigned model_count, bridge_count;
    char bridges[BRIDGES_MAX][SYSFS_NAME_SIZE];
    char tree[4 * FACT_VALUE_MAX];
};

/* NULL: the device is of no kind that is inspected. A BMC's display is no GPU. */
static const char *kind_of(int64_t class, int64_t vendor)
{
    const int64_t base = class >> 16, sub = class >> 8;

    return base == 0x02                                                                ? "nic"
           : sub == 0x0108                                                             ? "disk"
           : sub == 0x1200 || (base == 0x03 && (vendor == 0x10de || vendor == 0x1002)) ? "gpu"
                                                                                       : NULL;
}

static void count_model(struct inventory *all, const char *model)
{
    unsigned i = 0;

    while (i < all->model_count && strcmp(all->models[i].model, model) != 0) {
        i++;
    }
    if (i == MODELS_MAX) {
        all->error = -E2BIG;
        return;
    }
    if (i == all->model_count) {
        snprintf(all->models[i].model, sizeof(all->models[i].model), "%s", model);
        all->models[all->model_count++].count = 0;
    }
    all->models[i].count++;
}

/* ---- configuration space: PCI Express Base Specification, 7.5 and 7.7.7 ---- */

/* Reads the whole space, or 256 bytes of a device without an extended one. Users other than root get only 64 bytes. */
static int read_config(struct collector *c, const char *path, const char *model,
                       uint8_t config[CONFIG_WHOLE])
{
    char found[16];
    const int fd = sysfs_fd(c->tree, path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, config, CONFIG_WHOLE);

    n = n < 0 ? -errno : n;
    if (fd < 0) {
        return fd;
    }
    close(fd);
    if (n == 64) {
        return -EPERM;
    }
    if (n != 256 && n != CONFIG_WHOLE) {
        return n < 0 ? (int)n : -EBADMSG;
    }
    snprintf(found, sizeof(found), "%02x%02x:%02x%02x", config[1], config[0], config[3], config[2]);
    return strcmp(found, model) == 0 ? (int)n : -EBADMSG;
}

static unsigned word_at(const uint8_t *config, unsigned at)
{
    return config[at] | (unsigned)config[at + 1] << 8;
}

/* The capability's offset; 0: the device does not have it. */
static unsigned capability(const uint8_t *config, uint8_t id)
{
    unsigned at = config[0x34] & 0xfc;

    for (int i = 0; i < 48 && at >= 0x40 && at < 0xf0; i++) {
        if (config[at] == id) {
            return at;
        }
        at = config[at + 1] & 0xfc;
    }
    return 0;
}

static unsigned extended(const uint8_t *config, unsigned id)
{
    unsigned at = 0x100;

    for (int i = 0; i < 256 && at >= 0x100 && at <= CONFIG_WHOLE - 8; i++) {
        if (word_at(config, at) == id) {
            return at;
        }
        at = word_at(config, at + 2) >> 4;
    }
    return 0;
}

static void put_control(struct collector *c, const char *name, const char *model)
{
    static const uint16_t facts[] = {FACT_PCI_MPS, FACT_PCI_MRRS, FACT_PCI_RELAXED};
    uint8_t config[CONFIG_WHOLE];
    char path[SYSFS_PATH_SIZE];
    int r = read_config(c, sysfs_path(path, DEVICES "/%s/config", name), model, config);
    const unsigned at = r < 0 ? 0 : capability(config, 0x10);

    r = r >= 0 && at == 0 ? -ENOENT : r;
    for (size_t i = 0; r < 0 && i < ARRAY_COUNT(facts); i++) {
        put_error(c, facts[i], name, r, path);
    }
    if (r >= 0) {
        const unsigned control = word_at(config, at + 8);
        put_number(c, FACT_PCI_MPS, name, 128 << (control >> 5 & 7), path);
        put_number(c, FACT_PCI_MRRS, name, 128 << (control >> 12 & 7), path);
        put_number(c, FACT_PCI_RELAXED, name, control >> 4 & 1, path);
    }
}

/* Puts whether request redirect and completion redirect are on. */
static void put_acs(struct collector *c, const char *name, const char *model)
{
    uint8_t config[CONFIG_WHOLE];
    char path[SYSFS_PATH_SIZE];
    const int r = read_config(c, sysfs_path(path, DEVICES "/%s/config", name), model, config);
    const unsigned at = r == CONFIG_WHOLE ? extended(config, 0x000d) : 0;

    if (r < 0) {
        put_error(c, FACT_PCI_ACS, name, r, path);
    } else {
        put_number(c, FACT_PCI_ACS, name, at == 0 ? 0 : word_at(config, at + 6) & 0x0c, path);
    }
}

/* ---- one device ---- */

/* Reads a line such as "TOTAL_ERR_FATAL 0" from a list of error kinds. */
static void put_errors(struct collector *c, enum fact_id id, const char *name, const char *file,
                       const char *total)
{
    char path[SYSFS_PATH_SIZE], *cursor = NULL;
    const int r = collect_file(c, sysfs_path(path, DEVICES "/%s/%s", name, file));

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        const size_t n = strlen(total);
        if (strncmp(line, total, n) == 0 && line[n] == ' ') {
            put(c, id, name, line + n + 1, path);
            return;
        }
    }
    put_error(c, id, name, r < 0 ? r : -EBADMSG, path);
}

static void put_iommu(struct collector *c, const char *name)
{
    static const char groups[] = "/sys/kernel/iommu_groups";
    char path[SYSFS_PATH_SIZE], group[SYSFS_NAME_SIZE];
    const int r =
        collect_link(c, sysfs_path(path, DEVICES "/%s/iommu_group", name), group, sizeof(group));

    if (r == 0) {
        put_file(c, FACT_PCI_IOMMU, name, sysfs_path(path, "%s/%s/type", groups, group));
        return;
    }
    struct names *all = names_of(c, groups); /* an IOMMU that is off has no groups */
    if (all->count == 0 && state_of(r) == FACT_ABSENT) {
        put(c, FACT_PCI_IOMMU, name, "off", groups);
    } else {
        put_error(c, FACT_PCI_IOMMU, name, r, path);
    }
    free(all);
}

/* "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0": the bridge above the device, and the path to it without domain 0. */
static int way_to(struct collector *c, const char *name, char *above, size_t size, char *way,
                  size_t way_size)
{
    char path[SYSFS_PATH_SIZE], real[1024], *at = real;
    const int r = sysfs_real(c->tree, sysfs_path(path, DEVICES "/%s", name), real, sizeof(real));
    size_t used = 0;
    bool below = false;

    if (r < 0) {
        return r;
    }
    above[0] = way[0] = '\0';
    for (char *part; (part = strsep(&at, "/")) != NULL;) {
        below = below || strncmp(part, "pci", 3) == 0;
        if (!below) {
            continue;
        }
        const char *shown = strncmp(part, "0000:", 5) == 0 ? part + 5 : part;
        used += (size_t)snprintf(way + used, used < way_size ? way_size - used : 0, "%s%s",
                                 used > 0 ? "/" : "", shown);
        if (at != NULL) {
            snprintf(above, size, "%s", part);
        }
    }
    return above[0] != '\0' && used < way_size ? 0 : -EBADMSG;
}

static void note_bridge(struct inventory *all, const char *name)
{
    unsigned i = 0;

    while (i < all->bridge_count && strcmp(all->bridges[i], name) != 0) {
        i++;
    }
    if (i == all->bridge_count && i < BRIDGES_MAX && strncmp(name, "pci", 3) != 0) {
        snprintf(all->bridges[all->bridge_count++], SYSFS_NAME_SIZE, "%s", name);
    }
}

static void put_way(struct collector *c, struct inventory *all, const char *name, const char *kind)
{
    char above[SYSFS_NAME_SIZE], way[512];
    const size_t used = strlen(all->tree);
    const int r = way_to(c, name, above, sizeof(above), way, sizeof(way));

    if (r < 0) {
        put_error(c, FACT_PCI_ABOVE, name, r, DEVICES);
        all->error = r;
        return;
    }
    put(c, FACT_PCI_ABOVE, name, above, DEVICES);
    if (strcmp(kind, "disk") != 0) {
        note_bridge(all, above);
        snprintf(all->tree + used, sizeof(all->tree) - used, "%s%s %s", used > 0 ? ", " : "", kind,
                 way);
    }
}

static const struct attribute links[] = {
    {FACT_PCI_WIDTH, "current_link_width"}, {FACT_PCI_WIDTH_MAX, "max_link_width"},
    {FACT_PCI_SPEED, "current_link_speed"}, {FACT_PCI_SPEED_MAX, "max_link_speed"},
    {FACT_PCI_NUMA, "numa_node"},
};

static void put_device(struct collector *c, struct inventory *all, const char *name,
                       const char *kind, const char *model)
{
    char path[SYSFS_PATH_SIZE];

    put(c, FACT_PCI, name, name, DEVICES);
    put(c, FACT_PCI_KIND, name, kind, sysfs_path(path, DEVICES "/%s/class", name));
    put(c, FACT_PCI_MODEL, name, model, sysfs_path(path, DEVICES "/%s/device", name));
    put_attributes(c, links, ARRAY_COUNT(links), name, sysfs_path(path, DEVICES "/%s", name));
    put_way(c, all, name, kind);
    put_control(c, name, model);
    put_errors(c, FACT_PCI_AER_FATAL, name, "aer_dev_fatal", "TOTAL_ERR_FATAL");
    put_errors(c, FACT_PCI_AER_NONFATAL, name, "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL");
    put_errors(c, FACT_PCI_AER_CORRECTED, name, "aer_dev_correctable", "TOTAL_ERR_COR");
    put_iommu(c, name);
    count_model(all, model);
}

/* class, vendor, device; ret_model: "15b3:1021". */
static int read_identity(struct collector *c, const char *name, const char **ret_kind,
                         char *ret_model, size_t size)
{
    char path[SYSFS_PATH_SIZE];
    int64_t class, vendor, device;
    int r = collect_number(c, sysfs_path(path, DEVICES "/%s/class", name), &class);

    if (r == 0) {
        r = collect_number(c, sysfs_path(path, DEVICES "/%s/vendor", name), &vendor);
    }
    if (r == 0) {
        r = collect_number(c, sysfs_path(path, DEVICES "/%s/device", name), &device);
    }
    if (r < 0) {
        return r;
    }
    snprintf(ret_model, size, "%04x:%04x", (unsigned)(vendor & 0xffff),
             (unsigned)(device & 0xffff));
    *ret_kind = kind_of(class, vendor);
    /* a hypervisor adds and removes virtual functions, so they are skipped */
    if (sysfs_there(c->tree, sysfs_path(path, DEVICES "/%s/physfn", name))) {
        *ret_kind = NULL;
    }
    return 0;
}

static void put_bridges(struct collector *c, const struct inventory *all)
{
    char path[SYSFS_PATH_SIZE], model[16] = "";
    const char *kind;

    for (unsigned i = 0; i < all->bridge_count; i++) {
        const char *name = all->bridges[i];
        const int r = read_identity(c, name, &kind, model, sizeof(model));
        if (r < 0) {
            put_error(c, FACT_PCI_BRIDGE, name, r, DEVICES);
            continue;
        }
        put(c, FACT_PCI_BRIDGE, name, name, DEVICES);
        put_file(c, FACT_PCI_WIDTH_MAX, name, sysfs_path(path, DEVICES "/%s/max_link_width", name));
        put_file(c, FACT_PCI_SPEED_MAX, name, sysfs_path(path, DEVICES "/%s/max_link_speed", name));
        put_acs(c, name, model);
    }
    if (all->bridge_count == 0) {
        put_error(c, FACT_PCI_BRIDGE, "", all->error < 0 ? all->error : -ENOENT, DEVICES);
    }
}

/* A text too long for a value is put as its length and a hash: the same text has the same hash. */
static void put_long(struct collector *c, enum fact_id id, const char *text)
{
    char digest[64];
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

    for (const char *at = text; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * UINT64_C(1099511628211);
    }
    snprintf(digest, sizeof(digest), "%zu characters, hash %016llx", strlen(text),
             (unsigned long long)hash);
    put(c, id, "", strlen(text) < FACT_VALUE_MAX ? text : digest, DEVICES);
}

static int compare_models(const void *a, const void *b)
{
    return strcmp(a, b); /* the model is the struct's first field */
}

static void put_inventory(struct collector *c, struct inventory *all)
{
    char text[FACT_VALUE_MAX * 2] = "";
    size_t used = 0;

    if (all->error < 0) {
        put_error(c, FACT_PCI_INVENTORY, "", all->error, DEVICES);
        put_error(c, FACT_PCI_TREE, "", all->error, DEVICES);
        return;
    }
    qsort(all->models, all->model_count, sizeof(all->models[0]), compare_models);
    for (unsigned i = 0; i < all->model_count; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s x%u", used > 0 ? ", " : "",
                                 all->models[i].model, all->models[i].count);
    }
    put_long(c, FACT_PCI_INVENTORY, text);
    put_long(c, FACT_PCI_TREE, all->tree);
}

/* Firmware gives slots the names that are printed on the board. A slot's address is one without a function: "0000:3b:00". */
static void put_slots(struct collector *c, const struct names *devices)
{
    static const char folder[] = "/sys/bus/pci/slots";
    struct names *slots = names_of(c, folder); /* many machines have none */
    char path[SYSFS_PATH_SIZE], address[SYSFS_NAME_SIZE];

    for (int i = 0; i < slots->count; i++) {
        sysfs_path(path, "%s/%s/address", folder, slots->name[i]);
        if (collect_line(c, path, address, sizeof(address)) < 0) {
            continue;
        }
        const size_t size = strlen(address);
        for (int k = 0; k < devices->count; k++) {
            if (strncmp(devices->name[k], address, size) == 0 && devices->name[k][size] == '.') {
                put(c, FACT_PCI_SLOT, devices->name[k], slots->name[i], path);
            }
        }
    }
    free(slots);
}

void collect_pci(struct collector *c)
{
    struct inventory *all = calloc(1, sizeof(*all));
    struct names *names = names_of(c, DEVICES);
    int found = 0;

    if (all == NULL) {
        abort();
    }
    all->error = names->count < 0 ? names->count : 0;
    for (int i = 0; i < names->count; i++) {
        const char *name = names->name[i], *kind = NULL;
        char model[16];
        const int r = read_identity(c, name, &kind, model, sizeof(model));
        if (r < 0) {
            put_error(c, FACT_PCI, name, r, DEVICES);
            all->error = r;
            found++;
        } else if (kind != NULL) {
            put_device(c, all, name, kind, model);
            found++;
        }
    }
    if (found == 0) {
        put_error(c, FACT_PCI, "", names->count < 0 ? names->count : -ENOENT, DEVICES);
    }
    put_bridges(c, all);
    put_inventory(c, all);
    put_slots(c, names);
    free(names);
    free(all);
}
