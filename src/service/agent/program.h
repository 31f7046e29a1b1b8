/* program.h: a program beside the agent, that may do what the agent's unit may not: foliot-inspect, foliot perf --agent. Either
 * systemd starts it for who connects to its socket, or the agent does. It talks through its standard input and output. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct program {
    int fd;      /* the other end of its input and output, which never waits; < 0: none runs */
    pid_t child; /* started here and not reaped yet; 0: none */
};

#define PROGRAM_NONE ((struct program){.fd = -1})

/* arguments[0] is a socket or a program's file; the others are the program's. Returns its end, or -errno: -EBUSY, one that was
 * ended has not gone yet. */
int program_open(struct program *p, char *const arguments[]);

/* Closes the end and kills what was started here. May be called when none runs. */
void program_close(struct program *p);

/* One that was started here has not gone yet. */
bool program_is_left(struct program *p);
