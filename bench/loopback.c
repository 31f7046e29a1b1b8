/* loopback.c: see loopback.h. */
#include "loopback.h"

#include <time.h>

#include "transport/tcp.h"
#include "transport/transport.h"

struct transport *loopback_open(uint32_t lanes)
{
    static const struct transport_nic nic = {
        .name = "lo",
        .address = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}},
    };
    struct transport *transport;
    struct tcp *tcp;

    if (tcp_open(&tcp, "/sys") < 0) {
        return NULL;
    }
    const struct transport_config config = {.io = tcp_io(tcp),
                                            .nics = &nic,
                                            .nic_count = 1,
                                            .mode = TRANSPORT_FULL,
                                            .lanes = lanes,
                                            .checksum = 1,
                                            .priority = 1,
                                            .thread = true};
    return transport_new(&transport, &config) == 0 ? transport : NULL;
}

void loopback_wait_us(long us)
{
    const struct timespec t = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&t, NULL);
}
