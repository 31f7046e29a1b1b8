/* ranks.h: ranks that a bench forks, leads through a plugin's calls, stops and kills. */
#pragma once
#include <sys/types.h>

#include "app/perf/net_client.h"

/* A rank, as who leads it sees it: a process and a socket to it. */
struct led {
    pid_t pid; /* in the rank itself 0 */
    int fd;
};

/* Forks it; in the child pid is 0 and fd the other end. pid -1: it couldn't be forked. */
struct led ranks_fork(void);
/* Waits for so much from it; false: it ended or hangs. */
bool ranks_hear(const struct led *led, void *bytes, size_t size);
/* It waits in ranks_meet: it goes on. */
bool ranks_go_on(const struct led *led);
/* Kills it and waits for its end. */
void ranks_end(const struct led *led);

/* In a rank: says where it is and waits to be told to go on. */
void ranks_meet(const struct led *me, char where);
/* Loads and initialises the plugin over the loopback, or ends the rank. */
void ranks_open(struct net_client *net, const char *plugin, void **ret_context);
/* The last warning of the plugin. */
const char *ranks_words(void);
_Noreturn void ranks_give_up(const char *what);
