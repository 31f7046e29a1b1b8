/* fault.h: faults of a lab. Each fault has a helper process, until its time is over or it is undone.
 *
 * LAB_ROOT/NAME/fault/<ID> is the fault's state, mapped by its helper. The helper is in leaf 0's namespace, so `down` finds
 * it. If the helper was killed, `undo` works from the state alone. LAB_ROOT/NAME/events gets a JSON line each time that a
 * fault took effect or ended. The line has the machine's raw time just before and just after. Detection times are measured
 * against these. */
#pragma once
#include "lab/lab.h"

#include <sys/types.h>

#define LAB_FAULT_ID_MAX 9999

struct lab_fault {
    int id;
    pid_t pid;
    int32_t is_on;        /* in effect */
    int32_t error;        /* -errno, if it could not take effect */
    int64_t begin_raw_ns; /* when it first took effect */
    int64_t end_raw_ns;   /* 0: it lasts until it is undone */
    struct scenario_fault fault;
};

/* NULL: the lab can cause the fault. Else: the part that it can't cause, in words. */
const char *lab_fault_cannot(const struct scenario_fault *fault);

/* Puts the fault into effect and returns; at_ns is ignored. If a place already has a delay, a second delay replaces it for its
 * duration. -EOPNOTSUPP: only the simulator can cause the fault. */
MUST_CHECK int lab_fault_start(const struct lab *lab, const struct scenario_fault *fault,
                               int *ret_id);
/* Returns when the fault is undone. -ENOENT: no such fault. */
MUST_CHECK int lab_fault_undo(const struct lab *lab, int id);
/* Calls visit for each fault, in order. */
void lab_fault_each(const struct lab *lab, void (*visit)(const struct lab_fault *state, void *data),
                    void *data);
/* The fault in words: "flap nic 0.0, 3 times". */
void lab_fault_text(const struct scenario_fault *fault, char ret_text[LAB_TEXT_SIZE]);

/* ---- the helper's part: fault_act.c ---- */
MUST_CHECK int lab_fault_apply(const struct lab *lab, const struct lab_fault *state);
MUST_CHECK int lab_fault_unapply(const struct lab *lab, const struct lab_fault *state);
/* Runs the fault: returns when it is over or stop_fd is readable. It applies and removes the fault itself. */
MUST_CHECK int lab_fault_play(const struct lab *lab, struct lab_fault *state, int stop_fd);
/* Reports that the fault has taken effect for the first time: the starter goes on. */
void lab_fault_ready(struct lab_fault *state);
/* Writes one line of LAB_ROOT/NAME/events. */
void lab_event(const struct lab *lab, const struct lab_fault *state, const char *what,
               int64_t before_raw_ns);
int64_t lab_raw_ns(void);
/* Maps a fault's relay log. NULL: it has none. `spot` counts from 0. */
struct relay_log *lab_relay_map(const struct lab *lab, int id, int spot, bool is_new);

/* ---- the command: fault_cmd.c; argv[0] is "fault" ---- */
int lab_fault_main(const struct lab *lab, int argc, char **argv);
