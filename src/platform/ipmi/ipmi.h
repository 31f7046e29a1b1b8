/* ipmi.h: the machine's baseboard controller (BMC) by IPMI 2.0: chassis, sensors, and its log of events. Numbers of sections and
 * tables in comments are those of "Intelligent Platform Management Interface Specification Second Generation v2.0".
 *
 * How a request gets to the controller is the owner's choice: the kernel's /dev/ipmi0 (device.c), or replies that were recorded.
 * Every request here only reads. Sensors of other controllers than the BMC are left out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IPMI_REPLY_MAX = 272, IPMI_NAME_SIZE = 32, IPMI_LAST_RECORD = 0xffff };

struct ipmi_request {
    uint8_t function, lun, command, size, data[8];
};
struct ipmi {
    /* The reply's size, its completion code first; -ETIMEDOUT, -EPERM, … */
    int (*send)(void *context, const struct ipmi_request *request,
                uint8_t ret_reply[IPMI_REPLY_MAX]);
    void *context;
};

/* ---- device.c ---- */
/* A descriptor; what open() answered. */
int ipmi_device_open(const char *path);
/* Of struct ipmi; context: the descriptor, an int. */
int ipmi_device_send(void *context, const struct ipmi_request *request,
                     uint8_t ret_reply[IPMI_REPLY_MAX]);

/* ---- what is asked; -EIO: the controller answered with an error; -ENOSYS: it has no such command ---- */
struct ipmi_chassis { /* 28.2 */
    bool overload, power_fault, cooling_fault, drive_fault;
};
struct ipmi_log { /* 31.2 */
    uint32_t entries;
    bool overflow; /* events were lost since it was cleared */
};
enum ipmi_sensor_kind { IPMI_OTHER, IPMI_TEMPERATURE, IPMI_FAN, IPMI_POWER };
struct ipmi_record { /* 43.1, 43.2 */
    uint16_t next;
    enum ipmi_sensor_kind kind;   /* OTHER: none that is of interest here */
    uint8_t lun, number, reading; /* reading: what its states mean, table 42-2 */
    char name[IPMI_NAME_SIZE];    /* letters, digits and . _ + - ; "": it has none */
};
enum ipmi_state {
    IPMI_OK,
    IPMI_ABSENT, /* a place without a fan or power supply */
    IPMI_NEAR,   /* beyond a limit that is not critical, or about to fail */
    IPMI_CRITICAL,
    IPMI_FAILED,
    IPMI_NO_INPUT, /* a power supply without power */
    IPMI_NOT_REDUNDANT,
    IPMI_UNAVAILABLE, /* the controller does not know now, or its states have no meaning here */
    IPMI_STATE_COUNT
};
const char *ipmi_state_name(enum ipmi_state state); /* "ok", … */

int ipmi_chassis(const struct ipmi *i, struct ipmi_chassis *ret);
int ipmi_log(const struct ipmi *i, struct ipmi_log *ret);
/* The first one is 0. */
int ipmi_record(const struct ipmi *i, uint16_t id, struct ipmi_record *ret);
int ipmi_state(const struct ipmi *i, const struct ipmi_record *record, enum ipmi_state *ret);

/* ---- read.c: what a reply's data holds, behind the completion code; -EBADMSG: cut, or of another form ---- */
int ipmi_read_chassis(const uint8_t *data, size_t size, struct ipmi_chassis *ret);
int ipmi_read_log(const uint8_t *data, size_t size, struct ipmi_log *ret);
/* Of a record alone: `next` stays. */
int ipmi_read_record(const uint8_t *record, size_t size, struct ipmi_record *ret);
int ipmi_read_state(const struct ipmi_record *record, const uint8_t *data, size_t size,
                    enum ipmi_state *ret);
