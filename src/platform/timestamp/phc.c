/* phc.c: /dev/ptpN, and ethtool's requests about it. */
#include "platform/timestamp/phc.h"

#include "platform/sysfs/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/ptp_clock.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define CLOCKS_MAX 64 /* of /sys/class/ptp */

enum phc_way { WAY_PRECISE, WAY_EXTENDED, WAY_CLOCK };

struct phc {
    int fd;
    enum phc_way way;
    bool proven; /* this way of reading has worked */
    bool frequency_known;
    long frequency; /* in the kernel's unit: 2^-16 ppm */
};

static int ask_interface(const char *interface, unsigned long question, void *data)
{
    struct ifreq request = {.ifr_data = data};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    const int r = ioctl(fd, question, &request) < 0 ? -errno : 0;
    close(fd);
    return r;
}

int phc_abilities_get(const char *interface, struct phc_abilities *ret_abilities)
{
    struct ethtool_ts_info info = {.cmd = ETHTOOL_GET_TS_INFO};
    const uint32_t hardware =
        SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
    const int r = ask_interface(interface, SIOCETHTOOL, &info);
    if (r < 0) {
        return r;
    }
    *ret_abilities = (struct phc_abilities){
        .software_transmit = (info.so_timestamping & SOF_TIMESTAMPING_TX_SOFTWARE) != 0,
        .hardware = (info.so_timestamping & hardware) == hardware && info.phc_index >= 0 &&
                    (info.tx_types & 1u << HWTSTAMP_TX_ON) != 0 &&
                    (info.rx_filters & 1u << HWTSTAMP_FILTER_ALL) != 0,
        .index = info.phc_index};
    return 0;
}

int phc_enable(const char *interface)
{
    struct hwtstamp_config config = {.tx_type = HWTSTAMP_TX_ON, .rx_filter = HWTSTAMP_FILTER_ALL};
    const int r = ask_interface(interface, SIOCSHWTSTAMP, &config);
    return r < 0                                                                         ? r
           : config.tx_type == HWTSTAMP_TX_ON && config.rx_filter == HWTSTAMP_FILTER_ALL ? 0
                                                                                         : -ERANGE;
}

int phc_find_kvm(void)
{
    char names[CLOCKS_MAX][SYSFS_NAME_SIZE], path[SYSFS_PATH_SIZE], name[64];
    const int count = sysfs_names(NULL, "/sys/class/ptp", names, CLOCKS_MAX);

    for (int i = 0, index; i < count; i++) {
        if (sscanf(names[i], "ptp%d", &index) == 1 &&
            sysfs_text(NULL, sysfs_path(path, "/sys/class/ptp/%s/clock_name", names[i]), name,
                       sizeof(name)) > 0 &&
            strncmp(name, "KVM virtual PTP", 15) == 0) {
            return index;
        }
    }
    return -1;
}

int phc_open(struct phc **ret_phc, int index)
{
    char path[32];
    snprintf(path, sizeof(path), "/dev/ptp%d", index);
    /* Older kernels return the frequency only to programs that may set it. It is never set here. */
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    if (fd < 0) {
        return -errno;
    }
    struct phc *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        close(fd);
        return -ENOMEM;
    }
    p->fd = fd;
    *ret_phc = p;
    return 0;
}

struct phc *phc_close(struct phc *p)
{
    if (p != NULL) {
        close(p->fd);
        free(p);
    }
    return NULL;
}

static int64_t ptp_ns(const struct ptp_clock_time *t)
{
    return t->sec * NS_PER_S + t->nsec;
}

static clockid_t clock_of(const struct phc *p)
{
    return (clockid_t)(~(unsigned)p->fd << 3 | 3); /* linux/posix-timers.h: FD_TO_CLOCKID */
}

struct reading {
    int64_t before, nic, after; /* raw, NIC, raw */
};

static int read_precise(const struct phc *p, struct reading *ret)
{
    struct ptp_sys_offset_precise offset = {0};
    if (ioctl(p->fd, PTP_SYS_OFFSET_PRECISE, &offset) < 0) {
        return -errno;
    }
    const int64_t raw = ptp_ns(&offset.sys_monoraw);
    *ret = (struct reading){raw, ptp_ns(&offset.device), raw};
    return 0;
}

