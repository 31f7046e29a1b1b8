/* roce.h: `foliot lab --roce`: a lab in the virtual machine of lab/roce-vm, where its NICs have RDMA devices.
 *
 * Outside the machine the command checks what is asked for, and hands it over: `run` is one boot of the machine; `up` leaves it
 * running, and what is then asked of that lab, by its name, is asked in there. Inside, the same command does the work. */
#pragma once
#include <limits.h>

#include "lab/lab.h"

#define LAB_ROCE_WHY_SIZE 160

/* This process runs in the machine. */
bool lab_roce_is_inside(void);
/* The lab can play it there: true. Else false, and what it can't, in words. The lab's own limits are checked elsewhere. */
bool lab_roce_can(const struct scenario *s, char ret_why[LAB_ROCE_WHY_SIZE]);
/* How long a boot may take in which these are played; s. */
int lab_roce_patience_s(int64_t duration_ns);

/* Where the machine of a lab of this user and those who ask it meet; `run`'s cache is beside it. False: this user has no home. */
bool lab_roce_folder(const char *name, char ret_folder[PATH_MAX]);
/* A lab of this name was brought up in a machine of its own, by this user. */
bool lab_roce_is_there(const char *name);
/* These replace this process, and return only where that fails: an exit status. argv[0] is the lab's command. */
int lab_roce_up(const char *name, int argc, char **argv);
int lab_roce_run(const char *name, int64_t duration_ns, int argc, char **argv);
int lab_roce_ask(const char *name, int argc, char **argv);
int lab_roce_down(const char *name);
