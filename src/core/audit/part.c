/* part.c: see part.h. */
#include "core/audit/part.h"

#include <string.h>

#include "base/bug.h"

enum { LINE_MAX_ = 2 * FACT_VALUE_MAX + FACT_SUBJECT_MAX + 128, FIELDS = 5 };

/* That name one machine. */
static const uint16_t own[] = {FACT_OS_MACHINE_ID, FACT_NET_ADDRESS, FACT_RDMA_GUID, FACT_PORT_LID};
/* That are others with each look, on a machine that nobody touched. */
static const uint16_t now[] = {FACT_OS_UPTIME,
                               FACT_OS_BOOT_ID,
                               FACT_OS_LOG,
                               FACT_OS_LOG_LOST,
                               FACT_OS_LOG_LOCKUP,
                               FACT_OS_LOG_MCE,
                               FACT_OS_LOG_NIC,
                               FACT_OS_LOG_POWER,
                               FACT_OS_LOG_XID,
                               FACT_OS_ZOMBIES,
                               FACT_OS_BLOCKED,
                               FACT_OS_RETRANS,
                               FACT_OS_SEGMENTS,
                               FACT_MEM_AVAILABLE,
                               FACT_MEM_CE,
                               FACT_MEM_UE,
                               FACT_MEM_BLOCKS,
                               FACT_PCI_AER_FATAL,
                               FACT_PCI_AER_NONFATAL,
                               FACT_PCI_AER_CORRECTED,
                               FACT_GPU_UE,
                               FACT_GPU_USERS,
                               FACT_NET_DOWNS,
                               FACT_NET_IRQS,
                               FACT_NET_IRQS_FAR,
                               FACT_NET_NEIGHBOUR,
                               FACT_PORT_SYMBOLS,
                               FACT_PORT_DOWNS,
                               FACT_PORT_DISCARDS,
                               FACT_DISK_USED,
                               FACT_SENSOR_C,
                               FACT_JOB_LAUNCHER,
                               FACT_JOB_MEMLOCK,
                               FACT_GPU_THROTTLE,
                               FACT_GPU_REPLAYS,
                               FACT_NET_FEC_CORRECTED,
                               FACT_NET_FEC_LOST,
                               FACT_NET_RX_BYTES,
                               FACT_NET_MODULE_ALARM,
                               FACT_NET_MODULE_RX,
                               FACT_SITE_STATUS,
                               FACT_SITE_OUTPUT,
                               FACT_EDGE,
                               FACT_LANE,
                               FACT_AGENT,
                               FACT_CLOCK_STATUS,
                               FACT_CLOCK_BOUND,
                               FACT_CLOCK_UTC,
                               FACT_CLOCK_RATE,
                               FACT_TEST_RATE,
                               FACT_TEST_RUNS,
                               FACT_TEST_SPREAD,
                               FACT_TEST_WRONG,
                               FACT_TEST_INIT,
                               FACT_TEST_DCGM};

const char *sheet_part_name(unsigned part)
{
    return part == PART_OWN ? "own" : part == PART_NOW ? "now" : fact_section_name(part);
}

unsigned sheet_part_by_name(const char *name)
{
    unsigned part = 0;

    while (part < PART_COUNT && strcmp(sheet_part_name(part), name) != 0) {
        part++;
    }
    return part;
}

static bool among(const uint16_t *list, size_t count, enum fact_id id)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == id) {
            return true;
        }
    }
    return false;
}

unsigned sheet_part_of(enum fact_id id)
{
    return among(own, ARRAY_COUNT(own), id)   ? PART_OWN
           : among(now, ARRAY_COUNT(now), id) ? PART_NOW
                                              : fact_section(id);
}

static void put(char *to, size_t size, size_t *used, const char *text, char end)
{
    for (; *text != '\0'; text++, ++*used) {
        if (*used < size) {
            to[*used] = *text;
        }
    }
    if (*used < size) {
        to[*used] = end;
    }
    ++*used;
}

size_t sheet_part_encode(const struct sheet *s, unsigned part, char *to, size_t size)
{
    size_t used = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct fact *f = &s->facts[i];
        if (sheet_part_of(f->id) == part) {
            put(to, size, &used, fact_name(f->id), '\t');
            put(to, size, &used, fact_state_name(f->state), '\t');
            put(to, size, &used, f->subject, '\t');
            put(to, size, &used, f->value, '\t');
            put(to, size, &used, f->source, '\n');
        }
    }
    return used;
}

/* One line, 0-terminated; its tabs become ends. */
static void take_line(struct sheet *s, char *line)
{
    char *fields[FIELDS] = {line};
    int count = 1;

    for (char *at = line; *at != '\0'; at++) {
        if (*at == '\t') {
            *at = '\0';
            if (count == FIELDS) {
                return;
            }
            fields[count++] = at + 1;
        }
    }
    if (count < FIELDS) {
        return;
    }
    const struct fact f = {.id = (uint16_t)fact_by_name(fields[0]),
                           .state = (uint8_t)fact_state_by_name(fields[1]),
                           .subject = fields[2],
                           .value = fields[3],
                           .source = fields[4]};
    if (f.id < FACT_COUNT && f.state < FACT_STATE_COUNT) {
        sheet_add(s, &f);
    }
}

void sheet_part_decode(struct sheet *s, const char *text, size_t size)
{
    char line[LINE_MAX_];

    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t length = end != NULL ? (size_t)(end - text) - at : size - at;
        if (length < sizeof(line) && memchr(text + at, '\0', length) == NULL) {
            memcpy(line, text + at, length);
            line[length] = '\0';
            take_line(s, line);
        }
        at += length + 1;
    }
}

uint32_t sheet_part_facts(const char *text, size_t size)
{
    uint32_t count = 1;

    for (size_t i = 0; i < size; i++) {
        count += text[i] == '\n';
    }
    return count;
}
