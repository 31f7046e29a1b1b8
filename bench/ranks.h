/* ranks.h: a bench forks ranks, runs a plugin's calls in them, stops and kills them. */
#pragma once
#include <sys/types.h>

#include "app/perf/net_client.h"

/* A rank from its leader's view: a process and a socket to it. */
struct led {
    pid_t pid; /* in the rank itself: 0 */
    int fd;
};

/* Forks the rank. In the child pid is 0, and fd is the other end. pid -1: fork failed. */
struct led ranks_fork(void);
/* Waits for `size` bytes from the rank. false: it ended or hangs. */
bool ranks_hear(const struct led *led, void *bytes, size_t size);
/* The rank waits in ranks_meet(): lets it go on. */
bool ranks_go_on(const struct led *led);
/* Kills the rank and waits for its end. */
void ranks_end(const struct led *led);

/* In a rank: reports its place, and waits until it may go on. */
void ranks_meet(const struct led *me, char where);
/* Loads and initialises the plugin over the loopback. If that fails, the rank ends. */
void ranks_open(struct net_client *net, const char *plugin, void **ret_context);
/* The plugin's last warning. */
const char *ranks_words(void);
_Noreturn void ranks_give_up(const char *what);
