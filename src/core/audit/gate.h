/* gate.h: may this host take a job? Only checks of severity `block` count; nothing but skips is no pass. */
#pragma once
#include "core/audit/judge.h"

enum { GATE_LINE_SIZE = 512 };

struct gate {
    enum audit_status status;
    const struct audit_result *worst; /* NULL: nothing was judged */
    uint32_t counts[AUDIT_STATUS_COUNT];
    bool unread; /* none of them is known, all for one reason: it is the host's and no check's */
};

struct gate gate_of(const struct audit *a, uint32_t sheet);
/* One line for people and schedulers: it may name other hosts. */
const char *gate_line(const struct gate *g, char ret_text[GATE_LINE_SIZE]);
