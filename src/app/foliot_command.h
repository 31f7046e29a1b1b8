/* foliot_command.h: the parts that all commands of `foliot` share: the table's entry, the options, the targets.
 *
 * A command is a function of (argc, argv); argv[0] is its own name. It returns an exit status:
 *   0  done, and all is well
 *   1  something was found: a finding or an incident is open, a check failed, another change is under way
 *   2  wrong usage; also an unknown host, incident or version, and a file that was refused
 *   3  no answer: nobody listens, the token is refused, or a file can't be read
 * To add a command, add one line to foliot.c's table, and one file. */
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

/* Help for the forms of a usage that begin with these words ("run", "run --fleet"). */
struct command_word {
    const char *word; /* NULL: the end of the list */
    const char *does;
    /* does: NULL: only the manual describes the form. exits: NULL: the command's own */
    const char *prints, *exits;
};

struct command {
    /* a heading before this command in the list; NULL: the previous command's group */
    const char *group;
    const char *name;
    /* after the name; " | " separates forms; two blanks come before what belongs to each form */
    const char *arguments;
    const char *summary;
    int (*run)(int argc, char *argv[]);
    const char *exits;                /* the meaning of its exit statuses; NULL: the usual one */
    const struct command_word *words; /* NULL: its forms have no help of their own */
};

#define TARGET_MAX      1024
#define TARGET_NAME_MAX 64
#define TARGET_PATH_MAX 108 /* the size of sun_path */

/* One agent to ask. */
struct target {
    char name[TARGET_NAME_MAX];
    char path[TARGET_PATH_MAX];
};

/* The options of all commands that ask an agent. */
struct options {
    bool json, watch, all, paths, help;
    const char *socket;
    const char *lab;
    const char *host;
    int interval_ms;
    struct target *targets; /* owned */
    size_t target_count;
};

/* Parses the common options that the command's usage has. Returns 0, or an exit status after it printed the error. --help prints
 * the usage and sets options->help. */
int options_parse(struct options *options, const struct command *command, int argc, char *argv[]);
/* The same, with further options that only this command has. */
int options_parse_with(struct options *options, const struct command *command,
                       const struct option_entry *own, size_t own_count, int argc, char *argv[]);
/* The same, with words: argv[*ret_first] is the first word. */
int options_parse_words(struct options *options, const struct command *command,
                        const struct option_entry *own, size_t own_count, int argc, char *argv[],
                        int *ret_first);
void options_done(struct options *options);
/* True if the command is for the controller: --controller is given, or FOLIOT_API is set and no option names an agent (or, with
 * `files`, a file). */
bool options_mean_fleet(int argc, char *argv[], bool files);

/* Looks an option up in the command's usage. 1: it has a value; 0: it has none; -1: the command lacks the option. */
int command_option(const struct command *command, const char *name);
/* The same for a part of a usage's text. A terminator must follow that part. */
int command_text_option(const char *text, size_t text_size, const char *name);
/* Reads a command's options and --help. Each option must be in the command's usage in foliot.c, with or without a value. 0:
 * argv[*ret_first] is the first word; COMMAND_HELPED: the usage was printed; EXIT_USAGE: the error was printed. */
#define COMMAND_HELPED (-1)
int command_read(const struct command *command, const struct option_entry *own, size_t count,
                 int argc, char *argv[], int *ret_first);
/* For words that fit no form of the usage: prints the forms that begin with the first word, or else the words that exist. Returns
 * EXIT_USAGE. */
int command_wrong_words(const char *name, int count, char *const words[]);
/* Prints "usage: foliot NAME ARGUMENTS" and the summary. If one of `words` has help of its own, prints only the help of the first
 * such word. */
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
/* Finds the command's next option and its description. *at is 0 at first. NULL: no more options. */
const char *help_option(const struct command *command, size_t *at, const char **ret_option);

/* Looks a command up in foliot.c's table. */
const struct command *command_find(const char *name);
