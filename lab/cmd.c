/* cmd.c: `foliot lab`: its arguments and its output. */
#include "lab/cmd.h"

#include "base/bug.h"
#include "lab/agents.h"
#include "lab/control.h"
#include "lab/eval.h"
#include "lab/fault.h"
#include "lab/lab.h"
#include "lab/roce.h"
#include "lab/run.h"
#include "lab/traffic.h"
#include "platform/config/command_line.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "Usage: foliot lab [--name NAME] COMMAND\n"
    "A fleet of hosts with clocks, NICs and switches of their own, emulated on this machine.\n"
    "\n"
    "  up [FILE] [--no-agents] [--agent PROGRAM] [--controller[=PORT]] [--machines FOLDER]\n"
    "     [--exchange HOST/NIC,HOST/NIC,…] [--roce]\n"
    "                          bring a lab up: FILE is a scenario's fabric and clocks;\n"
    "                          without one 8 hosts x 2 NICs, 2 leaves, 4 spines;\n"
    "                          --controller: with a foliot-controller that all hosts join,\n"
    "                          its dashboard at 127.0.0.1, PORT 7639\n"
    "                          --machines: audits of host N read the tree FOLDER/hostN\n"
    "                          --exchange: the fleet's list has each of these NICs on the next\n"
    "                          one's leaf, and the last on the first one's, as where cables are\n"
    "                          exchanged\n"
    "                          --roce: in a virtual machine, where each NIC has an RDMA device;\n"
    "                          the other commands then ask that machine; `exec machine` is the\n"
    "                          machine itself\n"
    "  status                  show the lab and its active faults\n"
    "  exec HOST [--] COMMAND  run a command on a host, with that host's clock\n"
    "  eval [OPTIONS]          compare its clocks with the truth; see --help\n"
    "  traffic [OPTIONS]       put load on its links, or time a transfer; see --help\n"
    "  run SCENARIO…           play scenario files with real packets, and judge their bounds\n"
    "  fault KIND TARGET …     cause a fault; `fault --help`, `fault list`, `fault undo ID`\n"
    "  down                    remove all of it, even if processes were killed\n"
    "\n"
    "With NAME (default `lab`) several labs can exist side by side. All commands need root,\n"
    "except with --roce.\n";

static int name_check(const char *name)
{
    size_t size = strlen(name);
    bool is_good = size > 0 && size <= LAB_NAME_MAX;
    for (size_t i = 0; i < size; i++) {
        is_good = is_good && (islower((unsigned char)name[i]) || isdigit((unsigned char)name[i]) ||
                              (name[i] == '-' && i > 0));
    }
    if (!is_good) {
        fprintf(stderr,
                "foliot lab: expected a name of a-z, 0-9 and -, at most %d long, found '%s'\n",
                LAB_NAME_MAX, name);
        return -EINVAL;
    }
    return 0;
}

