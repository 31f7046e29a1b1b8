/* machine.h: the kernel's part of the lab: namespaces, commands in them, link flags, packet filters.
 *
 * Functions return 0 or -errno and log nothing. Only a command that failed writes its own errors to stderr. */
#pragma once
#include "base/bug.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

int64_t machine_clock_ns(clockid_t id);

/* Enters a network namespace by name, with a /sys of its own. Only this process enters it, and never leaves it. */
MUST_CHECK int machine_enter(const char *space);
/* Enters only the network namespace. It is cheap, without a mount namespace; for netlink and sysctls. */
MUST_CHECK int machine_enter_network(const char *space);

/* Runs argv with `input` on its stdin (NULL: /dev/null), and waits. -EIO: it failed. */
MUST_CHECK int machine_run(const char *const *argv, const char *input);

/* A program in its own process, with an empty stdin. */
struct machine_task {
    const char *const *argv;
    int (*enter)(
        const void *data); /* called first: namespaces, environment; 0 or -errno; NULL: none */
    const void *data;
    const int *output; /* fd for stdout and stderr; NULL: this process's own */
    const int *socket; /* handed over as systemd's socket "api" (LISTEN_FDS); NULL: none */
    bool stays;        /* outlives this process: init's child, its own session, no signal blocked */
};
/* Starts the program and waits for its end; -ECHILD: it failed. A program that `stays` is only started; if that fails, it
 * writes the error to its output. */
MUST_CHECK int machine_spawn(const struct machine_task *task);
/* fork(2) twice, so that the new process is init's child and never this process's zombie. Returns 0 in the new process, 1 in
 * this one. */
MUST_CHECK int machine_fork_away(void);

/* Writes a value to a /proc/sys path of the current namespace. -ENOENT: this kernel has no such setting. */
int machine_sysctl(const char *value, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
MUST_CHECK int machine_write_file(const char *path, const char *text);
MUST_CHECK int machine_make_folder(const char *path);
void machine_remove_tree(const char *path);

/* Signals every process in a namespace; returns how many there were. */
int machine_signal_space(const char *space, int signal);
/* Calls visit for each name in /run/netns that begins with prefix. */
void machine_each_space(const char *prefix, void (*visit)(const char *space, void *data),
                        void *data);

/* ---- in the current namespace, by netlink ---- */
MUST_CHECK int machine_link_set(const char *interface, bool is_up);
/* Waits until the kernel lets packets through a link that was set up. -ETIMEDOUT: it doesn't. */
MUST_CHECK int machine_link_wait(const char *interface, int64_t timeout_ns);

enum machine_hook { HOOK_INGRESS, HOOK_EGRESS, HOOK_CLASSIFY };

/* The packets that a filter acts on; zero: all of them. */
struct machine_match {
    bool is_transport_only; /* UDP and TCP only: never ARP or neighbour discovery */
    bool has_source, has_destination;
    uint8_t source4[4], destination4[4];
    uint8_t source6[16], destination6[16];
    uint16_t source_port, destination_port; /* host byte order; 0: any */
    uint16_t above_bytes;                   /* IP packets longer than this; 0: all */
};
/* FORGET: clears the hash that the sender's socket put on the packet; a real wire has no such hash. ECMP would use the hash
 * instead of the ports, and TCP draws it at random for each connection. */
enum machine_verdict { VERDICT_DROP, VERDICT_REDIRECT, VERDICT_CLASS, VERDICT_FORGET };
struct machine_filter {
    struct machine_match match;
    double probability; /* share of matching packets that the filter acts on */
    enum machine_verdict verdict;
    uint32_t redirect_index;        /* REDIRECT: send out of this interface */
    uint32_t skip_mark;             /* REDIRECT: skip packets with this mark; 0: none */
    uint32_t class_high, class_low; /* CLASS: for DSCP CS6, and for the rest */
};
/* Adds the filter as number `priority` (1–65535, each used once) at an interface's hook; removes it again. INGRESS and EGRESS
 * need the clsact qdisc, CLASSIFY needs an htb root 1:. */
MUST_CHECK int machine_filter_add(const char *interface, enum machine_hook hook, uint16_t priority,
                                  const struct machine_filter *filter);
MUST_CHECK int machine_filter_delete(const char *interface, enum machine_hook hook,
                                     uint16_t priority);
