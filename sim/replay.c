/* replay.c: `foliot sim replay`: a host's recorded inputs, told to the same code again. */
#include "sim/sim.h"

#include "base/arena.h"
#include "service/record/record.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: foliot sim replay [--trust] FILE\n"
    "  Plays what `foliot record` saved into the same code, prints the findings, and compares them "
    "to the bit with those\n"
    "  that the agent gave. A recording that doesn't reach back to the agent's start begins with a "
    "copy of its memory:\n"
    "  --trust says that you know who made it. By the build that recorded it only.\n";

static void on_action(void *context, struct mono now, const struct node_action *action)
{
    const struct mono *birth = context;
    char text[1024];
    if (action->kind == NODE_FINDING) {
        finding_text(&action->finding, NULL, text, sizeof(text));
        printf("%12.6f s  %s\n", (double)mono_sub(now, *birth).ns * 1e-9, text);
    }
}

static const char *reason(int rc)
{
    switch (rc) {
    case -EPROTO:
        return "not a recording, or damaged";
    case -ESTALE:
        return "another build's recording: replay it by that build";
    case -EACCES:
        return "begins with a copy of the agent's memory: --trust if you know who made it";
    case -ENOTSUP:
        return "begins in the middle of the agent's life, without a copy of its memory";
    default:
        return strerror(-rc);
    }
}

int sim_replay(int argc, char **argv)
{
    static const struct option options[] = {
        {"trust", no_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {0}};
    struct record *record = NULL;
    struct node *node = NULL;
    struct record_outcome outcome = {0};
    bool trust = false;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == 't') {
            trust = true;
        } else {
            fputs(usage, c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    if (optind + 1 != argc) {
        fputs(usage, stderr);
        return 2;
    }
    int rc = record_open(&record, argv[optind]);
    if (rc == 0) {
        struct mono birth = record_birth(record);
        rc = record_play(record, trust, on_action, &birth, &node, &outcome);
        if (rc == 0 && arena_is_open()) {
            arena_close();
        } else {
            node_free(node);
        }
    }
    record_close(record);
    if (rc < 0) {
        fprintf(stderr, "foliot sim replay: %s: %s\n", argv[optind], reason(rc));
        return 2;
    }
    printf("%ld events, %ld actions; %ld findings, %ld not the same to the bit\n", outcome.events,
           outcome.actions, outcome.findings, outcome.different);
    return outcome.different == 0 ? 0 : 1;
}
