/* foliot_help.c: what each form of a command does, and what its options mean: `foliot COMMAND --help`. foliot_audit_help.c has
 * the forms of `foliot audit`. A test checks that every form and every option has its sentence. */
#include <string.h>

#include "app/foliot_command.h"
#include "base/bug.h"

const struct command_word help_of_mesh[] = {
    {"--paths",
     "Shows the paths of this host's NICs, as its agent measures them. Without --paths: the "
     "worst ones only."},
    {"--full", "Measures all pairs of NICs of the fleet now, and shows the worst ones."},
    {0}};

const struct command_word help_of_findings[] = {
    {"--json", "Shows what the agent of this host found, or what the agents of a lab did."},
    {"--controller", "Shows the findings of the whole fleet."},
    {0}};

const struct command_word help_of_jobs[] = {
    {"ID [--save FILE]",
     "Shows the jobs of this host, or of a lab. With ID: one job, with its ranks and flows."},
    {"compare", "Compares two runs that --save wrote, flow by flow."},
    {"ID |", "Shows the jobs of the whole fleet, or one of them, or compares two of them."},
    {0}};

const struct command_word help_of_selftest[] = {
    {"clock [--json]", "Shows whether the bounds of the running agent are honest."},
    {"clock", "Tries the stamps and clocks of these NICs. It needs no agent. It sends ten small "
              "packets a second."},
    {"rdma",
     "Shows the RDMA ports of this host, and tests whether a silenced queue pair is silent. "
     "It needs no agent."},
    {0}};

const struct command_word help_of_alerts[] = {
    {"list", "Lists open incidents. With --all: also those that are over."},
    {"ack", "Notes that you work on incident N. It is not repeated and not escalated."},
    {"silence", "Sends no notices of these hosts, elements or rules for a time."},
    {"silences", "Lists the silences."},
    {"unsilence", "Ends silence N."},
    {"test", "Shows what a rule would have reported, by the history of the controller."},
    {"check", "Checks a file of rules. It needs no controller."},
    {"export", "Prints the rules in the form of Prometheus."},
    {"metrics", "Lists the metrics that rules can use. It needs no controller."},
    {0}};

const struct command_word help_of_host[] = {
    {"list", "Lists the members of the fleet."},
    {"check", "Answers whether a host may join a job. Hosts probe it for some seconds."},
    {"remove", "Removes a host from the fleet. Its certificate is refused from then on."},
    {"token", "Makes a token by which hosts join. It prints the command for them."},
    {"rotate", "Makes a new authority or the next fleet key. Alone: shows how far a rotation is."},
    {0}};

const struct command_word help_of_token[] = {
    {"list", "Lists the tokens, without their text."},
    {"make", "Makes a token for the API and prints it. It is shown only once."},
    {"join", "Makes a token by which hosts join. It prints the command for them."},
    {"revoke", "Ends a token at once."},
    {0}};

const struct command_word help_of_config[] = {
    {"show", "Shows the configuration that agents have now."},
    {"diff", "Shows what a file would change."},
    {"apply",
     "Makes a file the next version: for all hosts, or first for some of them (canaries)."},
    {"history", "Lists the versions."},
    {"rollback", "Ends a trial. Without a trial: goes back to VERSION, or to the version before."},
    {"observe", "on: jobs of the whole fleet only measure. off: the configuration decides again."},
    {0}};

const struct command_word help_of_topology[] = {
    {"show", "Shows the declared topology, and where the fleet differs from it."},
    {"declare", "Makes a file the next version of the declared topology."},
    {"history", "Lists the versions."},
    {0}};

struct option_help {
    const char *command; /* NULL: all other commands that have the option */
    const char *option, *does;
};

