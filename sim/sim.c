/* sim.c: `foliot sim`: one word to its subcommands. */
#include "sim/sim.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: foliot sim run SCENARIO... [--seed N | --seeds A..B] [--json] [--trace] [--quiet]\n"
    "                      [--record HOST:FILE]\n"
    "       foliot sim replay [--trust] FILE\n"
    "       foliot sim swarm [--seeds A..B] [--minutes M] [--shrink] [--lab] [--nics N] [--tries "
    "N] [--out "
    "DIR] "
    "[--only NAME] "
    "[--json]\n"
    "       foliot sim scale [--hosts N,N,...] [--seconds S] [--json]\n"
    "\n"
    "run     plays scenarios in a simulated world and judges their bounds; --record: what one host "
    "was\n"
    "        told since its agent last started (at most ten minutes), for replay\n"
    "replay  feeds a host's recorded inputs to the same code and compares what it decides\n"
    "swarm   plays worlds drawn at random, judged by what must hold in any of them; --shrink: "
    "writes "
    "the\n"
    "        smallest world that still breaks it as a scenario file into DIR (here)\n"
    "        --lab: with real packets, up to eight hosts; --only: judged by clock, findings or one "
    "invariant alone\n"
    "scale   how cost per host grows with the fleet\n";

int sim_main(int argc, char **argv)
{
    static const struct {
        const char *word;
        int (*run)(int argc, char **argv);
    } words[] = {
        {"run", sim_run}, {"replay", sim_replay}, {"scale", sim_scale}, {"swarm", sim_swarm}};

    for (int i = 1; i < argc && i <= 2; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
    }
    for (size_t i = 0; argc >= 2 && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(argv[1], words[i].word) == 0) {
            return words[i].run(argc - 1, argv + 1);
        }
    }
    fputs(usage, stderr);
    return 2;
}
