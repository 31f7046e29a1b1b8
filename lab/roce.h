/* roce.h: `foliot lab --roce`: a lab in the virtual machine of lab/roce-vm, where its NICs have RDMA devices.
 *
 * Outside the machine the command checks the request and hands it over. `run` boots the machine once. `up` leaves it running,
 * and later commands for that lab, by its name, run inside it. Inside, the same command does the work. */
#pragma once
#include <limits.h>

#include "lab/lab.h"

#define LAB_ROCE_WHY_SIZE 160

/* True if this process runs in the machine. */
bool lab_roce_is_inside(void);
/* True if the lab can play the scenario there. False: `ret_why` is the part that it can't play. The lab's own limits are
 * checked elsewhere. */
bool lab_roce_can(const struct scenario *s, char ret_why[LAB_ROCE_WHY_SIZE]);
/* How long a boot that plays these scenarios may take; s. */
int lab_roce_patience_s(int64_t duration_ns);

/* The folder of the machine of this user's lab, where commands reach it; `run`'s cache is next to it. False: this user has no
 * home. */
bool lab_roce_folder(const char *name, char ret_folder[PATH_MAX]);
/* True if this user has brought up a lab of this name in its own machine. */
bool lab_roce_is_there(const char *name);
/* These replace this process. They return only if that fails, with an exit status. argv[0] is the lab's command. */
int lab_roce_up(const char *name, int argc, char **argv);
int lab_roce_run(const char *name, int64_t duration_ns, int argc, char **argv);
int lab_roce_ask(const char *name, int argc, char **argv);
int lab_roce_down(const char *name);
