/* fault.h: faults of a lab: each one lives in a helper process until its time is over or it is undone.
 *
 * LAB_ROOT/NAME/fault/<ID> is the fault's state, mapped by its helper; the helper lives in leaf 0's namespace, so
 * `down` finds it. Where a helper was killed, `undo` does its work from the state alone.
 * LAB_ROOT/NAME/events gets a JSON line at each moment that something took effect or ended, with the machine's
 * raw time taken just before and just after: what detection times are measured against. */
#pragma once
#include "lab/lab.h"

#include <sys/types.h>

#define LAB_FAULT_ID_MAX 9999

struct lab_fault {
    int id;
    pid_t pid;
    int32_t is_on;        /* in effect */
    int32_t error;        /* -errno, if it couldn't be put into effect */
    int64_t begin_raw_ns; /* when it was first in effect */
    int64_t end_raw_ns;   /* 0: only an undo ends it */
    struct scenario_fault fault;
};

/* NULL: the lab can make it; else what it can't, in words. */
const char *lab_fault_cannot(const struct scenario_fault *fault);

/* Puts it into effect and returns; at_ns is ignored. A delay on a place that has one changes that one, for as
 * long. -EOPNOTSUPP: only the simulator can. */
MUST_CHECK int lab_fault_start(const struct lab *lab, const struct scenario_fault *fault,
                               int *ret_id);
/* -ENOENT: no such fault. Returns when it is undone. */
MUST_CHECK int lab_fault_undo(const struct lab *lab, int id);
/* Calls visit for each fault that there is, in order. */
void lab_fault_each(const struct lab *lab, void (*visit)(const struct lab_fault *state, void *data),
                    void *data);
/* "flap nic 0.0, 3 times" */
void lab_fault_text(const struct scenario_fault *fault, char ret_text[LAB_TEXT_SIZE]);

/* ---- what the helper does: fault_act.c ---- */
MUST_CHECK int lab_fault_apply(const struct lab *lab, const struct lab_fault *state);
MUST_CHECK int lab_fault_unapply(const struct lab *lab, const struct lab_fault *state);
/* Lives through the fault: returns when it is over or stop_fd is readable; `apply` and `unapply` are its own. */
MUST_CHECK int lab_fault_play(const struct lab *lab, struct lab_fault *state, int stop_fd);
/* The first moment in effect: lets the starter go on. */
void lab_fault_ready(struct lab_fault *state);
/* One line of LAB_ROOT/NAME/events. */
void lab_event(const struct lab *lab, const struct lab_fault *state, const char *what,
               int64_t before_raw_ns);
int64_t lab_raw_ns(void);
/* A fault's relay log, mapped: NULL if it has none. `spot` counts from 0. */
struct relay_log *lab_relay_map(const struct lab *lab, int id, int spot, bool is_new);

/* ---- the command: fault_cmd.c; argv[0] is "fault" ---- */
int lab_fault_main(const struct lab *lab, int argc, char **argv);
