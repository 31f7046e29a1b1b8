/* ipmi.h: reads the machine's baseboard controller (BMC) with IPMI 2.0: chassis, sensors, and its log of events. Numbers of
 * sections and tables in comments are those of "Intelligent Platform Management Interface Specification Second Generation
 * v2.0".
 *
 * The owner chooses the way to the controller: the kernel's /dev/ipmi0 (device.c), or recorded replies. Every request here
 * only reads. Sensors of other controllers than the BMC are left out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IPMI_REPLY_MAX = 272, IPMI_NAME_SIZE = 32, IPMI_LAST_RECORD = 0xffff };

struct ipmi_request {
    uint8_t function, lun, command, size, data[8];
};
struct ipmi {
    /* Returns the reply's size; its first byte is the completion code. -ETIMEDOUT, -EPERM, … */
    int (*send)(void *context, const struct ipmi_request *request,
                uint8_t ret_reply[IPMI_REPLY_MAX]);
    void *context;
};

/* ---- device.c ---- */
/* Returns a descriptor, or an error of open(). */
int ipmi_device_open(const char *path);
/* For struct ipmi; context: the descriptor, an int. */
int ipmi_device_send(void *context, const struct ipmi_request *request,
                     uint8_t ret_reply[IPMI_REPLY_MAX]);

/* ---- what is asked; -EIO: the controller answered with an error; -ENOSYS: it has no such command ---- */
struct ipmi_chassis { /* 28.2 */
    bool overload, power_fault, cooling_fault, drive_fault;
};
struct ipmi_log { /* 31.2 */
    uint32_t entries;
    bool overflow; /* events were lost since the log was cleared */
};
enum ipmi_sensor_kind { IPMI_OTHER, IPMI_TEMPERATURE, IPMI_FAN, IPMI_POWER };
struct ipmi_record { /* 43.1, 43.2 */
    uint16_t next;
    enum ipmi_sensor_kind kind;   /* OTHER: not used here */
    uint8_t lun, number, reading; /* reading: type of the states, table 42-2 */
    char name[IPMI_NAME_SIZE];    /* letters, digits and . _ + - ; "": no name */
};
enum ipmi_state {
    IPMI_OK,
    IPMI_ABSENT, /* no fan or power supply is installed there */
    IPMI_NEAR,   /* beyond a non-critical limit, or a failure is predicted */
    IPMI_CRITICAL,
    IPMI_FAILED,
    IPMI_NO_INPUT, /* a power supply without input power */
    IPMI_NOT_REDUNDANT,
    IPMI_UNAVAILABLE, /* no reading now, or its states are not known here */
    IPMI_STATE_COUNT
};
const char *ipmi_state_name(enum ipmi_state state); /* "ok", … */

int ipmi_chassis(const struct ipmi *i, struct ipmi_chassis *ret);
int ipmi_log(const struct ipmi *i, struct ipmi_log *ret);
/* The first record has id 0. */
int ipmi_record(const struct ipmi *i, uint16_t id, struct ipmi_record *ret);
int ipmi_state(const struct ipmi *i, const struct ipmi_record *record, enum ipmi_state *ret);

/* ---- read.c: what a reply's data holds, behind the completion code; -EBADMSG: cut, or of another form ---- */
int ipmi_read_chassis(const uint8_t *data, size_t size, struct ipmi_chassis *ret);
int ipmi_read_log(const uint8_t *data, size_t size, struct ipmi_log *ret);
/* Parses only the record: `next` stays. */
int ipmi_read_record(const uint8_t *record, size_t size, struct ipmi_record *ret);
int ipmi_read_state(const struct ipmi_record *record, const uint8_t *data, size_t size,
                    enum ipmi_state *ret);
