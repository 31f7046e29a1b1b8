/* module_memory.c: see module_memory.h. Offsets are from SFF-8636 6.2 and 6.3, CMIS 5.2 8.2, 8.3 and 8.10, SFF-8472 table 4-1. */
#include "platform/netlink/module_memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    SFP = 0x03,
    QSFP = 0x0c,
    QSFP_PLUS = 0x0d,
    QSFP28 = 0x11,
    QSFP_DD = 0x18,
    OSFP = 0x19,
    QSFP_CMIS = 0x1e,
    LOWER = 128 /* offset of the upper half */
};

static bool is_cmis(uint8_t kind)
{
    return kind == QSFP_DD || kind == OSFP || kind == QSFP_CMIS;
}

static bool is_qsfp(uint8_t kind)
{
    return kind == QSFP || kind == QSFP_PLUS || kind == QSFP28;
}

bool module_has_lanes(const uint8_t lower[static 128])
{
    return is_cmis(lower[0]) && (lower[2] & 0x80) == 0; /* not flat memory: it has pages */
}

/* Appends a name that is padded with blanks. -EBADMSG: it has unprintable characters. */
static int append(char *text, size_t size, const uint8_t *name, size_t length)
{
    const size_t used = strlen(text);

    while (length > 0 && (name[length - 1] == ' ' || name[length - 1] == 0)) {
        length--;
    }
    for (size_t i = 0; i < length; i++) {
        if (!isprint(name[i])) {
            return -EBADMSG;
        }
    }
    snprintf(text + used, size - used, "%s%.*s", used > 0 && length > 0 ? " " : "", (int)length,
             (const char *)name);
    return 0;
}

static int put_part(struct module_memory *m, const uint8_t *maker, const uint8_t *part,
                    const uint8_t *revision, size_t revision_size)
{
    const int r = append(m->part, sizeof(m->part), maker, 16);
    const int also = append(m->part, sizeof(m->part), part, 16);
    const int last = append(m->part, sizeof(m->part), revision, revision_size);

    return r < 0 || also < 0 || last < 0 || m->part[0] == '\0' ? -EBADMSG : 0;
}

static void alarm(struct module_memory *m, bool set, const char *what)
{
    const size_t used = strlen(m->alarm);

    if (set) {
        snprintf(m->alarm + used, sizeof(m->alarm) - used, "%s%s", used > 0 ? ", " : "", what);
    }
}

static void darkest(struct module_memory *m, const uint8_t *powers, int lanes)
{
    for (int i = 0; i < lanes; i++) {
        const int power = powers[2 * i] << 8 | powers[2 * i + 1];
        /* lanes that the module does not have are zero */
        if (power > 0 && (m->rx < 0 || power < m->rx)) {
            m->rx = power;
        }
    }
}

static int read_cmis(const uint8_t *lower, const uint8_t *upper, const uint8_t *lanes,
                     struct module_memory *m)
{
    alarm(m, (lower[9] & 0x01) != 0, "temperature high");
    alarm(m, (lower[9] & 0x02) != 0, "temperature low");
    alarm(m, (lower[9] & 0x30) != 0, "supply voltage");
    if (lanes != NULL) {
        alarm(m, lanes[135 - LOWER] != 0, "tx fault");
        alarm(m, lanes[139 - LOWER] != 0, "tx power high");
        alarm(m, lanes[140 - LOWER] != 0, "tx power low");
        alarm(m, (lanes[143 - LOWER] | lanes[144 - LOWER]) != 0, "tx bias");
        alarm(m, lanes[147 - LOWER] != 0, "rx loss of signal");
        alarm(m, lanes[149 - LOWER] != 0, "rx power high");
        alarm(m, lanes[150 - LOWER] != 0, "rx power low");
        darkest(m, lanes + 186 - LOWER, 8);
    }
    return put_part(m, upper + 129 - LOWER, upper + 148 - LOWER, upper + 164 - LOWER, 2);
}

static int read_qsfp(const uint8_t *lower, const uint8_t *upper, struct module_memory *m)
{
    const bool copper = upper[147 - LOWER] >> 4 >= 0xa;

    alarm(m, (lower[6] & 0x80) != 0, "temperature high");
    alarm(m, (lower[6] & 0x40) != 0, "temperature low");
    alarm(m, (lower[7] & 0xc0) != 0, "supply voltage");
    if (!copper) {
        alarm(m, (lower[3] & 0x0f) != 0, "rx loss of signal");
        alarm(m, (lower[4] & 0x0f) != 0, "tx fault");
        alarm(m, ((lower[9] | lower[10]) & 0x88) != 0, "rx power high");
        alarm(m, ((lower[9] | lower[10]) & 0x44) != 0, "rx power low");
        alarm(m, ((lower[11] | lower[12]) & 0xcc) != 0, "tx bias");
        darkest(m, lower + 34, 4);
    }
    return put_part(m, upper + 148 - LOWER, upper + 168 - LOWER, upper + 184 - LOWER, 2);
}

int module_read(const uint8_t lower[static 128], const uint8_t upper[static 128],
                const uint8_t *lanes, struct module_memory *ret)
{
    int r = -EBADMSG;

    *ret = (struct module_memory){.rx = -1};
    if (is_cmis(lower[0])) {
        r = read_cmis(lower, upper, lanes, ret);
    } else if (is_qsfp(lower[0])) {
        r = read_qsfp(lower, upper, ret);
    } else if (lower[0] == SFP) {
        r = put_part(ret, lower + 20, lower + 40, lower + 56, 4);
    }
    alarm(ret, ret->alarm[0] == '\0', "none");
    return r;
}
