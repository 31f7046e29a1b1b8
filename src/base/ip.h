/* ip.h: an IP address of either version as 16 bytes: IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define IP_TEXT_SIZE 46 /* INET6_ADDRSTRLEN */

static inline bool ip_is_v4(const uint8_t ip[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(ip, prefix, sizeof(prefix)) == 0;
}

static inline void ip_of_v4(uint8_t ret[16], const void *four)
{
    memset(ret, 0, 10);
    memset(ret + 10, 0xff, 2);
    memcpy(ret + 12, four, 4);
}

/* 0.0.0.0 also counts as none. */
static inline bool ip_is_none(const uint8_t ip[16])
{
    static const uint8_t none[16];

    return memcmp(ip, none, 16) == 0 || (ip_is_v4(ip) && memcmp(ip + 12, none, 4) == 0);
}

/* The usual text; IPv4 without the prefix. Returns `text`. */
const char *ip_text(const uint8_t ip[16], char text[static IP_TEXT_SIZE]);
/* False: `text` is no address. */
bool ip_parse(const char *text, uint8_t ret[16]);
