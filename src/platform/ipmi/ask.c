/* ask.c: sends requests. Some controllers give records only in pieces. */
#include <errno.h>
#include <string.h>

#include "platform/ipmi/ipmi.h"

/* Network functions (table 5-1) and commands (appendix G). */
enum {
    CHASSIS = 0x00,
    SENSORS = 0x04,
    STORAGE = 0x0a,
    GET_CHASSIS = 0x01,
    GET_READING = 0x2d,
    RESERVE_RECORDS = 0x22,
    GET_RECORD = 0x23,
    GET_LOG = 0x40,
    WHOLE = 0xff,
    PIECE = 16,
    HEADER = 5, /* of a record */
    RECORD_MAX = HEADER + 255
};
/* Completion codes, table 5-2. */
enum {
    DONE = 0x00,
    BUSY = 0xc0,
    NO_SUCH_COMMAND = 0xc1,
    LATE = 0xc3,
    TOO_MUCH = 0xca,
    NOT_THERE = 0xcb,
    NO_PRIVILEGE = 0xd4
};

static int error_of(uint8_t code)
{
    return code == DONE              ? 0
           : code == NO_SUCH_COMMAND ? -ENOSYS
           : code == BUSY            ? -EBUSY
           : code == LATE            ? -ETIMEDOUT
           : code == TOO_MUCH        ? -EMSGSIZE
           : code == NOT_THERE       ? -ENODEV
           : code == NO_PRIVILEGE    ? -EPERM
                                     : -EIO;
}

/* Returns the size of the data behind the completion code. */
static int ask(const struct ipmi *i, const struct ipmi_request *request,
               uint8_t ret_data[IPMI_REPLY_MAX])
{
    uint8_t reply[IPMI_REPLY_MAX];
    const int size = i->send(i->context, request, reply);

    if (size <= 0) {
        return size < 0 ? size : -EBADMSG;
    }
    memcpy(ret_data, reply + 1, (size_t)size - 1);
    return reply[0] != DONE ? error_of(reply[0]) : size - 1;
}

int ipmi_chassis(const struct ipmi *i, struct ipmi_chassis *ret)
{
    uint8_t data[IPMI_REPLY_MAX];
    const int size =
        ask(i, &(struct ipmi_request){.function = CHASSIS, .command = GET_CHASSIS}, data);

    return size < 0 ? size : ipmi_read_chassis(data, (size_t)size, ret);
}

int ipmi_log(const struct ipmi *i, struct ipmi_log *ret)
{
    uint8_t data[IPMI_REPLY_MAX];
    const int size = ask(i, &(struct ipmi_request){.function = STORAGE, .command = GET_LOG}, data);

    return size < 0 ? size : ipmi_read_log(data, (size_t)size, ret);
}

/* Reads `count` bytes of a record from offset `at`. *ret_next: the id of the next record. */
static int piece(const struct ipmi *i, uint16_t reservation, uint16_t id, unsigned at,
                 unsigned count, uint8_t ret_data[IPMI_REPLY_MAX], uint16_t *ret_next)
{
    const struct ipmi_request request = {.function = STORAGE,
                                         .command = GET_RECORD,
                                         .size = 6,
                                         .data = {(uint8_t)reservation, (uint8_t)(reservation >> 8),
                                                  (uint8_t)id, (uint8_t)(id >> 8), (uint8_t)at,
                                                  (uint8_t)count}};
    const int size = ask(i, &request, ret_data);

    if (size < 0) {
        return size;
    }
    if (size < 2) {
        return -EBADMSG;
    }
    *ret_next = (uint16_t)(ret_data[0] | ret_data[1] << 8);
    memmove(ret_data, ret_data + 2, (size_t)size - 2);
    return size - 2;
}

/* Pieces of one record need a reservation, so that the record does not change meanwhile. */
static int in_pieces(const struct ipmi *i, uint16_t id, uint8_t ret_record[RECORD_MAX],
                     uint16_t *ret_next)
{
    uint8_t data[IPMI_REPLY_MAX];
    int size =
        ask(i, &(struct ipmi_request){.function = STORAGE, .command = RESERVE_RECORDS}, data);
    if (size < 2) {
        return size < 0 ? size : -EBADMSG;
    }
    const uint16_t reservation = (uint16_t)(data[0] | data[1] << 8);
    unsigned whole = HEADER;

    for (unsigned at = 0; at < whole; at += (unsigned)size) {
        const unsigned left = whole - at, count = left < PIECE ? left : PIECE;
        size = piece(i, reservation, id, at, count, data, ret_next);
        if (size <= 0 || (unsigned)size > count) {
            return size < 0 ? size : -EBADMSG;
        }
        memcpy(ret_record + at, data, (size_t)size);
        whole = at + (unsigned)size == HEADER ? HEADER + (unsigned)ret_record[4] : whole;
    }
    return (int)whole;
}

int ipmi_record(const struct ipmi *i, uint16_t id, struct ipmi_record *ret)
{
    uint8_t data[IPMI_REPLY_MAX], pieces[RECORD_MAX];
    const uint8_t *record = data;
    uint16_t next = IPMI_LAST_RECORD;
    int size = piece(i, 0, id, 0, WHOLE, data, &next);

    if (size == -EMSGSIZE) {
        size = in_pieces(i, id, pieces, &next);
        record = pieces;
    }
    const int r = size < 0 ? size : ipmi_read_record(record, (size_t)size, ret);
    if (r == 0) {
        ret->next = next;
    }
    return r;
}

int ipmi_state(const struct ipmi *i, const struct ipmi_record *record, enum ipmi_state *ret)
{
    uint8_t data[IPMI_REPLY_MAX];
    const struct ipmi_request request = {.function = SENSORS,
                                         .lun = record->lun,
                                         .command = GET_READING,
                                         .size = 1,
                                         .data = {record->number}};
    const int size = ask(i, &request, data);

    if (size == -ENODEV) { /* a sensor of a part that is not installed */
        *ret = IPMI_ABSENT;
        return 0;
    }
    return size < 0 ? size : ipmi_read_state(record, data, (size_t)size, ret);
}
