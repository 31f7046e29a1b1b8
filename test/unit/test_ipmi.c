/* test_ipmi.c: replies of a baseboard controller, made up by the specification's tables, each cut at every byte; and a controller
 * that gives records only in pieces, complete and cut. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "platform/ipmi/ipmi.h"

static const uint8_t chassis_bytes[] = {0x0b, 0x00, 0x0c};
static const uint8_t log_bytes[14] = {0x51, 0xd6, 0x01, 0xf0, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0, 0x80};

/* Each size is in memory of its own, so that a read beyond it is found. */
#define REFUSES_CUTS(bytes, size, least, read, type)                                               \
    for (size_t cut = 0; cut <= (size); cut++) {                                                   \
        uint8_t *copy = malloc(cut + 1);                                                           \
        type value = {0};                                                                          \
        memcpy(copy, bytes, cut);                                                                  \
        assert_int_equal(read(copy, cut, &value), cut < (least) ? -EBADMSG : 0);                   \
        free(copy);                                                                                \
    }

static void chassis_and_log(void **state)
{
    struct ipmi_chassis chassis;
    struct ipmi_log log;

    (void)state;
    assert_int_equal(ipmi_read_chassis(chassis_bytes, sizeof(chassis_bytes), &chassis), 0);
    assert_true(chassis.overload && chassis.power_fault && chassis.cooling_fault &&
                chassis.drive_fault);
    assert_int_equal(ipmi_read_log(log_bytes, sizeof(log_bytes), &log), 0);
    assert_int_equal(log.entries, 470);
    assert_true(log.overflow);
    REFUSES_CUTS(chassis_bytes, sizeof(chassis_bytes), 3, ipmi_read_chassis, struct ipmi_chassis)
    REFUSES_CUTS(log_bytes, sizeof(log_bytes), 14, ipmi_read_log, struct ipmi_log)
}

/* A full record (43.1) or a compact one (43.2). */
static size_t record_of(uint8_t record[80], uint8_t type, uint8_t sensor, uint8_t reading,
                        const char *name)
{
    const size_t at = type == 1 ? 47 : 31, length = strlen(name);

    memset(record, 0, 80);
    record[2] = 0x51;
    record[3] = type;
    record[4] = (uint8_t)(at + 1 + length - 5);
    record[5] = 0x20;
    record[6] = 1;
    record[7] = 0x42;
    record[12] = sensor;
    record[13] = reading;
    record[at] = (uint8_t)(0xc0 | length);
    memcpy(record + at + 1, name, length);
    return at + 1 + length;
}

static void records(void **state)
{
    static const struct {
        uint8_t type, sensor, reading;
        enum ipmi_sensor_kind kind;
    } cases[] = {
        {1, 0x01, 0x01, IPMI_TEMPERATURE}, {1, 0x04, 0x01, IPMI_FAN},   {2, 0x04, 0x0b, IPMI_FAN},
        {2, 0x08, 0x6f, IPMI_POWER},       {2, 0x08, 0x0b, IPMI_POWER}, {2, 0x09, 0x0b, IPMI_POWER},
        {1, 0x02, 0x01, IPMI_OTHER}, /* a voltage */
        {2, 0x23, 0x6f, IPMI_OTHER}, /* a watchdog */
    };
    uint8_t bytes[80];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ipmi_record record = {.next = 9};
        const size_t size =
            record_of(bytes, cases[i].type, cases[i].sensor, cases[i].reading, "PSU 1/In");
        assert_int_equal(ipmi_read_record(bytes, size, &record), 0);
        assert_int_equal(record.kind, cases[i].kind);
        assert_int_equal(record.number, 0x42);
        assert_int_equal(record.lun, 1);
        assert_int_equal(record.next, 9);
        assert_string_equal(record.name, "PSU_1_In");
        REFUSES_CUTS(bytes, size, size, ipmi_read_record, struct ipmi_record)
    }
    struct ipmi_record other = {0};
    size_t size = record_of(bytes, 1, 0x01, 0x01, "x");
    bytes[5] = 0x2c; /* another controller's */
    assert_int_equal(ipmi_read_record(bytes, size, &other), 0);
    assert_int_equal(other.kind, IPMI_OTHER);
    size = record_of(bytes, 1, 0x01, 0x01, "x");
    bytes[3] = 0x11; /* where a serial number is to be found */
    assert_int_equal(ipmi_read_record(bytes, size, &other), 0);
    assert_int_equal(other.kind, IPMI_OTHER);
    size = record_of(bytes, 1, 0x01, 0x01, "x");
    bytes[47] = 0x1f | 0xc0; /* a name that is longer than its record */
    assert_int_equal(ipmi_read_record(bytes, size, &other), -EBADMSG);
}

static enum ipmi_state state_of(enum ipmi_sensor_kind kind, uint8_t reading, uint8_t flags,
                                uint8_t bits)
{
    const struct ipmi_record record = {.kind = kind, .reading = reading};
    const uint8_t bytes[] = {0x80, flags, bits, 0x80};
    enum ipmi_state state;

    assert_int_equal(ipmi_read_state(&record, bytes, sizeof(bytes), &state), 0);
    for (size_t size = 0; size < 3; size++) { /* without its states nothing counts as well */
        enum ipmi_state cut = IPMI_OK;
        const int r = ipmi_read_state(&record, bytes, size, &cut);
        assert_true(r == -EBADMSG || cut == IPMI_UNAVAILABLE);
    }
    return state;
}

