/* foliot_command.h: what every command of `foliot` shares: its entry in the table, its options, its
 * targets.
 *
 * A command is a function of (argc, argv) with argv[0] its own name. It returns an exit status:
 * 0 done and well, 1 it found something (a finding or incident is open, a check failed, something is
 * in the way), 2 wrong usage (also: no such host, incident, version; a file that was refused), 3 it
 * could not ask (nobody answers, or not to this token; a file can't be read). Adding a command: one line in foliot.c's table and
 * one file. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/options.h"

enum exit_status {
    EXIT_WELL = 0,
    EXIT_NOT_WELL = 1,
    EXIT_USAGE = 2,
    EXIT_UNREACHABLE = 3,
};

/* What the forms of a usage that begin with these characters ("run", "run --fleet") do, print and end with. */
struct command_word {
    const char *word; /* NULL: no more */
    const char *does;
    const char *prints, *exits; /* NULL: the manual has it; as the command's */
};

struct command {
    const char *group; /* a heading before it in the list; NULL: as the one before */
    const char *name;
    const char
        *arguments; /* after the name: forms apart by " | "; after two blanks what goes with each */
    const char *summary;
    int (*run)(int argc, char *argv[]);
    const char *exits;                /* what its exit status tells; NULL: as most */
    const struct command_word *words; /* NULL: its forms have no help of their own */
};

#define TARGET_MAX      1024
#define TARGET_NAME_MAX 64
#define TARGET_PATH_MAX 108 /* sun_path */

/* One agent to ask. */
struct target {
    char name[TARGET_NAME_MAX];
    char path[TARGET_PATH_MAX];
};

/* The options that all commands asking an agent take. */
struct options {
    bool json, watch, all, paths, help;
    const char *socket;
    const char *lab;
    const char *host;
    int interval_ms;
    struct target *targets; /* owned */
    size_t target_count;
};

/* Parses the common options that the command's usage has. 0, or an exit status after printing what is wrong; --help prints
 * the usage and sets options->help. */
int options_parse(struct options *options, const struct command *command, int argc, char *argv[]);
/* The same with options of the command's own. */
int options_parse_with(struct options *options, const struct command *command,
                       const struct option_entry *own, size_t own_count, int argc, char *argv[]);
/* And with words: argv[*ret_first] is the first. */
int options_parse_words(struct options *options, const struct command *command,
                        const struct option_entry *own, size_t own_count, int argc, char *argv[],
                        int *ret_first);
void options_done(struct options *options);
/* Is the controller meant? --controller says so; and so does FOLIOT_API, where nothing says which agent
 * (or, `files`, which files) is. */
bool options_mean_fleet(int argc, char *argv[], bool files);

/* Is this option in the command's usage, which is what it takes? 1: with a value; 0: without; -1: no. */
int command_option(const struct command *command, const char *name);
/* The same for some of a usage's text; a terminator is behind it. */
int command_text_option(const char *text, size_t text_size, const char *name);
/* Reads a command's options, and --help. Each is in the command's usage in foliot.c, with or without a value. 0: argv[*ret_first]
 * is the first word; COMMAND_HELPED: the usage was printed; EXIT_USAGE: what is wrong was. */
#define COMMAND_HELPED (-1)
int command_read(const struct command *command, const struct option_entry *own, size_t count,
                 int argc, char *argv[], int *ret_first);
/* These words fit no form of the command's usage: prints which forms begin with the first one, or which words there are.
 * EXIT_USAGE. */
int command_wrong_words(const char *name, int count, char *const words[]);
/* "usage: foliot NAME ARGUMENTS" and the summary; `words`: of the first of them that has help of its own, that help alone. */
void command_usage(const struct command *command, int count, char *const words[], FILE *out);

int command_status(int argc, char *argv[]);
int command_clock(int argc, char *argv[]);
int command_mesh(int argc, char *argv[]);
int command_links(int argc, char *argv[]);
int command_findings(int argc, char *argv[]);
int command_keygen(int argc, char *argv[]);
int command_doctor(int argc, char *argv[]);
int command_support_bundle(int argc, char *argv[]);
int command_record(int argc, char *argv[]);
int command_selftest(int argc, char *argv[]);
int selftest_nics(int argc, char *argv[]); /* `foliot selftest clock --nics` */
int selftest_rdma(int argc, char *argv[]); /* `foliot selftest rdma` */
int command_perf(int argc, char *argv[]);
int command_host(int argc, char *argv[]);
int command_token(int argc, char *argv[]);
int command_config(int argc, char *argv[]);
int command_topology(int argc, char *argv[]);
int command_levels(int argc, char *argv[]);
int command_changes(int argc, char *argv[]);
int command_alerts(int argc, char *argv[]);
int command_jobs(int argc, char *argv[]);
int command_audit(int argc, char *argv[]);
extern const struct command_word audit_words[], help_of_mesh[], help_of_findings[], help_of_jobs[],
    help_of_selftest[], help_of_alerts[], help_of_host[], help_of_token[], help_of_config[],
    help_of_topology[];
/* The next option of the command, from `*at` (0 at first) on, and what it does. NULL: no more. */
const char *help_option(const struct command *command, size_t *at, const char **ret_option);

/* The table of foliot.c, for a command's own usage. */
const struct command *command_find(const char *name);
