/* ip.c: see ip.h. */
#include "base/ip.h"

#include <arpa/inet.h>

const char *ip_text(const uint8_t ip[16], char text[static IP_TEXT_SIZE])
{
    _Static_assert(IP_TEXT_SIZE >= INET6_ADDRSTRLEN, "fits");
    const bool v4 = ip_is_v4(ip);

    (void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip + 12 : ip, text, IP_TEXT_SIZE);
    return text;
}

bool ip_parse(const char *text, uint8_t ret[16])
{
    uint8_t four[4];

    if (inet_pton(AF_INET, text, four) == 1) {
        ip_of_v4(ret, four);
        return true;
    }
    return inet_pton(AF_INET6, text, ret) == 1;
}
