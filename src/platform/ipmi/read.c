/* read.c: parses the data of replies. Offsets count from the beginning of the data. */
#include <errno.h>
#include <string.h>

#include "platform/ipmi/ipmi.h"

/* Sensor types (table 42-3), types of states (table 42-2), and types of records (43). */
enum {
    TEMPERATURE = 0x01,
    FAN = 0x04,
    POWER_SUPPLY = 0x08,
    POWER_UNIT = 0x09,
    THRESHOLD = 0x01,
    REDUNDANCY = 0x0b,
    OF_ITS_TYPE = 0x6f,
    VERSION = 0x51,
    FULL = 0x01,
    COMPACT = 0x02,
    HEADER = 5,
    BMC = 0x20,
    NAME_OF_FULL = 47,
    NAME_OF_COMPACT = 31,
    PLAIN_NAME = 3 /* 8-bit ASCII: 43.15 */
};

const char *ipmi_state_name(enum ipmi_state state)
{
    static const char *const names[] = {"ok",     "absent",   "near-limit",    "critical",
                                        "failed", "no-input", "not-redundant", "unavailable"};
    _Static_assert(sizeof(names) / sizeof(names[0]) == IPMI_STATE_COUNT, "a name for each");
    return names[state];
}

int ipmi_read_chassis(const uint8_t *data, size_t size, struct ipmi_chassis *ret)
{
    if (size < 3) {
        return -EBADMSG;
    }
    *ret = (struct ipmi_chassis){.overload = (data[0] & 0x02) != 0,
                                 /* a fault of the power, or of its control */
                                 .power_fault = (data[0] & 0x18) != 0,
                                 .drive_fault = (data[2] & 0x04) != 0,
                                 .cooling_fault = (data[2] & 0x08) != 0};
    return 0;
}

int ipmi_read_log(const uint8_t *data, size_t size, struct ipmi_log *ret)
{
    if (size < 14) {
        return -EBADMSG;
    }
    *ret = (struct ipmi_log){.entries = data[1] | (uint32_t)data[2] << 8,
                             .overflow = (data[13] & 0x80) != 0};
    return 0;
}

static enum ipmi_sensor_kind kind_of(uint8_t sensor, uint8_t reading)
{
    if (reading == THRESHOLD && sensor == TEMPERATURE) {
        return IPMI_TEMPERATURE;
    }
    if (sensor == FAN && (reading == THRESHOLD || reading == REDUNDANCY)) {
        return IPMI_FAN;
    }
    return (sensor == POWER_SUPPLY && (reading == OF_ITS_TYPE || reading == REDUNDANCY)) ||
                   (sensor == POWER_UNIT && reading == REDUNDANCY)
               ? IPMI_POWER
               : IPMI_OTHER;
}

/* Takes a name of 8-bit characters. For other encodings the sensor's number is used. */
static void take_name(const uint8_t *at, size_t size, char ret[IPMI_NAME_SIZE])
{
    size_t used = 0;

    for (size_t k = 0;
         at[0] >> 6 == PLAIN_NAME && k < (size_t)(at[0] & 0x1f) && k < size && at[1 + k] != 0;
         k++) {
        const char c = (char)at[1 + k];
        const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                           (c >= 'a' && c <= 'z') || (c != 0 && strchr("._+-", c) != NULL);
        if (used + 1 < IPMI_NAME_SIZE) {
            ret[used++] = plain ? c : '_';
        }
    }
    ret[used] = 0;
}

int ipmi_read_record(const uint8_t *record, size_t size, struct ipmi_record *ret)
{
    *ret = (struct ipmi_record){.next = ret->next};
    if (size < HEADER || size != (size_t)HEADER + record[4]) {
        return -EBADMSG;
    }
    if (record[2] != VERSION || (record[3] != FULL && record[3] != COMPACT)) {
        return 0;
    }
    const size_t name = record[3] == FULL ? NAME_OF_FULL : NAME_OF_COMPACT;
    if (size <= name || size < name + 1 + (record[name] & 0x1f)) {
        return -EBADMSG;
    }
    if (record[5] == BMC) {
        ret->kind = kind_of(record[12], record[13] & 0x7f);
        ret->lun = record[6] & 0x03;
        ret->number = record[7];
        ret->reading = record[13] & 0x7f;
        take_name(record + name, size - name - 1, ret->name);
    }
    return 0;
}

static enum ipmi_state of_threshold(unsigned bits)
{
    return (bits & 0x36) != 0   ? IPMI_CRITICAL /* critical, and non-recoverable */
           : (bits & 0x09) != 0 ? IPMI_NEAR
                                : IPMI_OK;
}

/* NOT_REDUNDANT: lost, or only the needed parts are left. NEAR: less redundancy than before. */
static enum ipmi_state of_redundancy(unsigned bits)
{
    return (bits & 0x3a) != 0 ? IPMI_NOT_REDUNDANT : (bits & 0xc4) != 0 ? IPMI_NEAR : IPMI_OK;
}

static enum ipmi_state of_supply(unsigned bits)
{
    return (bits & 0x02) != 0   ? IPMI_FAILED
           : (bits & 0x38) != 0 ? IPMI_NO_INPUT /* input lost, or out of range */
           : (bits & 0x44) != 0
               ? IPMI_NEAR /* a predicted failure; or it does not fit the other supplies */
           : (bits & 0x01) != 0 ? IPMI_OK
                                : IPMI_ABSENT;
}

int ipmi_read_state(const struct ipmi_record *record, const uint8_t *data, size_t size,
                    enum ipmi_state *ret)
{
    if (size < 2) {
        return -EBADMSG;
    }
    if ((data[1] & 0x20) != 0 || (data[1] & 0x40) == 0) {
        /* no reading now; or the sensor is not scanned */
        *ret = IPMI_UNAVAILABLE;
        return 0;
    }
    if (size < 3) {
        return -EBADMSG;
    }
    *ret = record->reading == THRESHOLD    ? of_threshold(data[2] & 0x3f)
           : record->reading == REDUNDANCY ? of_redundancy(data[2])
           : record->kind == IPMI_POWER    ? of_supply(data[2] & 0x7f)
                                           : IPMI_UNAVAILABLE;
    return 0;
}
