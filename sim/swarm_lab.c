/* swarm_lab.c: plays a drawn world with real packets: it writes a file, and this program's own `foliot lab run` plays it. */
#include "sim/swarm_lab.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

static int play(const char *path)
{
    char name[PATH_MAX];
    char program[] = "foliot", lab[] = "lab", option[] = "--name", swarm[] = "swarm", run[] = "run";
    char *const words[] = {program, lab, option, swarm, run, name, NULL};
    pid_t child = 0;
    int status = 0;

    snprintf(name, sizeof(name), "%s", path);
    const int r = posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ);

    if (r != 0) {
        return -r;
    }
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -errno;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

int swarm_lab_world(uint64_t seed, const char *folder)
{
    struct scenario *s = malloc(sizeof(*s));
    char path[512];
    FILE *to;
    int r = s == NULL ? -ENOMEM : 0;

    if (r == 0) {
        swarm_draw_lab(seed, s);
        snprintf(path, sizeof(path), "%s/swarm-lab-%" PRIu64 ".yaml", folder, seed);
        to = fopen(path, "we");
        r = to == NULL ? -errno : scenario_write(s, to);
        if (to != NULL && fclose(to) != 0 && r == 0) {
            r = -EIO;
        }
    }
    free(s);
    r = r == 0 ? play(path) : r;
    if (r == 0) {
        (void)remove(path); /* a world that holds can be drawn again from its seed */
    }
    return r;
}
