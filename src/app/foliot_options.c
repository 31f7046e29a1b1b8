/* foliot_options.c: the common options of all commands that ask an agent, and the agents that they select. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/foliot_command.h"
#include "base/bug.h"

#define RUNTIME_DIRECTORY "/run/foliot"
#define LAB_DIRECTORY     "/run/foliot-lab"
#define OPTIONS_MOST      24 /* of one command */

static int add_target(struct options *o, const char *name, const char *directory, const char *rest)
{
    if (o->target_count == TARGET_MAX) {
        fprintf(stderr, "foliot: more than %d agents\n", TARGET_MAX);
        return EXIT_USAGE;
    }
    struct target *t = &o->targets[o->target_count];
    if ((size_t)snprintf(t->name, sizeof(t->name), "%s", name) >= sizeof(t->name) ||
        (size_t)snprintf(t->path, sizeof(t->path), "%s%s", directory, rest) >= sizeof(t->path)) {
        fprintf(stderr, "foliot: the socket's name is too long: %s%s\n", directory, rest);
        return EXIT_USAGE;
    }
    o->target_count++;
    return 0;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int add_lab_host(struct options *o, const char *host)
{
    char directory[TARGET_PATH_MAX];

    if ((size_t)snprintf(directory, sizeof(directory), LAB_DIRECTORY "/%s/%s", o->lab, host) >=
        sizeof(directory)) {
        fprintf(stderr, "foliot: the name of the lab or of its host is too long\n");
        return EXIT_USAGE;
    }
    return add_target(o, host, directory, "/agent.sock");
}

/* Adds all hosts of the lab whose agent has a socket, sorted by name ("h2" before "h10"). */
static int add_lab(struct options *o)
{
    char directory[TARGET_PATH_MAX + 256], path[sizeof(directory) + 300];
    struct dirent **entries;
    struct stat status;
    int count, r = 0;

    snprintf(directory, sizeof(directory), LAB_DIRECTORY "/%s", o->lab);
    count = scandir(directory, &entries, not_hidden, versionsort);
    if (count < 0) {
        fprintf(stderr,
                "foliot: no lab '%s' runs here (%s: %s); foliot lab --name %s up starts one\n",
                o->lab, directory, strerror(errno), o->lab);
        return EXIT_UNREACHABLE;
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s/agent.sock", directory, entries[i]->d_name);
        if (r == 0 && stat(path, &status) == 0) {
            r = add_lab_host(o, entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    if (r == 0 && o->target_count == 0) {
        fprintf(stderr, "foliot: no agent runs in lab '%s'\n", o->lab);
        r = EXIT_UNREACHABLE;
    }
    return r;
}

/* The lab that runs here, if there is exactly one. */
static const char *only_lab(void)
{
    static char name[TARGET_NAME_MAX];
    struct dirent **entries;
    const int count = scandir(LAB_DIRECTORY, &entries, not_hidden, alphasort);

    for (int i = 0; i < count; i++) {
        if (count == 1) {
            snprintf(name, sizeof(name), "%.*s", (int)sizeof(name) - 1, entries[i]->d_name);
        }
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
    return count == 1 ? name : NULL;
}

static int find_targets(struct options *o)
{
    const char *runtime = getenv("FOLIOT_RUNTIME_DIR");

    o->targets = calloc(TARGET_MAX, sizeof(*o->targets));
    if (o->targets == NULL) {
        return EXIT_UNREACHABLE;
    }
    if (o->socket != NULL) {
        return add_target(o, "", o->socket, "");
    }
    if (o->lab == NULL && (o->host != NULL || o->all)) {
        o->lab = only_lab();
        if (o->lab == NULL) {
            fprintf(
                stderr,
                "foliot: --host and --all mean hosts of a lab: no lab or several labs run here, "
                "name it with --lab\n");
            return EXIT_USAGE;
        }
    }
    if (o->lab != NULL) {
        return o->host != NULL ? add_lab_host(o, o->host) : add_lab(o);
    }
    return add_target(o, "", runtime != NULL ? runtime : RUNTIME_DIRECTORY, "/agent.sock");
}

int command_text_option(const char *text, size_t text_size, const char *name)
{
    const char *const end = text + text_size;
    const size_t size = strlen(name);

    for (const char *at = text; (at = memmem(at, (size_t)(end - at), "--", 2)) != NULL; at += 2) {
        const char *behind = at + 2 + size;
        if (behind <= end && memcmp(at + 2, name, size) == 0 && strchr(" ]|", *behind) != NULL) {
            return *behind == ' ' && isalnum((unsigned char)behind[1]);
        }
    }
    return -1;
}

int command_option(const struct command *command, const char *name)
{
    return command_text_option(command->arguments, strlen(command->arguments), name);
}

int command_read(const struct command *command, const struct option_entry *own, size_t count,
                 int argc, char *argv[], int *ret_first)
{
    struct option_entry entries[OPTIONS_MOST] = {{"help", 'h', OPTION_HELP}};
    struct option_outcome outcome;
    char program[64];

    ASSERT(count < ARRAY_COUNT(entries));
    for (size_t i = 0; i < count; i++) {
        /* A difference from --help is a bug of this program: any run finds it. */
        ASSERT(own[i].name == NULL ||
               command_option(command, own[i].name) == option_has_value(&own[i]));
        entries[i + 1] = own[i];
    }
    snprintf(program, sizeof(program), "foliot %s", command->name);
    const struct option_set set = {
        .program = program, .entries = entries, .count = count + 1, .words_most = argc};
    options_read(&set, argc, argv, &outcome);
    if (outcome.verdict == OPTIONS_HELP) {
        /* argv[0] counts, too: it may be a word, such as rdma */
        command_usage(command, argc, argv, stdout);
        return COMMAND_HELPED;
    }
    if (outcome.verdict == OPTIONS_WRONG) {
        fputs(outcome.text, stderr);
        return EXIT_USAGE;
    }
    *ret_first = outcome.first;
    return 0;
}

int options_parse_words(struct options *options, const struct command *command,
                        const struct option_entry *own, size_t own_count, int argc, char *argv[],
                        int *ret_first)
{
    double interval_s = 1;
    const struct option_entry common[] = {
        {"json", 'j', OPTION_FLAG, &options->json},
        {"watch", 'w', OPTION_FLAG, &options->watch},
        {"host", 'H', OPTION_TEXT, &options->host},
        {"lab", 'l', OPTION_TEXT, &options->lab},
        {"socket", 's', OPTION_TEXT, &options->socket},
        {"all", 'a', OPTION_FLAG, &options->all},
        {"paths", 'p', OPTION_FLAG, &options->paths},
        {"interval", 'i', OPTION_NUMBER, &interval_s, 0.1, 3600,
         .expected = "seconds from 0.1 to 3600"},
    };
    struct option_entry entries[OPTIONS_MOST];
    size_t count = 0;

    *options = (struct options){0};
    /* the options that the command's usage has */
    for (size_t i = 0; i < ARRAY_COUNT(common); i++) {
        if (command_option(command, common[i].name) >= 0) {
            entries[count++] = common[i];
        }
    }
    for (size_t i = 0; i < own_count; i++) {
        ASSERT(count < ARRAY_COUNT(entries));
        entries[count++] = own[i];
    }
    const int r = command_read(command, entries, count, argc, argv, ret_first);
    options->interval_ms = (int)(interval_s * 1000);
    options->help = r == COMMAND_HELPED;
    if (options->help) {
        return 0;
    }
    return r == EXIT_USAGE ? r : find_targets(options);
}

int options_parse_with(struct options *options, const struct command *command,
                       const struct option_entry *own, size_t own_count, int argc, char *argv[])
{
    int first = 0;
    const int r = options_parse_words(options, command, own, own_count, argc, argv, &first);

    if (r == 0 && !options->help && first < argc) {
        return command_wrong_words(command->name, argc - first, argv + first);
    }
    return r;
}

int options_parse(struct options *options, const struct command *command, int argc, char *argv[])
{
    return options_parse_with(options, command, NULL, 0, argc, argv);
}

void options_done(struct options *options)
{
    free(options->targets);
    options->targets = NULL;
    options->target_count = 0;
}

bool options_mean_fleet(int argc, char *argv[], bool files)
{
    static const char *const agents[] = {"--lab", "--host", "--all", "--socket", "--watch"};
    bool agent = false;

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--controller", 12) == 0) {
            return true;
        }
        for (size_t k = 0; k < sizeof(agents) / sizeof(agents[0]); k++) {
            agent = agent || strncmp(argv[i], agents[k], strlen(agents[k])) == 0;
        }
        agent = agent || (argv[i][0] == '-' && argv[i][1] != '-'); /* -l, -H … */
    }
    return !agent && !files && getenv("FOLIOT_API") != NULL;
}