/* The driver reads REALTIME before and after the NIC's clock. A sandwich converts that to raw. */
static int read_extended(const struct phc *p, struct time_source *source, unsigned samples,
                         struct reading *ret)
{
    struct ptp_sys_offset_extended offset = {
        .n_samples = samples < PTP_MAX_SAMPLES ? samples : PTP_MAX_SAMPLES};
    if (ioctl(p->fd, PTP_SYS_OFFSET_EXTENDED, &offset) < 0) {
        return -errno;
    }
    int64_t best = INT64_MAX;
    struct reading r = {0};
    for (unsigned i = 0; i < offset.n_samples; i++) {
        const int64_t before = ptp_ns(&offset.ts[i][0]), after = ptp_ns(&offset.ts[i][2]);
        if (after >= before && after - before < best) {
            best = after - before;
            r = (struct reading){before, ptp_ns(&offset.ts[i][1]), after};
        }
    }
    uint32_t error = 0;
    int64_t before = 0, after = 0;
    if (best == INT64_MAX || !time_source_raw_of_wall(source, r.before, &before, &error) ||
        !time_source_raw_of_wall(source, r.after, &after, &error)) {
        return -EAGAIN;
    }
    *ret = (struct reading){before - error, r.nic, after + error};
    return 0;
}

static int read_clock(const struct phc *p, unsigned samples, struct reading *ret)
{
    int64_t best = INT64_MAX;
    for (unsigned i = 0; i < samples; i++) {
        struct timespec before, nic, after;
        clock_gettime(CLOCK_MONOTONIC_RAW, &before);
        if (clock_gettime(clock_of(p), &nic) < 0) {
            return -errno;
        }
        clock_gettime(CLOCK_MONOTONIC_RAW, &after);
        const int64_t from = before.tv_sec * NS_PER_S + before.tv_nsec,
                      to = after.tv_sec * NS_PER_S + after.tv_nsec;
        if (to - from < best) {
            best = to - from;
            *ret = (struct reading){from, nic.tv_sec * NS_PER_S + nic.tv_nsec, to};
        }
    }
    return best == INT64_MAX ? -EAGAIN : 0;
}

/* True if the driver does not support this way, or has refused it each time so far. */
static bool try_next(const struct phc *p, int r)
{
    const bool never = r == -EOPNOTSUPP || r == -ENOTTY || r == -EINVAL;

    return p->way != WAY_CLOCK &&
           (never || (!p->proven && (r == -EBUSY || r == -ENODEV || r == -EIO)));
}

int phc_read(struct phc *p, struct time_source *source, unsigned samples, struct mono *ret_before,
             struct nic_time *ret_nic, struct mono *ret_after)
{
    struct reading read = {0};
    int r = -EAGAIN;
    for (;;) {
        switch (p->way) {
        case WAY_PRECISE:
            r = read_precise(p, &read);
            break;
        case WAY_EXTENDED:
            r = read_extended(p, source, samples, &read);
            break;
        case WAY_CLOCK:
            r = read_clock(p, samples, &read);
            break;
        }
        if (!try_next(p, r)) {
            break;
        }
        p->way++;
        p->proven = false;
    }
    if (r == 0) {
        p->proven = true;
        *ret_before = (struct mono){read.before};
        *ret_nic = (struct nic_time){read.nic};
        *ret_after = (struct mono){read.after};
    }
    return r;
}

const char *phc_way(const struct phc *p)
{
    return p->way == WAY_PRECISE ? "cross" : p->way == WAY_EXTENDED ? "driver" : "bracket";
}

int phc_steering(struct phc *p, double *ret_ppb)
{
    struct timex t = {0}; /* modes 0: only reads */
    if (clock_adjtime(clock_of(p), &t) < 0) {
        return -errno;
    }
    *ret_ppb = p->frequency_known ? (double)(t.freq - p->frequency) * 1000 / 65536 : 0;
    p->frequency_known = true;
    p->frequency = t.freq;
    return 0;
}
