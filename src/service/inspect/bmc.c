/* bmc.c: facts from the machine's baseboard controller: power, fans, temperatures, and whether its log still has room for
 * events. Below another root the replies are the file /answers/ipmi, one line for each request: function, lun and command, the
 * request's data, "=", the reply. All are hexadecimal digits; "-" stands for no data. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bug.h"
#include "platform/ipmi/ipmi.h"
#include "service/inspect/collect.h"

#define ANSWERS "/answers/ipmi"

enum { RECORDS_MAX = 1024 };

static const char *const devices[] = {"/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"};

struct bmc {
    int fd;         /* -1: replies were recorded */
    char *recorded; /* NULL: no replies were recorded */
    FILE *kept;     /* for a capture: each request and its reply */
};

/* ---- requests ---- */

static void hex(const uint8_t *bytes, int size, char *ret)
{
    snprintf(ret, 2, "%s", size == 0 ? "-" : "");
    for (int i = 0; i < size; i++) {
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    }
}

static void line_of(const struct ipmi_request *q, char ret[48])
{
    char data[2 * sizeof(q->data) + 2];

    hex(q->data, q->size, data);
    snprintf(ret, 48, "%02x%02x%02x %s = ", q->function, q->lun, q->command, data);
}

static int bytes_of(const char *digits, uint8_t ret[IPMI_REPLY_MAX])
{
    int size = 0;
    unsigned byte;

    while (digits[0] != '\n' && digits[0] != '\0') {
        if (size == IPMI_REPLY_MAX || digits[1] == '\0' || sscanf(digits, "%2x", &byte) != 1) {
            return -EBADMSG;
        }
        ret[size++] = (uint8_t)byte;
        digits += 2;
    }
    return size;
}

static int send_recorded(const struct bmc *b, const char *line, uint8_t ret_reply[IPMI_REPLY_MAX])
{
    const size_t size = strlen(line);

    for (const char *at = b->recorded; at != NULL && *at != '\0';) {
        if (strncmp(at, line, size) == 0) {
            return bytes_of(at + size, ret_reply);
        }
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return -EIO; /* the recording has no reply to this request */
}

static int send_one(void *context, const struct ipmi_request *request,
                    uint8_t ret_reply[IPMI_REPLY_MAX])
{
    struct bmc *b = context;
    char line[48], reply[2 * IPMI_REPLY_MAX + 2];

    line_of(request, line);
    if (b->fd < 0) {
        return send_recorded(b, line, ret_reply);
    }
    const int size = ipmi_device_send(&b->fd, request, ret_reply);
    if (size > 0 && b->kept != NULL) {
        hex(ret_reply, size, reply);
        fprintf(b->kept, "%s%s\n", line, reply);
    }
    return size;
}

/* ---- facts ---- */

static const char *source_of(const struct collector *c)
{
    return c->tree != NULL ? ANSWERS : devices[0];
}

static void put_state(struct collector *c, const char *name, const char *state)
{
    char subject[64];

    snprintf(subject, sizeof(subject), "bmc/%s", name);
    put(c, FACT_SENSOR, subject, subject, source_of(c));
    put(c, FACT_SENSOR_STATE, subject, state, source_of(c));
}

static void put_missing(struct collector *c, const char *name, int error)
{
    char subject[64];

    snprintf(subject, sizeof(subject), "bmc/%s", name);
    put(c, FACT_SENSOR, subject, subject, source_of(c));
    put_error(c, FACT_SENSOR_STATE, subject, error, source_of(c));
}

static void put_chassis(struct collector *c, const struct ipmi *i)
{
    struct ipmi_chassis chassis;
    const int r = ipmi_chassis(i, &chassis);

    if (r < 0) {
        put_missing(c, "chassis", r);
        return;
    }
    put_state(c, "chassis_power",
              ipmi_state_name(chassis.power_fault ? IPMI_FAILED
                              : chassis.overload  ? IPMI_CRITICAL
                                                  : IPMI_OK));
    put_state(c, "chassis_cooling", ipmi_state_name(chassis.cooling_fault ? IPMI_FAILED : IPMI_OK));
    put_state(c, "chassis_drives", ipmi_state_name(chassis.drive_fault ? IPMI_FAILED : IPMI_OK));
}

static void put_log(struct collector *c, const struct ipmi *i)
{
    struct ipmi_log log;
    const int r = ipmi_log(i, &log);

    if (r < 0) {
        put_missing(c, "log", r);
    } else {
        put_state(c, "log", log.overflow ? "full" : "ok");
    }
}

/* Several sensors may have the same name, so lun and number belong to the subject. */
static void put_sensor(struct collector *c, const struct ipmi *i, const struct ipmi_record *record)
{
    static const char *const kinds[] = {"", "temperature", "fan", "power"};
    enum ipmi_state state;
    char name[56];
    const int r = ipmi_state(i, record, &state);

    snprintf(name, sizeof(name), "%s.%u.%u",
             record->name[0] != 0 ? record->name : kinds[record->kind], record->lun,
             record->number);
    if (r < 0) {
        put_missing(c, name, r);
    } else if (state != IPMI_UNAVAILABLE) {
        put_state(c, name, ipmi_state_name(state));
    }
}

static void put_sensors(struct collector *c, const struct ipmi *i)
{
    const int64_t end = now_ms() + c->config->mount_deadline_ms;
    struct ipmi_record record = {.next = 0};
    int r = 0;

    for (int n = 0; n < RECORDS_MAX && record.next != IPMI_LAST_RECORD; n++) {
        const uint16_t id = record.next;
        r = now_ms() >= end ? -ETIMEDOUT : ipmi_record(i, id, &record);
        if (r < 0) {
            break;
        }
        if (record.kind != IPMI_OTHER) {
            put_sensor(c, i, &record);
        }
        r = record.next == id ? -EBADMSG : 0; /* a record that follows itself would loop for ever */
    }
    if (r < 0 || record.next != IPMI_LAST_RECORD) { /* the list may have more records */
        put_missing(c, "sensors", r < 0 ? r : -EMSGSIZE);
    }
}

/* ---- the collector ---- */

static int find(struct collector *c, struct bmc *b)
{
    int r = -ENOENT;

    if (c->tree != NULL) {
        r = collect_file(c, ANSWERS);
        b->recorded = r >= 0 ? strdup(c->text) : NULL;
        return r >= 0 && b->recorded == NULL ? -ENOMEM : r;
    }
    for (size_t i = 0; i < ARRAY_COUNT(devices) && r == -ENOENT; i++) {
        r = ipmi_device_open(devices[i]);
    }
    b->fd = r;
    return r;
}

void collect_bmc(struct collector *c)
{
    struct bmc b = {.fd = -1};
    const struct ipmi ipmi = {.send = send_one, .context = &b};
    char *kept = NULL;
    size_t size = 0;
    const int r = find(c, &b);

    if (r < 0) {
        /* a machine without a controller has no missing sensors */
        if (state_of(r) != FACT_ABSENT) {
            put_missing(c, "sensors", r);
        }
        return;
    }
    b.kept = b.fd >= 0 && c->config->capture != NULL ? open_memstream(&kept, &size) : NULL;
    put_chassis(c, &ipmi);
    put_log(c, &ipmi);
    put_sensors(c, &ipmi);
    if (b.kept != NULL) {
        fclose(b.kept);
        keep_answer(c, ANSWERS, 0, kept);
        free(kept);
    }
    if (b.fd >= 0) {
        close(b.fd);
    }
    free(b.recorded);
}