static int open_said(struct lab *lab, const char *name)
{
    int r = lab_open(lab, name);
    if (r == -ENOENT) {
        fprintf(stderr, "foliot lab: there is no lab '%s': `foliot lab --name %s up` makes one\n",
                name, name);
    } else if (r == -EPROTO) {
        fprintf(stderr,
                "foliot lab: lab '%s' was made by another version of foliot: `foliot lab --name %s "
                "down`\n",
                name, name);
    } else if (r < 0) {
        fprintf(stderr, "foliot lab: %s: %s\n", lab->folder, strerror(-r));
    }
    return r;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Extra words are refused: `down NAME` must not remove another lab. */
static int extra_refused(int argc, char **argv, int first)
{
    if (first >= argc) {
        return 0;
    }
    fprintf(stderr, "foliot lab %s: '%s' is one argument too many%s\n", argv[0], argv[first],
            argv[first][0] != '-' ? ": `foliot lab --name NAME …` names a lab" : "");
    return -EINVAL;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* --controller or --controller=PORT */
static bool take_port(const char *text, void *to)
{
    char *end = NULL;
    const long port = text == NULL ? LAB_API_PORT : strtol(text, &end, 10);
    if (text != NULL && (*end != '\0' || end == text || port < 1 || port > 65535)) {
        return false;
    }
    *(int *)to = (int)port;
    return true;
}

static void say_dashboard(const char *name)
{
    char address[LAB_TEXT_SIZE], token[LAB_TEXT_SIZE];
    if (lab_control_read(name, address, token)) {
        char code[LAB_TEXT_SIZE] = "";
        const bool signs_in = lab_sign_in_code(address, token, code);
        printf("dashboard: %s%s%s%s\ntoken: %s\n", address, signs_in ? "#code=" : "", code,
               signs_in ? " (signs in once, within ten minutes)" : "", token);
    }
}

/* "host1/nic0,host5/nic0", or more of them. */
static bool read_exchange(struct lab *lab, const char *text)
{
    const struct scenario_fabric *f = &lab->scenario.fabric;
    int count = 0;
    for (const char *at = text; count < LAB_EXCHANGE_MAX; at++) {
        struct lab_nic *n = &lab->exchange[count];
        int size = 0;
        if (sscanf(at, "host%d/nic%d%n", &n->host, &n->nic, &size) != 2 || n->host < 0 ||
            n->host >= f->hosts || n->nic < 0 || n->nic >= f->nics_per_host) {
            return false;
        }
        count++;
        at += size;
        if (*at == '\0') {
            lab->exchanged = count;
            return count >= 2;
        }
        if (*at != ',') {
            return false;
        }
    }
    return false;
}

/* The path is made absolute, because agents have another working folder. */
static bool read_machines(struct lab *lab, const char *folder, char memory[PATH_MAX])
{
    if (folder != NULL && realpath(folder, memory) == NULL) {
        fprintf(stderr, "foliot lab: %s: %s\n", folder, strerror(errno));
        return false;
    }
    lab->machines = folder != NULL ? memory : NULL;
    return true;
}

/* Checks the request before the machine boots. */
static int up_in_machine(const struct lab *lab, const char *file, int api_port, int argc,
                         char **argv)
{
    char why[LAB_ROCE_WHY_SIZE];
    if (api_port != 0) {
        fputs("foliot lab up: --controller: expected a lab on this machine, found --roce: nothing "
              "outside its machine reaches a dashboard there\n",
              stderr);
        return 2;
    }
    if (!lab_roce_can(&lab->scenario, why)) {
        fprintf(stderr, "foliot lab: %s: expected a lab for --roce, found %s\n",
                file != NULL ? file : "the lab", why);
        return 2;
    }
    return lab_roce_up(lab->name, argc, argv);
}

static int cmd_up(const char *name, int argc, char **argv)
{
    bool no_agents = false, roce = false;
    int api_port = 0, first = 0;
    char program[PATH_MAX];
    const char *agent = NULL, *machines = NULL, *exchange = NULL;
    char trees[PATH_MAX];
    const struct option_entry entries[] = {
        {"no-agents", 0, OPTION_FLAG, &no_agents},
        {"agent", 0, OPTION_TEXT, &agent, .expected = "a program"},
        {"machines", 0, OPTION_TEXT, &machines, .expected = "a folder"},
        {"exchange", 0, OPTION_TEXT, &exchange, .expected = "HOST/NIC,HOST/NIC,…"},
        {"controller", 0, OPTION_OWN, &api_port, .take = take_port, .optional = true,
         .expected = "a port from 1 to 65535"},
        {"roce", 0, OPTION_FLAG, &roce},
    };
    const struct option_set set = {.program = "foliot lab up",
                                   .entries = entries,
                                   .count = ARRAY_COUNT(entries),
                                   .words_most = argc};
    const int status = command_line_read(&set, argc, argv, &first);
    if (status != COMMAND_LINE_GOOD) {
        return status;
    }
    if (agent != NULL && strchr(agent, '/') != NULL) {
        if (realpath(agent, program) == NULL) {
            fprintf(stderr, "foliot lab: %s: %s\n", agent, strerror(errno));
            return 1;
        }
        agent = program;
    }
    if (extra_refused(argc, argv, first + 1) < 0) {
        return 2;
    }
    static struct lab lab;
    double begin = seconds_now();
    if (lab_is_there(name) || lab_roce_is_there(name)) {
        fprintf(stderr, "foliot lab: lab '%s' exists already: `foliot lab --name %s down` first\n",
                name, name);
        return 1;
    }
    if (lab_describe(&lab, name, first < argc ? argv[first] : NULL) < 0 ||
        !read_machines(&lab, machines, trees)) {
        return 1;
    }
    if (exchange != NULL && !read_exchange(&lab, exchange)) {
        fprintf(
            stderr,
            "foliot lab: --exchange: expected two to %d NICs of this lab as host1/nic0,host5/nic0, "
            "found %s\n",
            LAB_EXCHANGE_MAX, exchange);
        return 2;
    }
    if (roce && !lab_roce_is_inside()) {
        return up_in_machine(&lab, first < argc ? argv[first] : NULL, api_port, argc, argv);
    }
    lab.has_engines = roce;
    if (lab_bring_up(&lab, !no_agents, agent, api_port) < 0) {
        fprintf(stderr, "foliot lab: it could not be brought up: removing its parts\n");
        if (lab_fabric_down(name) < 0) {
            fprintf(stderr, "foliot lab: some parts remain: `foliot lab --name %s down`\n", name);
        }
        return 1;
    }
    const struct scenario_fabric *f = &lab.scenario.fabric;
    printf("lab '%s' is up: %d hosts x %d NICs%s, %d leaves, %d spines, %.0f Mbit/s, %s; %.1f s\n",
           name, f->hosts, f->nics_per_host, lab.has_engines ? " with RDMA devices" : "", f->leaves,
           f->spines, f->link_mbps, !no_agents ? "agents running" : "no agents",
           seconds_now() - begin);
    say_dashboard(name);
    return 0;
}

static int cmd_down(const char *name, int argc, char **argv)
{
    char folder[LAB_TEXT_SIZE], meeting[PATH_MAX];
    if (extra_refused(argc, argv, 1) < 0) {
        return 2;
    }
    snprintf(folder, sizeof(folder), LAB_ROOT "/%s", name);
    int count = lab_space_count(name);
    bool was_there = count > 0 || access(folder, F_OK) == 0;
    if (lab_fabric_down(name) < 0) {
        fprintf(stderr, "foliot lab: lab '%s': not all of it could be removed\n", name);
        return 1;
    }
    printf(was_there ? "lab '%s' is down\n" : "there was no lab '%s'\n", name);
    if (!was_there && !lab_roce_is_inside() && lab_roce_folder(name, meeting)) {
        printf("one with --roce belongs to the user who brought it up: there is no %s\n", meeting);
    }
    return 0;
}

static int cmd_status(const char *name, int argc, char **argv)
{
    static struct lab lab;
    if (extra_refused(argc, argv, 1) < 0) {
        return 2;
    }
    if (open_said(&lab, name) < 0) {
        return 1;
    }
    const struct scenario_fabric *f = &lab.scenario.fabric;
    char address[LAB_TEXT_SIZE], token[LAB_TEXT_SIZE];
    int expected = f->hosts + f->leaves + f->spines + lab_control_read(name, address, token);
    int found = lab_space_count(name);
    printf("lab '%s': %d hosts x %d NICs%s, %d leaves, %d spines, %.0f Mbit/s, seed %llu\n", name,
           f->hosts, f->nics_per_host, lab.has_engines ? " with RDMA devices" : "", f->leaves,
           f->spines, f->link_mbps, (unsigned long long)lab.scenario.seed);
    if (found != expected) {
        printf("damaged: %d of %d namespaces: `foliot lab --name %s down` removes the rest\n",
               found, expected, name);
    }
    say_dashboard(name);
    char text[] = "list";
    char *list[] = {text, text, NULL};
    lab_fault_main(&lab, 2, list);
    for (int h = 0; h < f->hosts; h++) {
        pid_t pid = lab_agent_pid(&lab, h);
        printf("  host%d  leaf%d  agent %s", h, lab_leaf_of(&lab, h, 0),
               pid == 0 ? "not running" : "");
        if (pid != 0) {
            printf("%d", (int)pid);
        }
        printf("\n");
    }
    return found == expected ? 0 : 1;
}

/* "host3" or "3". */
static int host_number(const struct lab *lab, const char *text)
{
    char *end;
    long h = strtol(strncmp(text, "host", 4) == 0 ? text + 4 : text, &end, 10);
    if (*end != '\0' || end == text || h < 0 || h >= lab->scenario.fabric.hosts) {
        fprintf(stderr, "foliot lab: expected a host of this lab, host0 to host%d, found '%s'\n",
                lab->scenario.fabric.hosts - 1, text);
        return -EINVAL;
    }
    return (int)h;
}

static int cmd_exec(const char *name, int argc, char **argv)
{
    static struct lab lab;
    if (open_said(&lab, name) < 0) {
        return 1;
    }
    int i = 1;
    const bool is_machine = lab.has_engines && argc > 1 && strcmp(argv[1], "machine") == 0;
    i += is_machine;
    int host = is_machine ? 0 : i < argc ? host_number(&lab, argv[i++]) : -EINVAL;
    if (i < argc && strcmp(argv[i], "--") == 0) {
        i++;
    }
    if (host < 0 || i >= argc) {
        fprintf(stderr, "Usage: foliot lab exec HOST [--] COMMAND …\n");
        return 2;
    }
    int r = is_machine ? 0 : lab_host_enter(&lab, host);
    if (r < 0) {
        fprintf(stderr, "foliot lab: host%d: %s\n", host, strerror(-r));
        return 1;
    }
    execvp(argv[i], argv + i);
    fprintf(stderr, "foliot lab: %s: %s\n", argv[i], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

static int cmd_fault(const char *name, int argc, char **argv)
{
    static struct lab lab;
    const bool asks = argc < 2 || strcmp(argv[1], "--help") == 0; /* works without a lab */
    return !asks && open_said(&lab, name) < 0 ? 1 : lab_fault_main(&lab, argc, argv);
}

static bool has_word(int argc, char **argv, const char *word)
{
    bool is = false;
    for (int i = 1; i < argc; i++) {
        is = is || strcmp(argv[i], word) == 0;
    }
    return is;
}

/* A lab with a machine of its own is asked inside that machine. `up` and `run` make the machine. */
static bool is_for_machine(const char *name, const char *command)
{
    static const char *const asked[] = {"status", "exec", "eval", "traffic", "fault", "down"};
    bool is = false;
    for (size_t i = 0; i < ARRAY_COUNT(asked); i++) {
        is = is || strcmp(command, asked[i]) == 0;
    }
    return is && lab_roce_is_there(name);
}

static int run_command(const char *name, int argc, char **argv)
{
    const char *command = argv[0];
    const bool is_up = strcmp(command, "up") == 0;
    const bool asks =
        argc > 1 &&
        (is_help(argv[1]) || (is_up && is_help(argv[argc - 1]))); /* needs neither root nor a lab */
    const bool is_plain = is_up || strcmp(command, "down") == 0 || strcmp(command, "status") == 0 ||
                          strcmp(command, "exec") == 0;
    if (is_plain && asks) {
        fputs(usage, stdout);
        return 0;
    }
    if (!asks && is_for_machine(name, command)) {
        if (strcmp(command, "down") != 0) {
            return lab_roce_ask(name, argc, argv);
        }
        return extra_refused(argc, argv, 1) < 0 ? 2 : lab_roce_down(name);
    }
    const bool makes_machine =
        (is_up || strcmp(command, "run") == 0) && has_word(argc, argv, "--roce");
    if (geteuid() != 0 && !asks && !makes_machine) {
        fprintf(stderr,
                "foliot lab: namespaces, routes and shapers need root: `sudo foliot lab %s …`\n",
                command);
        return 1;
    }
    return strcmp(command, "up") == 0        ? cmd_up(name, argc, argv)
           : strcmp(command, "down") == 0    ? cmd_down(name, argc, argv)
           : strcmp(command, "status") == 0  ? cmd_status(name, argc, argv)
           : strcmp(command, "eval") == 0    ? lab_eval_main(name, argc, argv)
           : strcmp(command, "run") == 0     ? lab_run_main(name, argc, argv)
           : strcmp(command, "traffic") == 0 ? lab_traffic_main(name, argc, argv)
           : strcmp(command, "fault") == 0   ? cmd_fault(name, argc, argv)
           : strcmp(command, "exec") == 0
               ? cmd_exec(name, argc, argv)
               : (fprintf(stderr, "foliot lab: no command '%s': `foliot lab --help`\n", command),
                  2);
}

int lab_main(int argc, char **argv)
{
    const char *name = "lab";
    const struct option_entry entries[] = {
        {"name", 0, OPTION_TEXT, &name, .expected = "a lab's name"},
        {"help", 'h', OPTION_HELP},
    };
    const struct option_set set = {.program = "foliot lab",
                                   .usage = usage,
                                   .entries = entries,
                                   .count = ARRAY_COUNT(entries),
                                   .first_word_ends = true};
    int first = 0;
    const int status = command_line_read(&set, argc, argv, &first);
    if (status != COMMAND_LINE_GOOD) {
        return status;
    }
    if (first == argc) {
        fputs(usage, stderr);
        return 2;
    }
    return name_check(name) < 0 ? 2 : run_command(name, argc - first, argv + first);
}
