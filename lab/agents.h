/* agents.h: the agents of a lab: their files, and starting, stopping and finding them.
 *
 * LAB_ROOT/NAME/host<h>/ holds agent.yaml, agent.pid, agent.log and, once it runs, what the agent puts into its
 * runtime folder (agent.sock, clock.page, mesh.page). LAB_ROOT/NAME/fleet.key is the fleet's key,
 * LAB_ROOT/NAME/routers the names of the fabric's addresses. */
#pragma once
#include "lab/lab.h"

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

void lab_host_folder(const struct lab *lab, int host, char ret_folder[LAB_TEXT_SIZE]);
/* Configuration of every host, the key, the routers' names. */
/* `controller`: its address, hosts are to join it and learn peers and key from it; NULL: none. */
MUST_CHECK int lab_agents_write(const struct lab *lab, const char *controller);
/* The program that agents are: kept for restarts. Without this call it is foliot-agent beside this program, or in
 * PATH. */
MUST_CHECK int lab_agents_program(const struct lab *lab, const char *program);
/* Where a program of ours is: as lab_agents_program() said, beside this program, or only its name. */
void lab_program(const struct lab *lab, const char *name, char ret_program[PATH_MAX]);
/* Starts the agent of a host in its namespace: -EALREADY if it runs, -ECHILD if it can't. */
MUST_CHECK int lab_agent_start(const struct lab *lab, int host);
/* -ESRCH: it doesn't run. */
MUST_CHECK int lab_agent_signal(const struct lab *lab, int host, int signal);
/* Its process id, 0: it doesn't run. */
pid_t lab_agent_pid(const struct lab *lab, int host);
/* Enters a host's namespace for good, under its name, and sets its environment: runtime folder, oscillator, names. */
MUST_CHECK int lab_host_enter(const struct lab *lab, int host);
