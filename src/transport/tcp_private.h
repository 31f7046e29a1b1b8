/* tcp_private.h: what tcp.c and tcp_clock.c share. */
#pragma once
#include <sys/socket.h>
#include <time.h>

#include "base/limits.h"
#include "transport/tcp.h"

enum trouble { TROUBLE_NONE, TROUBLE_NOTED, TROUBLE_NEW, TROUBLE_TOLD };

struct tcp {
    struct io io;
    int epoll, kick, link;
    char sysfs[256];
    struct tcp_nic {
        char device[16];
        int carrier, downs; /* descriptors of the files in sysfs; -1: not open */
    } nics[HOST_NIC_MAX];   /* NICs whose carriers were asked for */
    uint32_t nic_count;
    bool weak_random;
    int bbr;                    /* enum trouble, atomic: a connection kept bbr */
    struct io_address bbr_peer; /* that connection's peer, while the report is new */
    /* Raw clock -> stamp, read from the page at most once in CLOCK_CACHE_NS: a reading costs as much as the rest of a stamp. It
     * is a sequence lock: threads read it, and one of them renews it. */
    uint32_t sequence;
    int64_t cached_raw, cached_at;
    uint32_t cached_half, cached_epoch;
    /* wall clock - raw at the start: constant, even if the clock is set later */
    int64_t unsynced_offset;
    /* CLOCK_REALTIME - raw, for the kernel's stamps. */
    int64_t realtime_raw, realtime_offset;
};

socklen_t tcp_to_sockaddr(const struct io_address *address, struct sockaddr_storage *ret);
MUST_CHECK bool tcp_from_sockaddr(const struct sockaddr *from, struct io_address *ret);

int tcp_carrier(struct io *io, const char *device, uint32_t *ret_downs);
void tcp_link_open(struct tcp *tcp);
void tcp_link_drain(struct tcp *tcp);
void tcp_link_close(struct tcp *tcp);

void tcp_clock_init(struct tcp *tcp);
struct mono tcp_now(struct io *io);
struct io_stamp tcp_stamp(struct io *io);
/* From a kernel's stamp by CLOCK_REALTIME. All zero: there was none, so it takes the present time. */
void tcp_stamp_of(struct tcp *tcp, const struct timespec *kernel, struct io_stamp *ret);