static void states(void **state)
{
    (void)state;
    assert_int_equal(state_of(IPMI_FAN, 0x01, 0xc0, 0xc0), IPMI_OK); /* the upper bits are none */
    assert_int_equal(state_of(IPMI_FAN, 0x01, 0xc0, 0x01), IPMI_NEAR);
    assert_int_equal(state_of(IPMI_FAN, 0x01, 0xc0, 0x03), IPMI_CRITICAL);
    assert_int_equal(state_of(IPMI_TEMPERATURE, 0x01, 0xc0, 0x10), IPMI_CRITICAL);
    assert_int_equal(state_of(IPMI_TEMPERATURE, 0x01, 0xc0, 0x20), IPMI_CRITICAL);
    assert_int_equal(state_of(IPMI_TEMPERATURE, 0x01, 0xe0, 0x20), IPMI_UNAVAILABLE);
    assert_int_equal(state_of(IPMI_TEMPERATURE, 0x01, 0x80, 0x20), IPMI_UNAVAILABLE);
    assert_int_equal(state_of(IPMI_POWER, 0x6f, 0xc0, 0x01), IPMI_OK);
    assert_int_equal(state_of(IPMI_POWER, 0x6f, 0xc0, 0x00), IPMI_ABSENT);
    assert_int_equal(state_of(IPMI_POWER, 0x6f, 0xc0, 0x03), IPMI_FAILED);
    assert_int_equal(state_of(IPMI_POWER, 0x6f, 0xc0, 0x05), IPMI_NEAR);
    assert_int_equal(state_of(IPMI_POWER, 0x6f, 0xc0, 0x09), IPMI_NO_INPUT);
    assert_int_equal(state_of(IPMI_POWER, 0x0b, 0xc0, 0x01), IPMI_OK);
    assert_int_equal(state_of(IPMI_POWER, 0x0b, 0xc0, 0x02), IPMI_NOT_REDUNDANT);
    assert_int_equal(state_of(IPMI_POWER, 0x0b, 0xc0, 0x04), IPMI_NEAR);
}

/* ---- a controller ---- */

struct controller {
    uint8_t record[80];
    size_t size, most; /* of a reply's data; longer replies are refused */
    size_t cut;        /* so many bytes of each reply come */
    int reservations;
};

static int reply_to(void *context, const struct ipmi_request *q, uint8_t reply[IPMI_REPLY_MAX])
{
    struct controller *c = context;
    size_t size = 1;

    reply[0] = 0;
    if (q->command == 0x22) {
        c->reservations++;
        reply[1] = 0x34;
        reply[2] = 0x12;
        size = 3;
    } else {
        const size_t at = q->data[4], left = c->size > at ? c->size - at : 0,
                     n = q->data[5] == 0xff || q->data[5] > left ? left : q->data[5];
        assert_true(at == 0 || (q->data[0] == 0x34 && q->data[1] == 0x12));
        reply[0] = n > c->most ? 0xca : 0;
        reply[1] = 0x07;
        reply[2] = 0x00;
        memcpy(reply + 3, c->record + at, n);
        size = reply[0] != 0 ? 1 : 3 + n;
    }
    return (int)(size < c->cut ? size : c->cut);
}

static void pieces(void **state)
{
    struct controller c = {.cut = SIZE_MAX, .most = 255};
    const struct ipmi ipmi = {.send = reply_to, .context = &c};
    struct ipmi_record whole, record;

    (void)state;
    c.size = record_of(c.record, 1, 0x01, 0x01, "Inlet");
    assert_int_equal(ipmi_record(&ipmi, 6, &whole), 0);
    assert_int_equal(whole.next, 7);
    assert_int_equal(c.reservations, 0);
    c.most = 16;
    assert_int_equal(ipmi_record(&ipmi, 6, &record), 0);
    assert_int_equal(c.reservations, 1);
    assert_memory_equal(&record, &whole, sizeof(whole));
    for (size_t most = 16; most <= 255; most += 239) {
        for (c.cut = 0, c.most = most; c.cut < 19; c.cut++) {
            record = (struct ipmi_record){0};
            const int r = ipmi_record(&ipmi, 6, &record);
            assert_true(r < 0 || memcmp(&record, &whole, sizeof(whole)) == 0);
        }
    }
}

static int refuse(void *context, const struct ipmi_request *q, uint8_t reply[IPMI_REPLY_MAX])
{
    (void)q;
    reply[0] = *(const uint8_t *)context;
    return 1;
}

static void refusals(void **state)
{
    static const struct {
        uint8_t code;
        int error;
    } cases[] = {{0xc1, -ENOSYS}, {0xc0, -EBUSY}, {0xc3, -ETIMEDOUT}, {0xd4, -EPERM}, {0xff, -EIO}};
    const struct ipmi_record sensor = {.kind = IPMI_FAN, .reading = 1};
    uint8_t code;
    const struct ipmi ipmi = {.send = refuse, .context = &code};
    struct ipmi_chassis chassis;
    struct ipmi_record record;
    enum ipmi_state is;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        code = cases[i].code;
        assert_int_equal(ipmi_chassis(&ipmi, &chassis), cases[i].error);
        assert_int_equal(ipmi_record(&ipmi, 0, &record), cases[i].error);
        assert_int_equal(ipmi_state(&ipmi, &sensor, &is), cases[i].error);
    }
    code = 0xcb;
    assert_int_equal(ipmi_state(&ipmi, &sensor, &is), 0);
    assert_int_equal(is, IPMI_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chassis_and_log), cmocka_unit_test(records),  cmocka_unit_test(states),
        cmocka_unit_test(pieces),          cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
