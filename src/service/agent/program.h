/* program.h: a program beside the agent that may do more than the agent's unit: foliot-inspect, foliot perf --agent. Systemd
 * starts it for a connection to its socket, or the agent starts it. It uses its standard input and output. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct program {
    int fd;      /* the other end of its input and output, non-blocking; < 0: no program runs */
    pid_t child; /* started here and not reaped yet; 0: none */
};

#define PROGRAM_NONE ((struct program){.fd = -1})

/* arguments[0] is a socket or a program's file; the others are the program's arguments. Returns this side's descriptor, or
 * -errno. -EBUSY: a program that was killed has not ended yet. */
int program_open(struct program *p, char *const arguments[]);

/* Closes the descriptor and kills the program that was started here. May be called if none runs. */
void program_close(struct program *p);

/* A program that was started here has not ended yet. */
bool program_is_left(struct program *p);
