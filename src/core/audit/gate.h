/* gate.h: may this host take a job? Only checks of severity `block` count. If all of them are skips, it is no pass. */
#pragma once
#include "core/audit/device.h"
#include "core/audit/judge.h"

enum { GATE_LINE_SIZE = 640 };

struct gate {
    enum audit_status status;
    const struct audit_result *worst; /* NULL: nothing was judged */
    uint32_t counts[AUDIT_STATUS_COUNT];
    /* none of them could be judged, all for the same reason: the reason is the host's, not a check's */
    bool unread;
    char device[DEVICE_NAME_SIZE]; /* of the worst one's subject (device.h) */
};

struct gate gate_of(const struct audit *a, uint32_t sheet);
/* One line of text for people and schedulers. It may name other hosts. */
const char *gate_line(const struct gate *g, char ret_text[GATE_LINE_SIZE]);
