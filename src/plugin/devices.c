/* devices.c: reads the kernel's list of interfaces, filters and describes it. */
#include "plugin/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/prng.h"
#include "platform/sysfs/sysfs.h"
#include "plugin/links.h"
#include "wire/clock_page.h"

#define FOUND_MAX  64
#define FAST_MBPS  200000
#define LANES      4
#define LANES_FAST 8

bool devices_match(const char *filter, const char *name)
{
    const bool except = filter[0] == '^';
    const bool exact = filter[except] == '=';
    const char *at = filter + except + exact;

    while (*at != 0) {
        const char *end = strchrnul(at, ',');
        const size_t size = (size_t)(end - at);
        if (size > 0 && strncmp(name, at, size) == 0 && (!exact || name[size] == 0)) {
            return !except;
        }
        at = *end == 0 ? end : end + 1;
    }
    return except;
}

static bool is_pci_name(const char *name)
{
    unsigned domain, bus, slot, function;
    int end = 0;

    return sscanf(name, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &end) == 4 &&
           name[end] == 0;
}

/* The PCI function that the interface belongs to. The folders of virtio and others below it are cut off. */
static void find_pci_path(const char *sysfs, struct device *device)
{
    char link[SYSFS_PATH_SIZE], path[PATH_MAX];

    sysfs_path(link, "%s/class/net/%s/device", sysfs, device->name);
    if (sysfs_real(NULL, link, path, sizeof(path)) < 0) {
        return;
    }
    for (char *slash = strrchr(path, '/'); slash != NULL && slash != path;
         slash = strrchr(path, '/')) {
        if (is_pci_name(slash + 1) && strlen(path) < sizeof(device->pci_path)) {
            memcpy(device->pci_path, path, strlen(path) + 1);
            return;
        }
        *slash = 0;
    }
}

static void describe(const char *sysfs, struct device *device)
{
    char path[SYSFS_PATH_SIZE], text[64];
    int64_t speed;
    unsigned mac[6] = {0};
    uint64_t guid = 0;

    find_pci_path(sysfs, device);
    device->speed_mbps = DEVICE_SPEED_UNKNOWN;
    if (sysfs_number(NULL, sysfs_path(path, "%s/class/net/%s/speed", sysfs, device->name),
                     &speed) == 0) {
        device->speed_mbps = speed > 0 && speed < INT32_MAX ? (uint32_t)speed : device->speed_mbps;
    }
    sysfs_path(path, "%s/class/net/%s/address", sysfs, device->name);
    if (sysfs_text(NULL, path, text, sizeof(text)) > 0 &&
        sscanf(text, "%x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) ==
            6) {
        for (int i = 0; i < 6; i++) {
            guid = guid << 8 | (mac[i] & 0xff);
        }
    }
    if (guid == 0) { /* none of its own: the loopback, tunnels */
        for (const char *c = device->name; *c != 0; c++) {
            guid = hash_u64(guid, (uint8_t)*c);
        }
    }
    device->guid = guid;
}

static bool is_link_local(const struct io_address *address)
{
    return io_address_is_v4(address) ? address->ip[12] == 169 && address->ip[13] == 254
                                     : address->ip[0] == 0xfe && (address->ip[1] & 0xc0) == 0x80;
}

static bool address_of(const struct sockaddr *from, struct io_address *ret)
{
    static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

    *ret = (struct io_address){0};
    if (from == NULL) {
        return false;
    }
    if (from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof(in));
        memcpy(ret->ip, v4_prefix, sizeof(v4_prefix));
        memcpy(ret->ip + 12, &in.sin_addr, 4);
        return true;
    }
    if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, from, sizeof(in6));
        memcpy(ret->ip, &in6.sin6_addr, 16);
        return true;
    }
    return false;
}

/* IPv4 before IPv6, like NCCL. */
static bool better_address(const struct io_address *new, const struct io_address *old)
{
    if (is_link_local(new) != is_link_local(old)) {
        return is_link_local(old);
    }
    return io_address_is_v4(new) && !io_address_is_v4(old);
}

/* A filter that names interfaces decides alone. If it only names unwanted ones, the other rules apply to the rest. A link-local
 * IPv6 address is never taken: it needs a scope that a peer can't know, and a listener can't use it without one. */
static bool is_wanted(const struct ifaddrs *i, const struct io_address *address,
                      const struct device_wish *wish, bool loopback, const struct link *links,
                      int link_count)
{
    const char *filter = wish->filter;

    if (wish->family != AF_UNSPEC && i->ifa_addr->sa_family != wish->family) {
        return false;
    }
    if (filter != NULL && !devices_match(filter, i->ifa_name)) {
        return false;
    }
    if (!io_address_is_v4(address) && is_link_local(address)) {
        return false;
    }
    if (filter != NULL && filter[0] != '^') {
        return true;
    }
    return ((i->ifa_flags & IFF_LOOPBACK) != 0) == loopback && !is_link_local(address) &&
           links_carries(links, link_count, i->ifa_name);
}

