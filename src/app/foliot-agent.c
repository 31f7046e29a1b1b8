/* foliot-agent.c: the agent's command line. */
#include "service/agent/agent.h"
#include "service/agent/fleet_file.h"
#include "service/agent/join.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void usage(FILE *out)
{
    fputs(
        "usage: foliot-agent [--config FILE]\n"
        "       foliot-agent join ADDRESS[:PORT] TOKEN [--host NAME] [--nic NAME]... [--leaf "
        "NAME]...\n"
        "                         [--config FILE] [--state-dir DIR]\n"
        "       foliot-agent members [--config FILE]\n"
        "One per host: keeps fleet time, probes the mesh, watches the links. Normally started by "
        "systemd.\n"
        "\n"
        "  -c, --config FILE   configuration, default " AGENT_CONFIG_DEFAULT "\n"
        "      --check         read the configuration and the keys, print what is wrong, and stop\n"
        "  -h, --help          this text\n"
        "  -V, --version       version\n"
        "\n"
        "join makes this host a member of a controller's fleet: certificate, fleet key, peers.\n"
        "members prints the list of members as this host has it, as YAML.\n"
        "Without --nic all hardware NICs with an address take part; rails count them by name.\n"
        "\n"
        "FOLIOT_RUNTIME_DIR replaces runtime_dir. SIGHUP reads the configuration again.\n",
        out);
}

/* show: and the list of members. */
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

int main(int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"check", no_argument, NULL, 'C'},
                                            {"host", required_argument, NULL, 'H'},
                                            {"nic", required_argument, NULL, 'n'},
                                            {"leaf", required_argument, NULL, 'l'},
                                            {"state-dir", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {NULL, 0, NULL, 0}};
    struct agent_options run = {.config_path = AGENT_CONFIG_DEFAULT,
                                .runtime_dir = getenv("FOLIOT_RUNTIME_DIR")};
    struct join_options join = {.config_path = AGENT_CONFIG_DEFAULT,
                                .state_dir = AGENT_STATE_DEFAULT};
    bool check_only = false;
    for (int c; (c = getopt_long(argc, argv, "c:hV", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            run.config_path = join.config_path = optarg;
            break;
        case 'H':
            join.host = optarg;
            break;
        case 'n':
            join.nics[join.nic_count] = optarg;
            join.nic_count += join.nic_count < HOST_NIC_MAX;
            break;
        case 'l':
            join.leaves[join.leaf_count] = optarg;
            join.leaf_count += join.leaf_count < HOST_NIC_MAX;
            break;
        case 's':
            join.state_dir = optarg;
            break;
        case 'C':
            check_only = true;
            break;
        case 'h':
            usage(stdout);
            return EXIT_SUCCESS;
        case 'V':
            puts("foliot-agent " FOLIOT_VERSION);
            return EXIT_SUCCESS;
        default:
            usage(stderr);
            return 2;
        }
    }
    if (optind + 3 == argc && strcmp(argv[optind], "join") == 0) {
        join.address = argv[optind + 1];
        join.token = argv[optind + 2];
        return agent_join(&join);
    }
    if (optind + 1 == argc && strcmp(argv[optind], "members") == 0) {
        return check(run.config_path, true);
    }
    if (optind != argc) {
        usage(stderr);
        return 2;
    }
    setvbuf(stderr, NULL, _IOLBF, 0);
    return check_only ? check(run.config_path, false) : agent_run(&run);
}
