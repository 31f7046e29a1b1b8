/* agents.h: the agents of a lab: writes their files, starts, stops and finds them.
 *
 * LAB_ROOT/NAME/host<h>/ holds agent.yaml, agent.pid, agent.log, and the files that a running agent puts into its runtime
 * folder (agent.sock, clock.page, mesh.page). LAB_ROOT/NAME/fleet.key is the fleet's key. LAB_ROOT/NAME/routers has the names
 * of the fabric's addresses. */
#pragma once
#include "lab/lab.h"

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

void lab_host_folder(const struct lab *lab, int host, char ret_folder[LAB_TEXT_SIZE]);
/* Writes the configuration of every host, the key, and the routers' names. */
/* `controller`: its address; hosts join it and get peers and key from it. NULL: no controller. */
MUST_CHECK int lab_agents_write(const struct lab *lab, const char *controller);
/* Sets the agents' program, also for restarts. Without this call it is foliot-agent next to this program, or in PATH. */
MUST_CHECK int lab_agents_program(const struct lab *lab, const char *program);
/* The path of one of Foliot's programs: the one of lab_agents_program(), the one next to this program, or only its name. */
void lab_program(const struct lab *lab, const char *name, char ret_program[PATH_MAX]);
/* Starts a host's agent in the host's namespace. -EALREADY: it runs. -ECHILD: it can't start. */
MUST_CHECK int lab_agent_start(const struct lab *lab, int host);
/* -ESRCH: the agent doesn't run. */
MUST_CHECK int lab_agent_signal(const struct lab *lab, int host, int signal);
/* The agent's process id; 0: it doesn't run. */
pid_t lab_agent_pid(const struct lab *lab, int host);
/* Enters a host's namespace for good, takes its name, and sets the environment: runtime folder, oscillator, names. */
MUST_CHECK int lab_host_enter(const struct lab *lab, int host);