static const struct option_help options[] = {
    {"jobs", "--save", "also write the job to FILE, for 'compare'"},
    {"mesh", "--paths", "list all paths, not only the worst"},
    {"mesh", "--full", "measure all pairs of NICs now, by the controller"},
    {"mesh", "--rail", "only pairs of this rail"},
    {"audit", "--facts", "compare with these sheets: a file or a folder"},
    {"audit", "--junit", "also write a JUnit report"},
    {"audit", "--html", "also write a page"},
    {"audit", "--config", "the site's settings (/etc/foliot/audit.yaml)"},
    {"audit", "--format", "text, json, slurm, nagios or npd"},
    {"audit", "--age", "facts of so many seconds may pass a host"},
    {"audit", "--known", "where facts are kept for --age"},
    {"audit", "--markdown", "print the checks as the documentation has them"},
    {"audit", "--man", "print the checks as the manual has them"},
    {"audit", "--fail", "try this limit for a failure"},
    {"audit", "--warn", "try this limit for a warning"},
    {"audit", "--since", "only audits from so long ago (8d)"},
    {"audit", "--declared", "try this as what audit.yaml declares"},
    {"audit", "--fleet", "ask the controller, for the hosts of the fleet"},
    {"audit", "--matrix", "every NIC also exchanges packets with every other one"},
    {"audit", "--ip", "the addresses that --matrix uses: 4 or 6"},
    {"audit", "--bandwidth", "also measure NICs in pairs; this loads links fully"},
    {"audit", "--nccl", "as --bandwidth, and all-reduces of all hosts"},
    {"audit", "--all", "also show what passed"},
    {"selftest", "--nics", "the NICs, with commas between them"},
    {"selftest", "--peer", "send to this host of the link, which runs the same test"},
    {"selftest", "--seconds", "how long (300)"},
    {"selftest", "--device", "only this RDMA device"},
    {"selftest", "--rounds", "how often (60; 0: do not try)"},
    {"selftest", "--look", "watch the buffer for so many milliseconds (15)"},
    {"selftest", "--library", "use this instead of libibverbs.so.1"},
    {"selftest", "--record", "write what the devices answered, without names"},
    {"support-bundle", "--config", "the agent's configuration"},
    {"alerts", "--all", "also incidents that are over"},
    {"alerts", "--host", "hosts, by name or pattern"},
    {"alerts", "--element", "elements, by name or pattern"},
    {"alerts", "--rule", "a rule, by name or pattern"},
    {"alerts", "--for", "for how long (2h)"},
    {"alerts", "--maintenance", "ten minutes more, for what comes late"},
    {"alerts", "--since", "from so long ago (1d)"},
    {"alerts", "--file", "the file of rules"},
    {"alerts", "--prometheus", "in the form of Prometheus; there is no other"},
    {"changes", "--since", "from so long ago (1h)"},
    {"changes", "--host", "only this host"},
    {"changes", "--all", "every event as it came"},
    {"host", "--seconds", "how long hosts probe (10)"},
    {"host", "--finish", "end the old authority now"},
    {"host", "--after", "when the next key is used (10min)"},
    {"config", "--canary", "first only this share of the hosts"},
    {"config", "--watch", "how long canaries must stay well (10min)"},
    {"config", "--wait", "wait for the result of the canaries"},
    {"keygen", "--rotate", "add the next key to the file"},
    {"keygen", "--host", "make a host's own key instead"},
    {"keygen", "--id", "the number of the key"},
    {NULL, "--uses", "how many hosts may join by the token (1)"},
    {NULL, "--hours", "how long the token lasts; a join token 24, else it does not end"},
    {NULL, "--scope", "only hosts of these names: patterns, with commas"},
    {NULL, "--why", "the reason, which the history keeps"},
    {NULL, "--root", "read below this folder, as if it were /"},
    {NULL, "--output", "the file to write"},
    {NULL, "--json", "print JSON (docs/json.md)"},
    {NULL, "--watch", "repeat"},
    {NULL, "--interval", "time between two updates of --watch (1)"},
    {NULL, "--host", "this host of a lab"},
    {NULL, "--lab", "the hosts of this lab"},
    {NULL, "--all", "all hosts of the only lab that runs here"},
    {NULL, "--socket", "ask the agent at this socket"},
    {NULL, "--controller", "the controller's address (FOLIOT_API)"},
    {NULL, "--authority", "the authority's certificate, for https"},
    {NULL, "--token-file", "a file with the token (FOLIOT_TOKEN)"},
};

/* The entry's text for the command's option. NULL: the command lacks the option, or has its own entry for it. */
static const char *told(const struct command *command, size_t at)
{
    const struct option_help *o = &options[at];

    if (command_option(command, o->option + 2) < 0 ||
        (o->command != NULL && strcmp(o->command, command->name) != 0)) {
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_COUNT(options) && o->command == NULL; i++) {
        if (options[i].command != NULL && strcmp(options[i].command, command->name) == 0 &&
            strcmp(options[i].option, o->option) == 0) {
            return NULL;
        }
    }
    return o->does;
}

const char *help_option(const struct command *command, size_t *at, const char **ret_option)
{
    while (*at < ARRAY_COUNT(options)) {
        const char *does = told(command, *at);
        *ret_option = options[(*at)++].option;
        if (does != NULL) {
            return does;
        }
    }
    return NULL;
}
