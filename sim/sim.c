/* sim.c: `foliot sim`: finds the subcommand. */
#include "sim/sim.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: foliot sim run SCENARIO... [--seed N | --seeds A..B] [--json] [--findings] [--quiet]\n"
    "                      [--record HOST:FILE]\n"
    "       foliot sim replay [--trust] [--quiet] FILE\n"
    "       foliot sim swarm [--seeds A..B] [--minutes M] [--shrink] [--lab] [--nics N] [--tries "
    "N]\n"
    "                        [--out DIR] [--only NAME] [--json]\n"
    "       foliot sim scale [--hosts N,N,...] [--seconds S] [--json]\n"
    "\n"
    "  run     plays scenarios in a simulated world and judges their bounds\n"
    "  replay  feeds a host's recorded inputs to the same code and compares its decisions\n"
    "  swarm   plays random worlds and judges them by conditions that must hold in any world\n"
    "  scale   measures how the cost of a host grows with the fleet\n"
    "\n"
    "foliot sim COMMAND --help: its options\n";

int sim_main(int argc, char **argv)
{
    static const struct {
        const char *word;
        int (*run)(int argc, char **argv);
    } words[] = {
        {"run", sim_run}, {"replay", sim_replay}, {"scale", sim_scale}, {"swarm", sim_swarm}};

    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    for (size_t i = 0; argc >= 2 && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(argv[1], words[i].word) == 0) {
            return words[i].run(argc - 1, argv + 1);
        }
    }
    if (argc >= 2) {
        fprintf(stderr, "foliot sim: expected run, replay, swarm or scale, found '%s'\n", argv[1]);
    } else {
        fputs(usage, stderr);
    }
    return 2;
}
