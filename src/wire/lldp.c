/* lldp.c: gets two names out of LLDP frames. lldp.h has the layout. */
#include "wire/lldp.h"

#include <string.h>

enum {
    HEADER = 14,
    TLV_END = 0,
    TLV_CHASSIS = 1,
    TLV_PORT = 2,
    TLV_TTL = 3,
    TLV_PORT_DESCRIPTION = 4,
    TLV_SYSTEM_NAME = 5,
    CHASSIS_MAC = 4,
    PORT_MAC = 3,
    CHASSIS_ADDRESS = 5,
    PORT_ADDRESS = 4,
};

static void put_text(char out[LLDP_TEXT_SIZE], const uint8_t *bytes, size_t size)
{
    size_t length = 0;
    for (; length < size && length < LLDP_TEXT_SIZE - 1 && bytes[length] != 0; length++) {
        out[length] = bytes[length] >= 0x20 && bytes[length] < 0x7f ? (char)bytes[length] : '?';
    }
    out[length] = 0;
}

static void put_hex(char out[LLDP_TEXT_SIZE], const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (size_t i = 0; i < size && at + 3 < LLDP_TEXT_SIZE; i++) {
        out[at++] = digits[bytes[i] >> 4];
        out[at++] = digits[bytes[i] & 15];
        out[at++] = ':';
    }
    out[at > 0 ? at - 1 : 0] = 0;
}

/* An id: a subtype, then a MAC or network address in bytes, or a text. True: it is a text, so a name that people gave. */
static bool put_id(char out[LLDP_TEXT_SIZE], const uint8_t *value, size_t size, uint8_t mac,
                   uint8_t address)
{
    if (value[0] == mac || value[0] == address) {
        put_hex(out, value + 1, size - 1);
        return false;
    }
    put_text(out, value + 1, size - 1);
    return true;
}

struct reading {
    struct lldp lldp;
    char description[LLDP_TEXT_SIZE];
    bool port_named, ended;
    unsigned count; /* TLVs so far */
};

/* False: malformed. */
static bool take(struct reading *r, unsigned type, const uint8_t *value, size_t size)
{
    r->count++;
    if (r->count <= 3 && type != r->count) {
        return false; /* the first three have fixed types */
    }
    switch (type) {
    case TLV_END:
        r->ended = true;
        return size == 0;
    case TLV_CHASSIS:
        if (r->count != 1 || size < 2) {
            return false;
        }
        (void)put_id(r->lldp.system, value, size, CHASSIS_MAC, CHASSIS_ADDRESS);
        return true;
    case TLV_PORT:
        if (r->count != 2 || size < 2) {
            return false;
        }
        r->port_named = put_id(r->lldp.port, value, size, PORT_MAC, PORT_ADDRESS);
        return true;
    case TLV_TTL:
        if (r->count != 3 || size < 2) {
            return false;
        }
        r->lldp.ttl_s = (uint16_t)(value[0] << 8 | value[1]);
        return true;
    case TLV_PORT_DESCRIPTION:
        put_text(r->description, value, size);
        return true;
    case TLV_SYSTEM_NAME:
        if (size > 0) {
            put_text(r->lldp.system, value, size);
        }
        return true;
    default:
        return true;
    }
}

bool lldp_decode(const uint8_t *frame, size_t size, struct lldp *ret)
{
    struct reading r = {.count = 0};
    size_t at = HEADER;
    if (size < HEADER || frame[12] != LLDP_ETHERTYPE >> 8 || frame[13] != (LLDP_ETHERTYPE & 0xff)) {
        return false;
    }
    while (!r.ended && at + 2 <= size) {
        const unsigned type = frame[at] >> 1;
        const size_t length = (size_t)(frame[at] & 1) << 8 | frame[at + 1];
        at += 2;
        if (length > size - at || !take(&r, type, frame + at, length)) {
            return false;
        }
        at += length;
    }
    if (r.count < 3 || (!r.ended && at != size)) {
        return false;
    }
    if (!r.port_named && r.description[0] != 0) {
        memcpy(r.lldp.port, r.description, sizeof(r.lldp.port));
    }
    *ret = r.lldp;
    return true;
}