static int gather(const struct ifaddrs *list, const struct device_wish *wish, bool loopback,
                  struct device *found)
{
    struct link *links = calloc(LINKS_MAX, sizeof(*links));
    const int link_count = links != NULL ? links_read(links, LINKS_MAX) : 0;
    int count = 0;

    for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        struct io_address address;
        int k = 0;
        if ((i->ifa_flags & IFF_UP) == 0 || !address_of(i->ifa_addr, &address) ||
            strlen(i->ifa_name) >= sizeof(found->name)) {
            continue;
        }
        if (!is_wanted(i, &address, wish, loopback, links, link_count)) {
            continue;
        }
        while (k < count && strcmp(found[k].name, i->ifa_name) != 0) {
            k++;
        }
        if (k == FOUND_MAX) {
            continue;
        }
        if (k == count) {
            found[count] =
                (struct device){.address = address, .loopback = (i->ifa_flags & IFF_LOOPBACK) != 0};
            snprintf(found[count].name, sizeof(found->name), "%s", i->ifa_name);
            count++;
        } else if (better_address(&address, &found[k].address)) {
            found[k].address = address;
        }
    }
    free(links);
    return count;
}

/* Removes NICs with less than a quarter of the fastest one's speed. */
static int same_class(struct device *found, int count)
{
    uint32_t most = 0;
    int kept = 0;

    for (int i = 0; i < count; i++) {
        most = found[i].speed_mbps > most ? found[i].speed_mbps : most;
    }
    for (int i = 0; i < count; i++) {
        if (found[i].speed_mbps >= most / 4) {
            found[kept++] = found[i];
        }
    }
    return kept;
}

static int compare(const void *a, const void *b)
{
    const struct device *left = a, *right = b;
    const int order = strcmp(left->pci_path, right->pci_path);

    return order != 0 ? order : strverscmp(left->name, right->name);
}

int devices_find(const char *sysfs, const struct device_wish *wanted, struct device *ret_devices,
                 int capacity)
{
    struct device_wish wish = *wanted;
    struct device *found = calloc(FOUND_MAX, sizeof(*found));
    struct ifaddrs *list = NULL;

    if (found == NULL) {
        return -ENOMEM;
    }
    if (getifaddrs(&list) < 0) {
        const int error = errno;
        free(found);
        return -error;
    }
    if (wish.filter != NULL && wish.filter[0] == 0) {
        wish.filter = NULL;
    }
    const bool named = wish.filter != NULL && wish.filter[0] != '^';
    int count = gather(list, &wish, false, found);
    if (count == 0 && !named) {
        count = gather(list, &wish, true, found);
    }
    freeifaddrs(list);
    for (int i = 0; i < count; i++) {
        describe(sysfs, &found[i]);
    }
    count = named ? count : same_class(found, count);
    qsort(found, (size_t)count, sizeof(*found), compare);
    count = count < capacity ? count : capacity;
    memcpy(ret_devices, found, (size_t)count * sizeof(*found));
    free(found);
    return count;
}

uint32_t devices_lanes(const struct device *devices, uint32_t count)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < count; i++) {
        most = devices[i].speed_mbps > most ? devices[i].speed_mbps : most;
    }
    return most >= FAST_MBPS ? LANES_FAST : LANES;
}

bool devices_of_agent(const char *folder, char *ret_filter, size_t size)
{
    char path[PATH_MAX];
    struct clock_page page;
    size_t used = 1;
    bool good = false;

    snprintf(path, sizeof(path), "%s/" CLOCK_PAGE_NAME, folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= CLOCK_PAGE_SIZE) {
        void *memory = mmap(NULL, CLOCK_PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
        if (memory != MAP_FAILED) {
            good = clock_page_read(memory, &page);
            munmap(memory, CLOCK_PAGE_SIZE);
        }
    }
    close(fd);
    if (!good || page.nic_count == 0 || page.nic_count > HOST_NIC_MAX) {
        return false;
    }
    ret_filter[0] = '=';
    for (uint32_t i = 0; i < page.nic_count; i++) {
        const size_t length = strnlen(page.nics[i].name, sizeof(page.nics[i].name));
        if (length == 0 || used + length + 2 > size) {
            return false;
        }
        if (i > 0) {
            ret_filter[used++] = ',';
        }
        memcpy(ret_filter + used, page.nics[i].name, length);
        used += length;
    }
    ret_filter[used] = 0;
    return true;
}
