/* udp.h: addresses of the interface that a test is of, in either family, and what another rank may tell of its own. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* The interface's own; of IPv6 none that is link-local. -EADDRNOTAVAIL: it has none. */
int udp_address(const char *nic, int family, struct sockaddr_storage *ret);
/* An address as text, of either family, with no port. -EINVAL: it is none. */
int udp_parse(const char *text, struct sockaddr_storage *ret);
socklen_t udp_size(int family);
uint16_t *udp_port(struct sockaddr_storage *s); /* as it is sent */
void *udp_bytes(struct sockaddr_storage *s);    /* 4 or 16 */
/* Another rank's word: packets go to one host, and to none that was not asked. */
bool udp_may_be_nic(int family, const uint8_t *own, const uint8_t *told);
