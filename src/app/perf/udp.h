/* udp.h: addresses of the interface under test, in either family, and a check of another rank's address. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* The interface's own address; link-local IPv6 is left out. -EADDRNOTAVAIL: it has none. */
int udp_address(const char *nic, int family, struct sockaddr_storage *ret);
/* Parses an address of either family, without a port. -EINVAL: no address. */
int udp_parse(const char *text, struct sockaddr_storage *ret);
socklen_t udp_size(int family);
uint16_t *udp_port(struct sockaddr_storage *s); /* in network byte order */
void *udp_bytes(struct sockaddr_storage *s);    /* 4 or 16 bytes */
/* Checks an address that another rank reported, so that packets go only to a host that takes part. */
bool udp_may_be_nic(int family, const uint8_t *own, const uint8_t *told);
