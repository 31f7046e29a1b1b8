/* foliot-agent.c: the agent's command line. */
#include "base/bug.h"
#include "platform/config/command_line.h"
#include "service/agent/agent.h"
#include "service/agent/fleet_file.h"
#include "service/agent/join.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: foliot-agent [--config FILE]\n"
    "       foliot-agent join ADDRESS[:PORT] TOKEN [--host NAME] [--nic NAME]... [--leaf NAME]...\n"
    "                         [--config FILE] [--state-dir DIR]\n"
    "       foliot-agent members [--config FILE]\n"
    "One runs on each host: it keeps fleet time, probes the mesh, watches the links. Normally "
    "started by "
    "systemd.\n"
    "\n"
    "  join     makes this host a member of a controller's fleet: certificate, fleet key, peers\n"
    "  members  prints this host's list of members, as YAML\n"
    "\n";

static const char after[] =
    "\n"
    "FOLIOT_RUNTIME_DIR replaces runtime_dir. SIGHUP reads the configuration again.\n"
    "Exit status: 0 done, 1 it failed, 2 wrong usage.\n";

/* show: prints the list of members, too. */
static int check(const char *path, bool show)
{
    struct agent_config *config = NULL;
    struct agent_keys keys;
    struct config_error error;
    int r = agent_config_load(path, NULL, NULL, &config, &error);
    r = r < 0 ? r : agent_keys_load(config->key_file, &keys, &error);
    if (r < 0) {
        fprintf(stderr, "foliot-agent: %s\n", error.text);
    } else if (show) {
        fleet_file_print(config);
    } else {
        printf("%s: host %s, %u NICs, fleet of %u NICs on %u hosts, %u keys\n", path, config->host,
               config->nic_count, config->peer_count, agent_config_hosts(config), keys.count);
    }
    agent_config_free(config);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool take_nic(const char *name, void *to)
{
    struct join_options *join = to;
    if (join->nic_count == HOST_NIC_MAX) {
        return false;
    }
    join->nics[join->nic_count++] = name;
    return true;
}

static bool take_leaf(const char *name, void *to)
{
    struct join_options *join = to;
    if (join->leaf_count == HOST_NIC_MAX) {
        return false;
    }
    join->leaves[join->leaf_count++] = name;
    return true;
}

static int run_command(int argc, char **argv, const char *config_path, struct join_options *join)
{
    if (argc == 3 && strcmp(argv[0], "join") == 0) {
        join->address = argv[1];
        join->token = argv[2];
        return agent_join(join);
    }
    if (argc == 1 && strcmp(argv[0], "members") == 0) {
        return check(config_path, true);
    }
    if (strcmp(argv[0], "join") == 0) {
        fprintf(stderr, "foliot-agent: join: expected an address and a token, found %d word%s\n",
                argc - 1, argc == 2 ? "" : "s");
    } else {
        fprintf(stderr, "foliot-agent: expected join or members, found '%s'\n",
                argv[strcmp(argv[0], "members") == 0]);
    }
    return 2;
}

int main(int argc, char **argv)
{
    const char *config_path = AGENT_CONFIG_DEFAULT;
    bool check_only = false;
    struct join_options join = {.state_dir = AGENT_STATE_DEFAULT};
    const struct option_entry entries[] = {
        {"config", 'c', OPTION_TEXT, &config_path, .value = "FILE",
         .help = "configuration, default " AGENT_CONFIG_DEFAULT},
        {"check", 0, OPTION_FLAG, &check_only,
         .help = "read the configuration and the keys, print what is wrong, and stop"},
        {.kind = OPTION_HEADING, .help = "For join:"},
        {"host", 0, OPTION_TEXT, &join.host, .value = "NAME",
         .help = "this host's name in the fleet, default the machine's"},
        {"nic", 0, OPTION_OWN, &join, .take = take_nic, .expected = "a name, of at most 16 NICs",
         .value = "NAME",
         .help = "a NIC that takes part, once for each; default all hardware NICs with an address. "
                 "Rails count them by name"},
        {"leaf", 0, OPTION_OWN, &join, .take = take_leaf, .expected = "a name, for at most 16 NICs",
         .value = "NAME",
         .help = "the switch that the NICs are connected to: once for all of them, or once for "
                 "each --nic"},
        {"state-dir", 0, OPTION_TEXT, &join.state_dir, .value = "DIR",
         .help = "where the identity and the keys are kept, default " AGENT_STATE_DEFAULT},
        {.kind = OPTION_HEADING, .help = ""},
        {"help", 'h', OPTION_HELP, .help = "this text"},
        {"version", 'V', OPTION_VERSION, .help = "version"},
    };
    static_assert(HOST_NIC_MAX == 16, "the table's words have this number");
    const struct option_set set = {.program = "foliot-agent",
                                   .usage = usage,
                                   .after = after,
                                   .entries = entries,
                                   .count = ARRAY_COUNT(entries),
                                   .words_most = argc,
                                   .words = "a command"};
    int first = 0;
    const int status = command_line_read(&set, argc, argv, &first);
    if (status != COMMAND_LINE_GOOD) {
        return status;
    }
    join.config_path = config_path;
    if (first < argc) {
        return run_command(argc - first, argv + first, config_path, &join);
    }
    if (check_only) {
        return check(config_path, false);
    }
    const struct agent_options run = {.config_path = config_path,
                                      .runtime_dir = getenv("FOLIOT_RUNTIME_DIR")};
    setvbuf(stderr, NULL, _IOLBF, 0);
    return agent_run(&run);
}
